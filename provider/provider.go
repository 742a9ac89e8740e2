// Package provider defines the interface to the Cloudflare API. Package cloudflare
// implements it with the real API, package fake in memory for tests.
//
// The package contains the interfaces [Provider] for tunnels, [DNS] for records and [Access]
// for applications of Cloudflare Access, a tunnel's [Configuration] and the errors that an
// implementation returns. It does not depend on Kubernetes. A provider makes API calls; the
// controller decides which calls to make.
package provider

import (
	"context"
	"time"
)

// CallTimeout is how long a call to a [Provider] method takes at most. When a caller
// crashes or its context ends during a write, Cloudflare may still apply the write until
// CallTimeout later.
const CallTimeout = 10 * time.Second

// TunnelID is a tunnel's UUID in the Cloudflare API.
type TunnelID string

// Hostname returns the tunnel's public hostname. It is a CNAME target inside Cloudflare
// only: a DNS record that points to it works only when it is proxied.
func (id TunnelID) Hostname() string {
	return string(id) + ".cfargotunnel.com"
}

// Tunnel is a live tunnel in the account.
type Tunnel struct {
	ID   TunnelID
	Name string
	// Status is empty when the API does not return it.
	Status TunnelStatus
	// Local is true for a locally managed tunnel: its connectors read their
	// configuration from a file and ignore the configuration in the API. (Source: the
	// API's config_src is "local".)
	Local bool
}

// ConnectorID is a connector's UUID. Each connector process chooses its own ID at random.
type ConnectorID string

// Connector is a connector that Cloudflare lists for a tunnel.
type Connector struct {
	ID ConnectorID
	// Connected is true while at least one of the connector's connections is open. After
	// a connector has crashed, Cloudflare lists it as disconnected for a few minutes, or
	// until [Provider.Disconnect] removes it. (Source: all of its connections have
	// is_pending_reconnect.)
	Connected bool
	// ConnectedAt is the time at which the connector connected (the API's run_at), or
	// zero when the API does not return it.
	ConnectedAt time.Time
	// ConfigVersion is the configuration version that the connector runs.
	ConfigVersion Version
}

// TunnelStatus is the API's summary of how a tunnel's connectors work.
type TunnelStatus string

// The statuses.
const (
	// TunnelHealthy: connectors run and all their connections are open.
	TunnelHealthy TunnelStatus = "healthy"
	// TunnelDegraded: connectors run, but some of their connections have failed.
	TunnelDegraded TunnelStatus = "degraded"
	// TunnelDown: no connector runs, but at least one ran before.
	TunnelDown TunnelStatus = "down"
	// TunnelInactive: no connector has ever run.
	TunnelInactive TunnelStatus = "inactive"
)

// Version is the version number of a tunnel's configuration. The API increments it with
// every write. 0 means that no configuration was ever written.
type Version int64

// Provider calls the Cloudflare API for one account's tunnels. Each method sends one
// request, or one request per page when it lists tunnels. A method may retry a failed
// request, except CreateTunnel.
//
// Every method returns within [CallTimeout]. Every method can return [ErrUnauthorized], a
// [*RateLimitedError], an [*UnavailableError], or the context's error. [IsTransient]
// reports whether an error is temporary, and [RetryAfter] returns the time to wait. The
// context carries the call's priority, see [WithPriority].
//
// When a method that makes a change returns an [*UnavailableError] or the context's
// error, Cloudflare may have applied the change, or may apply it up to CallTimeout later.
// After a [*RateLimitedError], nothing was changed.
//
// A Provider is safe for concurrent use.
type Provider interface {
	// FindTunnel returns the live tunnel with exactly this name, or [ErrNotFound].
	FindTunnel(ctx context.Context, name string) (Tunnel, error)

	// Tunnel returns the tunnel with this ID. It returns [ErrNotFound] if the tunnel
	// does not exist or was deleted.
	Tunnel(ctx context.Context, id TunnelID) (Tunnel, error)

	// Tunnels returns all live tunnels in the account with their status, in no particular
	// order and without duplicates. It reads the list in pages, so a tunnel can be
	// missing when other tunnels are created or deleted at the same time. Call
	// [Provider.FindTunnel] or [Provider.Tunnel] to check whether a tunnel exists.
	Tunnels(ctx context.Context) ([]Tunnel, error)

	// CreateTunnel creates a remotely managed tunnel. It returns [ErrNameExists] if a
	// live tunnel has the name. It sends one request and never retries it. After an
	// [*UnavailableError], the tunnel may exist or may appear later.
	CreateTunnel(ctx context.Context, name string) (Tunnel, error)

	// Configuration returns the tunnel's configuration and its version. A tunnel that was
	// never configured has the zero Configuration and Version 0. Configuration returns
	// [ErrNotFound] if the tunnel does not exist or was deleted, and [ErrLocallyManaged]
	// if the tunnel is locally managed.
	Configuration(ctx context.Context, id TunnelID) (Configuration, Version, error)

	// Configure replaces the whole configuration and returns its new version. When it
	// returns without an error, the configuration is in effect. It returns an
	// [*InvalidError] and changes nothing if the API or the connector rejects the
	// configuration, and [ErrNotFound] if the tunnel does not exist or was deleted.
	//
	// The API accepts a configuration for a locally managed tunnel and reports only in
	// its response that the tunnel is locally managed. [ErrLocallyManaged] therefore
	// means that the configuration was stored and has no effect. Callers must read the
	// tunnel or its configuration before the first write.
	Configure(ctx context.Context, id TunnelID, c Configuration) (Version, error)

	// Token returns the current token for the tunnel's connectors. It returns
	// [ErrNotFound] if the tunnel does not exist or was deleted.
	Token(ctx context.Context, id TunnelID) (Token, error)

	// RotateToken sets a new random secret, so that [Provider.Token] returns a new
	// token. Cloudflare refuses new connections with the old token; open connections
	// stay open until [Provider.Disconnect]. A repeated call rotates the token again.
	// It returns [ErrNotFound] if the tunnel does not exist or was deleted.
	RotateToken(ctx context.Context, id TunnelID) error

	// Connections returns the connectors that Cloudflare lists for the tunnel, in no
	// particular order, including disconnected connectors. It returns [ErrNotFound]
	// if the tunnel does not exist or was deleted.
	Connections(ctx context.Context, id TunnelID) ([]Connector, error)

	// Disconnect removes one connector's connections. It also closes open connections;
	// the connector then reconnects, unless the tunnel's token was rotated after the
	// connector started. It returns nil if the connector or the tunnel does not exist. It
	// returns an error and sends nothing if the connector ID is empty, because the API
	// would then disconnect all connectors.
	Disconnect(ctx context.Context, id TunnelID, connector ConnectorID) error

	// DeleteTunnel deletes the tunnel, including a locally managed tunnel. It neither
	// reads the tunnel first nor removes connections. It returns nil if the tunnel does
	// not exist or was deleted, [ErrConnected] if Cloudflare lists connections for the
	// tunnel, and [ErrRoutes] if the tunnel has private network routes.
	DeleteTunnel(ctx context.Context, id TunnelID) error
}
