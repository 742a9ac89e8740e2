package simulator_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// newEdge returns a server with one tunnel, a client for its API, and the edge
// that connectors connect to.
func newEdge(t *testing.T) (s *simulator.Server, c client, edge *httptest.Server, id string) {
	t.Helper()
	s, c = newAPI(t, simulator.Options{})
	edge = httptest.NewServer(s.Edge())
	t.Cleanup(func() {
		s.Close() // edge.Close waits until the connections have ended
		edge.Close()
	})
	return s, c, edge, c.create(t, "one").ID
}

// connection connects a connector to the edge.
type connection struct {
	body     *io.PipeWriter
	abort    context.CancelFunc
	response *http.Response
}

// connect connects as a connector with that token and ID.
func connect(t *testing.T, edge *httptest.Server, token, id string) connection {
	t.Helper()
	return connectFrom(t, edge, token, id, "")
}

// connectFrom is like connect, for a connector in the pod with that host name.
func connectFrom(t *testing.T, edge *httptest.Server, token, id, host string) connection {
	t.Helper()
	ctx, abort := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, edge.URL+"/connect", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Connector-Id", id)
	request.Header.Set("Connector-Host", host)
	response, err := edge.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		abort()
		_, _ = writer.Close(), response.Body.Close()
	})
	return connection{writer, abort, response}
}

// mustConnect is like connect, but the edge must accept the connector.
func mustConnect(t *testing.T, edge *httptest.Server, token, id string) connection {
	t.Helper()
	c := connect(t, edge, token, id)
	if c.response.StatusCode != http.StatusOK {
		t.Fatalf("the edge refused a connector: %s", c.response.Status)
	}
	return c
}

// waitForEnd waits until the edge closes the connection.
func (c connection) waitForEnd(t *testing.T) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c.response.Body); err != nil {
		t.Errorf("the connection broke: %v", err)
	}
	_ = c.body.Close()
}

// unregister disconnects the connector gracefully.
func (c connection) unregister(t *testing.T) {
	t.Helper()
	_ = c.body.Close()
	c.waitForEnd(t)
}

// wantReplicas checks which connectors the API lists.
func (c client) wantReplicas(t *testing.T, tunnel string, want ...string) {
	t.Helper()
	got := []string{}
	for _, connector := range c.connectors(t, tunnel) {
		got = append(got, connector.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("connectors (-want +got):\n%s", diff)
	}
}

func (c client) wantStatus(t *testing.T, tunnel, want string) {
	t.Helper()
	if got, err := c.get(t.Context(), tunnel); err != nil || string(got.Status) != want {
		t.Errorf("tunnel %v, %v, want status %s", got, err, want)
	}
}

func TestTunnelWithAConnectorCannotBeDeleted(t *testing.T) {
	_, c, edge, id := newEdge(t)
	token := c.tunnelToken(t, id)
	first, second := uuid.NewString(), uuid.NewString()
	connection := mustConnect(t, edge, token, first)
	other := mustConnect(t, edge, token, second)
	c.wantReplicas(t, id, first, second)
	c.wantStatus(t, id, "healthy")
	connection.unregister(t)
	c.wantReplicas(t, id, second)
	_, err := c.delete(t.Context(), id)
	wantError(t, err, http.StatusBadRequest, 1022)
	other.unregister(t)
	c.wantReplicas(t, id)
	c.wantStatus(t, id, "down")
	if _, err := c.delete(t.Context(), id); err != nil {
		t.Errorf("delete after the last connector: %v", err)
	}
	if refused := connect(t, edge, token, first); refused.response.StatusCode != http.StatusNotFound {
		t.Errorf("a connector of the deleted tunnel: %s, want 404", refused.response.Status)
	}
}

func TestBrokenConnectionStaysListedUntilTheTimeout(t *testing.T) {
	// When a connection breaks, the connector has not unregistered.
	for name, test := range map[string]struct {
		timeout time.Duration
		listed  int
	}{"before the timeout": {0, 1}, "after the timeout": {time.Nanosecond, 0}} {
		t.Run(name, func(t *testing.T) {
			s, c := newAPI(t, simulator.Options{PendingReconnect: test.timeout})
			edge := httptest.NewServer(s.Edge())
			id := c.create(t, "one").ID
			mustConnect(t, edge, c.tunnelToken(t, id), uuid.NewString()).abort()
			edge.Close() // waits until the connection has ended
			c.wantStatus(t, id, "down")
			if got := c.pending(t, id); len(got) != test.listed || slices.Contains(got, false) {
				t.Errorf("is_pending_reconnect: %v, want true for %d connectors", got, test.listed)
			}
			_, err := c.delete(t.Context(), id)
			if test.listed == 0 && err != nil {
				t.Errorf("delete without connections: %v", err)
			} else if test.listed > 0 {
				wantError(t, err, http.StatusBadRequest, 1022)
			}
		})
	}
}

func TestEdgeRefusesInvalidConnectors(t *testing.T) {
	s, c, edge, id := newEdge(t)
	valid := c.tunnelToken(t, id)
	content, err := base64.StdEncoding.DecodeString(valid)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, replacement string) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(content), old, replacement, 1)))
	}
	connector := uuid.NewString()
	for name, test := range map[string]struct {
		token, connector string
		status           int
	}{
		"no token":        {"", connector, http.StatusUnauthorized},
		"not base64":      {"?" + valid, connector, http.StatusUnauthorized},
		"not JSON":        {replace("{", "["), connector, http.StatusUnauthorized},
		"no credentials":  {base64.StdEncoding.EncodeToString([]byte("{}")), connector, http.StatusUnauthorized},
		"no connector ID": {valid, "", http.StatusBadRequest},
		"unknown tunnel":  {replace(id, connector), connector, http.StatusNotFound},
		"other account":   {replace(account, "other"), connector, http.StatusNotFound},
		"wrong secret":    {replace(`"s":"`, `"s":"AAAA`), connector, http.StatusForbidden},
		"no secret":       {replace(`"s"`, `"none"`), connector, http.StatusForbidden},
		"valid":           {valid, connector, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			got := connect(t, edge, test.token, test.connector)
			if got.response.StatusCode != test.status {
				t.Fatalf("status %d, want %d", got.response.StatusCode, test.status)
			}
			if test.status == http.StatusOK {
				got.unregister(t)
				return
			}
			if !got.response.Close {
				t.Error("the edge keeps the connection open")
			}
			if text, err := io.ReadAll(got.response.Body); err != nil || len(text) == 0 {
				t.Errorf("body %q, error %v, want a text", text, err)
			}
			c.wantReplicas(t, id)
		})
	}
	s.Close()
	if after := connect(t, edge, valid, connector); after.response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("after Close: %s, want 503", after.response.Status)
	}
}

func TestDeletingConnectionsDisconnectsTheConnector(t *testing.T) {
	_, c, edge, id := newEdge(t)
	token, first, second := c.tunnelToken(t, id), uuid.NewString(), uuid.NewString()
	one, other := mustConnect(t, edge, token, first), mustConnect(t, edge, token, second)
	c.disconnect(t, id, first)
	one.waitForEnd(t)
	c.wantReplicas(t, id, second)
	one = mustConnect(t, edge, token, first)
	c.disconnectAll(t, id)
	one.waitForEnd(t)
	other.waitForEnd(t)
	c.wantReplicas(t, id)
}

func TestRotatedSecretRefusesTheOldToken(t *testing.T) {
	s, c, edge, id := newEdge(t)
	for name, rotate := range map[string]func(){
		"by the API":       func() { c.edit(t, id, `{"tunnel_secret":"`+newSecret()+`"}`) },
		"in the dashboard": func() { s.RotateToken(id) },
	} {
		t.Run(name, func(t *testing.T) {
			old, first, second := c.tunnelToken(t, id), uuid.NewString(), uuid.NewString()
			one := mustConnect(t, edge, old, first)
			rotate()
			c.wantReplicas(t, id, first)
			if refused := connect(t, edge, old, second); refused.response.StatusCode != http.StatusForbidden {
				t.Errorf("a connector with the old token: %s, want 403", refused.response.Status)
			}
			other := mustConnect(t, edge, c.tunnelToken(t, id), second)
			c.disconnect(t, id, first)
			one.waitForEnd(t)
			if refused := connect(t, edge, old, first); refused.response.StatusCode != http.StatusForbidden {
				t.Errorf("the disconnected connector: %s, want 403", refused.response.Status)
			}
			c.wantReplicas(t, id, second)
			other.unregister(t)
			c.wantReplicas(t, id)
		})
	}
}

func TestReconnectingConnectorReplacesItsEarlierReplica(t *testing.T) {
	s, c, edge, id := newEdge(t)
	token, connector := c.tunnelToken(t, id), uuid.NewString()
	before := mustConnect(t, edge, token, connector)
	s.Crash(id)
	before.waitForEnd(t)
	c.wantReplicas(t, id, connector)

	reconnected := mustConnect(t, edge, token, connector)
	c.wantReplicas(t, id, connector)
	if got := c.pending(t, id); got[0] {
		t.Error("is_pending_reconnect is true after the connector has reconnected")
	}
	third := mustConnect(t, edge, token, connector)
	reconnected.waitForEnd(t)
	c.wantReplicas(t, id, connector)
	third.unregister(t)
	c.wantReplicas(t, id)
}

func TestDeletingConnectionsRemovesACrashedConnector(t *testing.T) {
	s, c, edge, id := newEdge(t)
	crashed := mustConnect(t, edge, c.tunnelToken(t, id), uuid.NewString())
	s.Crash(id)
	crashed.waitForEnd(t)
	_, err := c.delete(t.Context(), id)
	wantError(t, err, http.StatusBadRequest, 1022)
	c.disconnectAll(t, id)
	if _, err := c.delete(t.Context(), id); err != nil {
		t.Errorf("delete after its connections were deleted: %v", err)
	}
}

func TestConnectCountsOnlySimulatedConnectors(t *testing.T) {
	s, c, edge, id := newEdge(t)
	connector := uuid.NewString()
	mustConnect(t, edge, c.tunnelToken(t, id), connector)
	s.Connect(id, 2)
	if got := c.connectors(t, id); len(got) != 3 {
		t.Errorf("%d connectors, want 3", len(got))
	}
	s.Disconnect(id)
	c.wantReplicas(t, id, connector)
}

func TestCloseDisconnectsConnectors(t *testing.T) {
	s, c, edge, id := newEdge(t)
	token := c.tunnelToken(t, id)
	one, other := mustConnect(t, edge, token, uuid.NewString()), mustConnect(t, edge, token, uuid.NewString())
	s.Close()
	one.waitForEnd(t)
	other.waitForEnd(t)
	c.wantReplicas(t, id)
}

func TestEdgeRequiresFullDuplex(t *testing.T) {
	s := simulator.New(simulator.Options{})
	w := httptest.NewRecorder() // does not support full duplex
	s.Edge().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/connect", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", w.Code)
	}
}
