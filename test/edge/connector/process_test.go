package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// runAsConnector is the environment variable that makes the test binary run the
// command.
const runAsConnector = "RUN_AS_CONNECTOR"

func TestMain(m *testing.M) {
	if os.Getenv(runAsConnector) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// cloudflare is the simulator with one tunnel.
type cloudflare struct {
	*simulator.Server
	api, edge *httptest.Server
	tunnel    string
}

func newCloudflare(t *testing.T) *cloudflare {
	t.Helper()
	return newCloudflareWith(t, simulator.Options{})
}

func newCloudflareWith(t *testing.T, o simulator.Options) *cloudflare {
	t.Helper()
	server := simulator.New(o)
	c := &cloudflare{Server: server, api: httptest.NewServer(server.API()), edge: httptest.NewServer(server.Edge())}
	t.Cleanup(func() {
		server.Close() // the HTTP servers wait until their connections have ended
		c.edge.Close()
		c.api.Close()
	})
	var created struct{ ID string }
	c.call(t, http.MethodPost, "", `{"name":"one","config_src":"cloudflare"}`, &created)
	c.tunnel = created.ID
	return c
}

// call calls the API at a path below cfd_tunnel, stores the result in result,
// which may be nil, and returns the status.
func (c *cloudflare) call(t *testing.T, method, path, body string, result any) int {
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

func (c *cloudflare) token(t *testing.T) string {
	t.Helper()
	var token string
	c.call(t, http.MethodGet, "/"+c.tunnel+"/token", "", &token)
	return token
}

// disconnectAll deletes the connections of all connectors.
func (c *cloudflare) disconnectAll(t *testing.T) {
	t.Helper()
	c.call(t, http.MethodDelete, "/"+c.tunnel+"/connections", "", nil)
}

// delete deletes the tunnel and returns the status.
func (c *cloudflare) delete(t *testing.T) int {
	t.Helper()
	return c.call(t, http.MethodDelete, "/"+c.tunnel, "", nil)
}

// wantReplicas checks which connectors the API lists.
func (c *cloudflare) wantReplicas(t *testing.T, want ...string) {
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

// process is a running connector.
type process struct {
	command *exec.Cmd
	lines   chan string // lines in its log; closed when the process has ended
	metrics string      // the URL
}

// start starts a connector with the deployed command line and waits for its
// metrics address.
func start(t *testing.T, edge *httptest.Server, token string) *process {
	t.Helper()
	return startInPod(t, edge, token, "", deployedArguments)
}

// startInPod is like start, with a host name and other arguments.
func startInPod(t *testing.T, edge *httptest.Server, token, host, arguments string) *process {
	t.Helper()
	command := exec.Command(os.Args[0], strings.Fields(arguments)...) // #nosec G702 -- the test binary
	p := &process{command: command, lines: make(chan string, 1000)}
	p.command.Env = append(os.Environ(),
		runAsConnector+"=1", "TUNNEL_TOKEN="+token, "TUNNEL_EDGE="+edge.URL, "METRICS_PORT=0", "HOSTNAME="+host)
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
				t.Errorf("the log contains the token: %s", scanner.Text())
			}
			p.lines <- scanner.Text()
		}
		close(p.lines)
	}()
	_, p.metrics, _ = strings.Cut(p.waitForLog(t, "metrics on "), "metrics on ")
	return p
}

// waitForLog waits for a log line that contains the text, and returns it.
func (p *process) waitForLog(t *testing.T, text string) string {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("the connector ended without logging %q", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			t.Fatalf("the connector did not log %q", text)
		}
	}
}

// wantReady checks the responses to readiness probes, by HTTP and by the command
// ready, and returns the connector's ID.
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
		t.Errorf("/ready: %d %s, want %d and %d connections", response.StatusCode, content, status, connections)
	}
	if code, want := p.probe(t), min(1, status-http.StatusOK); code != want {
		t.Errorf("the command ready exited with %d, want %d", code, want)
	}
	return body.ConnectorID
}

// probe runs the command ready as the kubelet does, and returns its exit code.
func (p *process) probe(t *testing.T) int {
	t.Helper()
	address, err := url.Parse(p.metrics)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0], strings.Fields(probeArguments)...) // #nosec G702 -- the test binary
	command.Env = append(os.Environ(), runAsConnector+"=1", "METRICS_PORT="+address.Port())
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode()
}

// terminate stops the process with SIGTERM and checks that it stops gracefully.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.waitForEnd(t)
}

// waitForEnd waits until the process, which has received SIGTERM, has stopped gracefully.
func (p *process) waitForEnd(t *testing.T) {
	t.Helper()
	last := ""
	for last = range p.lines { // Wait must not be called before the last line is read
		if strings.Contains(last, "failed to unregister") {
			t.Error(last)
		}
	}
	if !strings.HasSuffix(last, " stopped") {
		t.Errorf("the last line is %q, want that the connector stopped", last)
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("the connector exited with %v", err)
	}
}

func TestConnectorsRegisterAndUnregister(t *testing.T) {
	t.Parallel()
	c := newCloudflare(t)
	one, other := start(t, c.edge, c.token(t)), start(t, c.edge, c.token(t))
	one.waitForLog(t, "connected as")
	other.waitForLog(t, "connected as")
	first, second := one.wantReady(t, http.StatusOK, 4), other.wantReady(t, http.StatusOK, 4)
	c.wantReplicas(t, first, second)

	one.terminate(t)
	c.wantReplicas(t, second)
	c.disconnectAll(t) // the connector reconnects
	other.waitForLog(t, "closed the connection")
	other.waitForLog(t, "connected as")
	if status := c.delete(t); status != http.StatusBadRequest {
		t.Errorf("delete the tunnel with a connector: %d, want 400", status)
	}
	other.wantReady(t, http.StatusOK, 4)
	other.terminate(t)
	c.wantReplicas(t)
	if status := c.delete(t); status != http.StatusOK {
		t.Errorf("delete the tunnel without connectors: %d, want 200", status)
	}

	refused := start(t, c.edge, wrongToken(first)) // a connector ID is not a tunnel ID
	refused.waitForLog(t, "refused with 404")
	refused.wantReady(t, http.StatusServiceUnavailable, 0)
	refused.terminate(t)
}

// wrongToken returns a token for the tunnel with a wrong secret.
func wrongToken(tunnel string) string {
	return encodeToken(`{"a":"account","t":"` + tunnel + `","s":"secret"}`)
}

func TestConnectorWithAWrongSecretRetries(t *testing.T) {
	t.Parallel()
	c := newCloudflare(t)
	p := start(t, c.edge, wrongToken(c.tunnel))
	p.waitForLog(t, "refused with 403")
	p.waitForLog(t, "refused with 403") // the connector retries
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	c.wantReplicas(t)
	p.terminate(t)
}

func TestConnectorWithARotatedSecretIsRefused(t *testing.T) {
	t.Parallel()
	c := newCloudflare(t)
	p := start(t, c.edge, c.token(t))
	p.waitForLog(t, "connected as")
	c.RotateToken(c.tunnel)
	p.wantReady(t, http.StatusOK, 4)
	c.disconnectAll(t)
	p.waitForLog(t, "closed the connection")
	p.waitForLog(t, "refused with 403")
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	c.wantReplicas(t)

	renewed := start(t, c.edge, c.token(t))
	renewed.waitForLog(t, "connected as")
	c.wantReplicas(t, renewed.wantReady(t, http.StatusOK, 4))
	renewed.terminate(t)
	p.terminate(t)
}

func TestConnectorReconnectsWithTheSameID(t *testing.T) {
	t.Parallel()
	c := newCloudflare(t)
	p := start(t, c.edge, c.token(t))
	p.waitForLog(t, "connected as")
	id := p.wantReady(t, http.StatusOK, 4)
	c.Crash(c.tunnel)
	p.waitForLog(t, "closed the connection")
	p.waitForLog(t, "connected as")
	p.wantReady(t, http.StatusOK, 4)
	c.wantReplicas(t, id)

	// The edge may detect the broken connection later than the connector. The
	// connector still has only one replica.
	c.edge.CloseClientConnections()
	p.waitForLog(t, "not connected")
	p.waitForLog(t, "connected as")
	c.wantReplicas(t, p.wantReady(t, http.StatusOK, 4))
	p.terminate(t)
	c.wantReplicas(t)
}

func TestConnectorIsNotReadyWithoutAnEdge(t *testing.T) {
	t.Parallel()
	c := newCloudflare(t)
	p := start(t, c.edge, c.token(t))
	p.waitForLog(t, "connected as")
	c.Close()
	p.waitForLog(t, "refused with 503")
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	c.edge.Close()
	p.waitForLog(t, "connection refused")
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	p.terminate(t)
}

func TestWrongArgumentEndsTheCommand(t *testing.T) {
	t.Parallel()
	command := exec.Command(os.Args[0], "tunnel", "--no-such-flag", "run") // #nosec G702 -- the test binary
	command.Env = append(os.Environ(), runAsConnector+"=1")
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no-such-flag") {
		t.Errorf("%v, %q, want a failure that names the flag", err, out)
	}
}
