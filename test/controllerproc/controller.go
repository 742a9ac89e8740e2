package controllerproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// Build builds the controller to the absolute path, with the main module's requirements.
//
// The working directory must be inside the repository, or in a module that requires it.
func Build(ctx context.Context, path string) error {
	return build(ctx, path, "-trimpath", "CGO_ENABLED=0")
}

// BuildRacing is like [Build], and enables the race detector, which multiplies the CPU time and
// needs a C compiler.
func BuildRacing(ctx context.Context, path string) error {
	return build(ctx, path, "-race", "CGO_ENABLED=1")
}

// build builds with a flag and a value of CGO_ENABLED that reuse the build cache of `make test` or
// `make build`.
func build(ctx context.Context, path, flag, cgo string) error {
	root, err := binaries.Root(ctx)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", flag, "-o", path, "./cmd/tunnel-gateway")
	command.Dir, command.Env = root, append(os.Environ(), cgo, "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the controller: %w\n%s", err, output)
	}
	return nil
}

// Options configures a controller process.
type Options struct {
	// Binary is the path to a binary that [Build] has built.
	Binary string
	// Kubeconfig is the path to the control plane's kubeconfig.
	Kubeconfig string
	// ControllerNamespace is the controller's namespace. It is required and must
	// exist.
	ControllerNamespace string
	// ClusterID is the prefix of all tunnel names.
	ClusterID string
	// Cloudflare is the base URL of the Cloudflare API, including the version.
	Cloudflare string
	// AccountID and Token default to "account" and "token".
	AccountID, Token string
	// Flags are additional flags. They override the defaults: the controller runs without
	// leader election, serves neither metrics nor probes, and serves xDS on a free port
	// on the loopback address.
	Flags []string
	// Output receives the controller's log. The caller may close a file after Start
	// has returned.
	Output io.Writer
}

// Start starts a controller. The caller stops it before it stops the control
// plane.
func Start(o Options) (*Process, error) {
	if o.ControllerNamespace == "" {
		return nil, errors.New("start the controller: ControllerNamespace is required")
	}
	command := exec.Command(o.Binary, append([]string{
		"controller", "--kubeconfig=" + o.Kubeconfig, "--controller-namespace=" + o.ControllerNamespace, "--cluster-id=" + o.ClusterID,
		"--leader-election=false", "--metrics-address=0", "--health-address=0", "--xds-bind-address=127.0.0.1:0",
	}, o.Flags...)...)
	command.Env = append(os.Environ(),
		"CLOUDFLARE_ACCOUNT_ID="+cmp.Or(o.AccountID, "account"),
		"CLOUDFLARE_API_TOKEN="+cmp.Or(o.Token, "token"),
		"CLOUDFLARE_BASE_URL="+o.Cloudflare)
	command.Stdout, command.Stderr = o.Output, o.Output
	return Run(command)
}
