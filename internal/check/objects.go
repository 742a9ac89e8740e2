package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// objectsStep reports what the statuses in the cluster say: of the Gateway, the listeners
// that receive the request, the route, the Tunnel, the connectors and the Envoys.
func (i *inspection) objectsStep() Step {
	if len(i.receivers) == 0 {
		return newStep(StepObjects, findings{{Result: Unknown, Message: "Not checked, because no Gateway is known to have a listener for the hostname."}})
	}
	return newStep(StepObjects, i.combine(func(g inspected) findings { return g.objects }))
}

// objectFindings reports on the objects of one Gateway. It names those without a problem in
// one finding.
func (i *inspection) objectFindings(ctx context.Context, r *plan.Receiver) findings {
	var f findings
	var good []string
	add := func(name string, found findings) {
		if len(found) == 0 {
			good = append(good, name)
		}
		f = append(f, found...)
	}
	add(gatewayOf(r), i.gatewayFindings(ctx, r))
	if !f.haveFailed() { // otherwise, the others only repeat it
		for n := range r.Listeners {
			if l := &r.Listeners[n]; l.ReceivesRequest {
				add(listenerName(l), i.listenerFindings(ctx, l))
			}
		}
		i.routeFindings(ctx, r, add)
	}
	if len(good) > 0 {
		var first findings
		first.add(OK, "The conditions are as expected: %s.", strings.Join(good, ", "))
		f = append(first, f...)
	}
	return append(f, i.tunnelFindings(ctx, r)...)
}

func listenerName(l *plan.MatchingListener) string {
	return fmt.Sprintf("listener %s of %s", l.Name, l.Owner)
}

func (i *inspection) gatewayFindings(ctx context.Context, r *plan.Receiver) findings {
	g, err := i.gateway(ctx, r)
	if err != nil {
		return unreadable(gatewayOf(r), err)
	}
	return object{
		name: gatewayOf(r), generation: g.Generation, conditions: g.Status.Conditions, minor: []conditions.Type{conditions.TypeResolvedRefs},
	}.findings()
}

// unreadable reports an object that the source does not contain.
func unreadable(name string, err error) findings {
	var f findings
	if apierrors.IsNotFound(err) {
		f.add(Failed, "%s does not exist.", name)
		return f
	}
	f.add(Unknown, "%s cannot be read: %v.", name, err)
	return f
}

// listenerFindings reports the conditions of a listener, and then of its ListenerSet.
func (i *inspection) listenerFindings(ctx context.Context, l *plan.MatchingListener) findings {
	owner, name := i.namespacedName(l.Owner), "Listener"+strings.TrimPrefix(listenerName(l), "listener")
	if l.Owner.Kind == gateway.KindGateway {
		g := &gatewayv1.Gateway{}
		if err := i.Source.Get(ctx, owner, g); err != nil {
			return nil // the Gateway's findings report it
		}
		n := slices.IndexFunc(g.Status.Listeners, func(s gatewayv1.ListenerStatus) bool { return string(s.Name) == l.Name })
		if n < 0 {
			return withoutStatus(name)
		}
		return object{name: name, generation: g.Generation, conditions: g.Status.Listeners[n].Conditions}.findings()
	}
	set := &gatewayv1.ListenerSet{}
	if err := i.Source.Get(ctx, owner, set); err != nil {
		return unreadable(l.Owner.String(), err)
	}
	f := object{name: l.Owner.String(), generation: set.Generation, conditions: set.Status.Conditions}.findings()
	n := slices.IndexFunc(set.Status.Listeners, func(s gatewayv1.ListenerEntryStatus) bool { return string(s.Name) == l.Name })
	if n < 0 {
		return append(f, withoutStatus(name)...)
	}
	entry := object{name: name, generation: set.Generation, conditions: set.Status.Listeners[n].Conditions}.findings()
	if len(entry) > 0 {
		return entry // the ListenerSet only repeats it
	}
	return f
}

func withoutStatus(name string) findings {
	var f findings
	f.add(Failed, "%s has no status: the controller has not processed it yet, or its Gateway does not allow it.", name)
	return f
}

func (i *inspection) namespacedName(o plan.Owner) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// routeFindings reports the conditions of the route that answers the request. The step
// decision reports the routes that match it and do not serve it.
func (i *inspection) routeFindings(ctx context.Context, r *plan.Receiver, add func(string, findings)) {
	if r.Entry == nil {
		return
	}
	var ignored []conditions.Type
	if r.Answer.Failure != "" { // the steps decision and backend report the rule's problem
		ignored = []conditions.Type{conditions.TypeAccepted, conditions.TypeResolvedRefs, conditions.TypePartiallyInvalid}
	}
	route := r.Answer.Entry.Route
	seen := map[plan.Owner]bool{}
	for _, via := range r.Answer.Via {
		if !seen[via.Owner] {
			seen[via.Owner] = true
			add(route.String(), i.parentFindings(ctx, route, via, ignored))
		}
	}
}

// parentFindings reports what the route's status says about one of its parents.
func (i *inspection) parentFindings(ctx context.Context, route plan.Owner, via plan.Attachment, ignored []conditions.Type) findings {
	o, err := i.route(ctx, route)
	if err != nil {
		return unreadable(route.String(), err)
	}
	_, status, _ := gateway.CommonRoute(o)
	name := fmt.Sprintf("%s on %s", route, via.Owner)
	var f findings
	hasEntry := false
	for _, entry := range status.Parents {
		ref := entry.ParentRef
		if entry.ControllerName != i.ControllerName || !refersTo(ref, via.Owner, o.GetNamespace()) ||
			ref.SectionName != nil && string(*ref.SectionName) != via.Listener {
			continue // for other listeners
		}
		hasEntry = true
		f = append(f, object{
			name: name, generation: o.GetGeneration(), conditions: entry.Conditions, ignored: ignored,
			minor: []conditions.Type{conditions.TypeResolvedRefs},
		}.findings()...)
	}
	if !hasEntry {
		f.add(Warning, "%s: the route's status has no entry of this controller for the parent.", name)
		f.advise("Wait a few seconds. If the problem persists, check that the parentRef and the controller's name are correct.")
	}
	return f
}

// route reads a route.
func (i *inspection) route(ctx context.Context, name plan.Owner) (client.Object, error) {
	var o client.Object = &gatewayv1.HTTPRoute{}
	if name.Kind == gateway.KindGRPCRoute {
		o = &gatewayv1.GRPCRoute{}
	}
	return o, i.Source.Get(ctx, i.namespacedName(name), o)
}

// refersTo reports whether a parentRef in the namespace names the Gateway or ListenerSet.
func refersTo(ref gatewayv1.ParentReference, owner plan.Owner, namespace string) bool {
	return string(ptr.Deref(ref.Kind, gateway.KindGateway)) == owner.Kind && string(ref.Name) == owner.Name &&
		string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))) == owner.Namespace
}
