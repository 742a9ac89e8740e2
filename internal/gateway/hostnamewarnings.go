package gateway

import (
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// HostnameWarning is a problem with hostnames that no condition reports, for the owner of
// the object. It does not name objects of other tenants.
type HostnameWarning struct {
	// Object is a ListenerSet or a route.
	Object Owner
	// Reason is the event reason.
	Reason  conditions.EventReason
	Message string
}

// HostnameWarnings returns the warnings about hostnames on ListenerSets and routes, at
// most one for each object and reason.
func (r *Result) HostnameWarnings() []HostnameWarning {
	return append(r.EntryWarnings(), r.claimWarnings()...)
}

// EntryWarnings returns a warning for each ListenerSet and each route that needs
// permission from an annotation with invalid entries.
func (r *Result) EntryWarnings() []HostnameWarning {
	if r.permitted == nil {
		return nil
	}
	var warnings []HostnameWarning
	add := func(object Owner) {
		if message := r.permitted.invalidEntries(object.Namespace); message != "" {
			warnings = append(warnings, HostnameWarning{object, conditions.EventInvalidHostnameEntry, message})
		}
	}
	for _, set := range r.Sets {
		if set.NotAllowed == nil {
			add(set.Owner)
		}
	}
	for _, route := range r.Routes {
		if slices.ContainsFunc(route.Parents, func(p Parent) bool { return r.permitted.appliesToRoute(route.Namespace, p.Owner) }) {
			add(Owner{route.Kind, route.NamespacedName})
		}
	}
	return warnings
}

// invalidEntries describes the entries in the annotation of the namespace that are not
// valid, or returns "".
func (p *permittedHostnames) invalidEntries(namespace string) string {
	invalid := p.byNamespace[namespace].Invalid
	if len(invalid) == 0 {
		return ""
	}
	return fmt.Sprintf("The annotation %s of namespace %q has entries that are not valid and permit nothing: %s. Use DNS names in lower case, wildcards such as *.example.com, or *.",
		hostnames.Annotation, namespace, describeHostnameList(invalid, message.MaxSize/2))
}
