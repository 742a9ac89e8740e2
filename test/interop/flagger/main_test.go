package flagger

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

const root = "../../.."

// programsVariable names the environment variable with the directory for the programs,
// which a run's processes share.
const programsVariable = "FLAGGER_PROGRAMS"

func programPath(name string) string { return filepath.Join(os.Getenv(programsVariable), name) }

// TestMain runs the tests in a network namespace, so that Envoys can connect to Pods and
// Services. All releases run concurrently on every machine, because they mostly wait.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(len(releases))); err != nil {
		panic(err) // the flag exists
	}
	os.Exit(runInNamespace(m))
}

func runInNamespace(m *testing.M) int {
	if os.Getenv(programsVariable) == "" {
		dir, err := os.MkdirTemp("", "tunnel-gateway-flagger-")
		if err == nil {
			err = os.Setenv(programsVariable, dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	}
	return netns.Run(func() error { return preparePrograms(context.Background()) }, m.Run)
}

// preparePrograms builds and downloads all programs, which may be impossible in the network
// namespace.
func preparePrograms(ctx context.Context) error {
	_, controlPlane := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager)
	_, envoy := binaries.Envoy(ctx, os.Stderr)
	_, flagger := Binary(ctx, os.Stderr)
	_, prometheus := binaries.Prometheus(ctx, os.Stderr)
	return errors.Join(controlPlane, envoy, flagger, prometheus,
		build(ctx, ".", "./app", "app"),
		build(ctx, root, "./test/edge/connector", "connector"),
		build(ctx, root, "./test/edge/envoy", "envoy"),
		controllerproc.Build(ctx, programPath("tunnel-gateway")))
}

// build builds a package in the directory's module.
func build(ctx context.Context, dir, pkg, name string) error {
	command := exec.CommandContext(ctx, "go", "build", "-C", dir, "-trimpath", "-o", programPath(name), pkg) // #nosec G204 -- constants
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, output)
	}
	return nil
}

// moduleDir returns the directory with Flagger's source.
func moduleDir(t *testing.T) string {
	t.Helper()
	command := exec.Command("go", "list", "-C", "binary", "-m", "-f", "{{.Dir}}", modulePath)
	command.Stderr = os.Stderr
	output, err := command.Output()
	must(t, err)
	return strings.TrimSpace(string(output))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
