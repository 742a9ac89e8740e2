package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// asCommand makes the test's own binary the command.
const asCommand = "RUN_AS_CONNECTOR"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// cloud is the simulator with one tunnel.
type cloud struct {
	*simulator.Server
	api, edge *httptest.Server
	tunnel    string
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	server := simulator.New(simulator.Options{})
	c := &cloud{Server: server, api: httptest.NewServer(server.API()), edge: httptest.NewServer(server.Edge())}
	t.Cleanup(func() {
		server.Close() // the other two wait for connections to end
		c.edge.Close()
		c.api.Close()
	})
	var created struct{ ID string }
	c.call(t, http.MethodPost, "", `{"name":"one","config_src":"cloudflare"}`, &created)
	c.tunnel = created.ID
	return c
}

// call calls the API at a path below the tunnels, and returns the status. The
// result may be nil when it does not matter.
func (c *cloud) call(t *testing.T, method, path, body string, result any) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method,
		c.api.URL+"/client/v4/accounts/account/cfd_tunnel"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer any")
	response, err := c.api.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	envelope := struct{ Result any }{result}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

func (c *cloud) token(t *testing.T) string {
	t.Helper()
	var token string
	c.call(t, http.MethodGet, "/"+c.tunnel+"/token", "", &token)
	return token
}

func (c *cloud) cleanUp(t *testing.T) {
	t.Helper()
	c.call(t, http.MethodDelete, "/"+c.tunnel+"/connections", "", nil)
}

// delete deletes the tunnel and returns the status.
func (c *cloud) delete(t *testing.T) int {
	t.Helper()
	return c.call(t, http.MethodDelete, "/"+c.tunnel, "", nil)
}

// wantReplicas checks which connectors the API lists.
func (c *cloud) wantReplicas(t *testing.T, want ...string) {
	t.Helper()
	var listed []struct{ ID string }
	c.call(t, http.MethodGet, "/"+c.tunnel+"/connections", "", &listed)
	got := []string{}
	for _, replica := range listed {
		got = append(got, replica.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("connectors (-want +got):\n%s", diff)
	}
}

// process is a connector that was started.
type process struct {
	command *exec.Cmd
	lines   chan string // of its log; closed when it has ended
	metrics string
}

// start starts a connector, as it is deployed, and waits for its metrics.
func start(t *testing.T, edge *httptest.Server, token string) *process {
	t.Helper()
	command := exec.Command(os.Args[0], strings.Fields(deployed)...) // #nosec G702 -- this very program
	p := &process{command: command, lines: make(chan string, 1000)}
	p.command.Env = append(os.Environ(), asCommand+"=1", "TUNNEL_TOKEN="+token, "TUNNEL_EDGE="+edge.URL, "METRICS_PORT=0")
	log, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	go func() {
		for scanner := bufio.NewScanner(log); scanner.Scan(); {
			if strings.Contains(scanner.Text(), token) {
				t.Errorf("the log tells the token: %s", scanner.Text())
			}
			p.lines <- scanner.Text()
		}
		close(p.lines)
	}()
	_, p.metrics, _ = strings.Cut(p.says(t, "metrics on "), "metrics on ")
	return p
}

// says waits for a line of the log with that text, and returns it.
func (p *process) says(t *testing.T, text string) string {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("it ended without %q", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-late:
			t.Fatalf("it did not say %q", text)
		}
	}
}

// wantReady checks what a probe is told, and returns the connector's id.
func (p *process) wantReady(t *testing.T, status, connections int) (id string) {
	t.Helper()
	response, err := http.Get(p.metrics + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Status, ReadyConnections int
		ConnectorID              string
	}
	if err := json.Unmarshal(content, &body); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status || body.Status != status || body.ReadyConnections != connections {
		t.Errorf("ready: %d %s, want %d and %d connections", response.StatusCode, content, status, connections)
	}
	return body.ConnectorID
}

// end ends the process as a node does, and checks that it ends well.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	last := ""
	for last = range p.lines { // Wait must come after the last
		if strings.Contains(last, "no farewell") {
			t.Error(last)
		}
	}
	if !strings.HasSuffix(last, " ended") {
		t.Errorf("the last line is %q", last)
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("the connector ended with %v", err)
	}
}

func TestConnectors(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	one, other := start(t, c.edge, c.token(t)), start(t, c.edge, c.token(t))
	one.says(t, "connected as")
	other.says(t, "connected as")
	first, second := one.wantReady(t, http.StatusOK, 4), other.wantReady(t, http.StatusOK, 4)
	c.wantReplicas(t, first, second)

	one.end(t)
	c.wantReplicas(t, second)
	c.cleanUp(t) // cuts it off, and it comes back
	other.says(t, "ended the connection")
	other.says(t, "connected as")
	if status := c.delete(t); status != http.StatusBadRequest {
		t.Errorf("the tunnel's deletion with a connector: %d, want 400", status)
	}
	other.wantReady(t, http.StatusOK, 4)
	other.end(t)
	c.wantReplicas(t)
	if status := c.delete(t); status != http.StatusOK {
		t.Errorf("the tunnel's deletion without connectors: %d, want 200", status)
	}

	late := start(t, c.edge, c.tokenOf(first))
	late.says(t, "refused with 404")
	late.wantReady(t, http.StatusServiceUnavailable, 0)
	late.end(t)
}

// tokenOf is a token of a tunnel that may not exist.
func (c *cloud) tokenOf(tunnel string) string {
	return encoded(`{"a":"account","t":"` + tunnel + `","s":"secret"}`)
}

func TestWrongSecret(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	p := start(t, c.edge, c.tokenOf(c.tunnel))
	p.says(t, "refused with 403")
	p.says(t, "refused with 403") // it does not give up
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	c.wantReplicas(t)
	p.end(t)
}

func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	p := start(t, c.edge, c.token(t))
	p.says(t, "connected as")
	c.RotateToken(c.tunnel)
	p.wantReady(t, http.StatusOK, 4)
	c.cleanUp(t)
	p.says(t, "ended the connection")
	p.says(t, "refused with 403")
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	c.wantReplicas(t)

	renewed := start(t, c.edge, c.token(t))
	renewed.says(t, "connected as")
	c.wantReplicas(t, renewed.wantReady(t, http.StatusOK, 4))
	renewed.end(t)
	p.end(t)
}

func TestConnectorComesBack(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	p := start(t, c.edge, c.token(t))
	p.says(t, "connected as")
	id := p.wantReady(t, http.StatusOK, 4)
	c.Crash(c.tunnel)
	p.says(t, "ended the connection")
	p.says(t, "connected as")
	p.wantReady(t, http.StatusOK, 4)
	c.wantReplicas(t, id)

	// The edge may see this break later than the connector, which has one replica
	// all the same.
	c.edge.CloseClientConnections()
	p.says(t, "not connected")
	p.says(t, "connected as")
	c.wantReplicas(t, p.wantReady(t, http.StatusOK, 4))
	p.end(t)
	c.wantReplicas(t)
}

func TestClosedEdge(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	p := start(t, c.edge, c.token(t))
	p.says(t, "connected as")
	c.Close()
	p.says(t, "refused with 503")
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	c.edge.Close()
	p.says(t, "connection refused")
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	p.end(t)
}

func TestWrongArgumentEndsTheCommand(t *testing.T) {
	t.Parallel()
	command := exec.Command(os.Args[0], "tunnel", "--no-such-flag", "run") // #nosec G702 -- this very program
	command.Env = append(os.Environ(), asCommand+"=1")
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no-such-flag") {
		t.Errorf("%v, %q, want a failure that names the flag", err, out)
	}
}
