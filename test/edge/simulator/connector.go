package simulator

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
)

// connector is the data path under one document.
type connector struct {
	rules      *Rules
	handlers   []http.Handler // one per rule
	transports []*http.Transport
}

// idle is a connector that has no rules yet.
var idle = &connector{rules: &Rules{}}

// newConnector prepares the origins of the rules. It fails when a rule names a
// CA pool that cannot be read.
func newConnector(rules *Rules, dial dialFunc) (*connector, error) {
	c := &connector{rules: rules}
	for i, r := range rules.rules {
		handler, err := c.handler(r, dial)
		if err != nil {
			return nil, fmt.Errorf("ingress[%d]: %w", i, err)
		}
		c.handlers = append(c.handlers, handler)
	}
	return c, nil
}

func (c *connector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	index, _, ok := c.rules.Match(r.Host, r.URL.Path)
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.handlers[index].ServeHTTP(w, r)
}

// retire closes the warm connections, which the real connector loses with
// every push. Requests in flight end undisturbed.
func (c *connector) retire() {
	for _, transport := range c.transports {
		transport.CloseIdleConnections()
	}
}

func (c *connector) handler(r rule, dial dialFunc) (http.Handler, error) {
	switch {
	case r.origin.Access.Required: // nothing here issues Access tokens
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
	c.transports = append(c.transports, transport)
	return &httputil.ReverseProxy{
		Rewrite:       r.rewrite,
		Transport:     transport,
		FlushInterval: -1, // streams pass as they come
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "unable to reach the origin: "+err.Error(), http.StatusBadGateway)
		},
	}, nil
}

// rewrite points the request at the origin. Path and query stay to the byte.
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
		http.Error(w, "the simulator does not carry service "+service, http.StatusBadGateway)
	})
}
