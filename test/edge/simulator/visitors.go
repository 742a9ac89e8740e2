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

// Responses of Cloudflare to a request that it cannot send to an origin. Each error has the
// HTTP status that the documentation gives. Cloudflare's pages contain more text.
var (
	errNoZone       = edgeError{http.StatusConflict, "error code: 1001"}  // DNS resolution error
	errOtherAccount = edgeError{http.StatusForbidden, "error code: 1014"} // CNAME cross-user banned
	errNoOrigin     = edgeError{statusNoTunnel, "error code: 1016"}       // origin DNS error
)

type edgeError struct {
	status int
	text   string
}

// statusElsewhere is the status for a request that would not reach Cloudflare. The simulator
// invents it, so that a test sees why.
const statusElsewhere = http.StatusBadGateway

// Visitors returns a handler for requests from visitors. It looks the Host up in
// [Options.Zones], as a visitor's resolver and Cloudflare do, and serves the data path of the
// tunnel that the records lead to: a proxied CNAME to <tunnel>.cfargotunnel.com, directly or
// through other CNAMEs, in a zone of the tunnel's account.
//
// Without such a record, it returns Cloudflare's error, for example 530 and "error code:
// 1016" if the record or the tunnel does not exist. If the visitor would not connect to
// Cloudflare, for example because the record is not proxied, it returns 502 and the reason.
func (s *Server) Visitors() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		id, failed := s.route(s.options.Zones.Lookup(host))
		if failed.status != 0 {
			http.Error(w, failed.text, failed.status)
			return
		}
		s.Tunnel(id).ServeHTTP(w, r)
	})
}

// route returns the ID of the tunnel that the records lead to, or an error.
func (s *Server) route(a zones.Answer) (tunnel string, failed edgeError) {
	proxied := slices.IndexFunc(a.Steps, zones.Step.Proxied)
	switch {
	case proxied < 0:
		return "", notProxied(a)
	case slices.ContainsFunc(a.Steps, func(step zones.Step) bool { return step.Zone.Account != a.Steps[0].Zone.Account }):
		return "", errOtherAccount
	case a.Outcome != zones.Found:
		return "", errNoOrigin
	}
	id, ok := strings.CutSuffix(a.Target, tunnelDomain)
	if !ok {
		return "", edgeError{statusElsewhere, "the simulator only has origins in tunnels; the records lead elsewhere"}
	}
	if !s.hasTunnel(a.Steps[0].Zone.Account, id) {
		// Cloudflare resolves a tunnel's name only for records in the tunnel's account.
		// Whether it returns 1016 or 1033 for a tunnel that was deleted, and for one in
		// another account, is uncertain. For a tunnel without a connection it returns 1033.
		return "", errNoOrigin
	}
	return id, edgeError{}
}

// notProxied returns the response to a request for a hostname without a proxied record.
func notProxied(a zones.Answer) edgeError {
	switch {
	case a.Outcome == zones.NoZone:
		return errNoZone
	case len(a.Steps) == 0 && (a.Outcome == zones.NoName || a.Outcome == zones.NoAddress):
		return errNoOrigin
	case len(a.Steps) == 0:
		return edgeError{statusElsewhere, fmt.Sprintf("visitors do not reach Cloudflare: %s", a.Outcome)}
	case strings.HasSuffix(a.Target, tunnelDomain):
		return edgeError{statusElsewhere, fmt.Sprintf(
			"visitors do not reach Cloudflare: the record is not proxied, and %s has no public address", a.Target)}
	default:
		return edgeError{statusElsewhere, "visitors do not reach Cloudflare: the record is not proxied"}
	}
}

// hasTunnel reports whether the account has the tunnel.
func (s *Server) hasTunnel(account, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	return t != nil && t.account == account && !t.deleted()
}
