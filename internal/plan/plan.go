// Package plan shows what the controller would do with manifests, or with what
// a cluster holds, if its pushes succeed: the same loading and the same
// decisions, without a tunnel and without a write. How it is printed stands in
// table.go.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Plan is what would be done. Its JSON form is a contract.
type Plan struct {
	Gateways []Gateway `json:"gateways"`
	Statuses []Status  `json:"statuses"`

	// left says why the controller does not serve a Gateway that exists.
	left map[types.NamespacedName]string
	// ending are the Gateways of ours that are being deleted.
	ending []types.NamespacedName
	strays strays
}

// Gateway is the effective hostname table of one Gateway, and the document for
// its tunnel.
type Gateway struct {
	Namespace            string     `json:"namespace"`
	Name                 string     `json:"name"`
	AttachedListenerSets int32      `json:"attachedListenerSets"`
	Listeners            []Listener `json:"listeners"`
	// Config is what is sent to the API, or nil when the Gateway is not
	// accepted: then nothing is.
	Config *provider.Configuration `json:"config"`
	// Diff is what [Plan.Compare] found out; nil before, and when that failed.
	Diff *Diff `json:"diff,omitempty"`

	result     *gateway.Result
	record     state.Record
	marks      map[string]string // the annotations
	controller gatewayv1.GatewayController
	shared     string                 // which hostnames other Gateways serve too
	about      map[gateway.Owner]bool // whose statuses the decision is part of
}

// Listener is a row of the table; those of ListenerSets that are not allowed
// come last.
type Listener struct {
	Owner          Owner  `json:"owner"`
	Name           string `json:"name"`
	Hostname       string `json:"hostname"`
	Port           int32  `json:"port"`
	Protocol       string `json:"protocol"`
	Accepted       bool   `json:"accepted"`
	Conflicted     bool   `json:"conflicted"`
	ResolvedRefs   bool   `json:"resolvedRefs"`
	Programmed     bool   `json:"programmed"`
	Reason         string `json:"reason"`
	AttachedRoutes int32  `json:"attachedRoutes"`
}

// Owner is an object: the Gateway or ListenerSet that declares a listener, or the
// route that a rule is of.
type Owner struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (o Owner) String() string { return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name) }

func newOwner(o gateway.Owner) Owner { return Owner{o.Kind, o.Namespace, o.Name} }

// Status is the whole status of one object.
type Status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Status     any    `json:"status"`

	conditions [][]metav1.Condition // ours
}

// Make decides about every Gateway of ours in the source. It reads no other
// clock than now.
func Make(ctx context.Context, source *state.Source, o gateway.Options, now time.Time) (*Plan, error) {
	loader := state.Loader{Reader: source, ControllerName: o.ControllerName, Certificates: source.Certificates}
	statuses, err := newStatuses(ctx, source, o.ControllerName)
	if err != nil {
		return nil, err
	}
	plan := &Plan{left: map[types.NamespacedName]string{}, strays: findStrays(source)}
	var decisions []decision
	hostnames := gateway.NewHostnames()
	for _, key := range keysOf(source.Objects, o.ControllerName) {
		loaded, err := loader.Load(ctx, key)
		if err != nil {
			return nil, err
		}
		if why := leaves(loaded); why != "" {
			plan.leave(loaded, key, why)
			if why != classless {
				statuses.addAttached(withdrawn(key, loaded))
			}
			continue
		}
		loaded.Snapshot.Now = now
		result := gateway.Build(loaded.Snapshot, o)
		hostnames.Set(key.NamespacedName, result.Hostnames())
		decisions = append(decisions, decision{key, result, loaded})
	}
	plan.Gateways = make([]Gateway, len(decisions))
	for i, d := range decisions {
		report := d.result.Report(gateway.Outcome{
			Push: d.push(), Tunnel: d.loaded.Record.Tunnel, Shared: hostnames.Shared(d.key.NamespacedName),
		})
		g := newGateway(d.key, d.result, report)
		g.about = statuses.add(d.key, report)
		g.record, g.marks, g.controller = d.loaded.Record, d.loaded.Gateway.Annotations, o.ControllerName
		plan.Gateways[i] = g
	}
	plan.Statuses = statuses.sorted()
	return plan, nil
}

// leave notes why a Gateway is not served, where there is one.
func (p *Plan) leave(loaded *state.Loaded, key state.Key, why string) {
	if loaded.Gateway == nil {
		return
	}
	p.left[key.NamespacedName] = why
	if loaded.Ours {
		p.ending = append(p.ending, key.NamespacedName)
	}
}

// classless is why a Gateway is left as it is: its class may be back in a
// moment. From all others that are not served our word is taken back.
const classless = "is of a class that does not exist"

// leaves returns why the controller does not serve a Gateway, or nothing where
// it does.
func leaves(loaded *state.Loaded) string {
	switch {
	case loaded.Gateway == nil:
		return "does not exist"
	case !loaded.Gateway.DeletionTimestamp.IsZero():
		return "is being deleted"
	case loaded.Classless:
		return classless
	case !loaded.Ours:
		return "is of a class of another controller"
	default:
		return ""
	}
}

// decision is what was decided about a Gateway, before all of them are known.
type decision struct {
	key    state.Key
	result *gateway.Result
	loaded *state.Loaded
}

// push is how the attempt ends: well, unless the Gateway is paused. What the
// controller pushed before that is in effect.
func (d *decision) push() gateway.Push {
	document := d.result.Configuration()
	switch {
	case d.loaded.Gateway.Annotations[state.PausedAnnotation] != "true" || document == nil:
		return gateway.Push{State: gateway.PushSucceeded}
	case d.loaded.Record.Hash == document.Hash():
		return gateway.Push{State: gateway.PushSucceeded, Message: state.MessagePaused}
	default:
		return gateway.Push{State: gateway.PushFailed, Message: state.MessagePaused}
	}
}

// keysOf returns the Gateways, and the parents that entries of ours name
// although they do not exist.
func keysOf(objects []client.Object, controller gatewayv1.GatewayController) []state.Key {
	exists, keys := map[state.Key]bool{}, map[state.Key]bool{}
	for _, object := range objects {
		switch o := object.(type) {
		case *gatewayv1.Gateway:
			keys[state.GatewayKey(o.Namespace, o.Name)] = true
		case *gatewayv1.ListenerSet:
			exists[state.Key{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(o)}] = true
		}
	}
	for _, object := range objects {
		for _, parent := range state.RouteEntries(object, controller) {
			if !exists[parent] {
				keys[parent] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(keys), func(a, b state.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// withdrawn takes back our entries in routes, as the controller does. Sets of a
// Gateway that is not ours are left alone: nobody can tell who spoke about them.
func withdrawn(key state.Key, loaded *state.Loaded) gateway.Report {
	report := gateway.Withdraw(key, loaded.Snapshot)
	if !loaded.Ours {
		report.ListenerSets = nil
	}
	return report
}

func newGateway(key state.Key, result *gateway.Result, report gateway.Report) Gateway {
	conditions := map[gateway.Owner]map[gatewayv1.SectionName][]metav1.Condition{key: {}}
	for _, l := range report.Gateway.Listeners {
		conditions[key][l.Name] = l.Conditions
	}
	for _, set := range report.ListenerSets {
		owner := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: set.NamespacedName}
		conditions[owner] = map[gatewayv1.SectionName][]metav1.Condition{}
		for _, entry := range set.Status.Listeners {
			conditions[owner][entry.Name] = entry.Conditions
		}
	}
	g := Gateway{
		Namespace: key.Namespace, Name: key.Name,
		AttachedListenerSets: result.AttachedListenerSets(),
		Listeners:            make([]Listener, len(result.Listeners)),
		Config:               result.Configuration(),
		result:               result,
	}
	if c := meta.FindStatusCondition(report.Gateway.Conditions, gateway.TypeHostnameShared); c != nil {
		g.shared = c.Message
	}
	for i, l := range result.Listeners {
		g.Listeners[i] = newListener(l, conditions[l.Owner][l.Spec.Name])
	}
	return g
}

// kinds are the types of our conditions, in the order in which a person reads
// them.
var kinds = []string{
	string(gatewayv1.ListenerConditionConflicted),
	string(gatewayv1.GatewayConditionAccepted),
	string(gatewayv1.ListenerConditionResolvedRefs),
	string(gatewayv1.RouteConditionPartiallyInvalid),
	gateway.TypeHostnameShared,
	string(gatewayv1.GatewayConditionProgrammed),
	string(gatewayv1.GatewayClassConditionStatusSupportedVersion),
}

// firstBad returns the first condition that is not in its good state, or nil.
func firstBad(conditions []metav1.Condition) *metav1.Condition {
	for _, kind := range kinds {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != gateway.GoodStatus(kind) {
			return c
		}
	}
	return nil
}

func newListener(l *gateway.Listener, conditions []metav1.Condition) Listener {
	listener := Listener{
		Owner:    newOwner(l.Owner),
		Name:     string(l.Spec.Name),
		Hostname: l.Hostname(),
		Port:     l.Spec.Port,
		Protocol: string(l.Spec.Protocol),

		Accepted:       meta.IsStatusConditionTrue(conditions, string(gatewayv1.ListenerConditionAccepted)),
		Conflicted:     meta.IsStatusConditionTrue(conditions, string(gatewayv1.ListenerConditionConflicted)),
		ResolvedRefs:   meta.IsStatusConditionTrue(conditions, string(gatewayv1.ListenerConditionResolvedRefs)),
		Programmed:     meta.IsStatusConditionTrue(conditions, string(gatewayv1.ListenerConditionProgrammed)),
		AttachedRoutes: l.AttachedRoutes,
	}
	if bad := firstBad(conditions); bad != nil {
		listener.Reason = bad.Reason
	}
	return listener
}

// Good reports whether every condition of ours is in its good state, and
// something was planned: without a Gateway of ours, and of manifests alone for
// parents that are not among them, there are no conditions that could tell.
func (p *Plan) Good() bool {
	if len(p.Gateways) == 0 || p.strays.alone && len(p.strays.parents) > 0 {
		return false
	}
	for _, status := range p.Statuses {
		if slices.ContainsFunc(status.conditions, func(c []metav1.Condition) bool { return firstBad(c) != nil }) {
			return false
		}
	}
	return true
}
