package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func createsTunnel(t *testing.T, f Fixture) {
	got := create(t, f, "edge")
	want := provider.Tunnel{ID: got.ID, Name: "edge", Status: provider.TunnelInactive}
	if diff := cmp.Diff(want, got); diff != "" || got.ID == "" {
		t.Errorf("tunnel without an ID, or tunnel differs (-want +got):\n%s", diff)
	}
	if other := create(t, f, "edge-2"); other.ID == got.ID {
		t.Errorf("two names have the same tunnel %s", other.ID)
	}
}

func nameIsUnique(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	got, err := f.Provider.CreateTunnel(t.Context(), "edge")
	if !errors.Is(err, provider.ErrNameExists) || provider.IsTransient(err) || got != (provider.Tunnel{}) {
		t.Errorf("got %+v and %v, want ErrNameExists", got, err)
	}
	if tunnels := list(t, f); len(tunnels) != 1 || tunnels[id].Name != "edge" {
		t.Errorf("the account has tunnels %+v, want only edge", tunnels)
	}
}

func namesAreCaseSensitive(t *testing.T, f Fixture) {
	lower, upper := create(t, f, "edge"), create(t, f, "EDGE")
	for _, want := range []provider.Tunnel{lower, upper} {
		if found, err := f.Provider.FindTunnel(t.Context(), want.Name); err != nil || found.ID != want.ID {
			t.Errorf("FindTunnel(%q) = %+v, %v, want tunnel %s", want.Name, found, err, want.ID)
		}
	}
}

func createAfterDelete(t *testing.T, f Fixture) {
	old := create(t, f, "edge")
	configure(t, f, old.ID, serving("a.example.com"))
	deleteTunnel(t, f, old.ID)
	next := create(t, f, "edge")
	if next.ID == old.ID {
		t.Errorf("the new tunnel has the ID %s of the deleted tunnel", old.ID)
	}
	wantConfiguration(t, f, next.ID, provider.Configuration{}, 0)
	wantNotFound(t, f, old.ID)
}

func findsLive(t *testing.T, f Fixture) {
	if _, err := f.Provider.FindTunnel(t.Context(), "edge"); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("before creation: error %v, want ErrNotFound", err)
	}
	created := create(t, f, "edge")
	if found, err := f.Provider.FindTunnel(t.Context(), "edge"); err != nil || found != created {
		t.Errorf("got %+v, %v, want %+v", found, err, created)
	}
	deleteTunnel(t, f, created.ID)
	if _, err := f.Provider.FindTunnel(t.Context(), "edge"); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("after deletion: error %v, want ErrNotFound", err)
	}
}

func readsByID(t *testing.T, f Fixture) {
	create(t, f, "other")
	created := create(t, f, "edge")
	if got := read(t, f, created.ID); got != created {
		t.Errorf("got %+v, want %+v", got, created)
	}
	f.Cloud.SetConnected(created.ID, true)
	if got := read(t, f, created.ID); got.Status != provider.TunnelHealthy {
		t.Errorf("with connectors: status %q", got.Status)
	}
}

func read(t *testing.T, f Fixture, id provider.TunnelID) provider.Tunnel {
	t.Helper()
	tunnel, err := f.Provider.Tunnel(t.Context(), id)
	if err != nil {
		t.Fatalf("Tunnel: %v", err)
	}
	return tunnel
}

func listsLive(t *testing.T, f Fixture) {
	if got := list(t, f); len(got) != 0 {
		t.Errorf("an empty account has tunnels %+v", got)
	}
	first, deleted, last := create(t, f, "edge"), create(t, f, "gone"), create(t, f, "edge-2")
	deleteTunnel(t, f, deleted.ID)
	want := map[provider.TunnelID]provider.Tunnel{
		first.ID: {ID: first.ID, Name: "edge", Status: provider.TunnelInactive},
		last.ID:  {ID: last.ID, Name: "edge-2", Status: provider.TunnelInactive},
	}
	if diff := cmp.Diff(want, list(t, f)); diff != "" {
		t.Errorf("tunnels differ (-want +got):\n%s", diff)
	}
}

func listsStatus(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	other := create(t, f, "other").ID
	f.Cloud.SetConnected(id, false)
	for _, step := range []struct {
		connected bool
		want      provider.TunnelStatus
	}{{false, provider.TunnelInactive}, {true, provider.TunnelHealthy}, {false, provider.TunnelDown}} {
		f.Cloud.SetConnected(id, step.connected)
		tunnels := list(t, f)
		if got := tunnels[id].Status; got != step.want {
			t.Errorf("connected %t: status %q, want %q", step.connected, got, step.want)
		}
		if got := tunnels[other].Status; got != provider.TunnelInactive {
			t.Errorf("another tunnel has status %q", got)
		}
	}
}

// list returns all tunnels by ID. It fails the test if a tunnel is listed twice.
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

func tokenBelongsToTunnel(t *testing.T, f Fixture) {
	tokens := map[provider.Token]bool{}
	ids := []provider.TunnelID{create(t, f, "edge").ID, create(t, f, "other").ID}
	for _, id := range append(ids, ids[0]) {
		token, err := f.Provider.Token(t.Context(), id)
		if err != nil {
			t.Fatalf("Token: %v", err)
		}
		account, tunnel, err := token.Credentials()
		if err != nil || tunnel != id || account != f.AccountID {
			t.Errorf("the token of %s contains tunnel %q and account %q, error %v", id, tunnel, account, err)
		}
		tokens[token] = true
	}
	if len(tokens) != 2 {
		t.Errorf("two tunnels have %d different tokens, want 2", len(tokens))
	}
}

func newTunnelIsEmpty(t *testing.T, f Fixture) {
	wantConfiguration(t, f, create(t, f, "edge").ID, provider.Configuration{}, 0)
}

func configureRoundTrip(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	version := configure(t, f, tunnel.ID, fullConfiguration())
	wantConfiguration(t, f, tunnel.ID, fullConfiguration(), version)
}

func unknownFieldsRoundTrip(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	f.Cloud.SetConfiguration(tunnel.ID, fullConfiguration())
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
	if err := json.Unmarshal(read.UnknownFields["warp-routing"], &got); err != nil {
		t.Fatalf("warp-routing: %v", err)
	}
	if err := json.Unmarshal(fullConfiguration().UnknownFields["warp-routing"], &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warp-routing differs (-want +got):\n%s", diff)
	}
}

func configureReplaces(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	configure(t, f, tunnel.ID, fullConfiguration())
	version := configure(t, f, tunnel.ID, serving("b.example.com"))
	wantConfiguration(t, f, tunnel.ID, serving("b.example.com"), version)
	version = configure(t, f, tunnel.ID, provider.Configuration{})
	wantConfiguration(t, f, tunnel.ID, provider.Configuration{}, version)
}

func versionIncrements(t *testing.T, f Fixture) {
	tunnel, other := create(t, f, "edge"), create(t, f, "other")
	for want := provider.Version(1); want <= 3; want++ {
		if got := configure(t, f, tunnel.ID, serving("a.example.com")); got != want {
			t.Errorf("write %d: version = %d", want, got)
		}
	}
	wantConfiguration(t, f, other.ID, provider.Configuration{}, 0)
}

func externalChange(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	version := configure(t, f, tunnel.ID, serving("a.example.com"))
	f.Cloud.SetConfiguration(tunnel.ID, serving("b.example.com"))
	wantConfiguration(t, f, tunnel.ID, serving("b.example.com"), version+1)
	if got := configure(t, f, tunnel.ID, serving("a.example.com")); got != version+2 {
		t.Errorf("version = %d, want %d", got, version+2)
	}
}

func invalidConfiguration(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	version := configure(t, f, tunnel.ID, serving("a.example.com"))
	invalid := serving("a.example.com")
	invalid.Ingress[0].Service += "/"
	_, err := f.Provider.Configure(t.Context(), tunnel.ID, invalid)
	invalidError, ok := errors.AsType[*provider.InvalidError](err)
	if !ok || invalidError.Rule != 0 {
		t.Errorf("got %v, want an InvalidError for rule 0", err)
	}
	if provider.IsTransient(err) {
		t.Error("the error of an invalid configuration is transient")
	}
	wantConfiguration(t, f, tunnel.ID, serving("a.example.com"), version)
}

func unknownTunnel(t *testing.T, f Fixture) { wantNotFound(t, f, missing) }

func deletedTunnel(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	configure(t, f, tunnel.ID, serving("a.example.com"))
	deleteTunnel(t, f, tunnel.ID)
	wantNotFound(t, f, tunnel.ID)
}

func deleteTwice(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	deleteTunnel(t, f, tunnel.ID)
	deleteTunnel(t, f, tunnel.ID)
}

func deleteRouted(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	f.Cloud.SetRoutes(tunnel.ID, true)
	err := f.Provider.DeleteTunnel(t.Context(), tunnel.ID)
	if !errors.Is(err, provider.ErrRoutes) || provider.IsTransient(err) {
		t.Errorf("got %v, want ErrRoutes", err)
	}
	if got := read(t, f, tunnel.ID); got != tunnel {
		t.Errorf("after DeleteTunnel the tunnel is %+v, want %+v", got, tunnel)
	}
	f.Cloud.SetRoutes(tunnel.ID, false)
	deleteTunnel(t, f, tunnel.ID)
	wantNotFound(t, f, tunnel.ID)
}

// localTunnel: every call that returns the tunnel reports that it is locally managed, and
// calls for its configuration fail until it is migrated. Deletion succeeds, because the
// caller has read the tunnel.
func localTunnel(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	for _, local := range []bool{true, false} {
		f.Cloud.SetLocal(id, local)
		found, err := f.Provider.FindTunnel(t.Context(), "edge")
		if err != nil {
			t.Fatal(err)
		}
		for method, tunnel := range map[string]provider.Tunnel{
			"FindTunnel": found, "Tunnel": read(t, f, id), "Tunnels": list(t, f)[id],
		} {
			if tunnel.Local != local || tunnel.ID != id {
				t.Errorf("local %t: %s returned %+v", local, method, tunnel)
			}
		}
		_, _, readErr := f.Provider.Configuration(t.Context(), id)
		_, writeErr := f.Provider.Configure(t.Context(), id, serving("a.example.com"))
		for method, err := range map[string]error{"Configuration": readErr, "Configure": writeErr} {
			if errors.Is(err, provider.ErrLocallyManaged) != local || err != nil && !local || provider.IsTransient(err) {
				t.Errorf("local %t: %s returned error %v", local, method, err)
			}
		}
	}
	version := configure(t, f, id, serving("b.example.com"))
	wantConfiguration(t, f, id, serving("b.example.com"), version)
	f.Cloud.SetLocal(id, true)
	deleteTunnel(t, f, id)
	wantNotFound(t, f, id)
}

func canceled(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for method, err := range allMethods(ctx, f.Provider, tunnel.ID) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", method, err)
		}
	}
	wantConfiguration(t, f, tunnel.ID, provider.Configuration{}, 0)
}

func concurrent(t *testing.T, f Fixture) {
	const writers = 4
	created := make([]provider.TunnelID, writers)
	var creating, writing sync.WaitGroup
	for i := range writers {
		creating.Go(func() {
			tunnel, err := f.Provider.CreateTunnel(t.Context(), "edge")
			if err != nil && !errors.Is(err, provider.ErrNameExists) {
				t.Errorf("CreateTunnel: %v", err)
			}
			created[i] = tunnel.ID
		})
	}
	creating.Wait()
	created = slices.DeleteFunc(created, func(id provider.TunnelID) bool { return id == "" })
	if len(created) != 1 {
		t.Fatalf("%d calls created a tunnel, want 1: %v", len(created), created)
	}
	for i := range writers {
		writing.Go(func() {
			if _, err := f.Provider.Configure(t.Context(), created[0], serving(fmt.Sprintf("h%d.example.com", i))); err != nil {
				t.Errorf("Configure: %v", err)
			}
		})
	}
	writing.Wait()
	_, version, err := f.Provider.Configuration(t.Context(), created[0])
	if err != nil || version != writers {
		t.Errorf("Configuration has version %d and error %v, want version %d", version, err, writers)
	}
}
