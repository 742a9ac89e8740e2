package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const host = "www.example.com"

// server is a web server with TLS, and the network that leads every host to it.
type server struct {
	network  Network
	requests atomic.Int32
}

// serve starts a server whose certificate is for the names until the time. An unsigned one is
// not in the network's authorities.
func serve(t *testing.T, expires time.Time, signed bool, names []string, handler http.HandlerFunc) *server {
	t.Helper()
	certificate := newCertificate(t, expires, names)
	s := &server{}
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		handler(w, r)
	}))
	h.EnableHTTP2 = true
	h.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	t.Cleanup(h.Close)
	s.network = Network{Dial: toAddress(h.Listener.Addr().String()), RootCAs: x509.NewCertPool()}
	if signed {
		s.network.RootCAs.AddCert(certificate.Leaf)
	}
	return s
}

// site starts a server with a valid certificate for the host.
func site(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	return serve(t, time.Now().Add(time.Hour), true, []string{host}, handler)
}

func toAddress(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

func newCertificate(t *testing.T, expires time.Time, names []string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"Test"}, CommonName: "E1"}, DNSNames: names,
		NotBefore: expires.Add(-100 * time.Hour), NotAfter: expires, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// rawServer starts a server that handles connections by itself, and returns a network that
// leads to it.
func rawServer(t *testing.T, handle func(net.Conn)) Network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	return Network{Dial: toAddress(l.Addr().String())}
}

// closed returns a network that leads to an address on which nothing listens.
func closed(t *testing.T) Network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return Network{Dial: toAddress(l.Addr().String())}
}

// silent accepts a connection and sends nothing. It closes the connection when the client
// does.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c); _ = c.Close() }

// withoutName has no certificate for any name, like the edge.
func withoutName(c net.Conn) {
	refuse := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("no certificate") }
	_ = tls.Server(c, &tls.Config{GetCertificate: refuse}).Handshake()
	_ = c.Close()
}

// soon returns a context that ends before the package's own limits.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func unused(http.ResponseWriter, *http.Request) {}

func TestCertificates(t *testing.T) {
	later, earlier := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	unresolved := Network{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}
	}}
	for name, test := range map[string]struct {
		network Network
		failure Failure
		problem Problem
	}{
		"valid":             {network: serve(t, later, true, []string{host}, unused).network},
		"valid by wildcard": {network: serve(t, later, true, []string{"*.example.com"}, unused).network},
		"another name":      {serve(t, later, true, []string{"*.a.example.com"}, unused).network, Untrusted, WrongName},
		"expired":           {serve(t, earlier, true, []string{host}, unused).network, Untrusted, Expired},
		"unknown authority": {serve(t, later, false, []string{host}, unused).network, Untrusted, UnknownAuthority},
		"no certificate":    {network: rawServer(t, withoutName), failure: Handshake},
		"no TLS":            {network: rawServer(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); silent(c) }), failure: Handshake},
		"no answer":         {network: rawServer(t, silent), failure: Timeout},
		"no listener":       {network: closed(t), failure: Refused},
		"no address":        {network: unresolved, failure: NoSuchHost},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if test.failure == Timeout {
				ctx = soon(t)
			}
			p := Certificate(ctx, test.network, host, "443")
			if p.Failure != test.failure || p.Problem != test.problem || (p.Err != nil) != (test.failure != "") {
				t.Errorf("%+v, want failure %q and problem %q", p, test.failure, test.problem)
			}
			if presented := test.failure == NoFailure || test.failure == Untrusted; presented && (len(p.Names) != 1 || p.Issuer != "Test E1" || p.NotAfter.IsZero()) {
				t.Errorf("%+v does not describe the certificate", p)
			}
		})
	}
}

func address(path string) *url.URL { return &url.URL{Scheme: "https", Host: host, Path: path} }

func TestRequestReachesTheServerOnce(t *testing.T) {
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cf-Ray", "1-FRA")
		w.Header().Set("Location", "https://other.example.com/")
		received := fmt.Sprint(r.Method, " ", r.Host, " ", r.Proto, " ", r.Header.Get("Authorization"), " ", r.UserAgent())
		if want := "PUT www.example.com HTTP/2.0 secret tunnel-gateway-check"; received != want {
			t.Errorf("received %s, want %s", received, want)
		}
		w.WriteHeader(http.StatusFound)
	})
	a := Send(t.Context(), s.network, Request{URL: address("/a"), Method: "PUT", Header: http.Header{"authorization": {"secret"}}})
	if a.Duration <= 0 {
		t.Errorf("it took %s", a.Duration)
	}
	a.Duration = 0
	if diff := cmp.Diff(Answer{Status: 302, Location: "https://other.example.com/", Ray: "1-FRA", Responder: Backend}, a); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1: no redirect is followed", n)
	}
}

func TestCallOfGRPC(t *testing.T) {
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" || len(body) > 0 || err != nil {
			t.Errorf("%s %v %q", r.Method, r.Header, body)
		}
		w.Header().Set("Cf-Ray", "1")
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("Grpc-Status", "12")
	})
	if a := Send(t.Context(), s.network, Request{URL: address("/a.B/C"), GRPC: true}); a.GRPCStatus != "12" || a.Responder != Backend {
		t.Errorf("%+v", a)
	}
}

func TestNothingIsSentWithoutAValidCertificate(t *testing.T) {
	s := serve(t, time.Now().Add(time.Hour), true, []string{"other.example.com"}, unused)
	a := Send(t.Context(), s.network, Request{URL: address("/"), Header: http.Header{"Authorization": {"secret"}}})
	if a.Failure != Untrusted || a.Err == nil || a.Responder != "" || s.requests.Load() != 0 {
		t.Errorf("%+v after %d requests", a, s.requests.Load())
	}
}

func TestRequestsWithoutAnAnswer(t *testing.T) {
	stalled := site(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for name, test := range map[string]struct {
		network Network
		want    Failure
	}{
		"no listener":    {closed(t), Refused},
		"no certificate": {rawServer(t, withoutName), Handshake},
		"no handshake":   {rawServer(t, silent), Timeout},
		"no answer":      {stalled.network, Timeout},
	} {
		if a := Send(soon(t), test.network, Request{URL: address("/")}); a.Failure != test.want || a.Err == nil || a.Status != 0 || a.Responder != "" {
			t.Errorf("%s: %+v, want %s", name, a, test.want)
		}
	}
}

// A stream of events never ends, and a page can be huge.
func TestBodiesAreReadUpToALimit(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"an endless stream": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cf-Ray", "1")
			_, _ = fmt.Fprint(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"an endless page": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cf-Ray", "1")
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1024)); err != nil {
					return
				}
			}
		},
	} {
		a := Send(t.Context(), site(t, handler).network, Request{URL: address("/")})
		if a.Responder != Backend || a.Duration > 10*time.Second {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestRequestsAreValidated(t *testing.T) {
	parse := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	secret := func(name string) http.Header { return http.Header{name: {"s3cret"}} }
	for name, test := range map[string]struct {
		request Request
		want    string // empty: valid
	}{
		"valid":              {Request{URL: parse("https://a/"), Method: "PURGE", Header: secret("X-Token")}, ""},
		"http":               {Request{URL: parse("http://a/")}, ""},
		"headers by http":    {Request{URL: parse("http://a/"), Header: secret("X-Token")}, "by https only"},
		"a scheme":           {Request{URL: parse("ftp://a/")}, "http or https"},
		"no host":            {Request{URL: parse("https:///a")}, "with a host"},
		"a password":         {Request{URL: parse("https://a:s3cret@b/")}, "Authorization"},
		"a method":           {Request{URL: parse("https://a/"), Method: "GET /"}, "method"},
		"the Host header":    {Request{URL: parse("https://a/"), Header: secret("host")}, "Host cannot be set"},
		"a header's name":    {Request{URL: parse("https://a/"), Header: secret("a b")}, `"a b"`},
		"a header's value":   {Request{URL: parse("https://a/"), Header: http.Header{"X-Token": {"s3cret\r\nHost: b"}}}, "X-Token"},
		"a connection's one": {Request{URL: parse("https://a/"), Header: secret("Transfer-Encoding")}, "Transfer-Encoding cannot be set"},
	} {
		err := test.request.Validate()
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.want)
		}
		if sent := test.want == ""; !sent {
			if a := Send(t.Context(), Network{Dial: func(context.Context, string, string) (net.Conn, error) { panic("connects") }}, test.request); a.Err == nil {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}
