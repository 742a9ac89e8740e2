// Command bench measures both data planes side by side, each with several numbers of
// hostnames, compares the results with the goals in docs/performance.md, and prints tables
// in Markdown.
//
// Each number of hostnames has its own bed: a process with a control plane, a controller,
// one connector and, with the data plane Envoy, the real Envoy. The programs of a bed run in a
// network namespace, in which Service addresses are local.
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

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/images"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// maxHostnames limits the hostnames in a bed.
const maxHostnames = 50_000

// options are the flags.
type options struct {
	rules, envoy, routes  sizes
	rounds                int
	duration              time.Duration
	changes               int
	connections           int
	rate                  int
	profile               string
	programs, binaryEnvoy string // paths
	cloudflared           string // path, or empty for the stand-in
}

// sizes is a flag with hostname or route counts.
type sizes []int

func (s *sizes) String() string { return strings.Trim(fmt.Sprint(*s), "[]") }

func (s *sizes) Set(value string) error {
	*s = nil
	for _, text := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
		size, err := strconv.Atoi(text)
		if err != nil || size < 2 || size > maxHostnames {
			return fmt.Errorf("must be numbers from 2 to %d, got %q", maxHostnames, text)
		}
		*s = append(*s, size)
	}
	return nil
}

func main() {
	log.SetLogger(logr.Discard())
	if settings := os.Getenv(bedVariable); settings != "" {
		os.Exit(runBed(settings))
	}
	o := options{rules: sizes{10, 1000}, envoy: sizes{10, 1000, 10_000, 50_000}, routes: sizes{900, 10_000}}
	flag.Var(&o.rules, "rules", "`numbers` of hostnames with ingress rules, with commas between them; empty for none")
	flag.Var(&o.envoy, "envoy", "`numbers` of hostnames with Envoy; more than 20000 have ten hostnames for each route and Service, fewer have two")
	flag.Var(&o.routes, "routes", "`numbers` of routes with which the CPU time of one change is measured for both data planes")
	flag.IntVar(&o.rounds, "rounds", 3, "`number` of repetitions of each measurement")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "`duration` of each measurement of requests")
	flag.IntVar(&o.changes, "changes", 5, "`number` of changed routes, and of routes with a new hostname, in each repetition")
	flag.IntVar(&o.connections, "connections", 16, "`number` of visitors' connections")
	flag.IntVar(&o.rate, "rate", 400, "`number` of requests per second while latencies are measured")
	flag.StringVar(&o.profile, "profile", "", "`directory` for CPU profiles and metrics of the controller during the route changes, and for profiles of its heap")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run builds the programs, runs the measurements and prints their results.
func run(o options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.rounds < 1 || o.changes < 1 {
		return errors.New("-rounds and -changes must be at least 1")
	}
	if o.programs, err = os.MkdirTemp("", "tunnel-gateway-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.programs) //nolint:errcheck // temporary files
	if err := prepare(ctx, o.programs); err != nil {
		return err
	}
	if o.binaryEnvoy, err = binaries.Envoy(ctx, os.Stderr); err != nil {
		return err
	}
	if o.cloudflared, err = images.FindCloudflared(); err != nil {
		return err
	}
	if o.cloudflared == "" {
		fmt.Fprintln(os.Stderr, "==> CLOUDFLARED is not set: the connector is the stand-in, and the simulator applies the ingress rules")
	}
	return measureAll(ctx, o)
}

// prepare builds and downloads the programs, for which the namespaces have no network.
func prepare(ctx context.Context, programs string) error {
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
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
