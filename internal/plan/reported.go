package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// ReportedStatus is what the cluster says about an object of a Gateway about which no
// decision is possible, because the user may not read what the decision needs.
type ReportedStatus struct {
	// Object is a Gateway, a ListenerSet or a route.
	Object Owner `json:"object"`
	// Parent is the Gateway or ListenerSet to which the object attaches; the Gateway itself
	// for a Gateway.
	Parent Owner `json:"parent"`
	// Listener is the name of a ListenerSet's listener; empty for other objects.
	Listener string `json:"listener,omitempty"`
	// Hostnames is empty if the object is for every hostname of its parent.
	Hostnames []string `json:"hostnames"`
	// Conditions are empty if the controller has not written a status yet.
	Conditions []ReportedCondition `json:"conditions"`
	// Current reports whether the conditions are about the present version of the object,
	// with the changes from manifests.
	Current bool `json:"current"`

	conditions []metav1.Condition
	gateway    types.NamespacedName // empty if it is not known
}

// ReportedCondition is a condition in the cluster.
type ReportedCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// newReportedStatus returns the status with the conditions. generation is the object's.
func newReportedStatus(object client.Object, parent gateway.Owner, conditions []metav1.Condition) ReportedStatus {
	r := ReportedStatus{
		Object: Owner{state.KindOf(object), object.GetNamespace(), object.GetName()}, Parent: newOwner(parent),
		Hostnames: []string{}, Conditions: []ReportedCondition{}, conditions: conditions, Current: len(conditions) > 0,
	}
	for _, c := range conditions {
		r.Conditions = append(r.Conditions, ReportedCondition{c.Type, string(c.Status), c.Reason, c.Message})
		r.Current = r.Current && c.ObservedGeneration == object.GetGeneration()
	}
	return r
}

// reportedStatuses returns the statuses of all objects of undecided Gateways, sorted.
func (u *undecided) reportedStatuses() []ReportedStatus {
	var all []ReportedStatus
	if len(u.source.Gaps) == 0 {
		return nil
	}
	for _, object := range u.source.Objects {
		switch o := object.(type) {
		case *gatewayv1.Gateway:
			all = append(all, u.reportedGateway(o)...)
		case *gatewayv1.ListenerSet:
			all = append(all, u.reportedListeners(o)...)
		case *gatewayv1.HTTPRoute:
			all = append(all, u.reportedRoute(o, o.Spec.Hostnames)...)
		case *gatewayv1.GRPCRoute:
			all = append(all, u.reportedRoute(o, o.Spec.Hostnames)...)
		}
	}
	slices.SortStableFunc(all, func(a, b ReportedStatus) int {
		return cmp.Or(compareOwners(a.Object, b.Object), compareOwners(a.Parent, b.Parent))
	})
	return all
}

func (u *undecided) reportedGateway(g *gatewayv1.Gateway) []ReportedStatus {
	key := state.GatewayKey(g.Namespace, g.Name)
	if u.reason(key) == "" {
		return nil
	}
	r := newReportedStatus(g, key, g.Status.Conditions)
	r.gateway = key.NamespacedName
	for _, l := range g.Spec.Listeners {
		if l.Hostname == nil || *l.Hostname == "" {
			r.Hostnames = []string{}
			break
		}
		r.Hostnames = append(r.Hostnames, string(*l.Hostname))
	}
	return []ReportedStatus{r}
}

// reportedListeners returns a status for each listener.
func (u *undecided) reportedListeners(set *gatewayv1.ListenerSet) []ReportedStatus {
	parent, ok := state.ParentGateway(set)
	if !ok || u.reason(parent) == "" {
		return nil
	}
	var all []ReportedStatus
	for _, l := range set.Spec.Listeners {
		conditions := set.Status.Conditions
		i := slices.IndexFunc(set.Status.Listeners, func(s gatewayv1.ListenerEntryStatus) bool { return s.Name == l.Name })
		if i >= 0 && firstUnexpected(conditions) == nil {
			conditions = set.Status.Listeners[i].Conditions
		}
		r := newReportedStatus(set, parent, conditions)
		r.Listener, r.gateway = string(l.Name), parent.NamespacedName
		if l.Hostname != nil && *l.Hostname != "" {
			r.Hostnames = []string{string(*l.Hostname)}
		}
		all = append(all, r)
	}
	return all
}

// reportedRoute returns a status for each undecided parent.
func (u *undecided) reportedRoute(route client.Object, hostnames []gatewayv1.Hostname) []ReportedStatus {
	spec, status, _ := gateway.CommonRoute(route)
	var all []ReportedStatus
	seen := map[gateway.Owner]bool{}
	for _, ref := range spec.ParentRefs {
		parent, ok := gateway.OwnerOf(ref, route.GetNamespace())
		if !ok || seen[parent] || u.reason(parent) == "" {
			continue
		}
		seen[parent] = true
		entries, otherController := u.entriesFor(parent, route.GetNamespace(), status.Parents)
		if otherController {
			continue
		}
		for _, conditions := range entries {
			r := newReportedStatus(route, parent, conditions)
			r.gateway, _ = u.gatewayOf(parent)
			r.Hostnames = u.hostnamesOf(hostnames, parent)
			all = append(all, r)
		}
	}
	return all
}

// hostnamesOf returns the hostnames of a route. A route without hostnames has those of its
// parent, as far as they are known.
func (u *undecided) hostnamesOf(hostnames []gatewayv1.Hostname, parent gateway.Owner) []string {
	set := u.sets[parent.NamespacedName]
	if len(hostnames) == 0 && parent.Kind == gateway.KindListenerSet && set != nil {
		for _, l := range set.Spec.Listeners {
			if l.Hostname == nil || *l.Hostname == "" {
				return []string{}
			}
			hostnames = append(hostnames, *l.Hostname)
		}
	}
	all := make([]string, len(hostnames))
	for i, hostname := range hostnames {
		all[i] = string(hostname)
	}
	return all
}

// entriesFor returns the conditions of this controller for the parent, one empty list
// without any. It reports whether the parent belongs to another controller.
func (u *undecided) entriesFor(parent gateway.Owner, namespace string, entries []gatewayv1.RouteParentStatus) (found [][]metav1.Condition, otherController bool) {
	for _, entry := range entries {
		owner, ok := gateway.OwnerOf(entry.ParentRef, namespace)
		switch {
		case !ok || owner != parent:
		case entry.ControllerName == u.controller:
			found = append(found, entry.Conditions)
		default:
			otherController = true
		}
	}
	if len(found) > 0 {
		return found, false
	}
	return [][]metav1.Condition{nil}, otherController
}

// covers reports whether the object can be for the host.
func (r *ReportedStatus) covers(host string) bool {
	return len(r.Hostnames) == 0 || slices.ContainsFunc(r.Hostnames, func(h string) bool { return routing.Covers(h, host) })
}

// Healthy reports whether the conditions have their expected statuses and are about the
// present version of the object.
func (r *ReportedStatus) Healthy() bool {
	return r.Current && firstUnexpected(r.conditions) == nil
}

// String describes the object and its conditions.
func (r *ReportedStatus) String() string {
	text := r.Object.String()
	if r.Listener != "" {
		text += " listener " + r.Listener
	}
	if len(r.Hostnames) > 0 {
		text += fmt.Sprintf(" (%s)", Style{}.abbreviate(r.Hostnames))
	}
	if r.Parent != r.Object {
		text += " on " + r.Parent.String()
	}
	return text + ": " + r.describeConditions()
}

func (r *ReportedStatus) describeConditions() string {
	if len(r.conditions) == 0 {
		return "no status of this controller yet"
	}
	text := ""
	if c := firstUnexpected(r.conditions); c != nil {
		text = fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
	} else {
		states := make([]string, len(r.conditions))
		for i, c := range r.conditions {
			states[i] = c.Type + "=" + string(c.Status)
		}
		text = strings.Join(states, ", ")
	}
	if !r.Current {
		text += " (status of an earlier version of the object)"
	}
	return text
}

// reportedStep has the statuses in the cluster.
func reportedStep(reported []ReportedStatus) Step {
	s := Step{Kind: StepReported, Title: "Statuses in the cluster, where a decision is not possible:"}
	for i := range reported {
		s.Lines = append(s.Lines, Line{Text: reported[i].String(), Problem: !reported[i].Healthy()})
	}
	return s
}

// reportedFor returns the statuses of objects that can be for the host.
func (p *Plan) reportedFor(host string) []ReportedStatus {
	return slices.DeleteFunc(slices.Clone(p.Reported), func(r ReportedStatus) bool { return !r.covers(host) })
}

// isReported reports whether the statuses in the cluster say that a route serves the host. A
// route without hostnames does not, if its parent's are not known.
func (e *Explanation) isReported() bool {
	unhealthy := func(r ReportedStatus) bool { return !r.Healthy() }
	isRoute := func(r ReportedStatus) bool {
		return (r.Object.Kind == gateway.KindHTTPRoute || r.Object.Kind == gateway.KindGRPCRoute) && len(r.Hostnames) > 0
	}
	return slices.ContainsFunc(e.Reported, isRoute) && !slices.ContainsFunc(e.Reported, unhealthy)
}

// isIncomplete reports whether objects that the user may not read can change the plan.
func (p *Plan) isIncomplete() bool {
	return p.undecided != nil && (p.undecided.source.Incomplete(competitors...) || len(p.undecided.undecidedGateways()) > 0)
}
