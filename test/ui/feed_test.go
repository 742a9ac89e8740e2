package ui

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

// feed is a page in this process, whose snapshots the test publishes.
type feed struct {
	*web.Feed
	t    *testing.T
	link string
	site string // "http://127.0.0.1:<port>"
}

// feedTime is the time in all snapshots.
var feedTime = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// serveFeed serves a page with the manifests.
func serveFeed(t *testing.T, manifests string) *feed {
	t.Helper()
	f := &feed{Feed: web.NewFeed(), t: t}
	f.publish(manifests)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	page := web.NewServer(web.Options{Feed: f.Feed, Hosts: []string{listener.Addr().String()}, Input: "context production"})
	f.site = "http://" + listener.Addr().String()
	f.link = f.site + page.NewLink()
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: page, ReadHeaderTimeout: timeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	go server.Serve(listener) //nolint:errcheck // until the test ends
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
	})
	return f
}

// publish replaces the snapshot by one for the manifests.
func (f *feed) publish(manifests string) { f.change("", manifests) }

// change publishes the manifests before, which can be empty, and after a change.
func (f *feed) change(before, after string) {
	f.t.Helper()
	s := &web.Snapshot{Plan: planOf(f.t, after), Time: feedTime}
	if before != "" {
		s.Before = planOf(f.t, before)
	}
	f.Publish(s)
}

// planOf returns the plan for manifests.
func planOf(t *testing.T, manifests string) *plan.Plan {
	t.Helper()
	o := plan.Options{Options: gateway.Options{
		ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
	}}
	source, err := state.FromFiles([]string{"-"}, manifest.Options{Stdin: strings.NewReader(manifests)}, o.ControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Build(t.Context(), source, o, feedTime)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
