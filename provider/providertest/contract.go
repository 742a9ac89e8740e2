// Package providertest contains the contract tests for [provider.Provider] and
// [provider.DNS]. Every implementation runs them.
//
// A test belongs here if all implementations must pass it. Tests for an implementation's
// requests belong to the implementation's package.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Fixture is a provider whose account has no tunnels.
type Fixture struct {
	Provider provider.Provider
	// AccountID is the account to which the tunnels belong.
	AccountID string
	Cloud     Cloud
}

// Cloud simulates changes at Cloudflare that are not made by the provider: connectors,
// and changes in the dashboard.
type Cloud interface {
	// SetConfiguration replaces a tunnel's configuration.
	SetConfiguration(provider.TunnelID, provider.Configuration)
	// SetLocal makes the tunnel locally managed, or migrates it to remote
	// management.
	SetLocal(id provider.TunnelID, local bool)
	// SetRoutes adds private network routes to the tunnel, or removes them.
	SetRoutes(id provider.TunnelID, routes bool)
	// SetConnected starts connectors for the tunnel, or stops all its connectors
	// gracefully.
	SetConnected(id provider.TunnelID, connected bool)
	// StartConnector starts a connector with a token, or returns an error if
	// Cloudflare refuses the token. When the connector is disconnected and its token
	// is still valid, it reconnects immediately.
	StartConnector(provider.Token) (provider.ConnectorID, error)
	// StopConnector stops a connector gracefully.
	StopConnector(provider.TunnelID, provider.ConnectorID)
	// Crash stops connectors abruptly; all the tunnel's connectors if no ID is given.
	// They do not reconnect.
	Crash(provider.TunnelID, ...provider.ConnectorID)
}

// Run runs the contract tests, each with a new fixture.
func Run(t *testing.T, newFixture func(*testing.T) Fixture) {
	for name, test := range contract {
		t.Run(name, func(t *testing.T) { test(t, newFixture(t)) })
	}
}

var contract = map[string]func(*testing.T, Fixture){
	"CreateTunnel creates a tunnel":            createsTunnel,
	"a name belongs to one tunnel":             nameIsUnique,
	"names are case-sensitive":                 namesAreCaseSensitive,
	"a name can be reused after deletion":      createAfterDelete,
	"FindTunnel returns live tunnels only":     findsLive,
	"a tunnel is read by its ID":               readsByID,
	"all live tunnels are listed":              listsLive,
	"a listed tunnel has its status":           listsStatus,
	"a token belongs to its tunnel":            tokenBelongsToTunnel,
	"a new tunnel is not configured":           newTunnelIsEmpty,
	"a configuration is read as written":       configureRoundTrip,
	"unknown fields are preserved":             unknownFieldsRoundTrip,
	"a configuration is replaced as a whole":   configureReplaces,
	"every write increments the version":       versionIncrements,
	"external changes are read":                externalChange,
	"an invalid configuration changes nothing": invalidConfiguration,
	"an unknown tunnel is not found":           unknownTunnel,
	"a deleted tunnel is not found":            deletedTunnel,
	"deletion can be repeated":                 deleteTwice,
	"a tunnel with routes is not deleted":      deleteRouted,
	"a locally managed tunnel is reported":     localTunnel,
	"a canceled call returns context.Canceled": canceled,
	"calls can be concurrent":                  concurrent,

	"a connected tunnel is not deleted":              deleteConnected,
	"a tunnel with stale connections is not deleted": deleteStale,
	"connectors are listed":                          listsConnectors,
	"a crashed connector is listed as disconnected":  listsCrashed,
	"a stale connector is removed":                   disconnectStale,
	"a connected connector reconnects":               disconnectConnected,
	"one connector is disconnected at a time":        disconnectOne,
	"rotation replaces the token":                    rotationReplacesToken,
	"rotation keeps connections":                     rotationKeepsConnections,
	"a rotated connector does not reconnect":         disconnectRotated,
}

// missing is a valid tunnel ID that no tunnel has.
const missing provider.TunnelID = "ffffffff-ffff-4fff-bfff-ffffffffffff"

func create(t *testing.T, f Fixture, name string) provider.Tunnel {
	t.Helper()
	tunnel, err := f.Provider.CreateTunnel(t.Context(), name)
	if err != nil {
		t.Fatalf("CreateTunnel(%q): %v", name, err)
	}
	return tunnel
}

func configure(t *testing.T, f Fixture, id provider.TunnelID, c provider.Configuration) provider.Version {
	t.Helper()
	version, err := f.Provider.Configure(t.Context(), id, c)
	if err != nil {
		t.Fatalf("Configure: %v", err)
	}
	return version
}

// wantConfiguration reads the tunnel's configuration and compares it with want, without
// unknown fields.
func wantConfiguration(
	t *testing.T, f Fixture, id provider.TunnelID, want provider.Configuration, version provider.Version,
) {
	t.Helper()
	got, gotVersion, err := f.Provider.Configuration(t.Context(), id)
	if err != nil {
		t.Fatalf("Configuration: %v", err)
	}
	options := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(provider.Configuration{}, "UnknownFields")}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("configuration differs (-want +got):\n%s", diff)
	}
	if gotVersion != version {
		t.Errorf("version = %d, want %d", gotVersion, version)
	}
}

func deleteTunnel(t *testing.T, f Fixture, id provider.TunnelID) {
	t.Helper()
	if err := f.Provider.DeleteTunnel(t.Context(), id); err != nil {
		t.Fatalf("DeleteTunnel: %v", err)
	}
}

// serving returns a minimal configuration that routes a host to a service.
func serving(host string) provider.Configuration {
	return provider.Configuration{Ingress: []provider.IngressRule{
		{Hostname: host, Service: "http://web.default.svc.cluster.local:80"},
		{Service: "http_status:404"},
	}}
}

// fullConfiguration returns a configuration with all fields that need no file on the connector.
func fullConfiguration() provider.Configuration {
	seconds, connections, yes := int64(7), int64(50), true
	origin := provider.OriginRequest{
		ConnectTimeout:         &seconds,
		TLSTimeout:             &seconds,
		TCPKeepAlive:           &seconds,
		KeepAliveTimeout:       &seconds,
		KeepAliveConnections:   &connections,
		NoHappyEyeballs:        &yes,
		MatchSNIToHost:         &yes,
		NoTLSVerify:            &yes,
		DisableChunkedEncoding: &yes,
		HTTP2Origin:            &yes,
		HTTPHostHeader:         "internal.example.com",
		OriginServerName:       "origin.example.com",
		ProxyType:              "socks",
		Access:                 &provider.AccessSettings{Required: true, TeamName: "team", AUDTag: []string{"one", "two"}},
	}
	return provider.Configuration{
		Ingress: []provider.IngressRule{
			{Hostname: "a.example.com", Path: `^/a b<&>"(/.*)?$`, Service: "https://web:443", OriginRequest: origin},
			{Hostname: "*.example.com", Service: "http_status:500"},
			{Service: "http_status:404"},
		},
		OriginRequest: provider.OriginRequest{ConnectTimeout: &seconds, HTTPHostHeader: "default.example.com"},
		UnknownFields: map[string]json.RawMessage{"warp-routing": json.RawMessage(`{"enabled":true}`)},
	}
}

func wantNotFound(t *testing.T, f Fixture, id provider.TunnelID) {
	t.Helper()
	ctx, p := t.Context(), f.Provider
	_, readErr := p.Tunnel(ctx, id)
	_, _, configurationErr := p.Configuration(ctx, id)
	_, configureErr := p.Configure(ctx, id, serving("a.example.com"))
	token, tokenErr := p.Token(ctx, id)
	_, connectionsErr := p.Connections(ctx, id)
	for method, err := range map[string]error{
		"Tunnel": readErr, "Configuration": configurationErr, "Configure": configureErr, "Token": tokenErr,
		"RotateToken": p.RotateToken(ctx, id), "Connections": connectionsErr,
	} {
		if !errors.Is(err, provider.ErrNotFound) || provider.IsTransient(err) {
			t.Errorf("%s: got %v, want ErrNotFound", method, err)
		}
	}
	if token != "" {
		t.Error("Token returned a token")
	}
	if err := p.Disconnect(ctx, id, absent); err != nil {
		t.Errorf("Disconnect: %v", err)
	}
	deleteTunnel(t, f, id)
}

// allMethods calls every method once and returns the errors by method name.
func allMethods(ctx context.Context, p provider.Provider, id provider.TunnelID) map[string]error {
	_, findErr := p.FindTunnel(ctx, "another")
	_, readErr := p.Tunnel(ctx, id)
	_, listErr := p.Tunnels(ctx)
	_, createErr := p.CreateTunnel(ctx, "another")
	_, _, configurationErr := p.Configuration(ctx, id)
	_, configureErr := p.Configure(ctx, id, serving("a.example.com"))
	_, tokenErr := p.Token(ctx, id)
	_, connectionsErr := p.Connections(ctx, id)
	return map[string]error{
		"FindTunnel":    findErr,
		"Tunnel":        readErr,
		"Tunnels":       listErr,
		"CreateTunnel":  createErr,
		"Configuration": configurationErr,
		"Configure":     configureErr,
		"Token":         tokenErr,
		"RotateToken":   p.RotateToken(ctx, id),
		"Connections":   connectionsErr,
		"Disconnect":    p.Disconnect(ctx, id, absent),
		"DeleteTunnel":  p.DeleteTunnel(ctx, id),
	}
}
