package simulator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// pods are connector pods. In each pod an origin listens on 127.0.0.1:10080.
type pods struct {
	server  *simulator.Server
	client  client
	edge    *httptest.Server
	tunnel  string
	address string // where the data path listens
	token   string // for the tunnel

	mu     sync.Mutex
	dialed []string // the pods' host names
}

// newPods returns pods with the host names "one" and "two". Their origins use the
// handler, which finds its pod's host name in the header Pod.
func newPods(t *testing.T, handler http.HandlerFunc) *pods {
	t.Helper()
	return newPodsWith(t, handler, simulator.Options{})
}

// newPodsWith is like newPods, with further simulator options.
func newPodsWith(t *testing.T, handler http.HandlerFunc, o simulator.Options) *pods {
	t.Helper()
	p := &pods{}
	origins := map[string]string{}
	for _, name := range []string{"one", "two"} {
		origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Pod", name)
			handler(w, r)
		}))
		origin.Config.ErrorLog = discard
		t.Cleanup(origin.Close)
		origins[name] = origin.Listener.Addr().String()
	}
	o.Dial = simulator.NamedOrigins(func(address string) string { return address })
	o.DialConnector = func(ctx context.Context, connector, network, address string) (net.Conn, error) {
		p.mu.Lock()
		p.dialed = append(p.dialed, connector)
		p.mu.Unlock()
		if address != "127.0.0.1:10080" {
			return nil, fmt.Errorf("nothing listens on %s", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, origins[connector])
	}
	p.server, p.client = newAPI(t, o)
	p.tunnel = p.client.create(t, "one").ID
	p.token = p.client.tunnelToken(t, p.tunnel)
	p.edge = httptest.NewServer(p.server.Edge())
	data := httptest.NewServer(p.server.Tunnel(p.tunnel))
	p.address = data.Listener.Addr().String()
	t.Cleanup(func() {
		p.server.Close()
		p.edge.Close()
		data.Close()
	})
	p.server.SetConfiguration(p.tunnel, json.RawMessage(`{"ingress":[
		{"hostname":"service","service":"http://app.team.svc:80"},
		{"hostname":"other.port","service":"http://127.0.0.1:10081"},
		{"service":"http://127.0.0.1:10080"}]}`))
	return p
}

// start connects the connector in a pod.
func (p *pods) start(t *testing.T, host string) connection {
	t.Helper()
	c := connectFrom(t, p.edge, p.token, uuid.NewString(), host)
	if c.response.StatusCode != http.StatusOK {
		t.Fatalf("the edge refused a connector: %s", c.response.Status)
	}
	return c
}

// get sends n requests for the host and returns the response bodies.
func (p *pods) get(t *testing.T, n int, host string, wantStatus int) (bodies []string) {
	t.Helper()
	for range n {
		status, body := get(t, p.address, host, "/")
		if status != wantStatus {
			t.Fatalf("status %d %q, want %d", status, body, wantStatus)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// getUntilOnly sends requests until only the given pod responds. The connectors take
// turns, so two responses in a row from one pod would be enough.
func (p *pods) getUntilOnly(t *testing.T, host string) {
	t.Helper()
	for inARow := 0; inARow < 4; inARow++ {
		if p.get(t, 1, "any", http.StatusOK)[0] != host {
			inARow = -1
		}
	}
}

func answerPod(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Header.Get("Pod")) // #nosec G705 -- plain text
}

func TestConnectorsCarryRequestsToTheirOwnPodsInTurn(t *testing.T) {
	p := newPods(t, answerPod)
	p.server.Connect(p.tunnel, 2)                     // simulated connectors are in no pod
	mustConnect(t, p.edge, p.token, uuid.NewString()) // sent no host name
	p.get(t, 1, "any", 530)
	p.start(t, "one")
	p.get(t, 2, "any", http.StatusOK)
	p.start(t, "two")
	got := p.get(t, 6, "any", http.StatusOK)
	for i := range got[1:] {
		if got[i] == got[i+1] {
			t.Errorf("%q answered, want the pods in turn", got)
			break
		}
	}
	if diff := cmp.Diff([]string{"one", "two"}, p.dialed); diff != "" {
		t.Errorf("connections to the pods (-want +got):\n%s", diff)
	}
	if got := p.get(t, 1, "service", http.StatusOK); got[0] != "app.team.svc:80" {
		t.Errorf("a Service answered %q", got)
	}
	p.get(t, 1, "other.port", http.StatusBadGateway)
}

func TestWithoutDialConnectorLoopbackOriginsNeedNoConnector(t *testing.T) {
	s, id, address := newTunnel(t, simulator.Options{Dial: simulator.NamedOrigins(strings.ToUpper)})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"service":"http://localhost:10080"}]}`))
	if status, body := get(t, address, "a", "/"); status != http.StatusOK || body != "LOCALHOST:10080" {
		t.Errorf("%d %q, want 200 from the origin", status, body)
	}
}

func TestConnectorsCarryRequestsToAllOrigins(t *testing.T) {
	p := newPods(t, answerPod)
	p.get(t, 1, "service", 530)
	p.start(t, "one")
	for origin, want := range map[string]int{
		"127.0.0.1:1": 502, "127.8.9.10:1": 502, "[::1]:1": 502, "localhost:1": 502, "127.0.0.1:10080": 200,
		"10.0.0.1:1": 200, "localhost.example.com:1": 200, "127.0.0.1.example.com": 200,
	} {
		p.server.SetConfiguration(p.tunnel, json.RawMessage(`{"ingress":[{"service":"http://`+origin+`"}]}`))
		if status, _ := get(t, p.address, "a", "/"); status != want {
			t.Errorf("%s: status %d, want %d", origin, status, want)
		}
	}
}

func TestNewConfigurationClosesTheConnectionsToThePods(t *testing.T) {
	p := newPods(t, answerPod)
	p.start(t, "one")
	configuration := json.RawMessage(`{"ingress":[{"service":"http://127.0.0.1:10080"}]}`)
	for range 2 {
		p.server.SetConfiguration(p.tunnel, configuration)
		p.get(t, 2, "any", http.StatusOK)
	}
	if diff := cmp.Diff([]string{"one", "one"}, p.dialed); diff != "" {
		t.Errorf("connections to the pods (-want +got):\n%s", diff)
	}
}

// block is an origin that writes "begin" for requests to /block, and then nothing until
// it is released or the request ends.
type block struct {
	began, ended chan struct{}
	release      chan struct{}
}

func newBlock() *block {
	return &block{make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

func (b *block) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/block" {
		answerPod(w, r)
		return
	}
	defer close(b.ended)
	if r.Host == "begin" {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
	}
	close(b.began)
	select {
	case <-b.release:
		_, _ = io.WriteString(w, "end")
	case <-r.Context().Done():
	}
}

// outcome is how a request ended.
type outcome struct {
	status int
	body   string
	err    error
}

// request sends a request that the block blocks. It returns when the origin has the
// request and, for the host "begin", when the answer has begun.
func (b *block) request(t *testing.T, p *pods, host string) <-chan outcome {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+"/block", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	done, began := make(chan outcome, 1), make(chan struct{})
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		defer response.Body.Close()
		close(began)
		body, err := io.ReadAll(response.Body)
		done <- outcome{response.StatusCode, string(body), err}
	}()
	if <-b.began; host == "begin" {
		<-began
	}
	return done
}

func TestConnectorUnregistersWhenItsRequestsHaveEnded(t *testing.T) {
	origin := newBlock()
	p := newPods(t, origin.ServeHTTP)
	one := p.start(t, "one")
	answered := origin.request(t, p, "any")
	p.start(t, "two")
	_ = one.body.Close() // unregisters
	p.getUntilOnly(t, "two")
	if got := p.client.connectors(t, p.tunnel); len(got) != 2 {
		t.Errorf("%d connectors are listed before the request has ended, want 2", len(got))
	}
	close(origin.release)
	one.waitForEnd(t)
	if got := <-answered; got.status != http.StatusOK || got.body != "end" || got.err != nil {
		t.Errorf("the request in flight: %+v, want its answer", got)
	}
	if got := p.client.connectors(t, p.tunnel); len(got) != 1 {
		t.Errorf("%d connectors are listed after the request has ended, want 1", len(got))
	}
	p.getUntilOnly(t, "two")
}

func TestLostConnectorAbortsItsRequests(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *pods, connection){
		"the connection breaks":           func(_ *testing.T, _ *pods, c connection) { c.abort() },
		"the API deletes its connections": func(t *testing.T, p *pods, _ connection) { p.client.disconnectAll(t, p.tunnel) },
		"the connector crashes":           func(_ *testing.T, p *pods, _ connection) { p.server.Crash(p.tunnel) },
		"the connection breaks while it unregisters": func(_ *testing.T, _ *pods, c connection) {
			_ = c.body.Close()
			c.abort()
		},
	} {
		for _, host := range []string{"begin", "any"} {
			t.Run(name+", "+host, func(t *testing.T) {
				origin := newBlock()
				p := newPods(t, origin.ServeHTTP)
				one := p.start(t, "one")
				answered := origin.request(t, p, host)
				lose(t, p, one)
				<-origin.ended
				got := <-answered
				if began := host == "begin"; began && got.err == nil || !began && got.status != http.StatusBadGateway {
					t.Errorf("the request in flight: %+v, want 502 or a broken answer", got)
				}
				p.get(t, 1, "any", 530)
			})
		}
	}
}

func TestConnectorThatEndsWhileItUnregistersIsNotPending(t *testing.T) {
	origin := newBlock()
	p := newPods(t, origin.ServeHTTP)
	one := p.start(t, "one")
	answered := origin.request(t, p, "any")
	_ = one.body.Close()
	for status := http.StatusOK; status != 530; { // until the edge knows that the connector unregisters
		status, _ = get(t, p.address, "any", "/")
	}
	one.abort()
	<-answered
	p.edge.Close() // waits until the connection has ended
	p.client.wantReplicas(t, p.tunnel)
}

func TestUpgradeLastsUntilItsConnectorIsLost(t *testing.T) {
	p := newPods(t, func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		defer conn.Close() //nolint:errcheck // the connection may have ended
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n%s\n", r.Header.Get("Pod"))
		_, _ = io.Copy(conn, buffered)
	})
	one := p.start(t, "one")
	conn := send(t, p.address, "GET / HTTP/1.1\nHost: a\nConnection: Upgrade\nUpgrade: websocket\n\n")
	if conn.answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d, want 101", conn.answer.StatusCode)
	}
	_, _ = io.WriteString(conn, "hello\n")
	lines := bufio.NewReader(conn)
	for _, want := range []string{"one\n", "hello\n"} {
		if got, err := lines.ReadString('\n'); got != want {
			t.Fatalf("read %q, %v, want %q", got, err, want)
		}
	}
	one.abort()
	if got, err := lines.ReadString('\n'); err == nil {
		t.Errorf("read %q after the connector was lost", got)
	}
}
