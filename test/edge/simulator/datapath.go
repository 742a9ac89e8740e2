package simulator

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
)

// dataPath serves a tunnel's requests by one configuration.
type dataPath struct {
	rules   *Rules
	targets []target // one per rule
}

// target serves the requests that match a rule.
type target struct {
	handler http.Handler
	pool    pool // nil for a rule without an origin
	carried bool // a connector carries the request, which ends when the connector disconnects
}

// pool has the connections to a rule's origin.
type pool interface {
	http.RoundTripper
	CloseIdleConnections()
}

// emptyDataPath is the data path for a tunnel without a configuration.
var emptyDataPath = &dataPath{rules: &Rules{}}

// newDataPath returns a data path with a target for each rule. It fails if a rule's CA
// pool cannot be read.
func newDataPath(rules *Rules, dial dialer) (*dataPath, error) {
	d := &dataPath{rules: rules}
	for i, r := range rules.rules {
		next, err := newTarget(r, dial)
		if err != nil {
			return nil, fmt.Errorf("ingress[%d]: %w", i, err)
		}
		if r.origin.Access.Required {
			next.handler = r.origin.Access.protect(next.handler)
		}
		d.targets = append(d.targets, next)
	}
	return d, nil
}

// serve responds to a request. carrier selects the connector that carries it and returns
// nil if none is connected. serve calls it only if [Options.DialConnector] is set and the
// rule has an origin.
func (d *dataPath) serve(w http.ResponseWriter, r *http.Request, carrier func() *replica) {
	index, _, ok := d.rules.Match(r.Host, r.URL.Path)
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	target := d.targets[index]
	if target.pool != nil {
		w, r = newExchange(w, r)
	}
	if target.carried {
		connector := carrier()
		if connector == nil {
			errNoTunnel.ServeHTTP(w, r)
			return
		}
		defer connector.requests.Done()
		ctx, end := connector.carry(r.Context())
		defer end()
		r = r.WithContext(ctx)
	}
	target.handler.ServeHTTP(w, r)
}

// closeIdleConnections closes the idle connections to the origins. cloudflared
// also loses them when its configuration changes. Requests in flight continue.
func (d *dataPath) closeIdleConnections() {
	for _, target := range d.targets {
		if target.pool != nil {
			target.pool.CloseIdleConnections()
		}
	}
}

func newTarget(r rule, dial dialer) (target, error) {
	switch {
	case r.service.status != 0:
		return target{handler: statusHandler(r.service.status)}, nil
	case r.service.origin == nil:
		return target{handler: unsupportedHandler(r.service.raw)}, nil
	}
	transport, err := r.origin.transport(dial.origin)
	if err != nil {
		return target{}, err
	}
	t := target{pool: transport, carried: dial.connector != nil}
	if t.carried && r.service.isLoopback() {
		t.pool = &podPool{origin: r.origin, dial: dial.connector, transports: map[*replica]*http.Transport{}}
	}
	// ReverseProxy forwards a response of unknown length without buffering, and its
	// trailer. This includes all gRPC streams. cloudflared does the same with HTTP/2 to
	// the edge: see shouldFlush in connection/connection.go, WriteRespHeaders and
	// AddTrailer in connection/http2.go, and copyTrailers in proxy/proxy.go. A response
	// without a body ends with its header, because gRPC clients accept a status in the
	// header only then.
	t.handler = &httputil.ReverseProxy{
		Rewrite:   r.rewrite,
		Transport: t.pool,
		ErrorLog:  log.New(io.Discard, "", 0), // the client receives a broken answer
		// cloudflared answers with a status alone (see WriteErrorResponse in
		// connection/http2.go), and the edge replaces the text by its page.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "unable to reach the origin: "+err.Error(), http.StatusBadGateway)
		},
	}
	return t, nil
}

// rewrite sends the request to the origin. It changes neither the path nor the query.
// Like cloudflared, it escapes bytes in the path that a URL must not contain.
func (r rule) rewrite(proxied *httputil.ProxyRequest) {
	proxied.Out.URL.Scheme = r.service.origin.Scheme
	proxied.Out.URL.Host = r.service.origin.Host
	proxied.Out.URL.RawQuery = proxied.In.URL.RawQuery
	proxied.Out.Header["X-Forwarded-For"] = proxied.In.Header["X-Forwarded-For"]
	proxied.SetXForwarded()
	proxied.Out.Header.Set("X-Forwarded-Proto", visitorScheme(proxied.In))
	proxied.Out.Header.Del(schemeHeader)
	proxied.Out.Host = proxied.In.Host
	if r.origin.HTTPHostHeader == "" {
		proxied.Out.Header.Del("X-Forwarded-Host")
	} else {
		proxied.Out.Host = r.origin.HTTPHostHeader
	}
	if proxied.Out.Header.Get("Upgrade") == "" {
		proxied.Out.Header.Set("Connection", "keep-alive") // as cloudflared's proxyHTTPRequest in proxy/proxy.go does
	}
	proxied.Out.Trailer = proxied.In.Trailer // not a copy: the body sets its values
	proxied.Out = proxied.Out.WithContext(
		context.WithValue(proxied.Out.Context(), hostKey{}, proxied.Out.Host))
}

// schemeHeader is the header in which a visitor, who uses no TLS to the simulator, asks
// for the scheme https.
const schemeHeader = "Cf-Visitor-Scheme"

// visitorScheme returns the scheme that the edge sends to the origin. It replaces the visitor's
// X-Forwarded-Proto.
func visitorScheme(visitor *http.Request) string {
	if visitor.TLS != nil || visitor.Header.Get(schemeHeader) == "https" {
		return "https"
	}
	return "http"
}

func statusHandler(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

func unsupportedHandler(service string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the simulator does not support the service "+service, http.StatusBadGateway)
	})
}
