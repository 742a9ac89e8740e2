package routing

import (
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// DataPlanes has the capabilities of each available data plane.
type DataPlanes map[v1alpha1.DataPlane]Capabilities

// IncompatibleFilters is the part that no data plane can express, because a preflight
// request and a redirect need different responses.
const IncompatibleFilters = "filters CORS and RequestRedirect in one rule"

// Capabilities describe what a data plane can express. The decision omits every match
// that the data plane cannot express, and replaces every such action by a status.
type Capabilities struct {
	// Match returns the match fields that the data plane cannot express.
	Match func(gatewayv1.HTTPRouteMatch) []string
	// Action returns the parts of a rule's action that the data plane cannot express,
	// each once.
	Action func(*gatewayv1.HTTPRouteRule) []string
	// Backend returns why the data plane cannot send requests to a backend with that
	// protocol, for a route of that kind, or an empty string.
	Backend func(kind string, p Protocol) string
	// ErrorStatus returns the status for requests whose action cannot be served, for a
	// route of that kind.
	ErrorStatus func(kind string) int
	// BackendTLS returns why the data plane cannot connect as a BackendTLSPolicy asks, or an
	// empty string.
	BackendTLS func(*BackendTLS) string
	// PresentsCertificates reports whether the data plane can present a client certificate
	// to backends.
	PresentsCertificates bool
	// Protocols are the protocols in which the data plane can reach backends.
	Protocols []Protocol
	// Path returns a literal path in the form in which the data plane compares paths, or
	// an error when the path is not valid.
	Path func(string) (string, error)
	// FollowsEndpoints reports whether the data plane reads pod addresses and ports from
	// EndpointSlices for headless Services. Otherwise, it needs the port number.
	FollowsEndpoints bool
	// NeedsClusterIP reports whether a Service that is not headless resolves only when it
	// has a ClusterIP.
	NeedsClusterIP bool
	// Expression returns why the data plane does not support a regular expression that
	// package regexp accepts, or an empty string. It is nil when the data plane uses that
	// package.
	Expression func(string) string
	// RequestPath returns a request path from a URL in the form in which the data plane
	// compares paths.
	RequestPath func(string) (string, error)
	// ComparesHostsExactly reports whether the letter case of a host and a dot at its end
	// matter.
	ComparesHostsExactly bool
	// RepeatsEntries reports whether the data plane has one list of entries for each
	// hostname, as [Table.Hosts] returns them.
	RepeatsEntries bool
	// KnowsScheme reports whether the data plane knows the scheme of each request.
	KnowsScheme bool
	// Cost returns how many rules an entry with the match and the action counts as. It is
	// nil when every entry counts as one rule, and route backends do not count.
	Cost func(*Match, *Action) int
	// AccessGaps returns a table's protected hostnames whose requests can reach a backend
	// without a token, in order.
	AccessGaps func(*Table) []AccessGap
}

// WeightedBackends returns the backendRefs that receive requests: "If unspecified, weight
// defaults to 1." (BackendRef.Weight)
func WeightedBackends(rule *gatewayv1.HTTPRouteRule) []gatewayv1.HTTPBackendRef {
	hasNoWeight := func(b gatewayv1.HTTPBackendRef) bool { return ptr.Deref(b.Weight, 1) == 0 }
	if !slices.ContainsFunc(rule.BackendRefs, hasNoWeight) {
		return rule.BackendRefs // most rules
	}
	return slices.DeleteFunc(slices.Clone(rule.BackendRefs), hasNoWeight)
}
