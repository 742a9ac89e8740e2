// Command find prints the paths to other projects' programs that the tests run. It
// downloads or builds the programs that it does not find. `make` runs it before the tests
// to show its progress, which `go test` would not print before the end.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := find(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func find(ctx context.Context, names []string) error {
	if slices.Equal(names, []string{"envoy"}) {
		path, err := binaries.Envoy(ctx, os.Stderr)
		if err == nil {
			fmt.Println(path)
		}
		return err
	}
	if slices.Equal(names, []string{"axe-core"}) {
		dir, err := binaries.Axe.Unpack(ctx, os.Stderr)
		if err == nil {
			fmt.Println(dir)
		}
		return err
	}
	paths, err := binaries.ControlPlane(ctx, os.Stderr, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if paths[name] == "" {
			return fmt.Errorf("unknown program %q", name)
		}
		fmt.Println(paths[name])
	}
	return nil
}
