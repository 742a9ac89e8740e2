package check

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// visitorSituation is a fault outside the cluster, or none.
type visitorSituation struct {
	name string
	// target is a host or a URL; empty means shop.example.com.
	target  string
	request func(*Request)
	prepare func(*testing.T, *visitorBed)
	// want are the results of the steps dns, certificate, access and request.
	want string
}

// inject makes the edge answer.
func inject(answer http.Handler) func(*testing.T, *visitorBed) {
	return func(_ *testing.T, b *visitorBed) { b.InjectVisitor(simulator.VisitorFault{Answer: answer}) }
}

// answers makes the backend answer.
func answers(status int, lines ...string) func(*testing.T, *visitorBed) {
	return func(_ *testing.T, b *visitorBed) {
		b.answer = func(w http.ResponseWriter, _ *http.Request) {
			for _, line := range lines {
				name, value, _ := strings.Cut(line, ": ")
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte("the backend's text"))
		}
	}
}

// expect changes what the cluster says about the Gateway.
func expect(change func(*ServingGateway)) func(*testing.T, *visitorBed) {
	return func(_ *testing.T, b *visitorBed) { change(b.gateway()) }
}

// all calls all functions.
func all(prepare ...func(*testing.T, *visitorBed)) func(*testing.T, *visitorBed) {
	return func(t *testing.T, b *visitorBed) {
		for _, p := range prepare {
			p(t, b)
		}
	}
}

func grant(granted ...simulator.Permission) func(*testing.T, *visitorBed) {
	return func(_ *testing.T, b *visitorBed) { b.Restrict(b.token, simulator.Grant{Permissions: granted}) }
}

func replaceRecord(name, kind, content string, proxied bool) func(*testing.T, *visitorBed) {
	return func(t *testing.T, b *visitorBed) {
		t.Helper()
		b.replace(t, name, kind, strings.ReplaceAll(content, "TUNNEL", b.tunnel), proxied)
	}
}

func setZone(change func(*zones.Zone)) func(*testing.T, *visitorBed) {
	return func(_ *testing.T, b *visitorBed) { b.set(change) }
}

func withoutToken(_ *testing.T, b *visitorBed) { b.api = nil }

func protected(g *ServingGateway) { g.Protected = true }

// login creates an application for the hostname, and a service token that it admits.
func login(t *testing.T, b *visitorBed) {
	b.AddServiceToken("ci", "secret")
	_, err := b.access.Create("main", []byte(`{"type":"self_hosted","name":"shop","domain":"shop.example.com","policies":[
		{"decision":"allow","include":[{"everyone":{}}]},{"decision":"non_identity","include":[{"any_valid_service_token":{}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
}

const elsewhere = "00000000-765d-4adf-8112-31c55c1551ef.cfargotunnel.com"

func resolvesTo(address string) func(*testing.T, *visitorBed) {
	return func(_ *testing.T, b *visitorBed) { b.network.Resolver = fixedResolver(address) }
}

var visitorSituations = []visitorSituation{
	{name: "everything works", want: "ok ok ok ok"},
	{name: "everything works, by http", target: "http://shop.example.com/", want: "ok ok ok ok"},

	// dns
	{name: "no token", prepare: withoutToken, want: "unknown ok ok ok"},
	{name: "no token, and the controller's verdict", want: "ok ok ok ok", prepare: all(withoutToken, expect(func(g *ServingGateway) {
		g.ObservesDNS, g.DNSMessage, g.DNSResult = true, "Published: all records lead here.", OK
	}))},
	{name: "a verdict that is a conflict", want: "failed ok ok ok", prepare: expect(func(g *ServingGateway) {
		g.ObservesDNS, g.DNSMessage, g.DNSResult = true, "RecordConflict: an A record is not managed by this controller.", Failed
	})},
	{name: "no permission for zones", prepare: grant(simulator.DNSRead), want: "unknown ok ok ok"},
	{name: "no permission for records", prepare: grant(simulator.ZoneRead, simulator.SettingsRead), want: "unknown ok ok ok"},
	{name: "no permission for settings", prepare: grant(simulator.ZoneRead, simulator.DNSRead), want: "ok unknown ok ok"},
	{name: "an invalid token", prepare: func(_ *testing.T, b *visitorBed) { b.Inject(simulator.Fault{Status: http.StatusUnauthorized}) }, want: "unknown ok ok ok"},
	{name: "an outage of the API", prepare: func(_ *testing.T, b *visitorBed) { b.Inject(simulator.Fault{Status: http.StatusInternalServerError}) }, want: "unknown ok ok ok"},
	{name: "a zone at another account only", target: "www.example.net", want: "failed unknown ok failed"},
	{name: "a zone that is not active", prepare: setZone(func(z *zones.Zone) { z.Status = zones.Pending }), want: "failed unknown ok failed"},
	{name: "no record", prepare: func(t *testing.T, b *visitorBed) { b.clear(t) }, want: "failed unknown ok failed"},
	{name: "no record that the controller manages", want: "failed unknown ok failed", prepare: all(
		func(t *testing.T, b *visitorBed) { b.clear(t) }, expect(func(g *ServingGateway) { g.ManagesDNS = true }))},
	{name: "no record, but the name resolves", want: "warning ok ok failed", prepare: all(
		func(t *testing.T, b *visitorBed) { b.clear(t) }, resolvesTo("104.16.0.1"), keepDialing)},
	{name: "no record, and an address instead of DNS", want: "warning ok ok failed", request: func(r *Request) { r.ConnectTo = "192.0.2.1" },
		prepare: all(func(t *testing.T, b *visitorBed) { b.clear(t) }, resolvesTo("104.16.0.1"), keepDialing)},
	{name: "a record without the proxy", prepare: replaceRecord("shop.example.com", "CNAME", "TUNNEL", false), want: "failed ok ok failed"},
	{name: "a record of another tunnel", prepare: replaceRecord("shop.example.com", "CNAME", elsewhere, true), want: "failed ok ok failed"},
	{name: "a record of another tunnel, where the controller manages the others", want: "failed ok ok failed", prepare: all(
		replaceRecord("shop.example.com", "CNAME", elsewhere, true), expect(func(g *ServingGateway) { g.ManagesDNS = true }))},
	{name: "a record of a tunnel, and unknown Gateways", want: "unknown ok ok failed", prepare: all(
		replaceRecord("shop.example.com", "CNAME", elsewhere, true), func(_ *testing.T, b *visitorBed) { b.expected.Incomplete = true })},
	{name: "a tunnel in another account", want: "failed ok ok failed", prepare: func(_ *testing.T, b *visitorBed) {
		b.set(func(z *zones.Zone) { z.Account = "other" })
	}},
	{name: "an A record", prepare: replaceRecord("shop.example.com", "A", "192.0.2.7", true), want: "failed ok ok failed"},
	{name: "an A record without the proxy", prepare: replaceRecord("shop.example.com", "A", "192.0.2.7", false), want: "failed ok ok failed"},
	{name: "a record to a private address", prepare: replaceRecord("shop.example.com", "A", "10.0.0.7", false), want: "failed ok ok failed"},
	{name: "a record to a name elsewhere", prepare: replaceRecord("shop.example.com", "CNAME", "shop.example.org", true), want: "warning ok ok failed"},
	{name: "a TXT record only", prepare: replaceRecord("shop.example.com", "TXT", "text", false), want: "failed unknown ok failed"},
	{name: "a wildcard record", prepare: replaceRecord("*.example.com", "CNAME", "TUNNEL", true), want: "ok ok ok ok"},
	{name: "a record that ends the wildcard", target: "a.b.example.com", want: "failed unknown ok failed", prepare: func(t *testing.T, b *visitorBed) {
		b.replace(t, "*.example.com", "CNAME", b.tunnel, true)
		b.record(t, "b.example.com", "TXT", "text", false)
	}},
	{name: "a chain of records", want: "ok ok ok ok", prepare: func(t *testing.T, b *visitorBed) {
		b.replace(t, "shop.example.com", "CNAME", "apps.example.com", true)
		b.record(t, "apps.example.com", "CNAME", b.tunnel, true)
	}},
	{name: "a chain without an end", prepare: replaceRecord("shop.example.com", "CNAME", "gone.example.com", true), want: "failed ok ok failed"},
	{name: "an address outside of Cloudflare", prepare: all(resolvesTo("198.51.100.1"), keepDialing), want: "warning ok ok ok"},
	{name: "a private address here", prepare: all(resolvesTo("10.1.2.3"), keepDialing), want: "warning ok ok ok"},
	{name: "a resolver that does not answer", prepare: all(resolvesTo(""), keepDialing), want: "unknown ok ok ok"},
	{name: "two Gateways, of which the record selects one", want: "ok ok ok ok", prepare: func(_ *testing.T, b *visitorBed) {
		b.expected.Gateways = append(b.expected.Gateways, ServingGateway{Namespace: "infra", Name: "second", Address: elsewhere, Protected: true})
	}},

	// certificate
	{name: "a name two levels below the zone", target: "a.b.example.com", want: "ok failed ok failed", prepare: func(t *testing.T, b *visitorBed) {
		b.record(t, "a.b.example.com", "CNAME", b.tunnel, true)
	}},
	{name: "no certificate for the zone yet", prepare: setZone(func(z *zones.Zone) { z.CertificatePacks = []zones.CertificatePack{} }), want: "ok failed ok failed"},
	{name: "an expired certificate", prepare: expiring(-time.Hour), want: "ok failed ok failed"},
	{name: "a certificate that expires soon", prepare: expiring(time.Hour), want: "ok warning ok ok"},
	{name: "an authority that is not trusted", want: "ok failed ok failed", prepare: func(_ *testing.T, b *visitorBed) {
		b.network.RootCAs = simulator.New(simulator.Options{}).VisitorCAs()
	}},
	{name: "SSL/TLS mode off", prepare: setting("ssl", "off"), want: "ok failed ok warning"},
	{name: "SSL/TLS mode off, by http", target: "http://shop.example.com/", prepare: setting("ssl", "off"), want: "ok ok ok ok"},
	{name: "always_use_https", prepare: setting("always_use_https", "on"), want: "ok ok ok ok"},
	{name: "always_use_https, by http", target: "http://shop.example.com/", prepare: setting("always_use_https", "on"), want: "ok warning ok warning"},

	// access
	{name: "protected, without an application", prepare: all(expect(protected), answers(200)), want: "ok ok failed ok"},
	{name: "protected, with an application", prepare: all(expect(protected), login), want: "ok ok ok ok"},
	{name: "protected, and cloudflared refuses", want: "ok ok failed failed", prepare: all(expect(protected), func(_ *testing.T, b *visitorBed) {
		b.configure(`{"hostname":"shop.example.com","service":"http://web:80","originRequest":{"access":{"required":true,"teamName":"team","audTag":["a"]}}}`)
	})},
	{name: "protected, and cloudflared refuses before Envoy", want: "ok ok failed failed", prepare: all(
		expect(func(g *ServingGateway) { g.Protected, g.UsesEnvoy = true, true }), func(_ *testing.T, b *visitorBed) {
			b.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
		})},
	{name: "protected, and Envoy refuses", want: "ok ok failed failed", prepare: all(
		expect(func(g *ServingGateway) { g.Protected, g.UsesEnvoy = true, true }), answers(403, "Proxy-Status: tunnel-gateway; error=http_request_denied"))},
	{name: "protected, and the backend forges an answer of Envoy", want: "ok ok failed ok", prepare: all(
		expect(func(g *ServingGateway) { g.Protected, g.ForwardsProxyStatus = true, true }), answers(403, "Content-Type: text/html", "Proxy-Status: tunnel-gateway; error=http_request_denied"))},
	{name: "open, and Gateways that cannot be listed", want: "ok ok unknown ok", prepare: func(_ *testing.T, b *visitorBed) { b.expected.Unlisted = true }},
	{name: "no Gateway that can be read", want: "unknown ok unknown unknown", prepare: func(_ *testing.T, b *visitorBed) {
		b.expected = Expectation{Incomplete: true, Unlisted: true}
	}},
	{name: "no Gateway, and an Envoy", want: "warning ok unknown warning", prepare: all(answers(200, "Proxy-Status: tunnel-gateway"), func(_ *testing.T, b *visitorBed) {
		b.expected.Gateways = nil
	})},
	{name: "protected, and the edge fails", prepare: all(expect(protected), inject(simulator.EdgeError(1033))), want: "ok ok unknown failed"},
	{name: "protected, and no answer", prepare: all(expect(protected), expiring(-time.Hour)), want: "ok failed unknown failed"},
	{name: "protected, and the cache answers", prepare: all(expect(protected), inject(simulator.Cached())), want: "ok ok failed warning"},
	{name: "open, with an application", prepare: login, want: "ok ok warning warning"},
	{name: "Gateways that disagree about Access", want: "unknown ok unknown ok", prepare: all(withoutToken, func(_ *testing.T, b *visitorBed) {
		b.expected.Gateways = append(b.expected.Gateways, ServingGateway{Namespace: "infra", Name: "second", Address: elsewhere, Protected: true})
	})},
	{name: "no Gateway", prepare: func(_ *testing.T, b *visitorBed) { b.expected.Gateways = nil }, want: "warning ok unknown warning"},
	{name: "no Gateway that the user may read", want: "unknown ok unknown unknown", prepare: func(_ *testing.T, b *visitorBed) {
		b.expected = Expectation{Incomplete: true}
	}},
	{name: "a token in a header", want: "ok ok ok ok", prepare: all(expect(protected), login),
		request: func(r *Request) {
			r.Header = http.Header{"Cf-Access-Client-Id": {"ci"}, "Cf-Access-Client-Secret": {"secret"}}
		}},

	// request
	{name: "no request", request: func(r *Request) { r.NoRequest = true }, want: "ok ok ok ok"},
	{name: "no request, of a protected host", prepare: expect(protected), request: func(r *Request) { r.NoRequest = true }, want: "ok ok ok ok"},
	{name: "no request, of gRPC", prepare: expect(func(g *ServingGateway) { g.GRPC = true }), request: func(r *Request) { r.NoRequest = true }, want: "ok unknown ok ok"},
	{name: "a backend's redirect", prepare: answers(302, "Location: https://elsewhere.example.org/"), want: "ok ok ok ok"},
	{name: "a backend's error", prepare: answers(500, "Content-Type: text/plain"), want: "ok ok ok warning"},
	{name: "a backend's 502, whose page Cloudflare replaces", prepare: answers(502, "Content-Type: text/plain"), want: "ok ok ok failed"},
	{name: "a backend's 504, whose page Cloudflare replaces", prepare: answers(504, "Content-Type: text/plain"), want: "ok ok ok failed"},
	{name: "no connector", prepare: inject(simulator.EdgeError(1033)), want: "ok ok ok failed"},
	{name: "no origin", prepare: inject(simulator.EdgeError(1016)), want: "ok ok ok failed"},
	{name: "no origin, as HTML", prepare: inject(simulator.EdgeError(1016)), want: "ok ok ok failed",
		request: func(r *Request) { r.Header = http.Header{"Accept": {"text/html"}} }},
	{name: "a timeout, as JSON", prepare: inject(simulator.EdgeError(522)), want: "ok ok ok failed",
		request: func(r *Request) { r.Header = http.Header{"Accept": {"application/json"}} }},
	{name: "a timeout, as Markdown", prepare: inject(simulator.EdgeError(522)), want: "ok ok ok failed",
		request: func(r *Request) { r.Header = http.Header{"Accept": {"text/markdown"}} }},
	{name: "HEAD, without a page", prepare: inject(simulator.EdgeError(522)), want: "ok ok ok failed", request: func(r *Request) { r.Method = "HEAD" }},
	{name: "a rule of the WAF", prepare: inject(simulator.EdgeError(1020)), want: "ok ok ok failed"},
	{name: "a rule of the WAF, as HTML", prepare: inject(simulator.EdgeError(1020)), want: "ok ok ok failed",
		request: func(r *Request) { r.Header = http.Header{"Accept": {"text/html"}} }},
	{name: "a challenge", prepare: inject(simulator.Challenge()), want: "ok ok ok failed"},
	{name: "the cache", prepare: inject(simulator.Cached()), want: "ok ok ok warning"},
	{name: "an error without a meaning", prepare: inject(simulator.EdgeError(1099)), want: "ok ok ok failed"},
	{name: "cloudflared reaches no origin", want: "ok ok ok failed", prepare: func(_ *testing.T, b *visitorBed) {
		b.configure(`{"hostname":"shop.example.com","service":"http://down:80"}`)
	}},
	{name: "cloudflared reaches no Envoy", want: "ok ok ok failed", prepare: all(expect(func(g *ServingGateway) { g.UsesEnvoy = true }), func(_ *testing.T, b *visitorBed) {
		b.configure(`{"hostname":"shop.example.com","service":"http://down:80"}`)
	})},
	{name: "cloudflared without a configuration", want: "ok ok ok failed", prepare: func(_ *testing.T, b *visitorBed) {
		b.SetConfiguration(b.id, []byte(`{"ingress":[]}`))
	}},
	{name: "a 404 of the routes", want: "ok ok ok ok", prepare: all(expect(func(g *ServingGateway) { g.Status = 404 }), func(_ *testing.T, b *visitorBed) {
		b.configure(`{"hostname":"other.example.com","service":"http://web:80"}`)
	})},
	{name: "an answer instead of a 404", prepare: expect(func(g *ServingGateway) { g.Status = 404 }), want: "ok ok ok warning"},
	{name: "a backend that refuses Envoy", want: "ok ok ok failed", prepare: all(
		expect(func(g *ServingGateway) { g.UsesEnvoy = true }), answers(503, "Proxy-Status: tunnel-gateway; error=connection_refused"))},
	{name: "a timeout of Envoy", want: "ok ok ok failed", prepare: all(
		expect(func(g *ServingGateway) { g.UsesEnvoy = true }), answers(504, "Proxy-Status: tunnel-gateway; error=http_response_timeout"))},
	{name: "a backend that forges an answer of Envoy", want: "ok ok ok ok", prepare: all(
		expect(func(g *ServingGateway) { g.ForwardsProxyStatus = true }), answers(404, "Content-Type: text/html", "Proxy-Status: tunnel-gateway; error=proxy_internal_error"))},
	{name: "a redirect of Envoy", want: "ok ok ok ok", prepare: all(
		expect(func(g *ServingGateway) { g.UsesEnvoy = true }), answers(301, "Proxy-Status: tunnel-gateway; error=proxy_internal_response", "Location: /b"))},
	{name: "a 404 of Envoy", want: "ok ok ok ok", prepare: all(
		expect(func(g *ServingGateway) { g.UsesEnvoy, g.Status = true, 404 }), answers(404, "Proxy-Status: tunnel-gateway; error=destination_not_found"))},
	{name: "gRPC", prepare: all(expect(func(g *ServingGateway) { g.GRPC = true }), answers(200, "Content-Type: application/grpc", "Grpc-Status: 12")), want: "ok ok ok ok"},
	{name: "gRPC is off", prepare: all(expect(func(g *ServingGateway) { g.GRPC = true }), setZone(func(z *zones.Zone) { z.NoGRPC = true })), want: "ok ok ok failed"},
	{name: "gRPC to a web server", prepare: all(expect(func(g *ServingGateway) { g.GRPC = true }), answers(404, "Content-Type: text/html")), want: "ok ok ok failed"},
	{name: "a request that is not valid", target: "http://shop.example.com/", want: "ok ok ok failed",
		request: func(r *Request) { r.Header = http.Header{"Authorization": {"secret"}} }},
	{name: "text of others", prepare: answers(302, "Location: https://a/\u202e?"+strings.Repeat("x", 300)), want: "ok ok ok ok"},
}

func setting(name, value string) func(*testing.T, *visitorBed) {
	return setZone(func(z *zones.Zone) { z.Settings = map[string]string{name: value} })
}

func expiring(in time.Duration) func(*testing.T, *visitorBed) {
	return setZone(func(z *zones.Zone) { z.CertificatePacks[0].Expires = time.Now().Add(in) })
}

// fixedResolver answers every lookup with one address, or with an error if it is empty.
type fixedResolver string

func (r fixedResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if r == "" {
		return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	}
	return []netip.Addr{netip.MustParseAddr(string(r))}, nil
}

func (r fixedResolver) LookupCNAME(_ context.Context, host string) (string, error) { return host, nil }

// keepDialing lets connections reach the edge for every answer of the resolver.
func keepDialing(_ *testing.T, b *visitorBed) { b.network.Dial = b.dial }

// varying are the parts of messages that differ in each run.
var varying = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`after [0-9.]+m?s`), "after TIME"},
	{regexp.MustCompile(`CF-Ray [0-9a-f]{16}-SIM`), "CF-Ray RAY"},
	{regexp.MustCompile(`(on|until) \d{4}-\d\d-\d\d`), "$1 DATE"},
	{regexp.MustCompile(`expires in \S+,`), "expires in TIME,"},
	{regexp.MustCompile(`zone "?[0-9a-f]{32}"?`), "zone ID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
}

// TestWhatAVisitorSees checks a request in each situation. The golden file contains what the
// user reads.
func TestWhatAVisitorSees(t *testing.T) {
	var got bytes.Buffer
	for _, s := range visitorSituations {
		fmt.Fprintf(&got, "# %s\n", s.name)
		s.run(t, &got)
		fmt.Fprintln(&got)
	}
	if strings.Contains(got.String(), "secret") {
		t.Error("the output contains a header's value")
	}
	compareText(t, "testdata/visitor.golden", withoutVarying(got.String()))
}

// run checks the request in the situation, and writes the steps.
func (s visitorSituation) run(t *testing.T, w io.Writer) {
	t.Helper()
	b := newVisitorBed(t)
	if s.prepare != nil {
		s.prepare(t, b)
	}
	r := requestTo(t, s.target)
	if s.request != nil {
		s.request(&r)
	}
	var results []string
	for _, step := range b.run(t, r) {
		results = append(results, string(step.Result))
		step.write(w, Style{})
	}
	if sent := b.sent.Load(); sent > 1 || r.NoRequest && sent > 0 {
		t.Errorf("%s: the backend received %d requests", s.name, sent)
	}
	if results := strings.Join(results, " "); results != s.want {
		t.Errorf("%s: %s, want %s", s.name, results, s.want)
	}
}

// withoutVarying replaces what differs in each run.
func withoutVarying(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.replacement)
	}
	return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllStringFunc(text, func(id string) string {
		if strings.HasPrefix(elsewhere, id) {
			return id
		}
		return "TUNNEL"
	})
}

// compareText compares a text with a golden file, or updates the file.
func compareText(t *testing.T, golden, text string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), text); err != nil || diff != "" {
		t.Errorf("error %v, output differs (-want +got):\n%s", err, diff)
	}
}
