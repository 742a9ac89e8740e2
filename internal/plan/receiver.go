package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Receiver is a Gateway with a listener for a request's host, with what a check of the
// request compares with the cluster.
type Receiver struct {
	Trace
	DataPlane v1alpha1.DataPlane
	// SendsProxyStatus reports whether an Envoy may mark its answers with the header
	// Proxy-Status, and removes it from the backends' answers.
	SendsProxyStatus bool
	// Entry is the routing table entry that answers the request; nil if none does.
	Entry *routing.Entry
	// Tunnel is the Tunnel object in the cluster; nil if the Gateway has none.
	Tunnel *v1alpha1.Tunnel
	// Hash is the hash of the configuration that follows from the objects; empty if the
	// Gateway is not accepted.
	Hash string
	// DependsOnApplications reports whether the configuration contains the AUD tags of
	// managed applications, which the plan does not know.
	DependsOnApplications bool
	// RunsConnectors reports whether the controller runs the connectors.
	RunsConnectors bool
	// DNSMode is dns.mode of the GatewayClass, if the controller considers the host's
	// record; otherwise Off.
	DNSMode v1alpha1.DNSMode
}

// Receivers returns the Gateways with a listener for the request's host, with the traces
// of [Plan.Explain] and in their order.
func (p *Plan) Receivers(request routing.Request) []Receiver {
	var all []Receiver
	for _, t := range p.Explain(request).Traces {
		i := slices.IndexFunc(p.Gateways, func(g Gateway) bool { return g.Namespace == t.Namespace && g.Name == t.Name })
		all = append(all, p.receiver(&p.Gateways[i], t, request))
	}
	return all
}

func (p *Plan) receiver(g *Gateway, t Trace, request routing.Request) Receiver {
	r := Receiver{
		Trace: t, DataPlane: g.DataPlane, Tunnel: p.tunnelOf(g), Hash: g.decision.Plane(g.facts.Object).Hash,
		DependsOnApplications: len(g.result.Demanded.Demands) > 0,
		RunsConnectors:        g.decision.Settings() == nil || g.decision.Settings().RunsConnectors(), DNSMode: v1alpha1.DNSOff,
	}
	if t.Answer != nil && t.Answer.Entry != nil {
		received, _ := request.For(p.dataPlanes[g.DataPlane]) // an error results in no entry
		r.Entry = g.result.Trace(received).Answer
	}
	changes := r.Tunnel != nil && r.Tunnel.Status.DataPlaneChange != nil
	if table := g.result.Table; table != nil && (r.DataPlane == v1alpha1.DataPlaneEnvoy || changes) {
		r.SendsProxyStatus = table.Telemetry.SendsProxyStatus()
	}
	if g.considersRecord(request.Hostname()) {
		r.DNSMode = g.result.DNS.Mode
	}
	return r
}

// considersRecord reports whether the controller considers the DNS record of the host.
func (g *Gateway) considersRecord(host string) bool {
	excluded := hostnames.ParsePermission(strings.Join(g.result.DNS.Exclude, ","))
	return g.result.DNS.ReadsZones() && slices.ContainsFunc(g.result.DNSHostnames(), func(h gateway.DNSHostname) bool {
		return routing.Covers(h.Name, host) && !excluded.Permits(h.Name)
	})
}

// tunnelOf returns the Gateway's Tunnel as it is in the cluster, or nil.
func (p *Plan) tunnelOf(g *Gateway) *v1alpha1.Tunnel {
	object := p.tunnels.tunnel(types.NamespacedName{Namespace: g.Namespace, Name: g.Name})
	if object == nil || object.Spec.Gateway != (v1alpha1.GatewayReference{Namespace: g.Namespace, Name: g.Name}) {
		return nil
	}
	return object
}

// NoGateway returns the message that the controller serves no Gateway, or "" if the plan
// has one.
func (p *Plan) NoGateway() string {
	if len(p.Gateways) > 0 {
		return ""
	}
	return p.noGatewayMessage(Style{}, nil)
}

// Hostnames returns the hostnames that the Gateways serve, without wildcards, sorted.
func (p *Plan) Hostnames() []string {
	var all []string
	for i := range p.Gateways {
		if table := p.Gateways[i].result.Table; table != nil {
			all = append(all, servedHostnames(table)...)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(hostname string) bool { return hostname == "" || hostname[0] == '*' })
}
