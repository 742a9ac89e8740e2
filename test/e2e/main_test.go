package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

var update = flag.Bool("update", false, "write testdata/simulator.json")

// programsVariable names the environment variable with the directory with the built programs.
const programsVariable = "E2E_PROGRAMS"

// TestMain runs the tests in a network namespace, where the backends have an address that no
// other machine reaches.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if os.Getenv(programsVariable) == "" {
		dir, err := os.MkdirTemp("", "tunnel-gateway-e2e-programs-")
		if err == nil {
			err = os.Setenv(programsVariable, dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	}
	return netns.Run(prepare, m.Run)
}

// prepare builds and downloads the programs.
func prepare() error {
	ctx, dir := context.Background(), os.Getenv(programsVariable)
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		return err
	}
	if _, err := binaries.Envoy(ctx, os.Stderr); err != nil {
		return err
	}
	for _, program := range []string{"connector", "envoy"} {
		command := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, program), "../edge/"+program) // #nosec G204 G702 -- fixed names
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, output)
		}
	}
	return controllerproc.Build(ctx, filepath.Join(dir, "tunnel-gateway"))
}

// testOptions returns the flags for a run against the simulator.
func testOptions(t *testing.T) options {
	t.Helper()
	dir := os.Getenv(programsVariable)
	return options{
		simulator: true, events: 4 * time.Second, upload: 100, controller: filepath.Join(dir, "tunnel-gateway"), programs: dir,
		rbac: "../../config/rbac", logs: t.TempDir(), progress: &bytes.Buffer{},
	}
}

// runCommand runs the command without input, and returns its status and its output.
func runCommand(ctx context.Context, t *testing.T, o options) (status int, output string) {
	t.Helper()
	var out bytes.Buffer
	status = command(ctx, o, strings.NewReader(""), &out)
	t.Logf("status %d\n%s", status, out.String())
	if t.Failed() || status != statusOK {
		logs, _ := filepath.Glob(filepath.Join(o.logs, "*.log")) // the pattern is valid
		for _, path := range logs {
			text, _ := os.ReadFile(path) // without it, the output is sufficient
			t.Logf("%s:\n%s", path, text)
		}
	}
	return status, out.String()
}
