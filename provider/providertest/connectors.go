package providertest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// absent is a valid connector ID that no connector has.
const absent provider.ConnectorID = "ffffffff-ffff-4fff-bfff-fffffffffffe"

func token(t *testing.T, f Fixture, id provider.TunnelID) provider.Token {
	t.Helper()
	token, err := f.Provider.Token(t.Context(), id)
	if err != nil {
		t.Fatalf("Token: %v", err)
	}
	return token
}

// start starts a connector with the tunnel's current token.
func start(t *testing.T, f Fixture, id provider.TunnelID) provider.ConnectorID {
	t.Helper()
	connector, err := f.Cloud.StartConnector(token(t, f, id))
	if err != nil {
		t.Fatalf("start a connector: %v", err)
	}
	return connector
}

func disconnect(t *testing.T, f Fixture, id provider.TunnelID, connector provider.ConnectorID) {
	t.Helper()
	if err := f.Provider.Disconnect(t.Context(), id, connector); err != nil {
		t.Fatalf("Disconnect: %v", err)
	}
}

func rotate(t *testing.T, f Fixture, id provider.TunnelID) {
	t.Helper()
	if err := f.Provider.RotateToken(t.Context(), id); err != nil {
		t.Fatalf("RotateToken: %v", err)
	}
}

// connections returns the listed connectors by ID.
func connections(t *testing.T, f Fixture, id provider.TunnelID) map[provider.ConnectorID]provider.Connector {
	t.Helper()
	listed, err := f.Provider.Connections(t.Context(), id)
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	byID := map[provider.ConnectorID]provider.Connector{}
	for _, connector := range listed {
		byID[connector.ID] = connector
	}
	if len(byID) != len(listed) {
		t.Errorf("a connector is listed twice: %+v", listed)
	}
	return byID
}

// wantConnections checks the listed connectors and whether each is connected.
func wantConnections(t *testing.T, f Fixture, id provider.TunnelID, want map[provider.ConnectorID]bool) {
	t.Helper()
	got := map[provider.ConnectorID]bool{}
	for connector, listed := range connections(t, f, id) {
		got[connector] = listed.Connected
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("connectors (true: connected) differ (-want +got):\n%s", diff)
	}
}

func wantConnected(t *testing.T, f Fixture, id provider.TunnelID) {
	t.Helper()
	if err := f.Provider.DeleteTunnel(t.Context(), id); !errors.Is(err, provider.ErrConnected) || provider.IsTransient(err) {
		t.Errorf("DeleteTunnel: got %v, want ErrConnected", err)
	}
}

func deleteConnected(t *testing.T, f Fixture) {
	tunnel := create(t, f, "edge")
	configure(t, f, tunnel.ID, serving("a.example.com"))
	f.Cloud.SetConnected(tunnel.ID, true)
	wantConnected(t, f, tunnel.ID)
	wantConfiguration(t, f, tunnel.ID, serving("a.example.com"), 1)
	f.Cloud.SetConnected(tunnel.ID, false)
	deleteTunnel(t, f, tunnel.ID)
	wantNotFound(t, f, tunnel.ID)
}

func deleteStale(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	connector := start(t, f, id)
	f.Cloud.Crash(id)
	wantConnected(t, f, id)
	wantConnections(t, f, id, map[provider.ConnectorID]bool{connector: false}) // DeleteTunnel removed nothing
	disconnect(t, f, id, connector)
	deleteTunnel(t, f, id)
	wantNotFound(t, f, id)
}

func listsConnectors(t *testing.T, f Fixture) {
	id, other := create(t, f, "edge").ID, create(t, f, "other").ID
	wantConnections(t, f, id, map[provider.ConnectorID]bool{})
	version := configure(t, f, id, serving("a.example.com"))
	first, second := start(t, f, id), start(t, f, id)
	wantConnections(t, f, id, map[provider.ConnectorID]bool{first: true, second: true})
	for _, connector := range connections(t, f, id) {
		if connector.ConfigVersion != version || connector.ConnectedAt.IsZero() {
			t.Errorf("connector = %+v, want version %d and a time of connection", connector, version)
		}
	}
	wantConnections(t, f, other, map[provider.ConnectorID]bool{})
	f.Cloud.StopConnector(id, first)
	wantConnections(t, f, id, map[provider.ConnectorID]bool{second: true})
}

func listsCrashed(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	crashed, connected := start(t, f, id), start(t, f, id)
	f.Cloud.Crash(id, crashed)
	wantConnections(t, f, id, map[provider.ConnectorID]bool{crashed: false, connected: true})
	if got := read(t, f, id).Status; got != provider.TunnelHealthy {
		t.Errorf("status %q with a connected connector", got)
	}
	f.Cloud.Crash(id)
	wantConnections(t, f, id, map[provider.ConnectorID]bool{crashed: false, connected: false})
	if got := read(t, f, id).Status; got != provider.TunnelDown {
		t.Errorf("status %q without a connected connector", got)
	}
}

func disconnectStale(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	crashed, connected := start(t, f, id), start(t, f, id)
	f.Cloud.Crash(id, crashed)
	before := connections(t, f, id)[connected]
	for range 2 { // the second call finds no connector
		disconnect(t, f, id, crashed)
		wantConnections(t, f, id, map[provider.ConnectorID]bool{connected: true})
	}
	if after := connections(t, f, id)[connected]; !after.ConnectedAt.Equal(before.ConnectedAt) {
		t.Errorf("the other connector reconnected: %+v, before: %+v", after, before)
	}
}

// disconnectConnected: Cloudflare disconnects the connector, and the connector
// reconnects. Its connection time changes.
func disconnectConnected(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	connector := start(t, f, id)
	before := connections(t, f, id)[connector]
	disconnect(t, f, id, connector)
	after := connections(t, f, id)[connector]
	if !after.Connected || !after.ConnectedAt.After(before.ConnectedAt) {
		t.Errorf("got %+v, want a connector that reconnected after %s", after, before.ConnectedAt)
	}
	wantConnected(t, f, id)
}

// disconnectOne: an unknown or empty ID does not disconnect all connectors.
func disconnectOne(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	crashed, connected := start(t, f, id), start(t, f, id)
	f.Cloud.Crash(id, crashed)
	before := connections(t, f, id)
	disconnect(t, f, id, absent)
	err := f.Provider.Disconnect(t.Context(), id, "")
	if err == nil || provider.IsTransient(err) {
		t.Errorf("Disconnect with an empty ID: got %v, want a permanent error", err)
	}
	if diff := cmp.Diff(before, connections(t, f, id)); diff != "" {
		t.Errorf("connectors changed (-before +after):\n%s", diff)
	}
	disconnect(t, f, id, connected)
	if got := connections(t, f, id)[crashed]; got != before[crashed] {
		t.Errorf("the other connector is %+v, want %+v", got, before[crashed])
	}
}

func rotationReplacesToken(t *testing.T, f Fixture) {
	id, other := create(t, f, "edge").ID, create(t, f, "other").ID
	otherToken := token(t, f, other)
	seen := map[provider.Token]bool{}
	for range 3 {
		current := token(t, f, id)
		if account, tunnel, err := current.Credentials(); err != nil || tunnel != id || account != f.AccountID {
			t.Errorf("the token contains tunnel %q and account %q, error %v", tunnel, account, err)
		}
		seen[current] = true
		rotate(t, f, id)
		if _, err := f.Cloud.StartConnector(current); err == nil {
			t.Error("a connector connected with the old token")
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d different tokens after two rotations, want 3", len(seen))
	}
	if string(token(t, f, other)) != string(otherToken) {
		t.Error("the rotation changed the token of another tunnel")
	}
	start(t, f, id)
	if got := read(t, f, id); got.Name != "edge" || got.Local {
		t.Errorf("the rotation changed the tunnel: %+v", got)
	}
}

func rotationKeepsConnections(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	connector := start(t, f, id)
	before := connections(t, f, id)
	rotate(t, f, id)
	if diff := cmp.Diff(before, connections(t, f, id)); diff != "" {
		t.Errorf("connector %s changed (-before +after):\n%s", connector, diff)
	}
}

func disconnectRotated(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	old := start(t, f, id)
	rotate(t, f, id)
	renewed := start(t, f, id)
	disconnect(t, f, id, old)
	disconnect(t, f, id, renewed)
	wantConnections(t, f, id, map[provider.ConnectorID]bool{renewed: true})
}
