package tunnel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestDesiredStateFollowsTheSettings(t *testing.T) {
	options := tunnel.Options{ControllerName: "example.com/c", ClusterUID: "uid", ClusterID: "prod"}
	configuration := &provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:404"}}}
	request := func(spec v1alpha1.TunnelConfigurationSpec) tunnel.Request {
		return tunnel.Request{
			Gateway: types.NamespacedName{Namespace: "infra", Name: "web"}, AccountID: "account",
			Settings: &settings.Settings{Spec: spec}, Configuration: configuration, Hash: configuration.Hash(),
		}
	}
	want := func(change func(*tunnel.Desired)) *tunnel.Desired {
		d := &tunnel.Desired{
			Spec: v1alpha1.TunnelSpec{
				Gateway: v1alpha1.GatewayReference{Namespace: "infra", Name: "web"}, ControllerName: "example.com/c", ClusterUID: "uid",
				AccountID: "account", Name: "prod.infra.web", DeletionPolicy: v1alpha1.DeletionPolicyDelete,
			},
			DataPlane: v1alpha1.DataPlaneIngressRules, Configuration: configuration, ConfigurationDataPlane: v1alpha1.DataPlaneIngressRules,
			Hash: configuration.Hash(), RunConnectors: true,
			Updates: tunnel.UpdateLimit{Burst: 20, Interval: 5 * time.Second}, Revocations: tunnel.UpdateLimit{Burst: 10, Interval: 5 * time.Second},
		}
		change(d)
		return d
	}
	adopting := v1alpha1.TunnelConfigurationSpec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "id", Takeover: ptr.To(true)}}}
	overHTTP2 := v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{Protocol: ptr.To(v1alpha1.ProtocolHTTP2), Enabled: ptr.To(false)}}
	for name, test := range map[string]struct {
		spec   v1alpha1.TunnelConfigurationSpec
		change func(*tunnel.Request)
		want   *tunnel.Desired
	}{
		"the defaults": {want: want(func(*tunnel.Desired) {})},
		"a Secret in the settings": {
			change: func(r *tunnel.Request) {
				r.Credentials = &v1alpha1.SecretKeyReference{Name: "own"}
			},
			want: want(func(d *tunnel.Desired) {
				d.Spec.Credentials = &v1alpha1.SecretKeyReference{Name: "own"}
			}),
		},
		"an existing tunnel is retained": {
			spec: adopting,
			want: want(func(d *tunnel.Desired) {
				d.Spec.Existing, d.Spec.DeletionPolicy = &v1alpha1.AdoptedTunnel{ID: "id", Takeover: true}, v1alpha1.DeletionPolicyRetain
			}),
		},
		"gRPC needs HTTP/2": {
			change: func(r *tunnel.Request) { r.ServesGRPC = true },
			want:   want(func(d *tunnel.Desired) { d.NeedsHTTP2 = true }),
		},
		"gRPC with an explicit protocol": {
			spec:   overHTTP2,
			change: func(r *tunnel.Request) { r.ServesGRPC = true },
			want:   want(func(d *tunnel.Desired) { d.RunConnectors = false }),
		},
		"Envoy": {
			spec:   v1alpha1.TunnelConfigurationSpec{DataPlane: ptr.To(v1alpha1.DataPlaneEnvoy)},
			change: func(r *tunnel.Request) { r.ConfigurationDataPlane, r.Hostnames = v1alpha1.DataPlaneEnvoy, 7 },
			want: want(func(d *tunnel.Desired) {
				d.DataPlane, d.ConfigurationDataPlane, d.Hostnames = v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneEnvoy, 7
			}),
		},
		"a limit on the writes": {
			spec: v1alpha1.TunnelConfigurationSpec{Limits: &v1alpha1.Limits{ConfigurationUpdates: &v1alpha1.ConfigurationUpdates{Burst: ptr.To[int32](5), Interval: ptr.To[v1alpha1.Duration]("1m")}}},
			want: want(func(d *tunnel.Desired) { d.Updates = tunnel.UpdateLimit{Burst: 5, Interval: time.Minute} }),
		},
		"a Gateway that is not accepted": {
			change: func(r *tunnel.Request) {
				r.Configuration, r.Hash, r.Other = nil, "", &tunnel.OtherDataPlane{Configuration: configuration}
			},
			want: want(func(d *tunnel.Desired) { d.Configuration, d.Hash = nil, "" }),
		},
		"settings that are not valid": {change: func(r *tunnel.Request) { r.Settings = nil }},
		"no account":                  {change: func(r *tunnel.Request) { r.AccountID = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(test.spec)
			if test.change != nil {
				test.change(&r)
			}
			if diff := cmp.Diff(test.want, tunnel.NewDesired(options, r)); diff != "" {
				t.Errorf("the desired state differs (-want +got):\n%s", diff)
			}
		})
	}
}
