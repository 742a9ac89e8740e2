package gateway

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// permittedHostnames contains the hostnames that each namespace may use on a Gateway. Nil
// permits every hostname.
type permittedHostnames struct {
	gatewayNamespace string
	byNamespace      map[string]namespacePermission
}

type namespacePermission struct {
	hostnames.Permission
	annotation string
	annotated  bool
}

// newPermittedHostnames reads the GatewayClass field directly, because it applies even
// when the Gateway's settings are not valid.
func newPermittedHostnames(s *Snapshot) *permittedHostnames {
	if s.ClassConfiguration == nil || s.ClassConfiguration.Spec.Hostnames == nil {
		return nil
	}
	if ptr.Deref(s.ClassConfiguration.Spec.Hostnames.From, v1alpha1.HostnamesFromAll) == v1alpha1.HostnamesFromAll {
		return nil
	}
	p := &permittedHostnames{gatewayNamespace: s.Gateway.Namespace, byNamespace: make(map[string]namespacePermission, len(s.Namespaces))}
	for name, object := range s.Namespaces {
		if object == nil {
			continue
		}
		annotation, annotated := object.Annotations[hostnames.Annotation]
		p.byNamespace[name] = namespacePermission{hostnames.ParsePermission(annotation), annotation, annotated}
	}
	return p
}

// permitsOwner reports whether the owner of a listener may use the hostname. The Gateway
// needs no permission.
func (p *permittedHostnames) permitsOwner(owner Owner, hostname string) bool {
	return p == nil || owner.Kind == KindGateway || p.byNamespace[owner.Namespace].Permits(hostname)
}

// appliesToRoute reports whether a route in the namespace needs permission on listeners
// of the owner.
func (p *permittedHostnames) appliesToRoute(namespace string, owner Owner) bool {
	return p != nil && (owner.Kind != KindGateway || namespace != p.gatewayNamespace)
}

// permitsRoute reports whether a route in the namespace may use the hostname on listeners
// of the owner. The owner must be permitted to use it too.
func (p *permittedHostnames) permitsRoute(namespace string, owner Owner, hostname string) bool {
	return !p.appliesToRoute(namespace, owner) ||
		p.byNamespace[namespace].Permits(hostname) && p.permitsOwner(owner, hostname)
}

// rejectListeners rejects ListenerSet entries whose hostname the namespace of the set may
// not use. A rejected listener claims nothing.
func (p *permittedHostnames) rejectListeners(sets []*Set) {
	if p == nil {
		return
	}
	for _, set := range sets {
		for _, l := range set.Listeners {
			if !p.permitsOwner(l.Owner, l.Hostname()) {
				l.Rejected = p.listenerProblem(l)
			}
		}
	}
}

func (p *permittedHostnames) listenerProblem(l *Listener) *Problem {
	return &Problem{Reason: conditions.ReasonHostnameNotPermitted, Message: fmt.Sprintf(
		"%s is not permitted: %s. Use a permitted hostname, or ask a cluster administrator to change the annotation.",
		describeHostname(l.Hostname()), p.describe(l.Owner.Namespace))}
}

// describe returns what a namespace may use, for a message to its owner.
func (p *permittedHostnames) describe(namespace string) string {
	permission := p.byNamespace[namespace]
	if !permission.annotated {
		return fmt.Sprintf("namespace %q has no annotation %s", namespace, hostnames.Annotation)
	}
	const limit = 200
	return fmt.Sprintf("the annotation %s of namespace %q is %q", hostnames.Annotation, namespace, message.Cut(permission.annotation, limit))
}

// addNotPermitted appends the route's hostnames on the listener that are not permitted,
// each once.
func (r *Route) addNotPermitted(found []string, l *Listener) []string {
	for hostname := range r.intersections(l.Hostname()) {
		if !r.permitted.permitsRoute(r.Namespace, l.Owner, hostname.served) && !slices.Contains(found, hostname.served) {
			found = append(found, hostname.served)
		}
	}
	return found
}

// notPermitted is the problem with a route that reaches only listeners on which it has no
// permitted hostname.
func (r *Route) notPermitted(reached []*Listener) *Problem {
	var found []string
	for _, l := range reached {
		found = r.addNotPermitted(found, l)
	}
	return r.notPermittedProblem(found)
}

func (r *Route) notPermittedProblem(found []string) *Problem {
	return routeProblem(conditions.ReasonHostnameNotPermitted,
		"The route may not use %s. Use permitted hostnames, or ask a cluster administrator to change the annotation.", r.describeNotPermitted(found))
}

// describeNotPermitted lists the hostnames with the reasons. It does not name the
// namespace of a ListenerSet, which can belong to another tenant.
func (r *Route) describeNotPermitted(found []string) string {
	var own, others []string
	for _, hostname := range found {
		if r.permitted.byNamespace[r.Namespace].Permits(hostname) {
			others = append(others, hostname)
		} else {
			own = append(own, hostname)
		}
	}
	var parts []string
	if len(own) > 0 {
		parts = append(parts, fmt.Sprintf("%s, because %s", describeHostnameList(own, r.messageSize/3), r.permitted.describe(r.Namespace)))
	}
	if len(others) > 0 {
		parts = append(parts, describeHostnameList(others, r.messageSize/3)+", because the annotation of the ListenerSet's namespace does not permit it")
	}
	return strings.Join(parts, "; and ")
}

// describeUnsupported lists the route's hostnames that are not supported, with the
// reasons.
func (r *Route) describeUnsupported() string {
	list := message.List{Separator: "; ", MaxSize: r.messageSize / 2}
	for _, hostname := range r.unsupported {
		list.Add("%q %s", hostname, hostnames.Problem(hostname))
	}
	return list.String()
}

// unsupportedHostnamesProblem reports the hostnames in a route that are not supported.
func (r *Route) unsupportedHostnamesProblem() *Problem {
	return routeProblem(conditions.ReasonUnsupportedValue,
		"The route is not served under hostnames that are not supported: %s. Use DNS names in canonical form.", r.describeUnsupported())
}

func (r *Route) acceptedMessage(parent *Parent) string {
	text := "The route is accepted."
	if leftOut := r.DescribeLeftOut(parent); leftOut != "" {
		text = fmt.Sprintf("The route is accepted, but not under every hostname: %s.", leftOut)
	}
	return strings.TrimSpace(text + " " + r.DescribeProtectedCalls())
}

// DescribeLeftOut lists the hostnames under which an accepted route is not served, with
// the reasons. It returns "" when there are none.
func (r *Route) DescribeLeftOut(parent *Parent) string {
	var leftOut []string
	if len(parent.notPermitted) > 0 {
		leftOut = append(leftOut, "it may not use "+r.describeNotPermitted(parent.notPermitted))
	}
	if len(r.unsupported) > 0 {
		leftOut = append(leftOut, r.describeUnsupported())
	}
	if r.confined != "" {
		leftOut = append(leftOut, r.confined)
	}
	return strings.Join(leftOut, "; ")
}

// leftOutProblem returns why the listener, which admits the route, does not serve it
// for the host, or nil.
func (r *Route) leftOutProblem(l *Listener, host string) *Problem {
	for hostname := range r.hostnamesOnListener(l.Owner, l.Hostname()) {
		if routing.Covers(hostname.served, host) {
			return nil
		}
	}
	for hostname := range r.intersections(l.Hostname()) {
		if routing.Covers(hostname.served, host) {
			return r.notPermittedProblem([]string{hostname.served})
		}
	}
	if slices.ContainsFunc(r.unsupported, func(hostname string) bool { return routing.Covers(hostname, host) }) {
		return r.unsupportedHostnamesProblem()
	}
	return nil
}

// describeHostnameList lists at most five hostnames.
func describeHostnameList(found []string, size int) string {
	list := message.List{MaxItems: 5, More: "and %d more hostnames", MaxSize: size}
	for _, hostname := range found {
		if hostname == "" {
			list.Add("the empty hostname (every hostname)")
		} else {
			list.Add("%q", hostname)
		}
	}
	return list.String()
}
