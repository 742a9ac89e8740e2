// Command tunnel-gateway is a Kubernetes controller that serves Gateways through
// Cloudflare tunnels. Package cli contains its commands.
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
	// The first signal cancels the command, the second terminates the process.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, os.Args, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
