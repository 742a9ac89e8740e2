package routing

import (
	"slices"
	"strings"
)

// Access decides which requests require a Cloudflare Access token, and which get none of
// the entries. It maps each hostname about which there is a decision to what its requests
// require, or to nil when they require nothing. The most specific hostname that covers a
// host decides. A host that no hostname covers requires no token.
type Access map[string]*Requirement

// Requirement is what a protected hostname requires of requests: a valid token of one of
// the applications. A closed hostname admits no request.
type Requirement struct {
	// Closed reports whether no request is served, because the hostname must be protected
	// and no application protects it yet. A data plane answers with the status 403. The
	// other fields are empty.
	Closed bool
	// Waiting reports whether the hostname must be protected, and is open for a moment until
	// it can be. A data plane that remembers what it served serves nothing else. The other
	// fields are empty.
	Waiting bool
	// TeamName is the name of the Zero Trust organization that issues the tokens.
	TeamName string
	// AUDTags identify the applications whose tokens are valid.
	AUDTags []string
	// OneLevel reports whether the applications of a wildcard cover only hosts with one more
	// label than the wildcard's domain. Visitors of deeper hosts are not asked to log in, and
	// their tokens are not revoked there. These hosts are closed, unless a more specific
	// hostname decides. Equal ignores it.
	OneLevel bool
	// Namespace accounts for changes of the requirement. It is empty if the settings of the
	// Gateway account for them. It has no meaning for requests.
	Namespace string
}

// IsOpen reports whether requests need no token. It accepts nil.
func (r *Requirement) IsOpen() bool { return r == nil || r.Waiting }

// IsWaiting reports whether the hostname serves only what it served before. It accepts nil.
func (r *Requirement) IsWaiting() bool { return r != nil && r.Waiting }

// IsClosed reports whether no request is served. It accepts nil.
func (r *Requirement) IsClosed() bool { return r != nil && r.Closed }

// DemandsToken reports whether requests need a token. It accepts nil.
func (r *Requirement) DemandsToken() bool { return !r.IsOpen() && !r.IsClosed() }

// Equal reports whether both requirements have the same meaning. Each can be nil. The
// order of the tags is irrelevant.
func (r *Requirement) Equal(other *Requirement) bool {
	if r == nil || other == nil {
		return r == other
	}
	includes := func(all, tags []string) bool {
		return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(all, tag) })
	}
	return r.Closed == other.Closed && r.Waiting == other.Waiting && r.TeamName == other.TeamName && includes(r.AUDTags, other.AUDTags) && includes(other.AUDTags, r.AUDTags)
}

// Admits reports whether a protected hostname admits tokens of the application.
func (r *Requirement) Admits(audTag string) bool { return slices.Contains(r.AUDTags, audTag) }

// Domain returns the domain of the wildcard that decides about the hostname if it covers one
// level only, such as ".example.com"; otherwise "".
func (a Access) Domain(hostname string) string {
	decisive, ok := MostSpecific(a, hostname)
	if r := a[decisive]; !ok || r == nil || !r.OneLevel {
		return ""
	}
	return strings.TrimPrefix(decisive, "*")
}

// IsClosed reports whether no request for the host is served: its hostname is closed, or it is
// too deep below a wildcard.
func (a Access) IsClosed(host string) bool {
	domain := a.Domain(host)
	return a.Of(host).IsClosed() || domain != "" && isDeeper(host, domain)
}

// isDeeper reports whether a hostname covers hosts with several more labels than the domain.
func isDeeper(hostname, domain string) bool {
	label := strings.TrimSuffix(hostname, domain)
	return strings.Contains(label, ".")
}

// Of returns what requests for the hostname require, or nil.
func (a Access) Of(hostname string) *Requirement {
	if len(a) == 0 {
		return nil // most Gateways
	}
	decisive, _ := MostSpecific(a, hostname)
	return a[decisive]
}

// differs reports whether the hostname has another decision than the wider hostnames.
func (a Access) differs(hostname string) bool {
	var wider *Requirement
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
