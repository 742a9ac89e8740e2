package fake_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
)

func TestContract(t *testing.T) {
	providertest.Run(t, func(*testing.T) providertest.Fixture {
		p := fake.New()
		return providertest.Fixture{Provider: p, AccountID: fake.AccountID, Cloud: p}
	})
}

var (
	errFirst  = errors.New("first")
	errSecond = errors.New("second")
)

func configuration(host string) provider.Configuration {
	return provider.Configuration{Ingress: []provider.IngressRule{
		{Hostname: host, Service: "http://web:80"}, {Service: "http_status:404"},
	}}
}

func newTunnel(t *testing.T) (*fake.Provider, provider.TunnelID) {
	t.Helper()
	p := fake.New()
	tunnel, err := p.CreateTunnel(t.Context(), "edge")
	if err != nil {
		t.Fatal(err)
	}
	return p, tunnel.ID
}

func TestFailReturnsScriptedErrors(t *testing.T) {
	p, id := newTunnel(t)
	p.Fail(fake.OpConfigure, errFirst, nil, errSecond)

	for i, want := range []error{errFirst, nil, errSecond, nil} {
		if _, err := p.Configure(t.Context(), id, configuration("a")); !errors.Is(err, want) {
			t.Errorf("call %d: got %v, want %v", i, err, want)
		}
	}
	if _, version := p.StoredConfiguration(id); version != 2 {
		t.Errorf("version = %d, want 2: a failed call was applied", version)
	}
}

func TestFailAfterAppliesTheCall(t *testing.T) {
	p, id := newTunnel(t)
	p.FailAfter(fake.OpConfigure, errFirst)
	p.FailAfter(fake.OpCreateTunnel, errFirst)

	if _, err := p.Configure(t.Context(), id, configuration("a")); !errors.Is(err, errFirst) {
		t.Errorf("got %v, want %v", err, errFirst)
	}
	if got, version := p.StoredConfiguration(id); version != 1 || got.Hash() != configuration("a").Hash() {
		t.Errorf("version %d, configuration %+v: the write was not applied", version, got)
	}
	if _, err := p.CreateTunnel(t.Context(), "other"); !errors.Is(err, errFirst) {
		t.Errorf("got %v, want %v", err, errFirst)
	}
	if got := len(p.LiveTunnels()); got != 2 {
		t.Errorf("%d tunnels, want 2", got)
	}
}

func TestCallsAreRecorded(t *testing.T) {
	p, id := newTunnel(t)
	p.Fail(fake.OpConfigure, errFirst)
	_, _ = p.Configure(t.Context(), id, configuration("a"))
	_, _ = p.Configure(t.Context(), id, configuration("b"))
	_, _, _ = p.Configuration(t.Context(), id)
	_, _ = p.Tunnels(provider.WithPriority(t.Context(), provider.PriorityDrift))
	_, _ = p.Tunnel(t.Context(), id)
	_, _ = p.Token(t.Context(), id)
	_ = p.RotateToken(t.Context(), id)
	_, _ = p.Connections(t.Context(), id)
	_ = p.Disconnect(t.Context(), id, "connector")
	_ = p.DeleteTunnel(provider.WithPriority(t.Context(), provider.PriorityDeletion), id)

	want := []fake.Call{
		{Op: fake.OpCreateTunnel, Name: "edge", Tunnel: id},
		{Op: fake.OpConfigure, Tunnel: id, Configuration: configuration("a"), Err: errFirst},
		{Op: fake.OpConfigure, Tunnel: id, Configuration: configuration("b"), Version: 1},
		{Op: fake.OpConfiguration, Tunnel: id, Configuration: configuration("b"), Version: 1},
		{Op: fake.OpTunnels, Priority: provider.PriorityDrift},
		{Op: fake.OpTunnel, Tunnel: id},
		{Op: fake.OpToken, Tunnel: id},
		{Op: fake.OpRotateToken, Tunnel: id},
		{Op: fake.OpConnections, Tunnel: id},
		{Op: fake.OpDisconnect, Tunnel: id, Connector: "connector"},
		{Op: fake.OpDeleteTunnel, Tunnel: id, Priority: provider.PriorityDeletion},
	}
	if diff := cmp.Diff(want, p.Calls(), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("calls differ (-want +got):\n%s", diff)
	}
	if got := p.Calls(fake.OpConfigure); len(got) != 2 {
		t.Errorf("%d calls of Configure, want 2", len(got))
	}
	p.ResetCalls()
	if got := p.Calls(); got != nil {
		t.Errorf("calls after the reset: %+v", got)
	}
}

func TestClockDeterminesConnectedAt(t *testing.T) {
	p, id := newTunnel(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p.SetClock(func() time.Time { return at })
	p.SetConnected(id, true)
	for range 2 {
		connectors, err := p.Connections(t.Context(), id)
		if err != nil || len(connectors) != 1 || !connectors[0].ConnectedAt.Equal(at) {
			t.Fatalf("connectors = %+v, %v, want one connected at %s", connectors, err, at)
		}
		at = at.Add(time.Minute)
		if err := p.Disconnect(t.Context(), id, connectors[0].ID); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConfigurationsAreCopied(t *testing.T) {
	p, id := newTunnel(t)
	argument := configuration("a")
	argument.UnknownFields = map[string]json.RawMessage{"warp-routing": json.RawMessage(`{}`)}
	if _, err := p.Configure(t.Context(), id, argument); err != nil {
		t.Fatal(err)
	}
	argument.Ingress[0].Hostname = "changed"
	argument.UnknownFields["warp-routing"][0] = '['
	read, _, err := p.Configuration(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	read.Ingress[0].Hostname = "changed"

	got, _ := p.StoredConfiguration(id)
	if got.Ingress[0].Hostname != "a" || string(got.UnknownFields["warp-routing"]) != "{}" {
		t.Errorf("the stored configuration changed with the caller's: %+v", got)
	}
}
