package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

var errReset = &provider.UnavailableError{Err: errors.New("reset")}

// set changes the settings.
func (o *observed) set(change func(*v1alpha1.TunnelConfigurationSpec)) {
	o.t.Helper()
	settings := &v1alpha1.TunnelConfiguration{}
	if err := o.client.Get(o.t.Context(), state.GatewayKey("platform", "settings").NamespacedName, settings); err != nil {
		o.t.Fatal(err)
	}
	change(&settings.Spec)
	if err := o.client.Update(o.t.Context(), settings); err != nil {
		o.t.Fatal(err)
	}
}

func (o *observed) change(change func(*gatewayv1.Gateway)) {
	o.t.Helper()
	g := o.loaded().Gateway
	change(g)
	if err := o.client.Update(o.t.Context(), g); err != nil {
		o.t.Fatal(err)
	}
}

// Connectors count as wanted when they should be there: not before there is
// something to serve, and not after. (No Deployment can be made in these tests:
// the API of the test knows no NetworkPolicies.)
func TestConnectorsWanted(t *testing.T) {
	tests := map[string]struct {
		happens func(*observed)
		want    float64
	}{
		"serving, and the Deployment cannot be made": {func(o *observed) { o.pass() }, 1},
		"new and paused":       {func(o *observed) { o.pause(o.loaded().Gateway, "true") }, 0},
		"new and unauthorized": {func(o *observed) { o.cloud.Fail(fakeprovider.OpCreateTunnel, provider.ErrUnauthorized) }, 0},
		"new and not accepted": {func(o *observed) {
			o.change(func(g *gatewayv1.Gateway) { g.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}} })
		}, 0},
		"new, at a tunnel that is to be left as it is": {func(o *observed) {
			made, err := o.cloud.CreateTunnel(o.t.Context(), "theirs")
			if err != nil {
				o.t.Fatal(err)
			}
			o.cloud.SetDocument(made.ID, wants("theirs.example.com"))
			o.set(func(s *v1alpha1.TunnelConfigurationSpec) {
				s.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: string(made.ID)}}
			})
		}, 0},
		"paused without its Deployment": {func(o *observed) {
			o.pass()
			o.pause(o.loaded().Gateway, "true")
		}, 0},
		"being deleted": {func(o *observed) {
			o.pass()
			o.cloud.Fail(fakeprovider.OpDeleteTunnel, provider.ErrUnauthorized)
			if err := o.client.Delete(o.t.Context(), o.loaded().Gateway); err != nil {
				o.t.Fatal(err)
			}
		}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			o.set(func(s *v1alpha1.TunnelConfigurationSpec) { s.Connector.Enabled = ptr.To(true) })
			test.happens(o)
			o.clock = o.clock.Add(time.Second)
			o.pass()
			o.want("after the pass", map[string]float64{"connectors_wanted": test.want, "connectors_available": 0})
		})
	}
}

func TestPaused(t *testing.T) {
	o := observe(t)
	o.pass()
	o.want("before", map[string]float64{"gateway_paused": 0})
	o.pause(o.loaded().Gateway, "true")
	o.pass(time.Second)
	o.want("after", map[string]float64{"gateway_paused": 1})
}

// Of a Gateway that the controller cannot or may not report about, nobody is told
// what once was; what was counted stays.
func TestStateIsUnknown(t *testing.T) {
	for name, happens := range map[string]func(*observed){
		"its class is gone": func(o *observed) {
			class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}}
			if err := o.client.Delete(o.t.Context(), class); err != nil {
				o.t.Fatal(err)
			}
		},
		"given to another class, and not let go": func(o *observed) {
			theirs := &gatewayv1.GatewayClass{
				ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"},
			}
			if err := o.client.Create(o.t.Context(), theirs); err != nil {
				o.t.Fatal(err)
			}
			o.change(func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "theirs" })
			o.cloud.Fail(fakeprovider.OpDeleteTunnel, provider.ErrUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			o.pass()
			happens(o)
			o.pass(time.Hour)
			o.want("then", map[string]float64{
				"gateway_programmed": -1, "gateway_paused": -1, "rules": -1, "listeners programmed": -1, "pushes_total": 1,
				"oldest_change_timestamp_seconds": -1,
			})
		})
	}
}

// A change that is not pushed shows, from when it was noticed until it is.
func TestOldestChange(t *testing.T) {
	o := observe(t)
	o.pass(time.Second)
	o.want("when all is pushed", map[string]float64{"oldest_change_timestamp_seconds": -1})
	o.route()
	noticed := float64(o.clock.Unix())
	for range 10 {
		o.cloud.Fail(fakeprovider.OpConfigure, errReset)
		o.pass(time.Hour)
		o.want("while pushes fail", map[string]float64{"oldest_change_timestamp_seconds": noticed})
	}
	o.pass(time.Hour)
	o.want("when it was pushed", map[string]float64{"oldest_change_timestamp_seconds": -1})
}

// It shows while nobody has looked at it yet, too, and while a pass does.
func TestChangeThatNobodyLooksAt(t *testing.T) {
	o := observe(t)
	o.pass()
	want := map[string]float64{"oldest_change_timestamp_seconds": float64(o.clock.Unix())}
	o.observer().changes.notice(o.key)
	o.want("before a pass", want)
	o.observer().changes.take(o.key)
	o.want("in a pass", want)
	o.clock = o.clock.Add(time.Minute)
	o.observer().changes.notice(o.key)
	o.want("with another change", want)
	o.observer().changes.ended(o.key, false)
	o.want("after the pass", map[string]float64{"oldest_change_timestamp_seconds": float64(o.clock.Unix())})
	o.observer().changes.take(o.key)
	o.observer().changes.ended(o.key, false)
	o.want("after the next", map[string]float64{"oldest_change_timestamp_seconds": -1})
}

// What is noticed and changes no document waits for nothing: after a start all
// objects are.
func TestStartIsNoChange(t *testing.T) {
	o := observe(t)
	o.pass()
	before := o.reconciler.observer
	o.reconciler = o.process()
	o.reconciler.observer = before
	o.cloud.Fail(fakeprovider.OpConfiguration, errReset)
	o.pass(time.Second)
	o.want("while the API is away", map[string]float64{"oldest_change_timestamp_seconds": -1})
	o.clock = o.clock.Add(time.Hour)
	o.route()
	o.pass(time.Second)
	o.want("after a change", map[string]float64{"change_to_push_seconds": 1, "pushes_total": 2})
}

// A repair carries out nobody's change here.
func TestRepairIsNoChange(t *testing.T) {
	o := observe(t)
	o.pass()
	o.cloud.SetDocument(o.tunnelID(), wants("foreign.example.com"))
	o.clock = o.clock.Add(time.Hour)
	o.pass(time.Second)
	o.want("after it", map[string]float64{"drift_repairs_total": 1, "change_to_push_seconds": 0})
}

// What waits for a person is not late: not even when that takes days.
func TestChangeThatWaitsForAPerson(t *testing.T) {
	o := observe(t)
	o.pass()
	o.clock = o.clock.Add(time.Hour)
	for range 3 {
		o.cloud.SetDocument(o.tunnelID(), wants("foreign.example.com"))
		o.pass()
		o.clock = o.clock.Add(2 * time.Minute)
	}
	o.route()
	o.pass(time.Hour)
	o.want("in a fight", map[string]float64{
		"drift_fights_total": 1, "oldest_change_timestamp_seconds": -1, "change_to_push_seconds": 0,
	})
}

// What nobody could be told is not told by the metrics either.
func TestStatusThatCannotBeWritten(t *testing.T) {
	o := observe(t)
	o.pass()
	refuse := func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
		return errors.New("refused")
	}
	o.writer.Client = interceptor.NewClient(o.client.(client.WithWatch), interceptor.Funcs{SubResourceUpdate: refuse})
	o.route()
	o.clock = o.clock.Add(time.Second)
	if _, err := o.Reconcile(t.Context(), o.key); err == nil {
		t.Fatal("the pass succeeded")
	}
	o.want("then", map[string]float64{"pushes_total": 2, "rules": 1, "reconcile_errors_total kubernetes": 1})
}
