// Command bench measures both data planes side by side, each with several numbers of
// hostnames, and prints a table in Markdown. Each measurement has a new control plane, a
// controller, one connector and, with the data plane Envoy, the real Envoy.
//
// The programs run in a network namespace, in which Service addresses are local.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/images"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// programsVariable names the environment variable with the directory that contains the
// built programs.
const programsVariable = "BENCH_PROGRAMS"

// options are the flags.
type options struct {
	rules, envoy sizes
	duration     time.Duration
	changes      int
	connections  int
	rate         int
	profile      string
}

// sizes is a flag with numbers of hostnames.
type sizes []int

func (s *sizes) String() string { return strings.Trim(fmt.Sprint(*s), "[]") }

func (s *sizes) Set(value string) error {
	*s = nil
	for _, text := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
		size, err := strconv.Atoi(text)
		if err != nil || size < 2 || size > 20000 {
			return fmt.Errorf("must be numbers from 2 to 20000, got %q", text)
		}
		*s = append(*s, size)
	}
	return nil
}

func main() {
	o := options{rules: sizes{10, 100, 1000}, envoy: sizes{10, 1000, 10000}}
	flag.Var(&o.rules, "rules", "`numbers` of hostnames with ingress rules, with commas between them; empty for none")
	flag.Var(&o.envoy, "envoy", "`numbers` of hostnames with Envoy")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "`duration` of each measurement of requests")
	flag.IntVar(&o.changes, "changes", 15, "`number` of route changes")
	flag.IntVar(&o.connections, "connections", 16, "`number` of visitors' connections")
	flag.IntVar(&o.rate, "rate", 400, "`number` of requests per second while latencies are measured")
	flag.StringVar(&o.profile, "profile", "", "`directory` for CPU profiles and metrics of the controller during the route changes")
	flag.Parse()
	log.SetLogger(logr.Discard())
	os.Exit(run(o))
}

// run builds the programs and runs the measurements, and returns the exit status.
func run(o options) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv(programsVariable) == "" {
		dir, err := os.MkdirTemp("", "tunnel-gateway-bench-")
		if err == nil {
			err = os.Setenv(programsVariable, dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	}
	programs := os.Getenv(programsVariable)
	return netns.Run(func() error { return prepare(ctx, programs) }, func() int {
		if err := measureAll(ctx, o, programs); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
		return 0
	})
}

// prepare builds and downloads the programs, for which the namespace has no network.
func prepare(ctx context.Context, programs string) error {
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		return err
	}
	if _, err := binaries.Envoy(ctx, os.Stderr); err != nil {
		return err
	}
	for _, name := range []string{"connector", "envoy"} {
		command := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(programs, name), // #nosec G204 G702 -- fixed names
			"github.com/tunnel-gateway/tunnel-gateway/test/edge/"+name)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, output)
		}
	}
	return controllerproc.Build(ctx, filepath.Join(programs, "tunnel-gateway"))
}

// measureAll runs the measurements one after the other and prints their results.
func measureAll(ctx context.Context, o options, programs string) error {
	envoy, err := binaries.Envoy(ctx, os.Stderr)
	if err != nil {
		return err
	}
	cloudflared, err := images.FindCloudflared()
	if err != nil {
		return err
	}
	if cloudflared == "" {
		fmt.Fprintln(os.Stderr, "==> CLOUDFLARED is not set: the connector is the stand-in, and the simulator applies the ingress rules")
	}
	var results []result
	for _, plane := range []struct {
		dataPlane v1alpha1.DataPlane
		sizes     sizes
	}{{v1alpha1.DataPlaneIngressRules, o.rules}, {v1alpha1.DataPlaneEnvoy, o.envoy}} {
		for _, size := range plane.sizes {
			fmt.Fprintf(os.Stderr, "==> measuring %s with %d hostnames\n", plane.dataPlane, size)
			r, err := measureOne(ctx, o, bedOptions{
				dataPlane: plane.dataPlane, hostnames: size, programs: programs, envoy: envoy, cloudflared: cloudflared,
			})
			if err != nil {
				return fmt.Errorf("measure %s with %d hostnames: %w", plane.dataPlane, size, err)
			}
			results = append(results, r)
		}
	}
	printTable(os.Stdout, results)
	return nil
}

// measureOne starts the programs, measures, and stops them.
func measureOne(ctx context.Context, o options, bo bedOptions) (r result, err error) {
	b, err := startBed(ctx, bo)
	if err == nil {
		r, err = b.measure(ctx, o)
	}
	return r, errors.Join(err, b.stop())
}
