// Command tunnel-gateway is a Kubernetes controller that serves Gateways
// through Cloudflare Tunnels. Everything it does is in internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the command in order, the second at once.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, os.Args, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
