// Package providertest holds the contract that every [provider.Provider] must
// keep, as one suite of tests that each implementation runs against itself.
//
// A test belongs here when it must hold for all of them; how one of them talks
// to its API is tested next to it.
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

// Fixture is a provider without tunnels, and the hands of everybody else on
// the account that it works on.
type Fixture struct {
	Provider provider.Provider
	// AccountID is the account of the tunnels.
	AccountID string
	// SetDocument replaces the document of a tunnel behind the provider's back.
	SetDocument func(provider.TunnelID, provider.Configuration)
	// SetConnected starts or stops a connector of the tunnel.
	SetConnected func(id provider.TunnelID, connected bool)
	// SetLocal makes the tunnel locally managed, or migrates it back.
	SetLocal func(id provider.TunnelID, local bool)
}

// Run tests the contract. It asks for a new fixture for every part of it.
func Run(t *testing.T, newFixture func(*testing.T) Fixture) {
	for name, test := range contract {
		t.Run(name, func(t *testing.T) { test(t, newFixture(t)) })
	}
}

var contract = map[string]func(*testing.T, Fixture){
	"ensure creates once":               ensureCreatesOnce,
	"find tells a live tunnel":          findTellsLive,
	"all live tunnels are listed":       listsLive,
	"a listed tunnel has its status":    listsStatus,
	"a token is for its tunnel":         tokenIsForTunnel,
	"names are told apart by case":      ensureMindsCase,
	"a name is free after deletion":     ensureAfterDelete,
	"a new tunnel is not configured":    newTunnelIsEmpty,
	"a document comes back as written":  configureRoundTrip,
	"fields not modelled are kept":      unmodelledRoundTrip,
	"a document is replaced whole":      configureReplaces,
	"every write raises the version":    versionsCount,
	"others' writes are seen":           foreignEdit,
	"a bad document changes nothing":    invalidDocument,
	"an unknown tunnel is not found":    unknownTunnel,
	"a deleted tunnel is not found":     deletedTunnel,
	"deletion may be repeated":          deleteTwice,
	"a connected tunnel is not deleted": deleteConnected,
	"a local tunnel is refused":         localIsRefused,
	"a cancelled call says so":          cancelled,
	"calls may be concurrent":           concurrent,
}

// missing is a well-formed id that no tunnel has.
const missing provider.TunnelID = "ffffffff-ffff-4fff-bfff-ffffffffffff"

func ensure(t *testing.T, f Fixture, name string) provider.Tunnel {
	t.Helper()
	tunnel, err := f.Provider.EnsureTunnel(t.Context(), provider.TunnelSpec{Name: name})
	if err != nil {
		t.Fatalf("EnsureTunnel(%q): %v", name, err)
	}
	if tunnel.ID == "" || tunnel.Name != name {
		t.Fatalf("EnsureTunnel(%q) = %+v", name, tunnel)
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

// wantDocument reads the tunnel's document and compares what is modelled.
func wantDocument(
	t *testing.T, f Fixture, id provider.TunnelID, want provider.Configuration, version provider.Version,
) {
	t.Helper()
	got, gotVersion, err := f.Provider.Configuration(t.Context(), id)
	if err != nil {
		t.Fatalf("Configuration: %v", err)
	}
	modelled := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(provider.Configuration{}, "Unmodelled")}
	if diff := cmp.Diff(want, got, modelled); diff != "" {
		t.Errorf("document differs (-want +got):\n%s", diff)
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

// serving is the smallest document that sends a host somewhere.
func serving(host string) provider.Configuration {
	return provider.Configuration{Ingress: []provider.IngressRule{
		{Hostname: host, Service: "http://web.default.svc.cluster.local:80"},
		{Service: "http_status:404"},
	}}
}

// full uses every field of the document.
func full() provider.Configuration {
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
		Access:                 &provider.Access{Required: true, TeamName: "team", AUDTag: []string{"one", "two"}},
	}
	return provider.Configuration{
		Ingress: []provider.IngressRule{
			{Hostname: "a.example.com", Path: `^/a b<&>"(/.*)?$`, Service: "https://web:443", OriginRequest: origin},
			{Hostname: "*.example.com", Service: "http_status:500"},
			{Service: "http_status:404"},
		},
		OriginRequest: provider.OriginRequest{ConnectTimeout: &seconds, HTTPHostHeader: "default.example.com"},
		Unmodelled:    map[string]json.RawMessage{"warp-routing": json.RawMessage(`{"enabled":true}`)},
	}
}

func wantNotFound(t *testing.T, f Fixture, id provider.TunnelID) {
	t.Helper()
	if _, _, err := f.Provider.Configuration(t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Configuration: got %v, want ErrNotFound", err)
	}
	if _, err := f.Provider.Configure(t.Context(), id, serving("a.example.com")); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Configure: got %v, want ErrNotFound", err)
	}
	if token, err := f.Provider.Token(t.Context(), id); !errors.Is(err, provider.ErrNotFound) || token != "" {
		t.Errorf("Token: got %v, want ErrNotFound", err)
	}
	deleteTunnel(t, f, id)
}

// allMethods calls every method once and returns the errors by method.
func allMethods(ctx context.Context, p provider.Provider, id provider.TunnelID) map[string]error {
	_, findErr := p.FindTunnel(ctx, "another")
	_, listErr := p.Tunnels(ctx)
	_, ensureErr := p.EnsureTunnel(ctx, provider.TunnelSpec{Name: "another"})
	_, _, readErr := p.Configuration(ctx, id)
	_, writeErr := p.Configure(ctx, id, serving("a.example.com"))
	_, tokenErr := p.Token(ctx, id)
	return map[string]error{
		"FindTunnel":    findErr,
		"Tunnels":       listErr,
		"EnsureTunnel":  ensureErr,
		"Configuration": readErr,
		"Configure":     writeErr,
		"Token":         tokenErr,
		"DeleteTunnel":  p.DeleteTunnel(ctx, id),
	}
}
