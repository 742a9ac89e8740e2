package providertest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// absent is a well-formed ID that no connector has.
const absent provider.ConnectorID = "ffffffff-ffff-4fff-bfff-fffffffffffe"

func token(t *testing.T, f Fixture, id provider.TunnelID) provider.Token {
	t.Helper()
	token, err := f.Provider.Token(t.Context(), id)
	if err != nil {
		t.Fatalf("Token: %v", err)
	}
	return token
}

// start starts a connector with the tunnel's present token.
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

// connections returns the listed connectors by their ID.
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

// wantConnections checks which connectors are listed, and whether they are
// connected.
func wantConnections(t *testing.T, f Fixture, id provider.TunnelID, want map[provider.ConnectorID]bool) {
	t.Helper()
	got := map[provider.ConnectorID]bool{}
	for connector, listed := range connections(t, f, id) {
		got[connector] = listed.Connected
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("connectors and whether they are connected differ (-want +got):\n%s", diff)
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
	wantDocument(t, f, tunnel.ID, serving("a.example.com"), 1)
	f.Cloud.SetConnected(tunnel.ID, false)
	deleteTunnel(t, f, tunnel.ID)
	wantNotFound(t, f, tunnel.ID)
}

func deleteStale(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	connector := start(t, f, id)
	f.Cloud.Crash(id)
	wantConnected(t, f, id)
	wantConnections(t, f, id, map[provider.ConnectorID]bool{connector: false}) // deletion has removed nothing
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
			t.Errorf("connector %+v, want one that runs version %d and has the time it connected", connector, version)
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
	for range 2 { // the second time, it is gone
		disconnect(t, f, id, crashed)
		wantConnections(t, f, id, map[provider.ConnectorID]bool{connected: true})
	}
	if after := connections(t, f, id)[connected]; !after.ConnectedAt.Equal(before.ConnectedAt) {
		t.Errorf("the other connector has reconnected: %+v, before %+v", after, before)
	}
}

// disconnectConnected: Cloudflare cuts the connector, which shows in the time
// since which it is connected, and the connector comes back.
func disconnectConnected(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	connector := start(t, f, id)
	before := connections(t, f, id)[connector]
	disconnect(t, f, id, connector)
	after := connections(t, f, id)[connector]
	if !after.Connected || !after.ConnectedAt.After(before.ConnectedAt) {
		t.Errorf("got %+v, want that it has reconnected since %s", after, before.ConnectedAt)
	}
	wantConnected(t, f, id)
}

// disconnectOne: neither an unknown nor an empty ID disconnects all connectors.
func disconnectOne(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	crashed, connected := start(t, f, id), start(t, f, id)
	f.Cloud.Crash(id, crashed)
	before := connections(t, f, id)
	disconnect(t, f, id, absent)
	err := f.Provider.Disconnect(t.Context(), id, "")
	if err == nil || provider.IsTransient(err) {
		t.Errorf("disconnecting an empty ID: error %v, want a lasting one", err)
	}
	if diff := cmp.Diff(before, connections(t, f, id)); diff != "" {
		t.Errorf("connectors differ afterwards (-before +after):\n%s", diff)
	}
	disconnect(t, f, id, connected)
	if got := connections(t, f, id)[crashed]; got != before[crashed] {
		t.Errorf("the other connector is %+v now, want %+v", got, before[crashed])
	}
}

func rotationReplacesToken(t *testing.T, f Fixture) {
	id, other := create(t, f, "edge").ID, create(t, f, "other").ID
	others := token(t, f, other)
	seen := map[provider.Token]bool{}
	for range 3 {
		present := token(t, f, id)
		if account, of, err := present.Credentials(); err != nil || of != id || account != f.AccountID {
			t.Errorf("the token is for tunnel %q of account %q, error %v", of, account, err)
		}
		seen[present] = true
		rotate(t, f, id)
		if _, err := f.Cloud.StartConnector(present); err == nil {
			t.Error("a connector connected with a token that was rotated")
		}
	}
	if len(seen) != 3 {
		t.Errorf("two rotations made %d tokens, want 3", len(seen))
	}
	if string(token(t, f, other)) != string(others) {
		t.Error("the token of another tunnel has changed")
	}
	start(t, f, id)
	if got := read(t, f, id); got.Name != "edge" || got.Local {
		t.Errorf("rotation has changed the tunnel: %+v", got)
	}
}

func rotationKeepsConnections(t *testing.T, f Fixture) {
	id := create(t, f, "edge").ID
	connector := start(t, f, id)
	before := connections(t, f, id)
	rotate(t, f, id)
	if diff := cmp.Diff(before, connections(t, f, id)); diff != "" {
		t.Errorf("connector %s differs afterwards (-before +after):\n%s", connector, diff)
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
