package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

var (
	long = flag.Duration("long", 0, "repeat the faults in a random order for this time")
	seed = flag.Uint64("seed", 0, "seed of the order with -long; 0 selects a random one")
	only = flag.String("fault", "", "regular expression for the names of the faults that happen")
)

// programs is the directory with the programs that the tests run.
var programs = os.Getenv("FAULTS_PROGRAMS")

// TestMain runs the tests in a network namespace, so that Envoys can connect to backends.
func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // for the clients in this process
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if programs == "" {
		dir, err := os.MkdirTemp("", "tunnel-gateway-faults-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
		if programs = dir; os.Setenv("FAULTS_PROGRAMS", dir) != nil {
			panic("the name is valid")
		}
	}
	return netns.Run(prepare, m.Run)
}

// prepare builds and downloads the programs, which may be impossible in the network namespace.
func prepare() error {
	ctx := context.Background()
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		return err
	}
	if _, err := binaries.Envoy(ctx, os.Stderr); err != nil {
		return err
	}
	for _, program := range []string{"connector", "envoy"} {
		if output, err := exec.CommandContext(ctx, "go", "build", "-o", programPath(program), "../edge/"+program).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, output)
		}
	}
	return controllerproc.Build(ctx, programPath("tunnel-gateway"))
}

func programPath(name string) string { return filepath.Join(programs, name) }

// fault is something that fails, and then recovers.
type fault struct {
	name string
	// run causes the fault, changes objects meanwhile, and ends the fault.
	run func(*world)
	// onlyLong is set for a fault that takes too long for a run without -long.
	onlyLong bool
}

func TestFaults(t *testing.T) {
	netns.Require(t)
	w := startWorld(t)
	started := time.Now()
	for i, f := range order(t) {
		if *long > 0 && time.Since(started) > *long {
			t.Logf("%d faults in %s", i, time.Since(started).Round(time.Second))
			break
		}
		if !t.Run(f.name, func(t *testing.T) { w.suffer(t, f) }) {
			t.Fatal("the state after the fault is not known, so no other fault follows")
		}
	}
}

// suffer runs a fault, and expects that the controller recovers from it.
func (w *world) suffer(t *testing.T, f fault) {
	w.T = t
	at := time.Now()
	f.run(w)
	w.cloudflare.ClearFaults()
	ended := time.Now()
	w.settle()
	w.follow()
	t.Logf("%s of faults, recovered after %s; %s", ended.Sub(at).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond), w.visitors)
	w.visitors.check(t)
}

// order returns the faults in the order in which they happen: each once, or with -long
// in a random order without an end in practice.
func order(t *testing.T) []fault {
	t.Helper()
	selected, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(faults(), func(f fault) bool {
		return !selected.MatchString(f.name) || f.onlyLong && *long == 0 && *only == ""
	})
	if len(all) == 0 {
		t.Fatalf("no fault matches %q", *only)
	}
	if *long == 0 {
		return all
	}
	for *seed == 0 {
		*seed = rand.Uint64() // #nosec G404 -- a test
	}
	t.Logf("the seed is %d; repeat this order with -seed %d", *seed, *seed)
	random := rand.New(rand.NewPCG(*seed, 0)) // #nosec G404 -- the test must be reproducible
	var repeated []fault
	for range 10_000 / len(all) {
		for _, i := range random.Perm(len(all)) {
			repeated = append(repeated, all[i])
		}
	}
	return repeated
}
