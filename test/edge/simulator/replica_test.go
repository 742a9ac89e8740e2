package simulator_test

import (
	"net/http"
	"net/http/httptest"
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

func TestReconnectDelay(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*simulator.Server, string)
		back      int
	}{
		"nothing happens":        {func(*simulator.Server, string) {}, 2},
		"the secret is rotated":  {(*simulator.Server).RotateToken, 0},
		"they are stopped":       {(*simulator.Server).Disconnect, 0},
		"one of them is stopped": {func(s *simulator.Server, id string) { s.Connect(id, 1) }, 1},
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
				time.Sleep(time.Minute - 1)
				wantListed(t, s, id, 0)
				time.Sleep(2)
				wantListed(t, s, id, test.back)
			})
		})
	}
}

// A tunnel can be deleted while its connectors are away. They do not come back.
func TestDeletionDuringReconnectDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{ReconnectDelay: time.Minute})
		id := newTunnelID(t, s)
		s.Connect(id, 1)
		call(t, s, http.MethodDelete, "/"+id+"/connections", "")
		if status, body := call(t, s, http.MethodDelete, "/"+id, ""); status != http.StatusOK {
			t.Errorf("deletion: %d %s", status, body)
		}
		time.Sleep(time.Hour)
		if status, body := call(t, s, http.MethodGet, "/"+id, ""); status != http.StatusOK || !strings.Contains(body, `"status":"down"`) {
			t.Errorf("the deleted tunnel: %d %s", status, body)
		}
	})
}

func TestPendingReconnectEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{PendingReconnect: time.Minute})
		id := newTunnelID(t, s)
		s.Connect(id, 2)
		s.Crash(id)
		time.Sleep(time.Minute - 1)
		s.Crash(id) // they are gone already
		wantListed(t, s, id, 2)
		if status, _ := call(t, s, http.MethodDelete, "/"+id, ""); status != http.StatusBadRequest {
			t.Errorf("deletion with connections that are listed: %d", status)
		}
		time.Sleep(1)
		wantListed(t, s, id, 0)
		if status, _ := call(t, s, http.MethodDelete, "/"+id, ""); status != http.StatusOK {
			t.Errorf("deletion afterwards: %d", status)
		}
	})
}

func wantListed(t *testing.T, s *simulator.Server, id string, want int) {
	t.Helper()
	status, body := call(t, s, http.MethodGet, "/"+id+"/connections", "")
	if got := strings.Count(body, `"run_at"`); status != http.StatusOK || got != want {
		t.Errorf("%d connectors are listed, want %d: %d %s", got, want, status, body)
	}
}
