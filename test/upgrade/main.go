// Command upgrade installs an earlier revision of the chart with Helm, upgrades it to the
// working tree under load, rolls back, and upgrades again. It fails if a request fails, or
// if a protected hostname is open at any time.
//
// The control plane, Helm, the controllers and the Envoys are real. Each version has its own
// binary, chart, CRDs and permissions. The pods run as processes, and Cloudflare is the
// simulator. Each Envoy has the listeners from the controller.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// directoryVariable names the environment variable with the directory of the built
// programs, which the process in the network namespace inherits.
const directoryVariable = "UPGRADE_TEST_DIRECTORY"

func main() {
	from := flag.String("from", "", "Git `revision` of the earlier version")
	flag.Parse()
	log.SetLogger(logr.Discard())
	if *from == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "upgrade: set the earlier version, for example FROM=v0.1.0")
		os.Exit(2)
	}
	os.Exit(start(*from))
}

// start builds both versions and runs the test in a network namespace. It returns the exit
// status.
func start(from string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv(directoryVariable) == "" {
		dir, err := os.MkdirTemp("", "tunnel-gateway-upgrade-")
		if err == nil {
			err = os.Setenv(directoryVariable, dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "upgrade:", err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	}
	dir := os.Getenv(directoryVariable)
	return netns.Run(func() error { return prepare(ctx, dir, from) }, func() int {
		if err := run(ctx, dir, from); err != nil {
			fmt.Fprintln(os.Stderr, "upgrade:", err)
			return 1
		}
		return 0
	})
}

// run runs the test with the programs in dir.
func run(ctx context.Context, dir, from string) error {
	envoy, err := binaries.Envoy(ctx, os.Stderr)
	if err != nil {
		return err
	}
	helm, err := findHelm(ctx)
	if err != nil {
		return err
	}
	b := &bed{dir: dir, envoy: envoy, helmProgram: helm}
	err = b.start(ctx)
	if err == nil {
		err = newScenario(b, from).run(ctx)
	}
	if err != nil {
		b.printPods(context.WithoutCancel(ctx))
	}
	return errors.Join(err, b.stop())
}

func printStep(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) }
