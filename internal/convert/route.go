package convert

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// maxRules is the Gateway API's limit for the rules in a route.
const maxRules = 16

// run has consecutive rules in a group, for one route.
type run struct {
	settings Settings
	entries  []*groupEntry
}

// addGroup adds a group's listeners and routes.
func (c *converter) addGroup(g *group) {
	access := c.groupAccess(g)
	namespace := c.namespaceOf(g)
	runs := c.runs(g)
	base := c.uniqueName(listenerName(g.hostname))
	names := c.addListeners(g, namespace, base, runs)
	c.addAccess(g, access)
	for i, r := range runs {
		name := base
		if len(runs) > 1 {
			name = fmt.Sprintf("%s-%02d", base, i+1)
		}
		c.addRoute(g, r, namespace, name, names[r.settings.key()])
	}
	if c.dependsOnRouteOrder(runs) {
		c.note(NoteStep, runs[0].entries[0].rule, "path", fmt.Sprintf("the rules for %s are in %d routes, because a route has at most %d rules and one set of settings; expressions in the older route come first", g.name(), len(runs), maxRules),
			"create the routes in the order of their names")
	}
}

// namespaceOf returns the namespace for a group's listeners and routes: where the last
// rule's Service is.
func (c *converter) namespaceOf(g *group) string {
	served := g.served()
	if len(served) == 0 {
		return c.GatewayNamespace
	}
	return c.destinations[served[len(served)-1].rule.Index].backend.namespace
}

// runs divides a group's rules into routes. Settings belong to listeners, so rules
// with other settings need a route and a listener of their own. Rules without a backend
// need no settings.
func (c *converter) runs(g *group) []run {
	var runs []run
	current := c.defaultSettings(g)
	for _, e := range g.entries {
		if e.answer == answerBackend {
			current = c.destinations[e.rule.Index].settings
		}
		last := len(runs) - 1
		if last < 0 || runs[last].settings.key() != current.key() || len(runs[last].entries) == maxRules {
			runs = append(runs, run{settings: current})
			last++
		}
		runs[last].entries = append(runs[last].entries, e)
	}
	return runs
}

// defaultSettings returns the settings for rules without a backend.
func (c *converter) defaultSettings(g *group) Settings {
	if served := g.served(); len(served) > 0 {
		return c.destinations[served[0].rule.Index].settings
	}
	return Settings{}
}

// dependsOnRouteOrder reports whether several routes have expressions, so that the routes'
// order decides.
func (c *converter) dependsOnRouteOrder(runs []run) bool {
	routes := 0
	for _, r := range runs {
		if slices.ContainsFunc(r.entries, func(e *groupEntry) bool { return e.match.kind == routing.PathExpression }) {
			routes++
		}
	}
	return routes > 1
}

// addRoute adds the route for a run.
func (c *converter) addRoute(g *group, r run, namespace, name, listener string) {
	if c.isGRPC(g) {
		c.addGRPCRoute(g, r.entries[0], namespace, name, listener)
		return
	}
	route := &gatewayv1.HTTPRoute{}
	route.Name, route.Namespace = name, namespace
	route.Spec.ParentRefs = []gatewayv1.ParentReference{c.parentRef(namespace, listener)}
	if r.settings.isTrue("http2Origin") {
		c.note(NoteInfo, r.entries[0].rule, "originRequest.http2Origin", "if the backend serves gRPC, set protocol http2 in spec.connector, because QUIC loses trailers", "")
	}
	d := Document{Object: route, rank: rankRoute, Rules: map[int][]string{}}
	for i, e := range r.entries {
		rule := gatewayv1.HTTPRouteRule{}
		if !e.match.every() {
			rule.Matches = []gatewayv1.HTTPRouteMatch{{Path: pathMatch(e.match)}}
		}
		if e.answer == answerBackend {
			rule.BackendRefs = []gatewayv1.HTTPBackendRef{{BackendRef: c.backendRef(e.rule, namespace, gateway.KindHTTPRoute)}}
		}
		route.Spec.Rules = append(route.Spec.Rules, rule)
		d.Rules[i] = c.ruleComment(e)
		c.target(e.rule, fmt.Sprintf("HTTPRoute %s/%s rule %d", namespace, name, i))
	}
	c.documents = append(c.documents, d)
}

// target records what a rule became.
func (c *converter) target(r *Rule, target string) {
	c.routes[r.Index].Targets = append(c.routes[r.Index].Targets, target)
}

func pathMatch(m match) *gatewayv1.HTTPPathMatch {
	kind := map[routing.PathKind]gatewayv1.PathMatchType{
		routing.PathExact: gatewayv1.PathMatchExact, routing.PathPrefix: gatewayv1.PathMatchPathPrefix,
		routing.PathExpression: gatewayv1.PathMatchRegularExpression,
	}[m.kind]
	return &gatewayv1.HTTPPathMatch{Type: &kind, Value: ptr.To(m.value)}
}

// isGRPC reports whether a group becomes a GRPCRoute: its only rule asks for HTTP/2 to a
// backend with TLS, which gRPC needs.
func (c *converter) isGRPC(g *group) bool {
	if len(g.entries) != 1 || len(g.served()) != 1 || !g.entries[0].match.every() {
		return false
	}
	r := g.entries[0].rule
	effective := c.input.effective(r)
	return r.Own.isTrue("http2Origin") && !effective.isTrue("matchSNItoHost") && c.destinations[r.Index].backend.tls
}

func (c *converter) addGRPCRoute(g *group, e *groupEntry, namespace, name, listener string) {
	route := &gatewayv1.GRPCRoute{}
	route.Name, route.Namespace = name, namespace
	route.Spec.ParentRefs = []gatewayv1.ParentReference{c.parentRef(namespace, listener)}
	route.Spec.Rules = []gatewayv1.GRPCRouteRule{{
		BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: c.backendRef(e.rule, namespace, gateway.KindGRPCRoute)}},
	}}
	c.note(NoteInfo, e.rule, "originRequest.http2Origin", g.name()+" gets a GRPCRoute, which also serves other HTTP requests with ingress rules; connectors then use the protocol http2", "")
	c.target(e.rule, fmt.Sprintf("GRPCRoute %s/%s rule 0", namespace, name))
	c.documents = append(c.documents, Document{Object: route, rank: rankRoute, Rules: map[int][]string{0: c.ruleComment(e)}})
}

// backendRef refers to a rule's Service, and adds the grant that another namespace needs.
func (c *converter) backendRef(r *Rule, from, kind string) gatewayv1.BackendRef {
	b := c.destinations[r.Index].backend
	var ref gatewayv1.BackendRef
	ref.Name, ref.Port = gatewayv1.ObjectName(b.name), ptr.To(b.port)
	if b.namespace != from {
		ref.Namespace = ptr.To(gatewayv1.Namespace(b.namespace))
		c.addGrant(b, from, kind)
	}
	return ref
}

// addGrant adds the ReferenceGrant for routes that refer to a Service in another
// namespace.
func (c *converter) addGrant(b *backend, from, kind string) {
	name := fmt.Sprintf("%s-from-%s-%s", b.name, from, strings.ToLower(kind))
	if c.names["grant/"+b.namespace+"/"+name] {
		return
	}
	c.names["grant/"+b.namespace+"/"+name] = true
	grant := &gatewayv1.ReferenceGrant{}
	grant.Name, grant.Namespace = name, b.namespace
	grant.Spec.From = []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(kind), Namespace: gatewayv1.Namespace(from)}}
	grant.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: "Service", Name: ptr.To(gatewayv1.ObjectName(b.name))}}
	c.documents = append(c.documents, Document{Object: grant, rank: rankGrant, Comment: []string{
		"A hostname with Services in several namespaces has its routes in one of them.",
	}})
}

// ruleComment describes the rule that a route's rule comes from.
func (c *converter) ruleComment(e *groupEntry) []string {
	r := e.rule
	text := fmt.Sprintf("Rule %d", r.Index)
	if line := c.input.line(r.Line); line > 0 {
		text += fmt.Sprintf(" (line %d)", line)
	}
	text += ":"
	for _, part := range []struct{ name, value string }{{"hostname", r.Hostname}, {"path", r.Path}, {"service", redacted(r.Service)}} {
		if part.value != "" {
			text += fmt.Sprintf(" %s %q", part.name, part.value)
		}
	}
	lines := []string{text}
	if e.answer != answerBackend {
		lines = append(lines, "It has no backend, so its requests get the status 500 and reach no other rule.")
	}
	return lines
}

// redacted returns a service without a password, also if it is not a URL.
func redacted(service string) string {
	u, err := url.Parse(service)
	switch at := strings.LastIndex(service, "@"); {
	case err == nil && u.User != nil:
		return u.Redacted()
	case err != nil && at >= 0:
		return "xxxxx" + service[at:]
	}
	return service
}

// listenerName returns a name for a hostname.
func listenerName(hostname string) string {
	name := cmp.Or(strings.ReplaceAll(strings.Replace(hostname, "*", "wildcard", 1), ".", "-"), "any-hostname")
	const maxLength = 200 // leaves space for numbers
	return strings.Trim(name[:min(len(name), maxLength)], "-")
}

// numbered matches the names of further routes and listeners of a hostname.
var numbered = regexp.MustCompile(`-p?[0-9]+$`)

// uniqueName returns the name, with a number if another hostname has it, or if it could be the
// name of another hostname's further route or listener.
func (c *converter) uniqueName(name string) string {
	unique := name
	for i := 2; c.names[unique] || numbered.MatchString(unique); i++ {
		unique = fmt.Sprintf("%s-x%d", name, i)
	}
	c.names[unique] = true
	return unique
}
