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

// Tunnel is a tunnel that exists.
type Tunnel struct {
	ID   TunnelID
	Name string
	// Status is empty where the API does not tell it.
	Status TunnelStatus
	// Local is true for a locally managed tunnel: its connectors take their
	// configuration from a file and ignore the one that the API holds. (The API's
	// config_src is "local".)
	Local bool
}

// ConnectorID is the UUID under which Cloudflare lists a connector. Each process
// of the connector chooses its own at random.
type ConnectorID string

// Connector is a connector that Cloudflare lists for a tunnel.
type Connector struct {
	ID ConnectorID
	// Connected is true while at least one of the connector's connections is
	// open. Cloudflare goes on to list a connector that has disconnected without
	// a farewell, for some minutes or until [Provider.Disconnect] removes it. (All
	// of its connections then have is_pending_reconnect.)
	Connected bool
	// ConnectedAt is when the connector connected (the API's run_at), or zero when
	// the API does not tell it.
	ConnectedAt time.Time
	// ConfigVersion is the version of the configuration that the connector runs.
	ConfigVersion Version
}

// TunnelStatus is the API's summary of a tunnel's connectors.
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

// Provider makes single calls of the Cloudflare API about the tunnels of one
// account. Each method sends one request, or one per page of a list of tunnels. A
// request that fails may be repeated within the call; only creation never is. A
// caller that needs several calls decides about each of them.
//
// Every method returns within [CallTimeout]. Every method can return
// [ErrUnauthorized], a [*RateLimitedError], an [*UnavailableError], or the error
// of the context. [IsTransient] recognizes the errors that can pass by
// themselves, and [RetryAfter] returns how long to wait. The context carries the
// priority of the call, see [WithPriority].
//
// A method that changes something and returns an [*UnavailableError], or the
// error of the context, may have changed it, or may still change it up to
// CallTimeout later. After a [*RateLimitedError] nothing was changed.
//
// A Provider may be used from several goroutines at once.
type Provider interface {
	// FindTunnel returns the live tunnel of exactly that name, or [ErrNotFound].
	FindTunnel(ctx context.Context, name string) (Tunnel, error)

	// Tunnel returns the tunnel of the ID. A tunnel that does not exist, or was
	// deleted, is [ErrNotFound].
	Tunnel(ctx context.Context, id TunnelID) (Tunnel, error)

	// Tunnels returns all live tunnels of the account, no matter who created them,
	// in no order, each once and with its status. The list is read in pages, so a
	// tunnel can be missing when other tunnels were created or deleted meanwhile;
	// [Provider.FindTunnel] and [Provider.Tunnel] decide whether it exists.
	Tunnels(ctx context.Context) ([]Tunnel, error)

	// CreateTunnel creates a remotely managed tunnel. A live tunnel of that name
	// is [ErrNameExists]. The request is sent once and never repeated. After an
	// [*UnavailableError] the tunnel may exist, or appear later.
	CreateTunnel(ctx context.Context, name string) (Tunnel, error)

	// Configuration reads the whole configuration of the tunnel. A tunnel that was
	// never configured has the zero Configuration and Version 0. A tunnel that does
	// not exist, or was deleted, is [ErrNotFound]; a locally managed tunnel is
	// [ErrLocallyManaged].
	Configuration(ctx context.Context, id TunnelID) (Configuration, Version, error)

	// Configure replaces the whole configuration and returns the version that it
	// became. When it returns without an error, the configuration is in effect. A
	// configuration that the connector would reject is an [*InvalidError], and the
	// old one stays. A tunnel that does not exist, or was deleted, is
	// [ErrNotFound].
	//
	// That a tunnel is locally managed shows in the API's answer only:
	// [ErrLocallyManaged] then means that the configuration is stored and has no
	// effect. Read the configuration, or the tunnel, before the first write.
	Configure(ctx context.Context, id TunnelID, c Configuration) (Version, error)

	// Token returns the token with which connectors of the tunnel run, as it is
	// now. A tunnel that does not exist, or was deleted, is [ErrNotFound].
	Token(ctx context.Context, id TunnelID) (Token, error)

	// RotateToken gives the tunnel a new random secret, so that
	// [Provider.Token] returns another token. Cloudflare refuses new connections
	// with the old token; connections that are open stay open until
	// [Provider.Disconnect]. Repeating the call does no harm: it rotates again. A
	// tunnel that does not exist, or was deleted, is [ErrNotFound].
	RotateToken(ctx context.Context, id TunnelID) error

	// Connections returns the connectors that Cloudflare lists for the tunnel, in
	// no order, also those that have disconnected. A tunnel that does not exist,
	// or was deleted, is [ErrNotFound].
	Connections(ctx context.Context, id TunnelID) ([]Connector, error)

	// Disconnect removes the connections of one connector. A connector that is
	// connected loses them too, and reconnects unless the tunnel's token was
	// rotated since it started. A connector or tunnel that does not exist is
	// success. An empty connector ID is an error, and nothing is sent: to the API
	// it would mean all connectors.
	Disconnect(ctx context.Context, id TunnelID, connector ConnectorID) error

	// DeleteTunnel deletes the tunnel, also a locally managed one. It neither
	// reads the tunnel before nor removes connections. A tunnel that does not
	// exist, or was deleted, is success. A tunnel for which Cloudflare lists
	// connections is [ErrConnected]; a tunnel with private network routes is
	// [ErrRoutes].
	DeleteTunnel(ctx context.Context, id TunnelID) error
}
