package controllerproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/tunnel-gateway/tunnel-gateway/test/toolbuild"
)

// Build builds the controller at the absolute path, with the requirements of
// its own module and none of its tests'. It has the race detector if the caller
// has it.
//
// The working directory must be inside the repository, or in a module that
// requires it.
func Build(ctx context.Context, path string) error {
	root, err := toolbuild.Root(ctx)
	if err != nil {
		return err
	}
	// What `make build` or the calling test has compiled is there already.
	flag, cgo := "-trimpath", "CGO_ENABLED=0"
	if raceDetector {
		flag, cgo = "-race", "CGO_ENABLED=1"
	}
	command := exec.CommandContext(ctx, "go", "build", flag, "-o", path, "./cmd/tunnel-gateway")
	command.Dir, command.Env = root, append(os.Environ(), cgo, "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the controller: %w\n%s", err, output)
	}
	return nil
}

// Options say how a controller runs.
type Options struct {
	// Binary is the path of what [Build] has built.
	Binary string
	// Kubeconfig is the path of the file that leads to the control plane.
	Kubeconfig string
	// ControllerNamespace is the namespace of the controller's own objects. It is
	// required, and has to exist.
	ControllerNamespace string
	// ClusterID begins the names of the tunnels.
	ClusterID string
	// Cloudflare is the base URL of the API, with the version in its path.
	Cloudflare string
	// AccountID and Token are "account" and "token" when they are empty.
	AccountID, Token string
	// Flags are further ones, which win over what is said here: it runs without
	// leader election, and serves neither metrics nor probes.
	Flags []string
	// Output is where its log goes. A file may be closed once it runs.
	Output io.Writer
}

// Start runs a controller. The caller stops it, before the control plane.
func Start(o Options) (*Process, error) {
	if o.ControllerNamespace == "" {
		return nil, errors.New("starting the controller: the options have no ControllerNamespace")
	}
	command := exec.Command(o.Binary, append([]string{
		"controller", "--kubeconfig=" + o.Kubeconfig, "--controller-namespace=" + o.ControllerNamespace, "--cluster-id=" + o.ClusterID,
		"--leader-election=false", "--metrics-address=0", "--health-address=0",
	}, o.Flags...)...)
	command.Env = append(os.Environ(),
		"CLOUDFLARE_ACCOUNT_ID="+cmp.Or(o.AccountID, "account"),
		"CLOUDFLARE_API_TOKEN="+cmp.Or(o.Token, "token"),
		"CLOUDFLARE_BASE_URL="+o.Cloudflare)
	command.Stdout, command.Stderr = o.Output, o.Output
	return Run(command)
}
