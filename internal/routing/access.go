package routing

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Access decides which requests require a Cloudflare Access token. It maps each hostname
// in the settings to the access that its requests require, or to nil when they require
// none. The most specific hostname that covers a host decides. A host that no hostname
// covers requires no token.
type Access map[string]*v1alpha1.Access

// Of returns the access that requests for the hostname require, or nil.
func (a Access) Of(hostname string) *v1alpha1.Access {
	if len(a) == 0 {
		return nil // most Gateways
	}
	decisive, _ := MostSpecific(a, hostname)
	return a[decisive]
}

// differs reports whether the hostname has another decision than the wider hostnames.
func (a Access) differs(hostname string) bool {
	var wider *v1alpha1.Access
	for wide := range WiderHostnames(hostname) {
		if access, ok := a[wide]; ok {
			wider = access
			break
		}
	}
	return !a[hostname].Equal(wider)
}

// SeparateHostnames returns, by group hostname, the narrower hostnames that require other
// access than the requests around them. A data plane must not serve them by the entries
// for wider hostnames in the group. Each list is in the order of [CompareRouteHostnames].
func SeparateHostnames[V any](groups map[string]V, access Access) map[string][]string {
	separate := map[string][]string{}
	for hostname := range access {
		group, ok := MostSpecific(groups, hostname)
		if ok && group != hostname && access.differs(hostname) {
			separate[group] = append(separate[group], hostname)
		}
	}
	for _, hostnames := range separate {
		slices.SortFunc(hostnames, CompareRouteHostnames)
	}
	return separate
}

// AccessGap is a protected hostname whose requests can reach a backend without a token,
// because the data plane does not recognize every form of the hostname.
type AccessGap struct {
	Hostname string
	// Through is the wider hostname whose rules require no token.
	Through string
}
