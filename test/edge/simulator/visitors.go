package simulator

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// tunnelDomain is the domain of the tunnels' names. It exists only inside Cloudflare.
const tunnelDomain = ".cfargotunnel.com"

// elsewhere answers a request that would not reach Cloudflare. The simulator invents the
// status, so that a test sees why.
func elsewhere(format string, args ...any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, fmt.Sprintf(format, args...), http.StatusBadGateway)
	})
}

// Visitors returns a handler for requests from visitors. It looks the Host up in
// [Options.Zones], as a visitor's resolver and Cloudflare do, and serves the data path of the
// tunnel that the records lead to: a proxied CNAME to <tunnel>.cfargotunnel.com, directly or
// through other CNAMEs, in a zone of the tunnel's account.
//
// Without such a record, it returns Cloudflare's error, for example 530 and "error code:
// 1016" if the record or the tunnel does not exist. If the visitor would not connect to
// Cloudflare, for example because the record is not proxied, it returns 502 and the reason.
//
// What passes the edge has its headers Server and CF-Ray, and a page of Cloudflare instead of
// an origin's 502 or 504. The edge obeys the zone's settings always_use_https, ssl and gRPC,
// [Server.InjectVisitor] and the applications in [Options.Access]. The address of a team,
// <team>.cloudflareaccess.com, has the login and the public keys.
func (s *Server) Visitors() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if team, ok := strings.CutSuffix(strings.ToLower(host), teamDomain); ok {
			byEdge(s.team(team)).ServeHTTP(w, r)
			return
		}
		answer := s.options.Zones.Lookup(host)
		if !slices.ContainsFunc(answer.Steps, zones.Step.Proxied) {
			notProxied(answer).ServeHTTP(w, r)
			return
		}
		w = &edgeWriter{ResponseWriter: w, request: r}
		if own := s.edgeAnswer(answer.Steps[0].Zone, host, r); own != nil {
			own.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cf-Cache-Status", "DYNAMIC")
		s.route(answer).ServeHTTP(w, r)
	})
}

// edgeAnswer returns the edge's own answer to a request, or nil.
func (s *Server) edgeAnswer(z zones.Zone, host string, r *http.Request) http.Handler {
	if fault := s.visitorFault(host); fault != nil {
		return fault
	}
	always, _ := z.Setting("always_use_https")
	ssl, _ := z.Setting("ssl")
	switch scheme := visitorScheme(r); {
	case scheme == "http" && always == "on":
		return redirectTo("https")
	case scheme == "https" && ssl == "off":
		return redirectTo("http")
	case z.NoGRPC && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusForbidden)
		})
	}
	return s.accessAnswer(z.Account, host, r)
}

// redirectTo returns the edge's redirect to the same URL with another scheme.
func redirectTo(scheme string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", scheme+"://"+r.Host+r.URL.RequestURI())
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusMovedPermanently)
		_, _ = w.Write([]byte("<html><body><center><h1>301 Moved Permanently</h1></center><hr><center>cloudflare</center></body></html>"))
	})
}

// route returns the data path of the tunnel that the records lead to, or an error.
func (s *Server) route(a zones.Answer) http.Handler {
	switch {
	case slices.ContainsFunc(a.Steps, func(step zones.Step) bool { return step.Zone.Account != a.Steps[0].Zone.Account }):
		return errOtherAccount
	case a.Outcome != zones.Found:
		return errNoOrigin
	}
	id, ok := strings.CutSuffix(a.Target, tunnelDomain)
	if !ok {
		// The simulator only has origins in tunnels: it finds no other name, and no other
		// address answers.
		if a.Target != "" {
			return errNoOrigin
		}
		return edgeError(522)
	}
	if !s.hasTunnel(a.Steps[0].Zone.Account, id) {
		// Cloudflare resolves a tunnel's name only for records in the tunnel's account.
		// Whether it returns 1016 or 1033 for a tunnel that was deleted, and for one in
		// another account, is uncertain. For a tunnel without a connection it returns 1033.
		return errNoOrigin
	}
	return s.Tunnel(id)
}

// notProxied returns the response to a request for a hostname without a proxied record.
func notProxied(a zones.Answer) http.Handler {
	switch {
	case a.Outcome == zones.NoZone:
		return byEdge(errNoZone)
	case len(a.Steps) == 0 && (a.Outcome == zones.NoName || a.Outcome == zones.NoAddress):
		return byEdge(errNoOrigin)
	case len(a.Steps) == 0:
		return elsewhere("visitors do not reach Cloudflare: %s", a.Outcome)
	case strings.HasSuffix(a.Target, tunnelDomain):
		return elsewhere("visitors do not reach Cloudflare: the record is not proxied, and %s has no public address", a.Target)
	default:
		return elsewhere("visitors do not reach Cloudflare: the record is not proxied")
	}
}

// byEdge returns a handler whose answer passes the edge.
func byEdge(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&edgeWriter{ResponseWriter: w, request: r}, r)
	})
}

// hasTunnel reports whether the account has the tunnel.
func (s *Server) hasTunnel(account, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	return t != nil && t.account == account && !t.deleted()
}
