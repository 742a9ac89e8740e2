package probe

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// observation is the answer to a request, as it arrived.
type observation struct {
	request         Request
	status          int
	header, trailer http.Header
	// body is the beginning of the body.
	body []byte
}

// answer returns the answer with its responder and its meaning.
func (o observation) answer(duration time.Duration) Answer {
	a := Answer{
		Status: o.status, Location: o.header.Get("Location"), Ray: o.ray(), Duration: duration,
		GRPCStatus: o.grpcStatus(), Bare: o.isBare(),
	}
	for _, sign := range signs {
		if v, ok := sign(o); ok {
			a.Responder, a.Code, a.Meaning, a.Advice = v.responder, v.code, v.Meaning, v.Advice
			return a
		}
	}
	a.Responder = Backend
	return a
}

// rayPattern is what the header CF-Ray contains. Cloudflare replaces the header of an origin, and
// another server can send any text.
var rayPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

func (o observation) ray() string { return rayPattern.FindString(o.header.Get("Cf-Ray")) }

// verdict is the component that answered, and the meaning of the answer.
type verdict struct {
	responder Responder
	code      string
	meaning
}

// signs identify the component that answered. The first match decides. Without a match, the
// answer is from behind the tunnel's data path.
var signs = []func(observation) (verdict, bool){
	observation.outsideCloudflare,
	observation.byEnvoy,
	observation.byAccess,
	observation.byChallenge,
	observation.byEdgeError,
	observation.byGRPCSetting,
	observation.bySchemeRedirect,
	observation.byCache,
}

// byEnvoy recognizes Envoy's own answers by the header Proxy-Status. Envoy removes this header
// from answers of backends, so that they cannot forge it. Without Envoy, they can.
func (o observation) byEnvoy() (verdict, bool) {
	if o.request.WithoutEnvoy {
		return verdict{}, false
	}
	code, ok := proxyError(o.header.Values("Proxy-Status"))
	if !ok {
		return verdict{}, false
	}
	return verdict{Envoy, code, envoyMeaning(code)}, true
}

// accessDomain is the domain with the login pages.
const accessDomain = ".cloudflareaccess.com"

// byAccess recognizes Cloudflare Access: a redirect to a team's login page, or the
// header with which it asks a client that is not a browser for a token.
func (o observation) byAccess() (verdict, bool) {
	login := false
	if location, err := url.Parse(o.header.Get("Location")); err == nil {
		login = strings.HasSuffix(strings.ToLower(location.Hostname()), accessDomain)
	}
	asks := slices.ContainsFunc(o.header.Values("Www-Authenticate"), func(value string) bool {
		return strings.HasPrefix(value, "Cloudflare-Access")
	})
	refuses := o.status == http.StatusForbidden && isHTML(o.header) && accessPage.Match(o.body)
	switch {
	case login || asks && o.status/100 == 3:
		return verdict{Access, "login", accessLogin}, true
	case asks || refuses:
		return verdict{Access, "forbidden", accessForbidden}, true
	}
	return verdict{}, false
}

// outsideCloudflare recognizes an answer that has not passed Cloudflare. Every answer of the
// edge has the header CF-Ray.
func (o observation) outsideCloudflare() (verdict, bool) {
	passed := o.header.Get("Cf-Ray") != "" || strings.EqualFold(o.header.Get("Server"), "cloudflare")
	return verdict{Unknown, "", notCloudflare}, !passed
}

// byChallenge recognizes a page with which Cloudflare finds out whether a visitor is human.
func (o observation) byChallenge() (verdict, bool) {
	return verdict{Edge, "challenge", challenged}, o.header.Get("Cf-Mitigated") == "challenge"
}

// byEdgeError recognizes a page with Cloudflare's error. The page with 502 stands for an
// error in cloudflared, which answers with a status alone; the edge makes the page.
func (o observation) byEdgeError() (verdict, bool) {
	code, ok := o.edgeError()
	if !ok {
		return verdict{}, false
	}
	responder := Edge
	if code == "502" {
		responder = Cloudflared
	}
	return verdict{responder, code, edgeMeaning(code)}, true
}

// byGRPCSetting recognizes the answer to a gRPC request in a zone where gRPC is off. (Source:
// "Cloudflare will respond to gRPC requests with a 403 Forbidden response" in its
// documentation.) A gRPC server that refuses a call answers with 200 and a gRPC status.
func (o observation) byGRPCSetting() (verdict, bool) {
	isGRPC := strings.HasPrefix(o.header.Get("Content-Type"), "application/grpc")
	return verdict{Edge, "grpc", grpcOff}, o.request.GRPC && o.status == http.StatusForbidden && !isGRPC
}

// bySchemeRedirect recognizes redirects by the zone's settings always_use_https and ssl: to
// the same URL with the other scheme. A backend could redirect in the same way; the page names
// Cloudflare.
func (o observation) bySchemeRedirect() (verdict, bool) {
	if o.request.URL == nil || o.status/100 != 3 || !strings.Contains(string(o.body), "<center>cloudflare</center>") {
		return verdict{}, false
	}
	other, v := *o.request.URL, verdict{Edge, "always_use_https", redirected}
	other.Scheme, other.Fragment = "https", ""
	if o.request.URL.Scheme == "https" {
		other.Scheme, v = "http", verdict{Edge, "ssl_off", unencrypted}
	}
	if other.Path == "" {
		other.Path = "/"
	}
	return v, o.header.Get("Location") == other.String()
}

// byCache recognizes an answer from Cloudflare's cache.
func (o observation) byCache() (verdict, bool) {
	status := strings.ToUpper(o.header.Get("Cf-Cache-Status"))
	return verdict{Edge, "cache", cached}, slices.Contains([]string{"HIT", "STALE", "UPDATING"}, status)
}

// isBare reports whether the answer has neither a body nor its type.
func (o observation) isBare() bool {
	return len(o.body) == 0 && o.header.Get("Content-Type") == "" && o.status >= http.StatusBadRequest
}

// grpcStatus returns the status of a gRPC call: in the header of an answer without messages,
// otherwise in the trailer.
func (o observation) grpcStatus() string {
	if !strings.HasPrefix(o.header.Get("Content-Type"), "application/grpc") {
		return ""
	}
	status := cmp.Or(o.header.Get("Grpc-Status"), o.trailer.Get("Grpc-Status"))
	if _, err := strconv.ParseUint(status, 10, 16); err != nil {
		return "" // the backend's text
	}
	return status
}

func isHTML(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/html")
}
