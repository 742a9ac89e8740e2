// Command e2e runs tunnel-gateway against the real Cloudflare, or against the simulator, with
// a real control plane, the real controller binary and the real Envoy on this machine: it
// creates a tunnel and records, and checks what visitors get. It prints what differs
// between Cloudflare and the simulator.
//
// Everything that it creates at Cloudflare has a random prefix. It removes everything at the
// end, after a failure and after Ctrl-C, from a fresh listing and without the controller.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options are the flags.
type options struct {
	simulator, yes bool
	clean          string
	steps          string
	events         time.Duration
	upload         int64 // in MB
	controller     string
	programs       string
	rbac           string
	logs           string
	progress       io.Writer
	hooks          hooks
}

// cleanTimeout limits the removal at the end.
const cleanTimeout = 5 * time.Minute

func main() {
	o := options{progress: os.Stderr}
	flag.BoolVar(&o.simulator, "simulator", false, "run against the simulator")
	flag.BoolVar(&o.yes, "yes", false, "create the tunnel and the records without asking")
	flag.StringVar(&o.clean, "clean", "", "remove what the run with the `prefix` has left, and exit")
	flag.StringVar(&o.steps, "steps", "", "run the steps with these `names`, separated by commas, and the steps that these need (default: all)")
	flag.DurationVar(&o.events, "events", 2*time.Minute, "the `duration` of the server-sent events")
	flag.Int64Var(&o.upload, "upload", 100, "the size of the upload in `MB`; the Free plan's limit is 100")
	flag.StringVar(&o.controller, "controller", "bin/tunnel-gateway", "path of the controller `binary`")
	flag.StringVar(&o.programs, "programs", "bin/e2e-programs", "`directory` of the programs that replace container images")
	flag.StringVar(&o.rbac, "rbac", "config/rbac", "`directory` of the manifests with the controller's permissions")
	flag.StringVar(&o.logs, "logs", os.TempDir(), "`directory` for the controller's log")
	flag.Parse()
	log.SetLogger(logr.Discard()) // for the clients in this process
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, o, os.Stdin, os.Stdout))
}

// The exit statuses.
const (
	statusOK     = 0
	statusError  = 1
	statusFailed = 2 // a step failed
	statusLeft   = 3 // something is left at Cloudflare
	// statusInterrupted is every program's status after Ctrl-C.
	statusInterrupted = 130
)

// command runs the scenario or the removal, and returns the exit status.
func command(ctx context.Context, o options, in io.Reader, out io.Writer) int {
	status, err := start(ctx, o, in, out)
	if err != nil {
		fmt.Fprintln(out, "e2e:", err)
		return statusError
	}
	return status
}

func start(ctx context.Context, o options, in io.Reader, out io.Writer) (status int, err error) {
	if o.events < time.Second || o.upload < 1 {
		return statusError, fmt.Errorf("-events must be at least 1s and -upload at least 1, got %s and %d", o.events, o.upload)
	}
	selected, err := selectSteps(o.steps)
	if err != nil {
		return statusError, err
	}
	if o.programs, err = filepath.Abs(o.programs); err != nil {
		return statusError, err
	}
	if o.clean != "" {
		a := accountFromEnvironment()
		return a.clean(ctx, o.clean, out)
	}
	dir, err := os.MkdirTemp("", "tunnel-gateway-e2e-")
	if err != nil {
		return statusError, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	p, err := newPlace(ctx, o, dir)
	if err != nil {
		return statusError, err
	}
	defer p.stop()
	prefix := newPrefix()
	c, err := openCloud(ctx, p.account)
	if err != nil {
		return statusError, err
	}
	if !confirm(o, p, prefix, in, out) {
		return statusError, errors.New("nothing was created")
	}
	s := &scenario{cloud: c, events: o.events, upload: o.upload * megabyte, steps: selected, hooks: o.hooks}
	return runAndRemove(ctx, s, p, o, prefix, out), nil
}

func newPlace(ctx context.Context, o options, dir string) (*place, error) {
	if o.simulator {
		return newSimulator(filepath.Join(o.programs, "connector"), o.hooks)
	}
	return newCloudflare(ctx, dir)
}

// newPrefix returns a random prefix for a run.
func newPrefix() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return "e2e-" + hex.EncodeToString(random[:])
}

// confirm says what the run will create, and asks.
func confirm(o options, p *place, prefix string, in io.Reader, out io.Writer) bool {
	b := &bed{place: p, prefix: prefix}
	where := "Cloudflare"
	if o.simulator {
		where = "the simulator"
	}
	fmt.Fprintf(out, `This run creates in %s:

  in account %s   one tunnel, %s.%s.%s
  in zone %s   CNAME records for %s

It transfers about %d MB through the tunnel, and removes everything at the end, also after a failure and after Ctrl-C.
`, where, p.id, prefix, prefix, name, p.zone, strings.Join(b.hosts(), ", "), 2*o.upload)
	if o.yes || o.simulator {
		return true
	}
	fmt.Fprint(out, "Continue? [y/N] ")
	line, _ := bufio.NewReader(in).ReadString('\n') // at the end of the input, the line is not y
	return strings.EqualFold(strings.TrimSpace(line), "y")
}

// runAndRemove runs the scenario, stops everything on this machine, and removes what the
// run has created. It returns the exit status.
func runAndRemove(ctx context.Context, s *scenario, p *place, o options, prefix string, out io.Writer) int {
	fmt.Fprintf(out, "\n==> running %s; the controller's log is %s\n", prefix, logPath(o, prefix))
	b, err := startBed(ctx, p, o, prefix)
	s.bed = b
	failed := 0
	if err == nil {
		failed = printResults(out, s.run(ctx))
		printDifferences(out, compare(expected(), s.seen))
	} else {
		fmt.Fprintln(out, "e2e: start the programs:", err)
	}
	if err := b.stop(); err != nil {
		fmt.Fprintln(out, "e2e: stop the programs:", err)
	}
	fmt.Fprintln(out, "\n==> removing what is left")
	left := removeAll(ctx, s.cloud, prefix, out)
	switch {
	case left:
		return statusLeft
	case err != nil:
		return statusError
	case ctx.Err() != nil:
		return statusInterrupted
	case failed > 0:
		return statusFailed
	}
	_ = os.Remove(b.log) // it explains only failures
	return statusOK
}

// removeAll removes what the run has created, also after Ctrl-C, and reports whether
// something is left. Another Ctrl-C ends it.
func removeAll(ctx context.Context, c *cloud, prefix string, out io.Writer) (isLeft bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, left, err := c.remove(ctx, prefix)
	printRemoval(out, prefix, found, left, err)
	return err != nil || !left.isEmpty()
}

// clean removes what an earlier run has left.
func (a account) clean(ctx context.Context, prefix string, out io.Writer) (status int, err error) {
	if err := errors.Join(checkPrefix(prefix), a.check()); err != nil {
		return statusError, err
	}
	c, err := openCloud(ctx, a)
	if err != nil {
		return statusError, err
	}
	if removeAll(ctx, c, prefix, out) {
		return statusLeft, nil
	}
	return statusOK, nil
}

// expected returns what runs observe in the simulator.
func expected() observations {
	var o observations
	if err := json.Unmarshal(simulated, &o); err != nil {
		panic(err) // the test has written the file
	}
	return o
}
