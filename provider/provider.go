// Package provider is the boundary to whatever serves the ingress rules: a
// Cloudflare Tunnel in production, an in-memory one in tests.
//
// It holds the interface, the document that is exchanged over it and the
// errors that an implementation may return. It knows nothing of Kubernetes: a
// provider neither finds objects nor decides what a rule should be, and it
// does not compare documents; it carries them out.
package provider

import (
	"context"
	"time"
)

// CallTimeout is the longest that a method of a [Provider] takes. A write
// whose caller has gone, by a crash or the end of its context, may still be
// applied until that much later.
const CallTimeout = 10 * time.Second

// TunnelID is the UUID by which the Cloudflare API knows a tunnel.
type TunnelID string

// Hostname returns the public name of the tunnel, which is a CNAME target
// inside Cloudflare only: DNS records to it work proxied, or not at all.
func (id TunnelID) Hostname() string {
	return string(id) + ".cfargotunnel.com"
}

// TunnelSpec says which tunnel is wanted.
type TunnelSpec struct {
	// Name is unique among the live tunnels of an account.
	Name string
}

// Tunnel is a tunnel that exists.
type Tunnel struct {
	ID   TunnelID
	Name string
	// Created is true when the call that returned the tunnel made it, and
	// false when it was there before.
	Created bool
	// Status is empty where the call does not tell it.
	Status TunnelStatus
}

// TunnelStatus says, in the API's words, how a tunnel's connectors are.
type TunnelStatus string

// The statuses.
const (
	// TunnelHealthy: connectors run, with all their connections.
	TunnelHealthy TunnelStatus = "healthy"
	// TunnelDegraded: connectors run, and some of their connections failed.
	TunnelDegraded TunnelStatus = "degraded"
	// TunnelDown: connectors ran once, and none does now.
	TunnelDown TunnelStatus = "down"
	// TunnelInactive: no connector ever ran.
	TunnelInactive TunnelStatus = "inactive"
)

// Version counts the configurations that a tunnel has had. The API raises it
// by one with every write; 0 means that none was ever written.
type Version int64

// Provider creates tunnels and writes their configuration. Every method
// returns in a few seconds, and within [CallTimeout] at most: what takes longer
// comes back as an error that [IsTransient] recognises, and [RetryAfter] tells
// how long to wait. The context says by [WithPriority] which calls go first.
//
// A Provider may be used from several goroutines at once.
type Provider interface {
	// FindTunnel returns the live tunnel of the name, or [ErrNotFound].
	FindTunnel(ctx context.Context, name string) (Tunnel, error)

	// Tunnels returns all live tunnels of the account, whoever made them, in
	// no order, each once and with its status. The list is read in pages: a
	// tunnel that is missing may be there all the same when others were made
	// or deleted meanwhile, and [Provider.FindTunnel] has the last word.
	Tunnels(ctx context.Context) ([]Tunnel, error)

	// EnsureTunnel returns the live tunnel of the wanted name, and creates it
	// when there is none. A create whose answer was lost is never repeated
	// blindly: the name is looked up again first. One that is there and is
	// locally managed is [ErrLocallyManaged].
	EnsureTunnel(ctx context.Context, want TunnelSpec) (Tunnel, error)

	// Configuration reads the whole document that the tunnel holds. A tunnel
	// without one has the zero Configuration and Version 0. A tunnel that does
	// not exist, or was deleted, is [ErrNotFound]; one that is locally managed is
	// [ErrLocallyManaged].
	Configuration(ctx context.Context, id TunnelID) (Configuration, Version, error)

	// Configure replaces the whole document and returns the version that it
	// became. When it returns without an error, the document is in effect. A
	// document that the connector would reject is an [*InvalidError], and the
	// old one stays. A tunnel that does not exist, or was deleted, is
	// [ErrNotFound].
	//
	// That a tunnel is locally managed shows in the API's answer only:
	// [ErrLocallyManaged] then says that the document is stored and has no
	// effect. So the configuration of a tunnel that was found is read before it
	// is written for the first time.
	Configure(ctx context.Context, id TunnelID, c Configuration) (Version, error)

	// Token returns the token with which connectors of the tunnel run, as it
	// is now: it changes when somebody rotates it. A tunnel that does not
	// exist, or was deleted, is [ErrNotFound].
	Token(ctx context.Context, id TunnelID) (Token, error)

	// DeleteTunnel cleans up the tunnel's stale connections and deletes it. A
	// tunnel that is already gone is success; one whose connectors are still
	// running is [ErrConnected]. One that is locally managed stays, connections
	// and all, and is [ErrLocallyManaged].
	DeleteTunnel(ctx context.Context, id TunnelID) error
}
