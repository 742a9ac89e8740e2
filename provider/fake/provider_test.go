package fake_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
)

func TestContract(t *testing.T) {
	providertest.Run(t, func(*testing.T) providertest.Fixture {
		p := fake.New()
		return providertest.Fixture{
			Provider: p, AccountID: fake.AccountID,
			SetDocument: p.SetDocument, SetConnected: p.SetConnected, SetLocal: p.SetLocal,
		}
	})
}

var (
	errFirst  = errors.New("first")
	errSecond = errors.New("second")
)

func document(host string) provider.Configuration {
	return provider.Configuration{Ingress: []provider.IngressRule{
		{Hostname: host, Service: "http://web:80"}, {Service: "http_status:404"},
	}}
}

func newTunnel(t *testing.T) (*fake.Provider, provider.TunnelID) {
	t.Helper()
	p := fake.New()
	tunnel, err := p.EnsureTunnel(t.Context(), provider.TunnelSpec{Name: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	return p, tunnel.ID
}

func TestFail(t *testing.T) {
	p, id := newTunnel(t)
	p.Fail(fake.OpConfigure, errFirst, nil, errSecond)

	for i, want := range []error{errFirst, nil, errSecond, nil} {
		if _, err := p.Configure(t.Context(), id, document("a")); !errors.Is(err, want) {
			t.Errorf("call %d: got %v, want %v", i, err, want)
		}
	}
	if _, version := p.Document(id); version != 2 {
		t.Errorf("version = %d, want 2: a call that failed was applied", version)
	}
}

func TestFailAfter(t *testing.T) {
	p, id := newTunnel(t)
	p.FailAfter(fake.OpConfigure, errFirst)
	p.FailAfter(fake.OpEnsureTunnel, errFirst)

	if _, err := p.Configure(t.Context(), id, document("a")); !errors.Is(err, errFirst) {
		t.Errorf("got %v, want %v", err, errFirst)
	}
	if got, version := p.Document(id); version != 1 || got.Hash() != document("a").Hash() {
		t.Errorf("version %d, document %+v: the write was not applied", version, got)
	}
	if _, err := p.EnsureTunnel(t.Context(), provider.TunnelSpec{Name: "other"}); !errors.Is(err, errFirst) {
		t.Errorf("got %v, want %v", err, errFirst)
	}
	if got := len(p.LiveTunnels()); got != 2 {
		t.Errorf("%d tunnels, want 2", got)
	}
}

func TestCalls(t *testing.T) {
	p, id := newTunnel(t)
	p.Fail(fake.OpConfigure, errFirst)
	_, _ = p.Configure(t.Context(), id, document("a"))
	_, _ = p.Configure(t.Context(), id, document("b"))
	_, _, _ = p.Configuration(t.Context(), id)
	_, _ = p.Tunnels(provider.WithPriority(t.Context(), provider.PriorityDrift))
	_, _ = p.Token(t.Context(), id)
	_ = p.DeleteTunnel(provider.WithPriority(t.Context(), provider.PriorityDeletion), id)

	want := []fake.Call{
		{Op: fake.OpEnsureTunnel, Name: "edge", Tunnel: id},
		{Op: fake.OpConfigure, Tunnel: id, Configuration: document("a"), Err: errFirst},
		{Op: fake.OpConfigure, Tunnel: id, Configuration: document("b"), Version: 1},
		{Op: fake.OpConfiguration, Tunnel: id, Configuration: document("b"), Version: 1},
		{Op: fake.OpTunnels, Priority: provider.PriorityDrift},
		{Op: fake.OpToken, Tunnel: id},
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

func TestRotateToken(t *testing.T) {
	p, id := newTunnel(t)
	old, err := p.Token(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	p.RotateToken(id)
	rotated, err := p.Token(t.Context(), id)
	if err != nil || rotated == old {
		t.Errorf("error %v, another token: %t", err, rotated != old)
	}
	if _, of, err := rotated.Credentials(); err != nil || of != id {
		t.Errorf("the new token is for %q, error %v", of, err)
	}
}

func TestDocumentsAreCopied(t *testing.T) {
	p, id := newTunnel(t)
	mine := document("a")
	mine.Unmodelled = map[string]json.RawMessage{"warp-routing": json.RawMessage(`{}`)}
	if _, err := p.Configure(t.Context(), id, mine); err != nil {
		t.Fatal(err)
	}
	mine.Ingress[0].Hostname = "changed"
	mine.Unmodelled["warp-routing"][0] = '['
	read, _, err := p.Configuration(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	read.Ingress[0].Hostname = "changed"

	got, _ := p.Document(id)
	if got.Ingress[0].Hostname != "a" || string(got.Unmodelled["warp-routing"]) != "{}" {
		t.Errorf("the stored document changed with the caller's: %+v", got)
	}
}
