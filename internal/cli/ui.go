package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

// uiOptions are the flags of the command ui.
type uiOptions struct {
	planOptions
	address string
}

const uiHelp = `Serves a page that shows what plan prints: the Gateways, their hostname tables, and why a
request gets its answer. The page changes nothing, has your permissions, and can only be
opened on this machine, with the link that ui prints. Each link works once.

The flags select the cluster and the manifests as for plan.`

// uiCommand returns the command ui. program is the program name in the examples.
func uiCommand(program string) *cobra.Command {
	var o uiOptions
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page with the hostname tables on this machine",
		Long:  uiHelp,
		Example: strings.ReplaceAll(`  PROGRAM ui
  PROGRAM ui --context production
  PROGRAM ui -f config/samples`, "PROGRAM", program),
		Args:              noManifests,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.address, "address", "127.0.0.1:0", "loopback `address` and port of the page; port 0 is a free one")
	return cmd
}

func (o *uiOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	if err := o.diff.loadAccount(); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	line := progress.New(streamOf(cmd.ErrOrStderr()))
	source, err := o.readSource(cmd, line)
	if err != nil {
		return err
	}
	built, err := plan.Build(ctx, source, o.options(), time.Now())
	if err != nil {
		return err
	}
	feed := web.NewFeed()
	feed.Publish(&web.Snapshot{Plan: built, Compare: o.diff.comparison(source, o.options()), Time: time.Now()})
	page := web.NewServer(web.Options{Feed: feed, Hosts: []string{listener.Addr().String()}, Input: strings.Join(o.paths, ", ")})
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s%s\n", listener.Addr(), page.NewLink())
	var group errgroup.Group
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	if err := group.Wait(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
