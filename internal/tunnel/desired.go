package tunnel

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	gatewaysettings "github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Request is what the settings and the routes of one Gateway ask for.
type Request struct {
	// Gateway is the namespace and name of the Gateway.
	Gateway types.NamespacedName
	// Paused is whether the Gateway has the annotation that stops changes.
	Paused bool
	// Settings are those of the Gateway; nil when they are not valid.
	Settings *gatewaysettings.Settings
	// AccountID is the Cloudflare account of the settings, or the controller's;
	// empty when there is none.
	AccountID string
	// Credentials name the Secret of the settings with the API token; nil for the
	// controller's own token.
	Credentials *v1alpha1.SecretKeyReference
	// Configuration is the desired configuration; nil when the Gateway is not
	// accepted.
	Configuration *provider.Configuration
	// ServesGRPC is whether a GRPCRoute is served.
	ServesGRPC bool
}

// NewDesired returns what the request asks for, or nil when the settings are not valid
// or there is no account.
func NewDesired(o Options, r Request) *Desired {
	s := r.Settings
	if s == nil || r.AccountID == "" {
		return nil
	}
	d := &Desired{
		Spec: v1alpha1.TunnelSpec{
			Gateway:        v1alpha1.GatewayReference{Namespace: r.Gateway.Namespace, Name: r.Gateway.Name},
			ControllerName: o.ControllerName, ClusterUID: o.ClusterUID,
			AccountID: r.AccountID, Name: RemoteName(o.ClusterID, r.Gateway),
			DeletionPolicy: s.DeletionPolicy(), Credentials: r.Credentials, Paused: r.Paused,
		},
		Configuration: r.Configuration,
		// The trailers of gRPC do not survive QUIC.
		NeedsHTTP2:    r.ServesGRPC && s.Protocol() == v1alpha1.ProtocolAuto,
		RunConnectors: s.RunsConnectors(), TokenRotation: s.TokenRotation(),
	}
	if id := s.ExistingTunnel(); id != "" {
		d.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: string(id), Takeover: s.Takeover()}
	}
	if r.Configuration != nil {
		d.Hash = r.Configuration.Hash()
	}
	return d
}
