package simulator

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
)

// dataPath serves the requests of a tunnel by one configuration.
type dataPath struct {
	rules      *Rules
	handlers   []http.Handler // one per rule
	transports []*http.Transport
}

// emptyDataPath is the data path of a tunnel without a configuration.
var emptyDataPath = &dataPath{rules: &Rules{}}

// newDataPath returns a data path with a handler for each rule. It fails if the
// CA pool of a rule cannot be read.
func newDataPath(rules *Rules, dial dialFunc) (*dataPath, error) {
	d := &dataPath{rules: rules}
	for i, r := range rules.rules {
		handler, err := d.handler(r, dial)
		if err != nil {
			return nil, fmt.Errorf("ingress[%d]: %w", i, err)
		}
		d.handlers = append(d.handlers, handler)
	}
	return d, nil
}

func (d *dataPath) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	index, _, ok := d.rules.Match(r.Host, r.URL.Path)
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	d.handlers[index].ServeHTTP(w, r)
}

// closeIdleConnections closes the idle connections to the origins. cloudflared
// also loses them when its configuration changes. Requests in flight continue.
func (d *dataPath) closeIdleConnections() {
	for _, transport := range d.transports {
		transport.CloseIdleConnections()
	}
}

func (d *dataPath) handler(r rule, dial dialFunc) (http.Handler, error) {
	switch {
	case r.origin.Access.Required: // the simulator issues no Access tokens
		return statusHandler(http.StatusForbidden), nil
	case r.service.status != 0:
		return statusHandler(r.service.status), nil
	case r.service.origin == nil:
		return unsupportedHandler(r.service.raw), nil
	}
	transport, err := r.origin.transport(dial)
	if err != nil {
		return nil, err
	}
	d.transports = append(d.transports, transport)
	return &httputil.ReverseProxy{
		Rewrite:       r.rewrite,
		Transport:     transport,
		FlushInterval: -1, // forward streams without buffering
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "unable to reach the origin: "+err.Error(), http.StatusBadGateway)
		},
	}, nil
}

// rewrite sends the request to the origin. It changes neither the path nor the
// query.
func (r rule) rewrite(proxied *httputil.ProxyRequest) {
	proxied.Out.URL.Scheme = r.service.origin.Scheme
	proxied.Out.URL.Host = r.service.origin.Host
	proxied.Out.URL.RawQuery = proxied.In.URL.RawQuery
	proxied.Out.Header["X-Forwarded-For"] = proxied.In.Header["X-Forwarded-For"]
	proxied.SetXForwarded()
	proxied.Out.Host = proxied.In.Host
	if r.origin.HTTPHostHeader == "" {
		proxied.Out.Header.Del("X-Forwarded-Host")
	} else {
		proxied.Out.Host = r.origin.HTTPHostHeader
	}
	proxied.Out = proxied.Out.WithContext(
		context.WithValue(proxied.Out.Context(), hostKey{}, proxied.Out.Host))
}

func statusHandler(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

func unsupportedHandler(service string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the simulator does not support the service "+service, http.StatusBadGateway)
	})
}
