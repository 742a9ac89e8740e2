package plan

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// GatewaySummary is a Gateway in a list.
type GatewaySummary struct {
	Namespace, Name string
	Class           string
	// Addresses are those in the Gateway's status.
	Addresses []string
	// DataPlane describes the data plane, and its change if there is one. Change explains why
	// the change does not begin, or what it waits for; empty if there is none.
	DataPlane, Change string
	// Tunnel is nil if the cluster has no Tunnel for the Gateway.
	Tunnel *TunnelSummary
	// Problem is why the Gateway is not accepted, or why its configuration is not in effect;
	// empty if there is none.
	Problem string
	// Problems counts the objects with a problem on which the Gateway's statuses report.
	Problems int
}

// TunnelSummary is the status of a Tunnel in the cluster.
type TunnelSummary struct {
	Name, ID string
	Phase    v1alpha1.TunnelPhase
	// Connectors is for example "2/2": how many are ready and desired.
	Connectors string
	// Message is that of the condition ConnectorsReady; empty if they are ready.
	Message string
}

// Summaries returns the Gateways in the plan's order.
func (p *Plan) Summaries() []GatewaySummary {
	addresses, problems := p.addresses(), p.Problems()
	all := make([]GatewaySummary, len(p.Gateways))
	for i := range p.Gateways {
		g := &p.Gateways[i]
		all[i] = GatewaySummary{
			Namespace: g.Namespace, Name: g.Name, DataPlane: string(g.DataPlane), Tunnel: newTunnelSummary(p.tunnelOf(g)),
			Addresses: addresses[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}], Problem: g.problem(),
		}
		if g.class != nil {
			all[i].Class = g.class.Name
		}
		if c := g.DataPlaneChange; c != nil {
			all[i].DataPlane, all[i].Change = c.settingsText(g.DataPlane), cmp.Or(c.Message, c.progress)
		}
		for _, problem := range problems {
			if g.reported[gateway.Owner{Kind: problem.Owner.Kind, NamespacedName: types.NamespacedName{Namespace: problem.Owner.Namespace, Name: problem.Owner.Name}}] {
				all[i].Problems++
			}
		}
	}
	return all
}

// problem returns why the Gateway is not accepted or its configuration is not in effect, or "".
func (g *Gateway) problem() string {
	if p := g.result.Rejected; p != nil {
		return notAccepted(p.Reason.String(), p.Message)
	}
	return g.outcome.Message
}

// addresses returns the addresses in the statuses of the Gateways.
func (p *Plan) addresses() map[types.NamespacedName][]string {
	all := map[types.NamespacedName][]string{}
	for _, s := range p.Statuses {
		if status, ok := s.Status.(gatewayv1.GatewayStatus); ok {
			for _, address := range status.Addresses {
				name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
				all[name] = append(all[name], address.Value)
			}
		}
	}
	return all
}

func newTunnelSummary(t *v1alpha1.Tunnel) *TunnelSummary {
	if t == nil {
		return nil
	}
	s := &TunnelSummary{Name: t.Spec.Name, ID: t.Status.TunnelID, Phase: t.Status.Phase, Connectors: t.Status.Connectors.Summary}
	if c := conditions.TypeTunnelConnectorsReady.Find(t.Status.Conditions); c != nil && c.Status != metav1.ConditionTrue {
		s.Message = c.Message
	}
	return s
}

// UnservedGateway is a Gateway that the controller does not serve.
type UnservedGateway struct {
	Namespace, Name, Reason string
	// Terminating reports whether the Gateway is this controller's, and is being deleted.
	Terminating bool
}

// UnservedGateways returns the existing Gateways that the controller does not serve, sorted.
// [Plan.Unknown] names those about which no decision is possible.
func (p *Plan) UnservedGateways() []UnservedGateway {
	var all []UnservedGateway
	for _, name := range slices.SortedFunc(maps.Keys(p.unserved), compareNames) {
		all = append(all, UnservedGateway{name.Namespace, name.Name, p.unserved[name], slices.Contains(p.terminating, name)})
	}
	return all
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Remark is a problem that no condition reports.
type Remark struct {
	// Object is empty if the Message names the objects.
	Object  Owner
	Message string
}

// Remarks returns what a user should know besides [Plan.Problems]: warnings about Gateways
// and routes, hostnames that are not protected as demanded, and mistakes.
func (p *Plan) Remarks() []Remark {
	var all []Remark
	for i := range p.Gateways {
		all = append(all, p.Gateways[i].remarks()...)
	}
	for _, m := range p.Mistakes {
		all = append(all, Remark{m.Object, m.Message})
	}
	return all
}

func (g *Gateway) remarks() []Remark {
	owner := Owner{gateway.KindGateway, g.Namespace, g.Name}
	var all []Remark
	for _, w := range g.Warnings {
		all = append(all, Remark{owner, w.Reason + ": " + w.Message})
	}
	if p := g.result.ClientCertificateProblem(); p != nil {
		all = append(all, Remark{owner, p.Reason.String() + ": " + p.Message})
	}
	for i := range g.Access {
		if h := &g.Access[i]; h.isProblem() {
			all = append(all, Remark{owner, orStar(h.Hostname) + h.problemText()})
		}
	}
	if g.waitsForApplications() {
		all = append(all, Remark{owner, messageApplicationsNotRead})
	}
	for _, warning := range g.routeWarnings(Style{}) {
		all = append(all, Remark{Message: warning})
	}
	for _, w := range g.result.EntryWarnings() {
		all = append(all, Remark{newOwner(w.Object), w.Message})
	}
	return all
}
