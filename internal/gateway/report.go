package gateway

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Report has every status for a Snapshot's objects. The conditions have no transition
// times. Package status sets them when it compares the conditions with the current
// status.
type Report struct {
	Gateway      gatewayv1.GatewayStatus
	ListenerSets []ListenerSetStatus
	Routes       []*RouteStatus
	Policies     []PolicyStatus
	// AccessPolicies are empty while AccessPolicies cannot be read.
	AccessPolicies []AccessPolicyStatus
	// Owners are the Gateways and ListenerSets that the report covers. This controller's
	// entry in a route status is stale when its parent is one of them and the report does
	// not contain the entry.
	Owners map[Owner]bool
}

// ResetReport returns the report that resets the ListenerSet and route statuses for a
// Gateway that this controller no longer manages. owner is the Gateway, or a ListenerSet
// that no longer exists.
func ResetReport(owner Owner, s *Snapshot) Report {
	report := Report{Owners: map[Owner]bool{owner: true}}
	for _, set := range s.ListenerSets {
		owner := listenerSetOwner(set)
		report.Owners[owner] = true
		report.ListenerSets = append(report.ListenerSets, ListenerSetStatus{owner.NamespacedName, defaultListenerSetStatus(set.Generation)})
	}
	routes := newRoutes(s, nil)
	rankRoutes(routes)
	for _, route := range routes {
		status := &RouteStatus{Kind: route.Kind, NamespacedName: route.NamespacedName, Orphan: route.orphan}
		if gatewayDeleted(owner, s) && !route.hasMovedSet(s) {
			status.Orphan = nil
		}
		report.Routes = append(report.Routes, status)
	}
	for _, policy := range s.BackendTLSPolicies {
		report.Policies = append(report.Policies, PolicyStatus{NamespacedName: types.NamespacedName{Namespace: policy.Namespace, Name: policy.Name}})
	}
	report.AccessPolicies = unmanagedPolicyStatuses(s.AccessPolicies, report.Owners)
	return report
}

// defaultListenerSetStatus returns the CRD default for a ListenerSet status.
func defaultListenerSetStatus(generation int64) gatewayv1.ListenerSetStatus {
	var status gatewayv1.ListenerSetStatus
	for _, t := range []conditions.Type{conditions.TypeAccepted, conditions.TypeProgrammed} {
		c := t.New(metav1.ConditionUnknown, conditions.ReasonPending, "Waiting for controller")
		c.ObservedGeneration = generation
		status.Conditions = append(status.Conditions, c)
	}
	return status
}

// ListenerSetStatus names a ListenerSet and has its new status.
type ListenerSetStatus struct {
	types.NamespacedName
	Status gatewayv1.ListenerSetStatus
}

// RouteStatus has the entries for the Gateway and its ListenerSets in the status of one
// route. It never changes: with a [Memory], the next report has the same object if nothing about the
// route has changed.
type RouteStatus struct {
	Kind string
	types.NamespacedName
	Parents []gatewayv1.RouteParentStatus
	// Orphan is not nil if the route loses its last parent while its Gateway exists.
	Orphan *Orphan
}

// Outcome is the state of the tunnel, as far as the statuses report it.
type Outcome struct {
	// Push is the last attempt to write the tunnel configuration.
	Push Push
	// Tunnel is the tunnel of the Gateway, or empty when there is none.
	Tunnel provider.TunnelID
	// Shared are the hostnames that other Gateways also serve.
	Shared Shared
	// Connectors says whether the Gateway's connectors are ready. It is nil when the
	// controller does not run connectors.
	Connectors *Readiness
	// Envoys describes the Gateway's Envoy proxies. It is nil with ingress rules.
	Envoys *Envoys
	// DNS describes the DNS records of the hostnames. It is nil if dns.mode is Off.
	DNS *DNS
}

// Readiness says whether a Gateway's connectors are ready.
type Readiness struct {
	// Status, Reason and Message go into the ConnectorsReady condition.
	Status  metav1.ConditionStatus
	Reason  conditions.Reason
	Message string
	// Wanted is the desired number of connectors. Available counts the connectors that
	// are connected to Cloudflare's edge.
	Wanted, Available int32
}

// Report returns the status of every object, given the outcome. With a [Memory], statuses
// that have not changed share their lists with the last Report.
func (r *Result) Report(o Outcome) Report {
	onGateway, onSets := r.pushes(o)
	reports := hostnameReports{dns: r.newDNSReport(o.DNS), access: r.newAccessReport(o.Push)}
	o.Push = onGateway
	report := Report{
		Gateway: r.gatewayStatus(o, reports),
		Owners:  map[Owner]bool{gatewayOwner(r.gateway): true},
	}
	for _, set := range r.Sets {
		report.Owners[set.Owner] = true
		report.ListenerSets = append(report.ListenerSets, r.listenerSetStatus(set, onSets, reports))
	}
	report.Routes = r.routeStatuses()
	report.Policies = r.policies
	report.AccessPolicies = r.accessPolicyStatuses(reports.access)
	return report
}

// AttachedListenerSets counts the allowed and accepted ListenerSets.
func (r *Result) AttachedListenerSets() int32 {
	var n int32
	for _, set := range r.Sets {
		if r.setProblem(set) == nil {
			n++
		}
	}
	return n
}

func (r *Result) gatewayStatus(o Outcome, reports hostnameReports) gatewayv1.GatewayStatus {
	c := conditionList{generation: r.gateway.Generation}
	switch invalid := describeInvalid(r.listeners); {
	case r.Rejected != nil:
		c.set(conditions.TypeAccepted, false, r.Rejected.Reason, r.Rejected.Message)
		c.set(conditions.TypeProgrammed, false, conditions.ReasonInvalid, messageGatewayNotAccepted)
	case invalid != "":
		c.set(conditions.TypeAccepted, true, conditions.ReasonListenersNotValid, "The Gateway is accepted, but some of its listeners are not served: "+invalid+". See their conditions."+r.acceptedWarnings())
		c.setProgrammed(o.Push, r.gateway.Status.Conditions)
	default:
		c.set(conditions.TypeAccepted, true, conditions.ReasonAccepted, "The Gateway is accepted."+r.acceptedWarnings())
		c.setProgrammed(o.Push, r.gateway.Status.Conditions)
	}
	if r.client.isSet {
		c.check(conditions.TypeResolvedRefs, r.client.problem, conditions.ReasonResolvedRefs, messageResolvedRefs+r.client.warning)
	}
	c.setHostnameShared(o.Shared, r.gateway)
	if ready := o.Connectors; ready != nil {
		c.set(conditions.TypeConnectorsReady, ready.Status == metav1.ConditionTrue, ready.Reason, ready.Message)
	}
	if o.Envoys != nil {
		c.setDataPlaneReady(o.Envoys, r.Rejected == nil, r.gateway.Status.Conditions)
	}
	c.setDNS(reports.dns, reports.dns.hostnames, r.gateway.Status.Conditions)
	c.setAccess(reports.access, reports.access.hostnames, r.gateway.Status.Conditions)
	status := gatewayv1.GatewayStatus{
		Conditions:           c.list,
		AttachedListenerSets: ptr.To(r.AttachedListenerSets()),
		Listeners:            make([]gatewayv1.ListenerStatus, len(r.listeners)),
	}
	if o.Tunnel != "" {
		status.Addresses = []gatewayv1.GatewayStatusAddress{{Type: ptr.To(gatewayv1.HostnameAddressType), Value: o.Tunnel.Hostname()}}
	}
	current := ConditionsByListener(r.gateway.Status.Listeners)
	for i, l := range r.listeners {
		status.Listeners[i] = r.listenerStatus(l, r.gateway.Generation, o.Push, current[l.Spec.Name])
	}
	limitListenerMessages(status.Conditions, status.Listeners)
	return status
}

// acceptedWarnings lists an accepted Gateway's fields that have no effect, and its
// Warnings.
func (r *Result) acceptedWarnings() string {
	var warnings string
	if tls := r.gateway.Spec.TLS; tls != nil && tls.Frontend != nil {
		warnings += " The field spec.tls.frontend has no effect, because Cloudflare's edge terminates TLS with its own settings."
	}
	warnings += r.clientCertificateWarning()
	if dropped := r.Settings.Metadata.Dropped; len(dropped) > 0 {
		warnings += " " + describeItems(message.List{
			Before: "The connectors do not get the following labels and annotations from spec.infrastructure, " +
				"because connector.allowedMetadataPrefixes of the GatewayClass does not list their prefixes: ",
			After: ".", MaxSize: message.MaxSize / 2,
		}, dropped)
	}
	if v1alpha1.RequestsPause(r.gateway) && !r.Paused {
		warnings += " The annotation " + v1alpha1.PausedAnnotation + " has no effect, because the GatewayClass forbids pausing (pausing: Forbidden)."
	}
	for _, warning := range r.Warnings {
		warnings += " " + warning.Message
	}
	return warnings + r.Uncounted.describe()
}

// clientCertificateWarning says that a client certificate has no effect, or whom it
// identifies.
func (r *Result) clientCertificateWarning() string {
	switch {
	case !r.client.isSet:
		return ""
	case !r.translator.capabilities.PresentsCertificates:
		return " The field spec.tls.backend has no effect, because ingress rules present no client certificate. " + remedyEnvoy + "."
	case r.servesSeveralNamespaces():
		return " The client certificate in spec.tls.backend proves the Gateway, and not the tenant: routes of several namespaces are attached, and each of them can send requests with it."
	default:
		return ""
	}
}

// servesSeveralNamespaces reports whether routes of several namespaces are attached.
func (r *Result) servesSeveralNamespaces() bool {
	first := ""
	for _, l := range r.Listeners {
		for _, route := range l.routes {
			if first == "" {
				first = route.Namespace
			} else if route.Namespace != first {
				return true
			}
		}
	}
	return false
}

func (r *Result) listenerStatus(l *Listener, generation int64, push Push, current []metav1.Condition) gatewayv1.ListenerStatus {
	kinds := l.SupportedKinds
	if kinds == nil {
		kinds = []gatewayv1.RouteGroupKind{} // the API requires a list, even an empty one
	}
	return gatewayv1.ListenerStatus{
		Name:           l.Spec.Name,
		SupportedKinds: kinds,
		AttachedRoutes: l.AttachedRoutes,
		Conditions:     listenerConditions(l, generation, r.Rejected, push, current),
	}
}

// setProblem returns why a ListenerSet is not accepted, or nil. A set is accepted
// when at least one of its listeners is served.
func (r *Result) setProblem(set *Set) *Problem {
	switch {
	case set.NotAllowed != nil:
		return set.NotAllowed
	case r.Rejected != nil:
		return &Problem{Reason: conditions.ReasonParentNotAccepted, Message: fmt.Sprintf(
			"Gateway %s/%s is not accepted (%s): %s", r.gateway.Namespace, r.gateway.Name, r.Rejected.Reason, r.Rejected.Message)}
	case !slices.ContainsFunc(set.Listeners, (*Listener).Serves):
		return &Problem{Reason: conditions.ReasonListenersNotValid, Message: "None of the ListenerSet's listeners is served: " + describeInvalid(set.Listeners) + ". See their conditions."}
	}
	return nil
}

func (r *Result) setStatus(set *Set, push Push, reports hostnameReports) gatewayv1.ListenerSetStatus {
	push = push.forTenants()
	c := conditionList{generation: set.object.Generation}
	problem := r.setProblem(set)
	accepted := "The ListenerSet is accepted."
	if invalid := describeInvalid(set.Listeners); invalid != "" {
		accepted = "The ListenerSet is accepted, but some of its listeners are not served: " + invalid + ". See their conditions."
	}
	c.check(conditions.TypeAccepted, problem, conditions.ReasonAccepted, accepted)
	switch {
	case set.NotAllowed != nil:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonNotAllowed, messageSetNotAllowed)
	case problem == nil:
		c.setProgrammed(push, set.object.Status.Conditions)
	case problem.Reason == conditions.ReasonParentNotAccepted:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonParentNotProgrammed, problem.Message)
	default:
		c.set(conditions.TypeProgrammed, false, problem.Reason, problem.Message)
	}
	c.setDNS(reports.dns, reports.dns.byOwner[set.Owner], set.object.Status.Conditions)
	c.setAccess(reports.access, reports.access.byOwner[set.Owner], set.object.Status.Conditions)
	status := gatewayv1.ListenerSetStatus{Conditions: c.list}
	if set.NotAllowed != nil {
		return status // a namespace that the Gateway does not admit must not fill the API server
	}
	status.Listeners = make([]gatewayv1.ListenerEntryStatus, len(set.Listeners))
	current := ConditionsByListener(set.object.Status.Listeners)
	for i, l := range set.Listeners {
		status.Listeners[i] = gatewayv1.ListenerEntryStatus(r.listenerStatus(l, set.object.Generation, push, current[l.Spec.Name]))
	}
	limitListenerMessages(status.Conditions, status.Listeners)
	return status
}

// routeStatus returns the route's status in the last report if it is the same, so that no other
// package compares them. It overwrites the buffer.
func (r *Result) routeStatus(route *Route, buffer *[]gatewayv1.RouteParentStatus) *RouteStatus {
	*buffer = slices.Grow((*buffer)[:0], len(route.Parents))[:len(route.Parents)]
	for i := range route.Parents {
		r.setParentStatus(&(*buffer)[i], route, &route.Parents[i])
	}
	limitParentMessages(*buffer, len(route.parentRefs))
	if route.isReportedWith(*buffer) {
		return route.reported
	}
	status := &RouteStatus{Kind: route.Kind, NamespacedName: route.NamespacedName, Orphan: route.orphan}
	for _, parent := range *buffer {
		parent.Conditions = slices.Clone(parent.Conditions)
		status.Parents = append(status.Parents, parent)
	}
	return status
}

// setParentStatus sets the route's status on the parent, and reuses its list of conditions.
func (r *Result) setParentStatus(status *gatewayv1.RouteParentStatus, route *Route, parent *Parent) {
	c := conditionList{generation: route.generation, list: status.Conditions[:0]}
	c.check(conditions.TypeAccepted, parent.Rejected, conditions.ReasonAccepted, route.acceptedMessage(parent))
	c.check(conditions.TypeResolvedRefs, route.Unresolved, conditions.ReasonResolvedRefs, route.resolvedMessage())
	if parent.Rejected == nil && len(parent.Dropped) > 0 {
		c.set(conditions.TypePartiallyInvalid, true, conditions.ReasonUnsupportedValue, describeDropped(route.messageSize, parent.Dropped...))
	}
	if text := route.DescribeRedirectLoops(parent); text != "" {
		c.set(conditions.TypeRedirectLoop, true, conditions.ReasonRedirectLoop, text)
	}
	*status = gatewayv1.RouteParentStatus{ParentRef: parent.Ref, ControllerName: r.controller, Conditions: c.list}
}
