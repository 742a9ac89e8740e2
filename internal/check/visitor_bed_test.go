package check

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// visitorBed is Cloudflare with a zone, a tunnel and a backend, and a visitor's network.
type visitorBed struct {
	*simulator.Server
	database *zones.Database
	access   *access.Database
	zone     string // the ID of example.com
	tunnel   string // the address of the tunnel
	id       string // the tunnel's ID
	network  probe.Network
	ports    map[string]string // the edge's addresses, by port
	api      Zones
	token    string
	answer   http.HandlerFunc // the backend's
	sent     atomic.Int32     // how many requests the backend received
	expected Expectation
}

// permissions are all that a token for checks can have.
var permissions = []simulator.Permission{simulator.ZoneRead, simulator.DNSRead, simulator.SettingsRead}

func newVisitorBed(t *testing.T) *visitorBed {
	t.Helper()
	b := &visitorBed{database: zones.New(zones.Options{}), access: access.New(access.Options{}), token: rand.Text()}
	b.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.sent.Add(1)
		b.answer(w, r)
	}))
	t.Cleanup(backend.Close)
	b.Server = simulator.New(simulator.Options{Token: "owner", Zones: b.database, Access: b.access, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "web:80" {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Name: address, IsNotFound: true}}
		}
		return (&net.Dialer{}).DialContext(ctx, network, backend.Listener.Addr().String())
	}})
	t.Cleanup(b.Close)
	b.Restrict(b.token, simulator.Grant{Permissions: permissions})
	b.zone = b.database.Add(zones.Zone{Name: "example.com", Account: "main"})
	b.startAPI(t)
	b.startEdge(t)
	b.record(t, "shop.example.com", "CNAME", b.tunnel, true)
	b.expected = Expectation{Gateways: []ServingGateway{{Namespace: "infra", Name: "shared", Address: b.tunnel, AccountID: "main"}}}
	return b
}

// startAPI serves the API, creates the tunnel and opens the zones with the caller's token.
func (b *visitorBed) startAPI(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(b.API())
	t.Cleanup(server.Close)
	var client cloudflare.Client
	base := server.URL + "/client/v4"
	owner, err := client.Open(cloudflare.Options{AccountID: "main", APIToken: "owner", BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := owner.CreateTunnel(t.Context(), "infra/shared")
	if err != nil {
		t.Fatal(err)
	}
	b.id, b.tunnel = string(tunnel.ID), tunnel.ID.Hostname()
	b.configure(`{"hostname":"shop.example.com","service":"http://web:80"}`)
	if b.api, err = client.OpenDNS(cloudflare.Options{APIToken: b.token, BaseURL: base}, ""); err != nil {
		t.Fatal(err)
	}
}

// startEdge serves visitors by https and http.
func (b *visitorBed) startEdge(t *testing.T) {
	t.Helper()
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.ListenVisitors(secure)
	plain := httptest.NewServer(b.Visitors())
	t.Cleanup(plain.Close)
	b.ports = map[string]string{"443": secure.Addr().String(), "80": plain.Listener.Addr().String()}
	b.network = probe.Network{Resolver: b.Resolver(), RootCAs: b.VisitorCAs(), Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		if _, err := b.Resolver().LookupNetIP(ctx, "ip", host); err != nil {
			return nil, err
		}
		return b.dial(ctx, network, address)
	}}
}

// dial connects to the edge for every host.
func (b *visitorBed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, _ := net.SplitHostPort(address)
	return (&net.Dialer{}).DialContext(ctx, network, b.ports[port])
}

// configure stores the rules before a rule that returns 404.
func (b *visitorBed) configure(rules string) {
	b.SetConfiguration(b.id, []byte(`{"ingress":[`+rules+`,{"service":"http_status:404"}]}`))
}

// record creates a record.
func (b *visitorBed) record(t *testing.T, name, kind, content string, proxied bool) {
	t.Helper()
	if _, err := b.database.Create(b.zone, zones.Fields{Name: &name, Type: &kind, Content: &content, Proxied: &proxied, TTL: new(1)}); err != nil {
		t.Fatal(err)
	}
}

// clear deletes all records.
func (b *visitorBed) clear(t *testing.T) {
	t.Helper()
	for _, r := range b.database.Records(b.zone) {
		if err := b.database.Delete(b.zone, r.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// replace lets one record replace all others.
func (b *visitorBed) replace(t *testing.T, name, kind, content string, proxied bool) {
	t.Helper()
	b.clear(t)
	b.record(t, name, kind, content, proxied)
}

// set changes settings of the zone.
func (b *visitorBed) set(change func(*zones.Zone)) { b.database.Update(b.zone, change) }

// gateway returns the only Gateway in the expectation.
func (b *visitorBed) gateway() *ServingGateway { return &b.expected.Gateways[0] }

// run runs the steps outside the cluster.
func (b *visitorBed) run(t *testing.T, r Request) []Step {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ctx = withReservation(ctx)
	z := findZone(ctx, b.api, r.URL.Hostname())
	inDNS, e := dnsStep(ctx, b.network, z, r, b.expected)
	certificate := certificateStep(ctx, b.network, z, r, e)
	v := visit(ctx, b.network, r, e)
	return []Step{inDNS, certificate, accessStep(e, v), requestStep(r, e, v)}
}

// requestTo returns a request to a host, a host and a path, or a URL.
func requestTo(t *testing.T, target string) Request {
	t.Helper()
	if !strings.Contains(target, "://") {
		target = "https://" + cmp.Or(target, "shop.example.com")
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = cmp.Or(u.Path, "/")
	return Request{URL: u}
}
