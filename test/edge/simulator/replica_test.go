package simulator_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// call calls the API without a network, and returns the status and the body.
func call(t *testing.T, s *simulator.Server, method, path, body string) (int, string) {
	t.Helper()
	request := httptest.NewRequest(method, "/client/v4/accounts/"+account+"/cfd_tunnel"+path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.API().ServeHTTP(w, request)
	return w.Code, w.Body.String()
}

// advance moves the fake clock forward.
func advance(d time.Duration) { <-time.After(d) }

// newTunnelID creates a tunnel without a network.
func newTunnelID(t *testing.T, s *simulator.Server) string {
	t.Helper()
	call(t, s, http.MethodPost, "", `{"name":"one"}`)
	id, ok := s.TunnelID("one")
	if !ok {
		t.Fatal("the tunnel was not created")
	}
	return id
}

func TestSimulatedConnectorsAreListed(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	ctx := t.Context()
	id := c.create(t, "one").ID
	s.Connect(id, 3)
	s.Connect(id, 2)
	listed := c.connectors(t, id)
	if len(listed) != 2 || len(listed[0].Conns) != 4 || listed[0].Conns[0].ClientID != listed[0].ID {
		t.Errorf("connectors %+v, want 2 with 4 connections each", listed)
	}
	if got, err := c.get(ctx, id); err != nil || got.Status != "healthy" {
		t.Errorf("status %v, %v, want healthy", got, err)
	}
	_, err := c.delete(ctx, id)
	wantError(t, err, http.StatusBadRequest, 1022)

	s.Crash(id)
	_, err = c.delete(ctx, id)
	wantError(t, err, http.StatusBadRequest, 1022)
	c.disconnectAll(t, id)
	if got, err := c.get(ctx, id); err != nil || got.Status != "down" {
		t.Errorf("status %v, %v, want down", got, err)
	}
	s.Connect(id, 1)
	s.Disconnect(id)
	if _, err := c.delete(ctx, id); err != nil {
		t.Errorf("delete without connectors: %v", err)
	}
}

func TestDisconnectedConnectorReconnects(t *testing.T) {
	// Without a delay, only a connector's start time shows that it reconnected.
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	s.Connect(id, 2)
	before := c.connectors(t, id)
	c.disconnect(t, id, before[0].ID)
	after := c.connectors(t, id)
	if len(after) != 2 || !after[0].RunAt.After(before[0].RunAt) || !after[1].RunAt.Equal(before[1].RunAt) {
		t.Errorf("connectors %+v, before %+v, want only the first to have reconnected", after, before)
	}
	if opened := after[0].Conns[0].OpenedAt; !opened.Equal(after[0].RunAt) {
		t.Errorf("its connections were opened at %s, want %s", opened, after[0].RunAt)
	}
	c.disconnectAll(t, id)
	if last := c.connectors(t, id); !last[0].RunAt.After(after[0].RunAt) || !last[1].RunAt.After(after[1].RunAt) {
		t.Errorf("connectors %+v, before %+v, want both to have reconnected", last, after)
	}
	_, err := c.delete(t.Context(), id)
	wantError(t, err, http.StatusBadRequest, 1022)

	s.RotateToken(id)
	c.disconnectAll(t, id)
	if got := c.connectors(t, id); len(got) != 0 {
		t.Errorf("connectors %+v reconnected with the old secret", got)
	}
}

func TestConnectorsStartAndStop(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	old := c.tunnelToken(t, id)
	one, err := s.StartConnector(old)
	if err != nil {
		t.Fatal(err)
	}
	s.RotateToken(id)
	if _, err := s.StartConnector(old); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("with the old token: %v, want 403", err)
	}
	other, err := s.StartConnector(c.tunnelToken(t, id))
	if err != nil {
		t.Fatal(err)
	}
	c.wantReplicas(t, id, one, other)
	s.StopConnector(id, one)
	c.wantReplicas(t, id, other)
	s.Crash(id, one, other)
	if got := c.pending(t, id); !slices.Equal(got, []bool{true}) {
		t.Errorf("is_pending_reconnect: %v, want true for one connector", got)
	}
	s.Disconnect(id) // a crashed connector can no longer unregister
	c.wantReplicas(t, id, other)
}

func TestConnectorReconnectsAfterTheDelay(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile   func(*simulator.Server, string)
		reconnected int
	}{
		"nothing happens meanwhile":   {func(*simulator.Server, string) {}, 2},
		"the secret is rotated":       {(*simulator.Server).RotateToken, 0},
		"both connectors are stopped": {(*simulator.Server).Disconnect, 0},
		"one connector is stopped":    {func(s *simulator.Server, id string) { s.Connect(id, 1) }, 1},
		"they are disconnected again": {func(s *simulator.Server, id string) {
			call(t, s, http.MethodDelete, "/"+id+"/connections", "")
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulator.New(simulator.Options{ReconnectDelay: time.Minute})
				id := newTunnelID(t, s)
				s.Connect(id, 2)
				call(t, s, http.MethodDelete, "/"+id+"/connections", "")
				wantListed(t, s, id, 0)
				test.meanwhile(s, id)
				advance(time.Minute - 1)
				wantListed(t, s, id, 0)
				advance(2)
				wantListed(t, s, id, test.reconnected)
			})
		})
	}
}

func TestConnectorsOfADeletedTunnelDoNotReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{ReconnectDelay: time.Minute})
		id := newTunnelID(t, s)
		s.Connect(id, 1)
		call(t, s, http.MethodDelete, "/"+id+"/connections", "")
		if status, body := call(t, s, http.MethodDelete, "/"+id, ""); status != http.StatusOK {
			t.Errorf("delete: %d %s, want 200", status, body)
		}
		advance(time.Hour)
		if status, body := call(t, s, http.MethodGet, "/"+id, ""); status != http.StatusOK || !strings.Contains(body, `"status":"down"`) {
			t.Errorf("the deleted tunnel: %d %s, want 200 and status down", status, body)
		}
	})
}

func TestLostConnectorIsListedUntilTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{PendingReconnect: time.Minute})
		id := newTunnelID(t, s)
		s.Connect(id, 2)
		s.Crash(id)
		advance(time.Minute - 1)
		s.Crash(id) // a second crash does not restart the timeout
		wantListed(t, s, id, 2)
		if status, _ := call(t, s, http.MethodDelete, "/"+id, ""); status != http.StatusBadRequest {
			t.Errorf("delete before the timeout: %d, want 400", status)
		}
		advance(1)
		wantListed(t, s, id, 0)
		if status, _ := call(t, s, http.MethodDelete, "/"+id, ""); status != http.StatusOK {
			t.Errorf("delete after the timeout: %d, want 200", status)
		}
	})
}

func wantListed(t *testing.T, s *simulator.Server, id string, want int) {
	t.Helper()
	status, body := call(t, s, http.MethodGet, "/"+id+"/connections", "")
	if got := strings.Count(body, `"run_at"`); status != http.StatusOK || got != want {
		t.Errorf("%d connectors listed, want %d: %d %s", got, want, status, body)
	}
}
