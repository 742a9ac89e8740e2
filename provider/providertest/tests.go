package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func ensureCreatesOnce(t *testing.T, f Fixture) {
	first, again, other := ensure(t, f, "edge"), ensure(t, f, "edge"), ensure(t, f, "edge-2")
	if !first.Created || again.Created || !other.Created {
		t.Errorf("Created = %t, %t, %t, want true, false, true", first.Created, again.Created, other.Created)
	}
	if first.ID != again.ID {
		t.Errorf("the same name has tunnels %s and %s", first.ID, again.ID)
	}
	if first.ID == other.ID {
		t.Errorf("two names share tunnel %s", first.ID)
	}
}

func findTellsLive(t *testing.T, f Fixture) {
	if _, err := f.Provider.FindTunnel(t.Context(), "edge"); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("before creation: error %v, want ErrNotFound", err)
	}
	made := ensure(t, f, "edge")
	found, err := f.Provider.FindTunnel(t.Context(), "edge")
	if err != nil || found.ID != made.ID || found.Created {
		t.Errorf("got %+v, %v, want tunnel %s", found, err, made.ID)
	}
	deleteTunnel(t, f, made.ID)
	if _, err := f.Provider.FindTunnel(t.Context(), "edge"); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("after deletion: error %v, want ErrNotFound", err)
	}
}

func listsLive(t *testing.T, f Fixture) {
	if got := list(t, f); len(got) != 0 {
		t.Errorf("an empty account has %+v", got)
	}
	first, gone, last := ensure(t, f, "edge"), ensure(t, f, "gone"), ensure(t, f, "edge-2")
	deleteTunnel(t, f, gone.ID)
	want := map[provider.TunnelID]provider.Tunnel{
		first.ID: {ID: first.ID, Name: "edge", Status: provider.TunnelInactive},
		last.ID:  {ID: last.ID, Name: "edge-2", Status: provider.TunnelInactive},
	}
	if diff := cmp.Diff(want, list(t, f)); diff != "" {
		t.Errorf("tunnels differ (-want +got):\n%s", diff)
	}
}

func listsStatus(t *testing.T, f Fixture) {
	id := ensure(t, f, "edge").ID
	other := ensure(t, f, "other").ID
	f.SetConnected(id, false)
	for _, step := range []struct {
		connected bool
		want      provider.TunnelStatus
	}{{false, provider.TunnelInactive}, {true, provider.TunnelHealthy}, {false, provider.TunnelDown}} {
		f.SetConnected(id, step.connected)
		tunnels := list(t, f)
		if got := tunnels[id].Status; got != step.want {
			t.Errorf("connected %t: status %q, want %q", step.connected, got, step.want)
		}
		if got := tunnels[other].Status; got != provider.TunnelInactive {
			t.Errorf("another tunnel has status %q", got)
		}
	}
}

// list returns all tunnels by their ID, of which none may come twice.
func list(t *testing.T, f Fixture) map[provider.TunnelID]provider.Tunnel {
	t.Helper()
	tunnels, err := f.Provider.Tunnels(t.Context())
	if err != nil {
		t.Fatalf("Tunnels: %v", err)
	}
	byID := map[provider.TunnelID]provider.Tunnel{}
	for _, tunnel := range tunnels {
		byID[tunnel.ID] = tunnel
	}
	if len(byID) != len(tunnels) {
		t.Errorf("a tunnel is listed twice: %+v", tunnels)
	}
	return byID
}

func tokenIsForTunnel(t *testing.T, f Fixture) {
	tokens := map[provider.Token]bool{}
	for _, name := range []string{"edge", "other", "edge"} {
		id := ensure(t, f, name).ID
		token, err := f.Provider.Token(t.Context(), id)
		if err != nil {
			t.Fatalf("Token: %v", err)
		}
		account, of, err := token.Credentials()
		if err != nil || of != id || account != f.AccountID {
			t.Errorf("the token of %s is for tunnel %q of account %q, error %v", id, of, account, err)
		}
		tokens[token] = true
	}
	if len(tokens) != 2 {
		t.Errorf("two tunnels have %d tokens", len(tokens))
	}
}

func ensureMindsCase(t *testing.T, f Fixture) {
	lower, upper := ensure(t, f, "edge"), ensure(t, f, "EDGE")
	if lower.ID == upper.ID || !upper.Created {
		t.Errorf("names that differ in case share tunnel %s", lower.ID)
	}
}

func ensureAfterDelete(t *testing.T, f Fixture) {
	old := ensure(t, f, "edge")
	configure(t, f, old.ID, serving("a.example.com"))
	deleteTunnel(t, f, old.ID)
	next := ensure(t, f, "edge")
	if !next.Created || next.ID == old.ID {
		t.Errorf("got %+v after deleting %s, want a new tunnel", next, old.ID)
	}
	wantDocument(t, f, next.ID, provider.Configuration{}, 0)
	wantNotFound(t, f, old.ID)
}

func newTunnelIsEmpty(t *testing.T, f Fixture) {
	wantDocument(t, f, ensure(t, f, "edge").ID, provider.Configuration{}, 0)
}

func configureRoundTrip(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	version := configure(t, f, tunnel.ID, full())
	wantDocument(t, f, tunnel.ID, full(), version)
}

func unmodelledRoundTrip(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	f.SetDocument(tunnel.ID, full())
	read, _, err := f.Provider.Configuration(t.Context(), tunnel.ID)
	if err != nil {
		t.Fatalf("Configuration: %v", err)
	}
	read.Ingress = serving("b.example.com").Ingress
	configure(t, f, tunnel.ID, read)

	read, _, err = f.Provider.Configuration(t.Context(), tunnel.ID)
	if err != nil {
		t.Fatalf("Configuration: %v", err)
	}
	var got, want any
	if err := json.Unmarshal(read.Unmodelled["warp-routing"], &got); err != nil {
		t.Fatalf("warp-routing: %v", err)
	}
	if err := json.Unmarshal(full().Unmodelled["warp-routing"], &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warp-routing differs (-want +got):\n%s", diff)
	}
}

func configureReplaces(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	configure(t, f, tunnel.ID, full())
	version := configure(t, f, tunnel.ID, serving("b.example.com"))
	wantDocument(t, f, tunnel.ID, serving("b.example.com"), version)
	version = configure(t, f, tunnel.ID, provider.Configuration{})
	wantDocument(t, f, tunnel.ID, provider.Configuration{}, version)
}

func versionsCount(t *testing.T, f Fixture) {
	tunnel, other := ensure(t, f, "edge"), ensure(t, f, "other")
	for want := provider.Version(1); want <= 3; want++ {
		if got := configure(t, f, tunnel.ID, serving("a.example.com")); got != want {
			t.Errorf("write %d has version %d", want, got)
		}
	}
	wantDocument(t, f, other.ID, provider.Configuration{}, 0)
}

func foreignEdit(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	version := configure(t, f, tunnel.ID, serving("a.example.com"))
	f.SetDocument(tunnel.ID, serving("b.example.com"))
	wantDocument(t, f, tunnel.ID, serving("b.example.com"), version+1)
	if got := configure(t, f, tunnel.ID, serving("a.example.com")); got != version+2 {
		t.Errorf("version = %d, want %d", got, version+2)
	}
}

func invalidDocument(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	version := configure(t, f, tunnel.ID, serving("a.example.com"))
	bad := serving("a.example.com")
	bad.Ingress[0].Service += "/"
	_, err := f.Provider.Configure(t.Context(), tunnel.ID, bad)
	invalid, ok := errors.AsType[*provider.InvalidError](err)
	if !ok || invalid.Rule != 0 {
		t.Errorf("got %v, want an InvalidError for rule 0", err)
	}
	if provider.IsTransient(err) {
		t.Error("a bad document is transient")
	}
	wantDocument(t, f, tunnel.ID, serving("a.example.com"), version)
}

func unknownTunnel(t *testing.T, f Fixture) { wantNotFound(t, f, missing) }

func deletedTunnel(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	configure(t, f, tunnel.ID, serving("a.example.com"))
	deleteTunnel(t, f, tunnel.ID)
	wantNotFound(t, f, tunnel.ID)
}

func deleteTwice(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	deleteTunnel(t, f, tunnel.ID)
	deleteTunnel(t, f, tunnel.ID)
}

func deleteConnected(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	configure(t, f, tunnel.ID, serving("a.example.com"))
	f.SetConnected(tunnel.ID, true)
	if err := f.Provider.DeleteTunnel(t.Context(), tunnel.ID); !errors.Is(err, provider.ErrConnected) {
		t.Errorf("got %v, want ErrConnected", err)
	}
	wantDocument(t, f, tunnel.ID, serving("a.example.com"), 1)
	f.SetConnected(tunnel.ID, false)
	deleteTunnel(t, f, tunnel.ID)
	wantNotFound(t, f, tunnel.ID)
}

// localIsRefused: nothing of a locally managed tunnel is taken for the caller's,
// and it is not deleted. After its migration it is one like any other.
func localIsRefused(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	f.SetLocal(tunnel.ID, true)
	got, ensureErr := f.Provider.EnsureTunnel(t.Context(), provider.TunnelSpec{Name: "edge"})
	if got != (provider.Tunnel{}) {
		t.Errorf("EnsureTunnel = %+v", got)
	}
	_, _, readErr := f.Provider.Configuration(t.Context(), tunnel.ID)
	_, writeErr := f.Provider.Configure(t.Context(), tunnel.ID, serving("a.example.com"))
	for method, err := range map[string]error{
		"EnsureTunnel": ensureErr, "Configuration": readErr, "Configure": writeErr,
		"DeleteTunnel": f.Provider.DeleteTunnel(t.Context(), tunnel.ID),
	} {
		if !errors.Is(err, provider.ErrLocallyManaged) || provider.IsTransient(err) {
			t.Errorf("%s: got %v, want ErrLocallyManaged", method, err)
		}
	}
	if found, err := f.Provider.FindTunnel(t.Context(), "edge"); err != nil || found.ID != tunnel.ID {
		t.Errorf("afterwards FindTunnel = %+v, %v", found, err)
	}
	f.SetLocal(tunnel.ID, false)
	if again := ensure(t, f, "edge"); again.ID != tunnel.ID {
		t.Errorf("after the migration it is tunnel %s, want %s", again.ID, tunnel.ID)
	}
	version := configure(t, f, tunnel.ID, serving("b.example.com"))
	wantDocument(t, f, tunnel.ID, serving("b.example.com"), version)
	deleteTunnel(t, f, tunnel.ID)
}

func cancelled(t *testing.T, f Fixture) {
	tunnel := ensure(t, f, "edge")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for method, err := range allMethods(ctx, f.Provider, tunnel.ID) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", method, err)
		}
	}
	wantDocument(t, f, tunnel.ID, provider.Configuration{}, 0)
}

func concurrent(t *testing.T, f Fixture) {
	const writers = 4
	ids := make([]provider.TunnelID, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			tunnel, err := f.Provider.EnsureTunnel(t.Context(), provider.TunnelSpec{Name: "edge"})
			if err != nil {
				t.Errorf("EnsureTunnel: %v", err)
				return
			}
			ids[i] = tunnel.ID
			if _, err := f.Provider.Configure(t.Context(), tunnel.ID, serving(fmt.Sprintf("h%d.example.com", i))); err != nil {
				t.Errorf("Configure: %v", err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("one name has several tunnels: %v", ids)
		}
	}
	_, version, err := f.Provider.Configuration(t.Context(), ids[0])
	if err != nil || version != writers {
		t.Errorf("Configuration has version %d and error %v, want version %d", version, err, writers)
	}
}
