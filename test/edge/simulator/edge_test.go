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

// newEdge returns a server with one tunnel, a client for its API and what
// connectors connect to.
func newEdge(t *testing.T) (s *simulator.Server, c client, edge *httptest.Server, id string) {
	t.Helper()
	s, c = newAPI(t, simulator.Options{})
	edge = httptest.NewServer(s.Edge())
	t.Cleanup(func() {
		s.Close() // the other waits for connections to end
		edge.Close()
	})
	return s, c, edge, c.create(t, "one").ID
}

// connection is what a connector has with the edge.
type connection struct {
	body   *io.PipeWriter
	cut    context.CancelFunc
	answer *http.Response
}

// connect connects as a connector with that token and id.
func connect(t *testing.T, edge *httptest.Server, token, id string) connection {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, edge.URL+"/connect", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Connector-Id", id)
	answer, err := edge.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cut()
		_, _ = writer.Close(), answer.Body.Close()
	})
	return connection{writer, cut, answer}
}

// mustConnect connects a connector that is not to be refused.
func mustConnect(t *testing.T, edge *httptest.Server, token, id string) connection {
	t.Helper()
	c := connect(t, edge, token, id)
	if c.answer.StatusCode != http.StatusOK {
		t.Fatalf("a connector was refused: %s", c.answer.Status)
	}
	return c
}

// ended waits until the edge ends the connection.
func (c connection) ended(t *testing.T) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c.answer.Body); err != nil {
		t.Errorf("the connection broke: %v", err)
	}
	_ = c.body.Close()
}

// leave says goodbye.
func (c connection) leave(t *testing.T) {
	t.Helper()
	_ = c.body.Close()
	c.ended(t)
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

func TestConnectorsOfATunnel(t *testing.T) {
	_, c, edge, id := newEdge(t)
	token := c.tunnelToken(t, id)
	first, second := uuid.NewString(), uuid.NewString()
	one := mustConnect(t, edge, token, first)
	other := mustConnect(t, edge, token, second)
	c.wantReplicas(t, id, first, second)
	c.wantStatus(t, id, "healthy")
	one.leave(t)
	c.wantReplicas(t, id, second)
	_, err := c.delete(t.Context(), id)
	wantError(t, err, http.StatusBadRequest, 1022)
	other.leave(t)
	c.wantReplicas(t, id)
	c.wantStatus(t, id, "down")
	if _, err := c.delete(t.Context(), id); err != nil {
		t.Errorf("delete after the last connector: %v", err)
	}
	if refused := connect(t, edge, token, first); refused.answer.StatusCode != http.StatusNotFound {
		t.Errorf("the deleted tunnel's connector: %s, want 404", refused.answer.Status)
	}
}

// A connection that breaks stays listed for a while, and is no farewell.
func TestConnectorThatIsCutOff(t *testing.T) {
	for name, test := range map[string]struct {
		window time.Duration
		listed int
	}{"at first": {0, 1}, "later": {time.Nanosecond, 0}} {
		t.Run(name, func(t *testing.T) {
			s, c := newAPI(t, simulator.Options{PendingReconnect: test.window})
			edge := httptest.NewServer(s.Edge())
			id := c.create(t, "one").ID
			mustConnect(t, edge, c.tunnelToken(t, id), uuid.NewString()).cut()
			edge.Close() // waits until the connection has ended
			c.wantStatus(t, id, "down")
			if got := c.pending(t, id); len(got) != test.listed || slices.Contains(got, false) {
				t.Errorf("pending reconnect: %v, want %d connectors that are", got, test.listed)
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

func TestRefusedConnectors(t *testing.T) {
	s, c, edge, id := newEdge(t)
	valid := c.tunnelToken(t, id)
	content, err := base64.StdEncoding.DecodeString(valid)
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, replacement string) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(content), old, replacement, 1)))
	}
	connector := uuid.NewString()
	for name, test := range map[string]struct {
		token, connector string
		status           int
	}{
		"no token":       {"", connector, http.StatusUnauthorized},
		"not base64":     {"?" + valid, connector, http.StatusUnauthorized},
		"not JSON":       {with("{", "["), connector, http.StatusUnauthorized},
		"no credentials": {base64.StdEncoding.EncodeToString([]byte("{}")), connector, http.StatusUnauthorized},
		"no id":          {valid, "", http.StatusBadRequest},
		"other tunnel":   {with(id, connector), connector, http.StatusNotFound},
		"other account":  {with(account, "other"), connector, http.StatusNotFound},
		"secret":         {with(`"s":"`, `"s":"AAAA`), connector, http.StatusForbidden},
		"without secret": {with(`"s"`, `"none"`), connector, http.StatusForbidden},
		"accepted":       {valid, connector, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			refused := connect(t, edge, test.token, test.connector)
			if refused.answer.StatusCode != test.status {
				t.Fatalf("status %d, want %d", refused.answer.StatusCode, test.status)
			}
			if test.status == http.StatusOK {
				refused.leave(t)
				return
			}
			if text, err := io.ReadAll(refused.answer.Body); err != nil || len(text) == 0 {
				t.Errorf("text %q, %v", text, err)
			}
			c.wantReplicas(t, id)
		})
	}
	s.Close()
	if after := connect(t, edge, valid, connector); after.answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("closed: %s, want 503", after.answer.Status)
	}
}

// Deleting connections cuts connectors off that run; those of one connector
// leave the others alone.
func TestConnectorsThatTheAPIDisconnects(t *testing.T) {
	_, c, edge, id := newEdge(t)
	token, first, second := c.tunnelToken(t, id), uuid.NewString(), uuid.NewString()
	one, other := mustConnect(t, edge, token, first), mustConnect(t, edge, token, second)
	c.disconnect(t, id, first)
	one.ended(t)
	c.wantReplicas(t, id, second)
	one = mustConnect(t, edge, token, first)
	c.cleanUp(t, id)
	one.ended(t)
	other.ended(t)
	c.wantReplicas(t, id)
}

func TestConnectorsWithARotatedSecret(t *testing.T) {
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
			if refused := connect(t, edge, old, second); refused.answer.StatusCode != http.StatusForbidden {
				t.Errorf("a connector with the old token: %s, want 403", refused.answer.Status)
			}
			other := mustConnect(t, edge, c.tunnelToken(t, id), second)
			c.disconnect(t, id, first)
			one.ended(t)
			if refused := connect(t, edge, old, first); refused.answer.StatusCode != http.StatusForbidden {
				t.Errorf("the connector that was disconnected: %s, want 403", refused.answer.Status)
			}
			c.wantReplicas(t, id, second)
			other.leave(t)
			c.wantReplicas(t, id)
		})
	}
}

func TestConnectorThatComesBack(t *testing.T) {
	s, c, edge, id := newEdge(t)
	token, connector := c.tunnelToken(t, id), uuid.NewString()
	before := mustConnect(t, edge, token, connector)
	s.Crash(id)
	before.ended(t)
	c.wantReplicas(t, id, connector)

	again := mustConnect(t, edge, token, connector)
	c.wantReplicas(t, id, connector)
	if got := c.pending(t, id); got[0] {
		t.Error("it is pending although it has reconnected")
	}
	third := mustConnect(t, edge, token, connector)
	again.ended(t)
	c.wantReplicas(t, id, connector)
	third.leave(t)
	c.wantReplicas(t, id)
}

func TestCrashedConnectorIsCleanedUp(t *testing.T) {
	s, c, edge, id := newEdge(t)
	crashed := mustConnect(t, edge, c.tunnelToken(t, id), uuid.NewString())
	s.Crash(id)
	crashed.ended(t)
	_, err := c.delete(t.Context(), id)
	wantError(t, err, http.StatusBadRequest, 1022)
	c.cleanUp(t, id)
	if _, err := c.delete(t.Context(), id); err != nil {
		t.Errorf("delete after a clean-up: %v", err)
	}
}

func TestConnectCountsWhatItMade(t *testing.T) {
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

func TestCloseEndsConnectors(t *testing.T) {
	s, c, edge, id := newEdge(t)
	token := c.tunnelToken(t, id)
	one, other := mustConnect(t, edge, token, uuid.NewString()), mustConnect(t, edge, token, uuid.NewString())
	s.Close()
	one.ended(t)
	other.ended(t)
	c.wantReplicas(t, id)
}

func TestEdgeNeedsAConnectionOfItsOwn(t *testing.T) {
	s := simulator.New(simulator.Options{})
	w := httptest.NewRecorder() // cannot answer before the request ends
	s.Edge().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/connect", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", w.Code)
	}
}
