package gateway_test

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// envoyMatcher treats a RouteConfiguration as Envoy's documentation says. It panics when
// the configuration has a field that it does not know.
type envoyMatcher struct {
	config   *routev3.RouteConfiguration
	clusters map[string]bool // the clusters that exist, by name
	// addresses are the first addresses and the ports of ServiceImports, by cluster.
	addresses map[string]string
}

func newEnvoyMatcher(config *routev3.RouteConfiguration, r *envoy.Resources) envoyMatcher {
	m := envoyMatcher{config, map[string]bool{}, map[string]string{}}
	for _, c := range r.Clusters {
		m.clusters[c.Name] = true
		if strings.HasPrefix(c.Name, "i.") && c.LoadAssignment != nil {
			first := c.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress()
			m.addresses[c.Name] = net.JoinHostPort(first.GetAddress(), fmt.Sprint(first.GetPortValue()))
		}
	}
	return m
}

// describeAnswer describes the answer to a request: a status, a redirect, or clusters with
// their weights.
func (m envoyMatcher) describeAnswer(r routing.Request) string {
	host := m.host(r.Host)
	if host == nil {
		return "no match"
	}
	i := slices.IndexFunc(host.Routes, func(route *routev3.Route) bool { return matchesRoute(route.Match, r) })
	if i < 0 {
		return "no match"
	}
	switch route := host.Routes[i]; action := route.Action.(type) {
	case *routev3.Route_DirectResponse:
		if action.DirectResponse.Status == http.StatusNotFound {
			return noMatch
		}
		return fmt.Sprintf("status %d", action.DirectResponse.Status)
	case *routev3.Route_Redirect:
		return fmt.Sprintf("redirect %d", redirectStatus[action.Redirect.ResponseCode])
	default:
		return m.describeRoute(route.GetRoute())
	}
}

var redirectStatus = map[routev3.RedirectAction_RedirectResponseCode]int{
	routev3.RedirectAction_MOVED_PERMANENTLY: 301, routev3.RedirectAction_FOUND: 302, routev3.RedirectAction_SEE_OTHER: 303,
	routev3.RedirectAction_TEMPORARY_REDIRECT: 307, routev3.RedirectAction_PERMANENT_REDIRECT: 308,
}

// host returns the virtual host for the host of a request: an exact domain, else the
// longest wildcard, else "*".
func (m envoyMatcher) host(name string) *routev3.VirtualHost {
	var best *routev3.VirtualHost
	longest := -1
	for _, h := range m.config.VirtualHosts {
		for _, domain := range h.Domains {
			suffix, wildcard := strings.CutPrefix(domain, "*")
			switch {
			case domain == name:
				return h
			case wildcard && strings.HasSuffix(name, suffix) && len(name) > len(suffix) && len(suffix) > longest:
				best, longest = h, len(suffix)
			}
		}
	}
	return best
}

func matchesRoute(m *routev3.RouteMatch, r routing.Request) bool {
	return matchesPath(m, r.Path) &&
		!slices.ContainsFunc(m.Headers, func(h *routev3.HeaderMatcher) bool { return !matchesHeader(h, r) }) &&
		!slices.ContainsFunc(m.QueryParameters, func(q *routev3.QueryParameterMatcher) bool { return !matchesParameter(q, r) })
}

func matchesPath(m *routev3.RouteMatch, path string) bool {
	switch p := m.PathSpecifier.(type) {
	case *routev3.RouteMatch_Path:
		return path == p.Path
	case *routev3.RouteMatch_Prefix:
		return strings.HasPrefix(path, p.Prefix)
	case *routev3.RouteMatch_PathSeparatedPrefix:
		rest, ok := strings.CutPrefix(path, p.PathSeparatedPrefix)
		return ok && (rest == "" || rest[0] == '/')
	case *routev3.RouteMatch_SafeRegex:
		return matchesExpression(p.SafeRegex, path)
	default:
		panic(fmt.Sprintf("unknown path match %T", p))
	}
}

// matchesHeader compares each line of the header by itself.
func matchesHeader(h *routev3.HeaderMatcher, r routing.Request) bool {
	values := r.Headers[http.CanonicalHeaderKey(h.Name)]
	switch h.Name {
	case ":method":
		values = []string{cmp.Or(r.Method, "GET")}
	case ":authority":
		values = []string{r.Host}
	case "x-forwarded-proto":
		values = []string{string(cmp.Or(r.Scheme, routing.SchemeHTTPS))}
	}
	return h.InvertMatch != slices.ContainsFunc(values, func(value string) bool { return matchesText(h.GetStringMatch(), value) })
}

// matchesParameter compares the first value of the parameter, as it is in the URL.
func matchesParameter(q *routev3.QueryParameterMatcher, r routing.Request) bool {
	for _, pair := range strings.Split(r.Query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name == q.Name {
			return matchesText(q.GetStringMatch(), value)
		}
	}
	return false
}

func matchesText(m *matcherv3.StringMatcher, value string) bool {
	switch p := m.MatchPattern.(type) {
	case *matcherv3.StringMatcher_Exact:
		return value == p.Exact || m.IgnoreCase && strings.EqualFold(value, p.Exact)
	case *matcherv3.StringMatcher_SafeRegex:
		return matchesExpression(p.SafeRegex, value)
	default:
		panic(fmt.Sprintf("unknown string match %T", p))
	}
}

// matchesExpression reports whether the expression matches the whole value.
func matchesExpression(m *matcherv3.RegexMatcher, value string) bool {
	compiled := regexp.MustCompile(m.Regex)
	compiled.Longest()
	location := compiled.FindStringIndex(value)
	return location != nil && location[0] == 0 && location[1] == len(value)
}

func (m envoyMatcher) describeRoute(a *routev3.RouteAction) string {
	weighted := a.GetWeightedClusters().GetClusters()
	if weighted == nil {
		return "1 to " + m.describeCluster(a, a.GetCluster())
	}
	var all []string
	for _, w := range weighted {
		all = append(all, fmt.Sprintf("%d to %s", w.Weight.GetValue(), m.describeCluster(a, w.Name)))
	}
	return withoutSource(strings.Join(all, ", "))
}

// describeCluster returns the namespace, name and port of the Service, or the status when
// the cluster does not exist.
func (m envoyMatcher) describeCluster(a *routev3.RouteAction, name string) string {
	if ip := m.addresses[name]; ip != "" {
		return ip
	}
	if m.clusters[name] {
		parts := strings.Split(name, ".")
		return fmt.Sprintf("%s/%s:%s", parts[1], parts[2], parts[3])
	}
	return fmt.Sprintf("status %d", map[routev3.RouteAction_ClusterNotFoundResponseCode]int{
		routev3.RouteAction_SERVICE_UNAVAILABLE: 503, routev3.RouteAction_NOT_FOUND: 404, routev3.RouteAction_INTERNAL_SERVER_ERROR: 500,
	}[a.ClusterNotFoundResponseCode])
}

// withoutSource returns an answer's description in the form that [envoyMatcher] uses,
// which does not know the match, the protocol and an only cluster's weight.
func withoutSource(description string) string {
	if _, action, found := strings.Cut(description, ": "); found {
		description = action
	}
	description = backendURL.ReplaceAllString(description, "$2/$1:$3")
	description = importURL.ReplaceAllString(description, "$1")
	return onlyWeight.ReplaceAllString(description, "1 to $1")
}

var (
	backendURL = regexp.MustCompile(`[a-z0-9]+://([^./]+)\.([^./]+)\.svc\.cluster(?:set)?\.local:([0-9]+)`)
	importURL  = regexp.MustCompile(`[a-z0-9]+://((?:10\.42\.[.0-9]+|\[2001[:0-9a-f]+\]):[0-9]+)`)
	onlyWeight = regexp.MustCompile(`^[0-9]+ to ([^,]+)$`)
)

// rawPath returns the path as clients send it.
func rawPath(path string) string {
	if decoded, err := url.PathUnescape(path); err == nil && decoded != path {
		return path
	}
	return (&url.URL{Path: path}).EscapedPath()
}
