package tunnel

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	gatewaysettings "github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Request contains a Gateway's settings and what its routes resulted in.
type Request struct {
	Gateway types.NamespacedName
	// Settings are nil if they are not valid.
	Settings *gatewaysettings.Settings
	// AccountID is the Cloudflare account in the settings, or the controller's account;
	// empty if neither exists.
	AccountID string
	// Credentials refer to the Secret with the API token in the settings; nil for the
	// controller's token.
	Credentials *v1alpha1.SecretKeyReference
	// Configuration is the desired configuration; nil if the Gateway is not accepted.
	// Hash is its hash.
	Configuration *provider.Configuration
	Hash          string
	// ConfigurationDataPlane is the data plane that Configuration was built for; empty for
	// ingress rules. It differs from DataPlane if the Tunnel records another data plane.
	ConfigurationDataPlane v1alpha1.DataPlane
	// Hostnames counts the hostnames that the routes serve.
	Hostnames int
	// Other is the desired configuration for the data plane that is not in effect; nil
	// unless [NeedsBoth], and if the Gateway is not accepted.
	Other *OtherDataPlane
	// ServesGRPC reports whether a GRPCRoute is served.
	ServesGRPC bool
}

// NewDesired returns the desired state for the request, or nil if the settings are not
// valid or there is no account.
func NewDesired(o Options, r Request) *Desired {
	s := r.Settings
	if s == nil || r.AccountID == "" {
		return nil
	}
	limits := s.Limits()
	d := &Desired{
		Spec: v1alpha1.TunnelSpec{
			Gateway:        v1alpha1.GatewayReference{Namespace: r.Gateway.Namespace, Name: r.Gateway.Name},
			ControllerName: o.ControllerName, ClusterUID: o.ClusterUID,
			AccountID: r.AccountID, Name: RemoteName(o.ClusterID, r.Gateway),
			DeletionPolicy: s.DeletionPolicy(), Credentials: r.Credentials,
		},
		DataPlane:     s.DataPlane(),
		Configuration: r.Configuration, Hash: r.Hash, ConfigurationDataPlane: cmp.Or(r.ConfigurationDataPlane, v1alpha1.DataPlaneIngressRules),
		Hostnames: r.Hostnames,
		// gRPC trailers are lost over QUIC.
		NeedsHTTP2:    r.ServesGRPC && s.Protocol() == v1alpha1.ProtocolAuto,
		RunConnectors: s.RunsConnectors(), TokenRotation: s.TokenRotation(),
		Updates: UpdateLimit{Burst: limits.UpdateBurst, Interval: limits.UpdateInterval}, Revocations: revocationLimit,
	}
	if id := s.ExistingTunnel(); id != "" {
		d.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: string(id), Takeover: s.Takeover()}
	}
	if r.Configuration != nil {
		d.Other = r.Other
	}
	return d
}
