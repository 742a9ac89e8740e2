// Package plan shows what the controller would do with manifests, or with the
// objects of a cluster, if its pushes succeed. It loads the same objects and makes
// the same decisions as the controller, and writes nothing.
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

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Plan is what would be done. Its JSON form is a contract.
type Plan struct {
	Gateways []Gateway `json:"gateways"`
	Statuses []Status  `json:"statuses"`

	// left says why the controller does not serve a Gateway that exists.
	left map[types.NamespacedName]string
	// ending are the managed Gateways that are being deleted.
	ending  []types.NamespacedName
	strays  strays
	tunnels *tunnels
}

// Options are the settings of the controller that a plan depends on.
type Options struct {
	gateway.Options
	// ClusterID begins the names of the tunnels. When it is empty, the plan takes
	// the ID that the Tunnels of the controller have, and without Tunnels the
	// default.
	ClusterID string
	// Account is the controller's own account, with its API token. It may be empty:
	// then the account of a Tunnel is taken for the one that is asked for.
	Account credentials.Default
}

// Gateway is the effective hostname table of one Gateway, and the configuration
// for its tunnel.
type Gateway struct {
	Namespace            string     `json:"namespace"`
	Name                 string     `json:"name"`
	AttachedListenerSets int32      `json:"attachedListenerSets"`
	Listeners            []Listener `json:"listeners"`
	// Config is the configuration that is sent to the API; nil when the Gateway is
	// not accepted: then nothing is sent.
	Config *provider.Configuration `json:"config"`
	// Diff is the result of [Plan.Compare]; nil before, and when that failed.
	Diff *Diff `json:"diff,omitempty"`

	result  *gateway.Result
	facts   tunnel.Facts
	outcome tunnel.Outcome
	shared  string                 // which hostnames other Gateways serve too
	about   map[gateway.Owner]bool // whose statuses the decision is part of
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

	conditions [][]metav1.Condition // those of the controller
}

// Make decides about every managed Gateway in the source. It reads no other
// clock than now.
func Make(ctx context.Context, source *state.Source, o Options, now time.Time) (*Plan, error) {
	loader := state.Loader{
		Reader: source, ControllerName: o.ControllerName, ControllerNamespace: o.ControllerNamespace, Certificates: source.Certificates,
	}
	statuses, err := newStatuses(ctx, source, o.Options)
	if err != nil {
		return nil, err
	}
	known, err := newTunnels(ctx, source, o, now)
	if err != nil {
		return nil, err
	}
	plan := &Plan{left: map[types.NamespacedName]string{}, strays: findStrays(source), tunnels: known}
	var decisions []decision
	hostnames := gateway.NewHostnames()
	for _, key := range keysOf(source.Objects, o.ControllerName) {
		loaded, err := loader.Load(ctx, key)
		if err != nil {
			return nil, err
		}
		if why := leaves(loaded); why != "" {
			plan.leave(loaded, key, why)
			if !loaded.ClassMissing {
				statuses.addAttached(withdrawn(key, loaded))
			}
			continue
		}
		loaded.Snapshot.Now = now
		result := gateway.Build(loaded.Snapshot, o.Options)
		hostnames.Set(key.NamespacedName, result.Hostnames())
		decisions = append(decisions, decision{key, result, loaded.Gateway})
	}
	plan.Gateways = make([]Gateway, len(decisions))
	for i, d := range decisions {
		facts := known.facts(d.gateway, d.result)
		outcome := expected(facts)
		report := d.result.Report(gateway.Outcome{Push: push(outcome), Tunnel: outcome.Tunnel, Shared: hostnames.Shared(d.key.NamespacedName)})
		g := newGateway(d.key, d.result, report)
		g.about = statuses.add(d.key, report)
		g.facts, g.outcome = facts, outcome
		plan.Gateways[i] = g
	}
	plan.Statuses = statuses.sorted()
	return plan, nil
}

// leave notes why a Gateway that exists is not served.
func (p *Plan) leave(loaded *state.Loaded, key state.Key, why string) {
	if loaded.Gateway == nil {
		return
	}
	p.left[key.NamespacedName] = why
	if loaded.Managed {
		p.ending = append(p.ending, key.NamespacedName)
	}
}

// leaves returns why the controller does not serve a Gateway, or "" when it does.
func leaves(loaded *state.Loaded) string {
	switch {
	case loaded.Gateway == nil:
		return "not found"
	case !loaded.Gateway.DeletionTimestamp.IsZero():
		return "being deleted"
	case loaded.ClassMissing:
		return fmt.Sprintf("GatewayClass %q not found", loaded.Gateway.Spec.GatewayClassName)
	case !loaded.Managed:
		return fmt.Sprintf("GatewayClass %q belongs to another controller", loaded.Gateway.Spec.GatewayClassName)
	default:
		return ""
	}
}

// decision is the decision about a Gateway, before all of them are known.
type decision struct {
	key     state.Key
	result  *gateway.Result
	gateway *gatewayv1.Gateway
}

// keysOf returns the Gateways, and the parents that do not exist although the
// status entries of the controller name them.
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
		for _, parent := range state.RouteStatusParents(object, controller) {
			if !exists[parent] {
				keys[parent] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(keys), func(a, b state.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// withdrawn removes the controller's status entries from routes, as the
// controller does. The status of the ListenerSets of a Gateway that is not managed
// stays: it does not say which controller wrote it.
func withdrawn(key state.Key, loaded *state.Loaded) gateway.Report {
	report := gateway.ResetReport(key, loaded.Snapshot)
	if !loaded.Managed {
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

// kinds are the types of the controller's conditions, in the order in which a
// person reads them.
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
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != gateway.ExpectedStatus(kind) {
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

// Good reports whether every condition of the controller is in its good state,
// and something was planned: without a managed Gateway, and with manifests alone
// for parents that are not among them, there are no conditions.
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
