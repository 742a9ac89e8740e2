package plan

import (
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Action is what happens to each request that an entry matches. Exactly one of Status,
// Redirect and Backends is set.
type Action struct {
	Status int
	// Redirect is for example "redirect 301, scheme https".
	Redirect string
	Backends []ActionBackend
	// Changes describe how requests and responses are changed, and the timeouts and retries.
	Changes []string
}

// ActionBackend is a backend, with its share of the requests. Its JSON encoding is stable.
type ActionBackend struct {
	// Backend is the URL of the backend, or "status 500" for a backend that does not resolve.
	Backend string `json:"backend"`
	// Object is the Service or ServiceImport; empty for a backend that does not resolve.
	Object  Owner `json:"-"`
	Weight  int32 `json:"weight"`
	Percent int   `json:"-"` // rounded down
	// Changes describe how requests to this backend and its responses are changed.
	Changes []string `json:"changes,omitempty"`
	// TLS describes the effect of a BackendTLSPolicy; empty without one.
	TLS string `json:"tls,omitempty"`
}

func newAction(a *routing.Action, clusterDomain string) Action {
	action := Action{}
	switch {
	case a.Forward != nil:
		action.Backends = newActionBackends(a.Forward.Backends, clusterDomain)
		action.Changes = append(requestChanges(a.Forward.Filters, describePathChange, clusterDomain), policies(a.Forward)...)
	case a.Redirect != nil:
		action.Redirect = describeRedirect(a.Redirect)
	default:
		action.Status = a.Status
	}
	action.Changes = append(action.Changes, headerChanges("response", a.Response)...)
	if a.CORS != nil {
		action.Changes = append(action.Changes, describeCORS(a.CORS))
	}
	return action
}

func newActionBackends(backends []routing.WeightedBackend, clusterDomain string) []ActionBackend {
	all := make([]ActionBackend, len(backends))
	for i, b := range backends {
		all[i] = ActionBackend{
			Backend: describeBackend(b, clusterDomain), Object: objectOf(b), Weight: b.Weight, Percent: percent(b.Weight, backends),
			Changes: append(requestChanges(b.Filters, describePathChange, clusterDomain), headerChanges("response", b.Response)...),
		}
		if b.Backend.TLS != nil {
			all[i].TLS = describeTLS(b.Backend.TLS)
		}
	}
	return all
}

// describeBackend returns the URL of the backend, or the status of one that does not
// resolve.
func describeBackend(b routing.WeightedBackend, clusterDomain string) string {
	if b.Status != 0 {
		return fmt.Sprintf("status %d", b.Status)
	}
	return b.Backend.Describe(clusterDomain)
}

// objectOf returns the Service or ServiceImport of the backend, or an empty Owner.
func objectOf(b routing.WeightedBackend) Owner {
	switch {
	case b.Status != 0:
		return Owner{}
	case b.Backend.Import:
		return Owner{"ServiceImport", b.Backend.Service.Namespace, b.Backend.Service.Name}
	default:
		return Owner{"Service", b.Backend.Service.Namespace, b.Backend.Service.Name}
	}
}

// percent returns the share of the weight, rounded down.
func percent(weight int32, backends []routing.WeightedBackend) int {
	var total int64
	for _, b := range backends {
		total += int64(b.Weight)
	}
	return int(int64(weight) * 100 / total)
}

func describeTLS(tls *routing.BackendTLS) string {
	return fmt.Sprintf("TLS for %s by BackendTLSPolicy %s", tls.Hostname, tls.Policy)
}

// String describes the action, for example "http://a:80 (weight 90), http://b:80 (weight
// 10); request timeout 10s".
func (a *Action) String() string {
	var parts []string
	switch {
	case len(a.Backends) > 0:
		backends := make([]string, len(a.Backends))
		for i := range a.Backends {
			backends[i] = a.Backends[i].describe(len(a.Backends) > 1)
		}
		parts = append(parts, strings.Join(backends, ", "))
	case a.Redirect != "":
		parts = append(parts, a.Redirect)
	default:
		parts = append(parts, fmt.Sprintf("status %d", a.Status))
	}
	return strings.Join(append(parts, a.Changes...), "; ")
}

// describe describes a backend, with its weight if it is not the only one.
func (b *ActionBackend) describe(withWeight bool) string {
	var details []string
	if withWeight {
		details = append(details, fmt.Sprintf("weight %d", b.Weight))
	}
	if details = append(details, b.Changes...); len(details) > 0 {
		return fmt.Sprintf("%s (%s)", b.Backend, strings.Join(details, "; "))
	}
	return b.Backend
}
