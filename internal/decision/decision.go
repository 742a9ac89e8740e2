// Package decision decides what follows from a Gateway's objects and from its Tunnel's
// record, for both data planes. The controller executes decisions, and the plan command
// prints them.
package decision

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Options are the controller settings that affect decisions.
type Options struct {
	Gateway gateway.Options
	Tunnel  tunnel.Options
	// Account is the Cloudflare account for tunnels whose GatewayClass does not configure
	// another one.
	Account credentials.Default
}

// DataPlanes returns what the data planes can express.
func DataPlanes() routing.DataPlanes {
	return routing.DataPlanes{v1alpha1.DataPlaneIngressRules: ingress.Capabilities(), v1alpha1.DataPlaneEnvoy: envoy.Capabilities()}
}

// Decision is what follows from one Gateway's objects. Nothing changes it.
type Decision struct {
	gateway types.NamespacedName
	options Options
	// first is for the data plane that the Tunnel recorded, or that the settings ask for. second
	// is for the other data plane; nil unless [tunnel.NeedsBoth].
	first, second *Plane
}

// Plane is the decision for one data plane.
type Plane struct {
	Result *gateway.Result
	// Configuration is the tunnel's desired configuration; nil if the Gateway is not
	// accepted. Hash is its hash.
	Configuration *provider.Configuration
	Hash          string
	// Excess is why a Gateway that the other data plane serves cannot change to this one; empty
	// if it can.
	Excess string
	// rendering is the table with its ingress rules, or nil.
	rendering *ingress.Rendering
}

// Decide returns the decision about the Gateway in the Snapshot. t is its Tunnel as it
// was last written or read, or nil. m is what the decisions before have left, or nil: it
// makes the decision faster, and does not affect it.
func Decide(s *gateway.Snapshot, t *v1alpha1.Tunnel, o Options, m *Memory) *Decision {
	d := &Decision{gateway: types.NamespacedName{Namespace: s.Gateway.Namespace, Name: s.Gateway.Name}, options: o}
	d.first = m.newPlane(s, tunnel.RecordedDataPlane(t), o)
	result := d.first.Result
	if result.Settings == nil || !tunnel.NeedsBoth(t, result.Settings.DataPlane()) {
		m.keep(d.first)
		return d
	}
	d.second = m.newPlane(s, result.DataPlane.Other(), o)
	m.keep(d.first, d.second)
	d.first.Excess, d.second.Excess = result.Excess(d.second.Result), d.second.Result.Excess(result)
	return d
}

// isFor reports whether the decision is for the data plane.
func (p *Plane) isFor(plane v1alpha1.DataPlane) bool { return p != nil && p.Result.DataPlane == plane }

// Has reports whether the plane's configuration has the hash. p can be nil.
func (p *Plane) Has(hash string) bool { return p != nil && p.Configuration != nil && p.Hash == hash }

// Digest returns the configuration's digest, for a Gateway in the namespace.
func (p *Plane) Digest(namespace string) *ingress.Digest { return p.rendering.Digest(namespace) }

// Plane returns the decision for the data plane in effect. A step in the tunnel's
// lifecycle can change the data plane in the Tunnel's record, so the result depends on t,
// which can be nil.
func (d *Decision) Plane(t *v1alpha1.Tunnel) *Plane {
	if d.second.isFor(tunnel.RecordedDataPlane(t)) {
		return d.second
	}
	return d.first
}

// Other returns the decision for the data plane that is not in effect. It returns nil unless the
// data plane changes, or the settings ask for the other one.
func (d *Decision) Other(t *v1alpha1.Tunnel) *Plane {
	if d.Plane(t) == d.first {
		return d.second
	}
	return d.first
}

// Envoy returns the decision for the Tunnel's Envoys, or nil if it has none.
func (d *Decision) Envoy(t *v1alpha1.Tunnel) *Plane {
	if !tunnel.UsesIdentity(t) {
		return nil
	}
	for _, p := range []*Plane{d.first, d.second} {
		if p.isFor(v1alpha1.DataPlaneEnvoy) {
			return p
		}
	}
	return nil
}

// Settings returns the Gateway's settings, or nil if they are not valid. d can be nil.
func (d *Decision) Settings() *settings.Settings {
	if d == nil {
		return nil
	}
	return d.first.Result.Settings
}

// Paused reports whether the Gateway is paused.
func (d *Decision) Paused() bool { return d.first.Result.Paused }

// Desired returns the tunnel's desired state. It returns nil if the settings are not
// valid or name no account.
func (d *Decision) Desired(t *v1alpha1.Tunnel) *tunnel.Desired {
	p, s := d.Plane(t), d.Settings()
	if s == nil {
		return nil
	}
	request := tunnel.Request{
		Gateway: d.gateway, Settings: s,
		AccountID: d.options.Account.ForSettings(s).Account, Credentials: d.options.Account.SecretReference(s),
		Configuration: p.Configuration, Hash: p.Hash, ConfigurationDataPlane: p.Result.DataPlane,
		Hostnames: len(p.Result.Hostnames()), ServesGRPC: p.Result.ServesGRPC(),
	}
	if other := d.Other(t); other != nil && other.Configuration != nil {
		request.Other = &tunnel.OtherDataPlane{Configuration: other.Configuration, Hash: other.Hash, Excess: other.Excess}
	}
	return tunnel.NewDesired(d.options.Tunnel, request)
}

// AccountProblem returns a message if no Cloudflare account is configured, or "".
func (d *Decision) AccountProblem() string {
	if s := d.Settings(); s == nil || d.options.Account.ForSettings(s).Account != "" {
		return ""
	}
	return "No Cloudflare account is configured. Start the controller with --cloudflare-account-id, or set spec.account in the GatewayClass's TunnelConfiguration."
}
