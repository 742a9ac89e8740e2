package decision_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

const (
	rules = v1alpha1.DataPlaneIngressRules
	envoy = v1alpha1.DataPlaneEnvoy
)

// options have an account for all tunnels.
var options = decision.Options{
	Gateway: gateway.Options{ControllerName: "tunnelgateway.dev/controller", ClusterDomain: "cluster.local", DataPlanes: decision.DataPlanes()},
	Account: credentials.Default{Account: "account", Token: "token"},
}

// snapshot returns a Gateway with one route, whose class asks for the data plane.
func snapshot(plane v1alpha1.DataPlane) *gateway.Snapshot {
	configuration := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "settings"}}
	configuration.Spec.DataPlane = &plane
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "shared"}}
	return &gateway.Snapshot{
		Class: &gatewayv1.GatewayClass{
			ObjectMeta: metav1.ObjectMeta{Name: "tunnel"},
			Spec: gatewayv1.GatewayClassSpec{ControllerName: options.Gateway.ControllerName, ParametersRef: &gatewayv1.ParametersReference{
				Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "settings", Namespace: ptr.To(gatewayv1.Namespace("infra")),
			}},
		},
		ClassConfiguration: configuration,
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared"},
			Spec: gatewayv1.GatewaySpec{GatewayClassName: "tunnel", Listeners: []gatewayv1.Listener{{
				Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname("a.example.com")),
			}}},
		},
		HTTPRoutes: []*gatewayv1.HTTPRoute{route},
		Namespaces: map[string]*corev1.Namespace{"infra": {ObjectMeta: metav1.ObjectMeta{Name: "infra"}}},
	}
}

// recorded returns a Tunnel that records the data plane.
func recorded(plane v1alpha1.DataPlane) *v1alpha1.Tunnel {
	return &v1alpha1.Tunnel{Status: v1alpha1.TunnelStatus{DataPlane: plane}}
}

func planeOf(p *decision.Plane) v1alpha1.DataPlane {
	if p == nil {
		return ""
	}
	return p.Result.DataPlane
}

// The Tunnel's record selects the data plane, and for a new Tunnel the settings do.
func TestTheRecordSelectsThePlane(t *testing.T) {
	changing := recorded(rules)
	changing.Status.DataPlaneChange = &v1alpha1.DataPlaneChange{To: envoy, Phase: v1alpha1.DataPlaneAddingEnvoy}
	for _, tt := range []struct {
		name                       string
		settings                   v1alpha1.DataPlane
		object                     *v1alpha1.Tunnel
		plane, other, envoysServed v1alpha1.DataPlane
	}{
		{"a new Gateway", envoy, nil, envoy, "", ""},
		{"a Tunnel with ingress rules", rules, recorded(rules), rules, "", ""},
		{"a Tunnel with Envoy", envoy, recorded(envoy), envoy, "", envoy},
		{"settings that ask for Envoy", envoy, recorded(rules), rules, envoy, ""},
		{"a change to Envoy", envoy, changing, rules, envoy, envoy},
		{"a change to Envoy that is reversed", rules, changing, rules, envoy, envoy},
		{"settings that ask for ingress rules", rules, recorded(envoy), envoy, rules, envoy},
	} {
		d := decision.Decide(snapshot(tt.settings), tt.object, options, nil)
		if got := []v1alpha1.DataPlane{planeOf(d.Plane(tt.object)), planeOf(d.Other(tt.object)), planeOf(d.Envoy(tt.object))}; !cmp.Equal(got, []v1alpha1.DataPlane{tt.plane, tt.other, tt.envoysServed}) {
			t.Errorf("%s: the planes in effect, not in effect and of Envoys are %q, want %q, %q and %q", tt.name, got, tt.plane, tt.other, tt.envoysServed)
		}
	}
}

// A step that changes the record needs no new decision.
func TestARecordChangeSelectsTheOtherPlane(t *testing.T) {
	before, after := recorded(rules), recorded(envoy)
	d := decision.Decide(snapshot(envoy), before, options, nil)
	first, second := d.Desired(before), d.Desired(after)
	if first.ConfigurationDataPlane != rules || second.ConfigurationDataPlane != envoy {
		t.Errorf("the desired configurations are for %q and %q", first.ConfigurationDataPlane, second.ConfigurationDataPlane)
	}
	if first.Hash != second.Other.Hash || second.Hash != first.Other.Hash || first.Hash == second.Hash {
		t.Error("the two desired states do not exchange their configurations")
	}
}

// Decide changes neither the Snapshot nor the Tunnel.
func TestDecideChangesNothing(t *testing.T) {
	s, object := snapshot(envoy), recorded(rules)
	d := decision.Decide(s, object, options, nil)
	d.Desired(object)
	d.Outcome(object, tunnel.Outcome{}, decision.Evidence{})
	exposures := cmp.Comparer(func(a, b access.Exposure) bool { return reflect.DeepEqual(a, b) })
	maps := cmp.Exporter(func(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[byname.Map[int]]().PkgPath() })
	if diff := cmp.Diff(snapshot(envoy), s, exposures, maps); diff != "" {
		t.Errorf("the Snapshot has changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(recorded(rules), object); diff != "" {
		t.Errorf("the Tunnel has changed (-before +after):\n%s", diff)
	}
}

// The outcome for the tunnel becomes the result of the last write, unless something
// before the write prevents it.
func TestTunnelOutcomeBecomesTheWriteResult(t *testing.T) {
	rejected := snapshot(rules)
	rejected.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
	withoutAccount := options
	withoutAccount.Account = credentials.Default{}
	failed := tunnel.Outcome{State: tunnel.OutcomeFailed, Reason: conditions.ReasonFailed, Message: "message"}
	named := tunnel.Outcome{State: tunnel.OutcomeFailed, Reason: conditions.ReasonSettingsNotApplied}
	for _, tt := range []struct {
		name     string
		snapshot *gateway.Snapshot
		options  decision.Options
		outcome  tunnel.Outcome
		state    gateway.PushState
		reason   conditions.Reason
	}{
		{"the configuration is in effect", snapshot(rules), options, tunnel.Outcome{State: tunnel.OutcomeInEffect}, gateway.PushSucceeded, conditions.Reason{}},
		{"the write waits for a token", snapshot(rules), options, tunnel.Outcome{Reason: conditions.ReasonConfigurationThrottled}, gateway.PushDelayed, conditions.Reason{}},
		{"the result is not known yet", snapshot(rules), options, tunnel.Outcome{}, gateway.PushOutstanding, conditions.Reason{}},
		{"the write has failed", snapshot(rules), options, failed, gateway.PushFailed, conditions.Reason{}},
		{"the settings cannot be applied", snapshot(rules), options, named, gateway.PushFailed, conditions.ReasonSettingsNotApplied},
		{"the Gateway is not accepted", rejected, options, failed, gateway.PushOutstanding, conditions.Reason{}},
		{"no account is configured", snapshot(rules), withoutAccount, tunnel.Outcome{State: tunnel.OutcomeInEffect}, gateway.PushFailed, conditions.Reason{}},
	} {
		push := decision.Decide(tt.snapshot, nil, tt.options, nil).Outcome(nil, tt.outcome, decision.Evidence{}).Push
		if push.State != tt.state || push.Reason != tt.reason {
			t.Errorf("%s: the push is %+v, want state %d and reason %q", tt.name, push, tt.state, tt.reason)
		}
	}
}
