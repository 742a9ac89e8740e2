package operation

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	rules = v1alpha1.DataPlaneIngressRules
	envoy = v1alpha1.DataPlaneEnvoy
)

// wantsEnvoy sets the data plane for the GatewayClass. Its default is rules.
func wantsEnvoy(f *objects) { f.class.dataPlane = envoy }

// servedBy sets the data plane in effect.
func servedBy(d v1alpha1.DataPlane) func(*objects) {
	return func(f *objects) { f.tunnel.Status.DataPlane = d }
}

// changes sets the phase of a change, and what it waits for.
func changes(to v1alpha1.DataPlane, phase v1alpha1.DataPlaneChangePhase, reason, message string) func(*objects) {
	return func(f *objects) {
		f.tunnel.Status.DataPlaneChange = &v1alpha1.DataPlaneChange{To: to, Phase: phase}
		notChanged(reason, message)(f)
	}
}

func notChanged(reason, message string) func(*objects) {
	return tunnelIs("DataPlaneApplied", "False", reason, message)
}

func waitRows() []effectRow {
	const (
		inEffect = ": the configuration is in effect, connectors ready: 2/2"
		byRules  = "is served by ingress rules" + inEffect
		byEnvoy  = "is served by Envoy" + inEffect
		excess   = "The Gateway needs 1200 ingress rules, but limits.rulesPerTunnel of the GatewayClass is 1000."
	)
	adding := changes(envoy, v1alpha1.DataPlaneAddingEnvoy, "DataPlaneChanging", "Pod x is not ready.")
	blocked := changes(envoy, v1alpha1.DataPlaneAddingEnvoy, "DataPlaneBlocked", "Stop them.")
	removing := changes(rules, v1alpha1.DataPlaneRemovingEnvoy, "DataPlaneChanging", "1 pod is left.")
	limited := all(servedBy(envoy), notReady("LimitExceeded", excess), notChanged("LimitExceeded", excess), gatewayIs("tunnelgateway.dev/DataPlaneReady", "False", excess))
	rollsOut := tunnelIs("ConnectorsReady", "False", "RollingOut", "1 of 2.")
	const addingText, notBegun = "changing the data plane to Envoy, phase AddingEnvoy: Pod x is not ready", "the controller has not begun to change the data plane to "
	return []effectRow{
		{"a Gateway that ingress rules serve", Wait, nil, effect{done: byRules}},
		{"a Gateway that Envoy serves", Wait, all(wantsEnvoy, servedBy(envoy), gatewayIs("tunnelgateway.dev/DataPlaneReady", "True", "")), effect{done: byEnvoy}},
		{"an Envoy that is not connected", Wait, all(wantsEnvoy, servedBy(envoy), gatewayIs("tunnelgateway.dev/DataPlaneReady", "False", "None.")), effect{outstanding: "the data plane is not ready: None"}},
		{"settings that the controller has not processed", Wait, all(wantsEnvoy), effect{outstanding: notBegun + "Envoy yet"}},
		{"settings that the controller has not processed on the way back", Wait, all(servedBy(envoy)), effect{outstanding: notBegun + "IngressRules yet"}},
		{"a change to Envoy", Wait, all(wantsEnvoy, adding, rollsOut, notReady("RollingOut", "1 of 2.")), effect{outstanding: addingText}},
		{"a change to Envoy that is reported on the Gateway", Wait, all(wantsEnvoy, adding, gatewayIs("tunnelgateway.dev/DataPlaneReady", "False", "Pod x.")), effect{outstanding: addingText}},
		{"a change to Envoy that the settings have reversed", Wait, all(adding), effect{outstanding: notBegun + "IngressRules yet; " + addingText}},
		{"a phase of which nothing is known", Wait, all(wantsEnvoy, changes(envoy, v1alpha1.DataPlaneSwitching, "DataPlaneChanging", "")), effect{outstanding: "changing the data plane to Envoy, phase Switching"}},
		{"a change that a user must permit", Wait, all(wantsEnvoy, blocked, notReady("DataPlaneBlocked", "Stop them.")), effect{refused: "changing the data plane to Envoy, phase AddingEnvoy: Stop them"}},
		{"a blocked change that the settings have reversed", Wait, all(blocked), effect{outstanding: notBegun + "IngressRules yet; changing the data plane to Envoy, phase AddingEnvoy: Stop them"}},
		{"ingress rules above the limits", Wait, limited, effect{refused: sentence(excess)}},
		{"ingress rules above the limits that the settings no longer ask for", Wait, append(limited, wantsEnvoy), effect{outstanding: notBegun + "Envoy yet; " + sentence(excess)}},
		{"the end of a change to ingress rules", Wait, all(removing), effect{outstanding: "changing the data plane to IngressRules, phase RemovingEnvoy: 1 pod is left"}},
		{"another change before the end of a change", Wait, all(removing, wantsEnvoy), effect{outstanding: notBegun + "Envoy yet; changing the data plane to IngressRules, phase RemovingEnvoy: 1 pod is left"}},
		{"a condition from before the last change of the spec", Wait, all(wantsEnvoy, adding, specChanged), effect{outstanding: "changing the data plane to Envoy, phase AddingEnvoy"}},
		{"a data plane that the controller has not reported", Wait, all(func(f *objects) { f.tunnel.Status.Conditions = f.tunnel.Status.Conditions[:3] }), effect{outstanding: "the controller has not reported the Tunnel's data plane yet"}},
		{"a configuration that is contested during a change", Wait, all(wantsEnvoy, adding, notApplied, notReady("Contested", "It is contested.")), effect{refused: "It is contested"}},
		{"a token that cannot be rotated during a change", Wait, all(wantsEnvoy, adding, notReady("RotationBlocked", "It is blocked.")), effect{outstanding: addingText}},
		{"a problem that prevents a change from beginning", Wait, all(wantsEnvoy, notApplied, notReady("Contested", "It is contested.")), effect{refused: "It is contested"}},
		{"a Gateway with a new generation that is waited for", Wait, all(gatewayChanged), effect{outstanding: "the controller has not processed the last change to the Gateway yet"}},
		{"a Gateway that is not accepted and is waited for", Wait, all(wantsEnvoy, gatewayIs("Accepted", "False", "No.")), effect{refused: "the Gateway is not Accepted: No"}},
		{"a class that is not accepted", Wait, all(func(f *objects) { f.class.problem = "GatewayClass a is not accepted: No" }), effect{refused: "GatewayClass a is not accepted: No"}},
		{"a paused Gateway", Wait, all(pauseRequested, paused, notReady("Paused", "It is paused.")), effect{done: byRules + ", and the Gateway is paused"}},
		{"a paused Gateway with another data plane", Wait, all(pauseRequested, paused, wantsEnvoy, notReady("Paused", "It is paused.")), effect{refused: "the data plane does not change to Envoy: " + pausedHint}},
		{"a Gateway that is paused during a change", Wait, all(pauseRequested, paused, wantsEnvoy, adding, notReady("Paused", "It is paused.")), effect{refused: "It is paused"}},
		{"a pause that the controller has not processed", Wait, all(pauseRequested), effect{outstanding: "the controller has not processed the annotation tunnelgateway.dev/paused yet"}},
		{"a Gateway without a Tunnel", Wait, all(tunnelGone, gatewayIs("Programmed", "False", "Wait.")), effect{outstanding: "the controller has not created the Tunnel yet"}},
		{"a Gateway whose Tunnel is in another namespace", Wait, all(tunnelGone), effect{outstanding: noTunnelText}},
		{"a Tunnel that has recorded nothing", Wait, all(servedBy(""), wantsEnvoy, notApplied, func(f *objects) { f.tunnel.Status.Conditions = nil }), effect{outstanding: "the configuration is not in effect yet"}},
		{"a Gateway that was deleted while it is waited for", Wait, all(gatewayGone), effect{lost: "the Gateway was deleted"}},

		{"a reconcile during a data plane change", Reconcile, all(adding), effect{outstanding: addingText}},
		{"a resume during a data plane change", Resume, all(adding), effect{outstanding: addingText}},
		{"a rotation during a data plane change", RotateToken, all(adding), effect{outstanding: addingText}},
		{"a reconcile with ingress rules above the limits", Reconcile, limited, effect{refused: sentence(excess)}},
	}
}

// changeClass changes the TunnelConfiguration for the GatewayClass.
func (c *cluster) changeClass(t *testing.T, change func(*v1alpha1.TunnelConfigurationSpec)) {
	t.Helper()
	object := &v1alpha1.TunnelConfiguration{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "tunnel-gateway", Name: "defaults"}, object); err != nil {
		t.Fatal(err)
	}
	change(&object.Spec)
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func TestWaitFollowsADataPlaneChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clusterWith()
		c.changeClass(t, func(s *v1alpha1.TunnelConfigurationSpec) { s.DataPlane = new(envoy) })
		status := func(change func(*objects)) {
			<-time.After(2 * time.Second)
			c.changeTunnel(t, func(o *v1alpha1.Tunnel) { change(&objects{tunnel: o}) })
		}
		got := c.run(t.Context(), Wait, func() {
			status(changes(envoy, v1alpha1.DataPlaneAddingEnvoy, "DataPlaneChanging", "Pod x is not ready."))
			status(changes(envoy, v1alpha1.DataPlaneSwitching, "DataPlaneChanging", "The controller writes."))
			status(func(f *objects) {
				f.tunnel.Status.DataPlaneChange = nil
				servedBy(envoy)(f)
				tunnelIs("DataPlaneApplied", metav1.ConditionTrue, "Applied", "")(f)
			})
		})
		if got.err != nil || got.message != "Gateway infra/shared is served by Envoy: the configuration is in effect, connectors ready: 2/2" || got.took != 7*time.Second {
			t.Errorf("got %+v, want a success one second after the last change", got)
		}
		want := []string{
			"the controller has not begun to change the data plane to Envoy yet", "changing the data plane to Envoy, phase AddingEnvoy: Pod x is not ready",
			"changing the data plane to Envoy, phase Switching: The controller writes",
		}
		if !slices.Equal(c.shown, want) {
			t.Errorf("shown = %q, want %q", c.shown, want)
		}
	})
}

func TestWaitThatDoesNotSucceed(t *testing.T) {
	withClass := func(change func(*v1alpha1.TunnelConfigurationSpec)) func(*testing.T, *cluster) {
		return func(t *testing.T, c *cluster) { c.changeClass(t, change) }
	}
	for name, test := range map[string]struct {
		prepare   func(*testing.T, *cluster)
		forbidden string
		want      string
		took      time.Duration
	}{
		"the controller does not run": {
			withClass(func(s *v1alpha1.TunnelConfigurationSpec) { s.DataPlane = new(envoy) }), "",
			"Gateway infra/shared: timed out after 1m0s: the controller has not begun to change the data plane to Envoy yet", time.Minute,
		},
		"a user must act": {
			func(t *testing.T, c *cluster) {
				c.changeTunnel(t, func(o *v1alpha1.Tunnel) {
					f := &objects{tunnel: o}
					servedBy(envoy)(f)
					notChanged("LimitExceeded", "The Gateway needs 2 rules. Remove one.")(f)
				})
			}, "", "Gateway infra/shared: The Gateway needs 2 rules. Remove one", time.Second,
		},
		"the class has no TunnelConfiguration": {
			func(t *testing.T, c *cluster) {
				object := &v1alpha1.TunnelConfiguration{}
				object.Namespace, object.Name = "tunnel-gateway", "defaults"
				if err := c.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}, "", "Gateway infra/shared: GatewayClass tunnel is not accepted: spec.parametersRef names TunnelConfiguration tunnel-gateway/defaults, which does not exist. Create it, or correct the reference", time.Second,
		},
		"no permission to read the class": {
			nil, "get gatewayclasses", `read GatewayClass tunnel: gatewayclasses "shared" is forbidden: User "jane" cannot get resource "gatewayclasses"; docs/commands.md contains the required role`, 0,
		},
		"no permission to read the settings": {
			nil, "get tunnelconfigurations", `read TunnelConfiguration tunnel-gateway/defaults: tunnelconfigurations "shared" is forbidden: User "jane" cannot get resource "tunnelconfigurations"; docs/commands.md contains the required role`, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clusterWith()
				if test.prepare != nil {
					test.prepare(t, c)
				}
				c.forbidden = test.forbidden
				got := c.run(t.Context(), Wait, nil)
				if got.err == nil || got.err.Error() != test.want || got.took != test.took {
					t.Errorf("got %v after %s, want %s after %s", got.err, got.took, test.want, test.took)
				}
			})
		})
	}
}

// Other operations show only what the Tunnel reports, so they do not read the settings.
func TestOnlyWaitRequiresThePermissionToReadSettings(t *testing.T) {
	for _, forbidden := range []string{"get gatewayclasses", "get tunnelconfigurations"} {
		synctest.Test(t, func(t *testing.T) {
			c := clusterWith()
			c.forbidden = forbidden
			got := c.run(t.Context(), Reconcile, func() {
				synctest.Wait()
				c.changeTunnel(t, func(o *v1alpha1.Tunnel) { o.Status.Reconciled = o.Annotations[v1alpha1.ReconcileAnnotation] })
			})
			if got.err != nil {
				t.Errorf("%s is forbidden: %v", forbidden, got.err)
			}
		})
	}
}

func TestInterruptedWaitRequestsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := clusterWith(gatewayChanged)
		got := c.run(ctx, Wait, func() { <-time.After(time.Second); cancel() })
		if !errors.Is(got.err, context.Canceled) || errors.Is(got.err, ErrStillRequested) {
			t.Errorf("got %v, want only a canceled context", got.err)
		}
	})
}
