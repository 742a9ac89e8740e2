package operation

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// cluster is an API server with a Gateway, and the texts that an operation shows.
type cluster struct {
	client.WithWatch
	mu    sync.Mutex
	shown []string
	// forbidden is the verb and kind that the user may not use, such as "get Tunnel".
	forbidden string
}

func newCluster(list ...client.Object) *cluster {
	class := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName}}
	class.Name = "tunnel"
	class.Spec.ParametersRef = &gatewayv1.ParametersReference{
		Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "defaults", Namespace: new(gatewayv1.Namespace("tunnel-gateway")),
	}
	configuration := &v1alpha1.TunnelConfiguration{}
	configuration.Namespace, configuration.Name = "tunnel-gateway", "defaults"
	other := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"}}
	other.Name = "other"
	base := fake.NewClientBuilder().WithScheme(manifest.Scheme()).WithObjects(append(list, class, other, configuration)...).WithStatusSubresource(&v1alpha1.Tunnel{}).Build()
	c := &cluster{}
	c.WithWatch = interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if err := c.forbid("get", object); err != nil {
				return err
			}
			return w.Get(ctx, key, object, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := c.forbid("patch", object); err != nil {
				return err
			}
			return w.Patch(ctx, object, patch, opts...)
		},
	})
	return c
}

func (c *cluster) forbid(verb string, object client.Object) error {
	resource := "gateways"
	switch object.(type) {
	case *v1alpha1.Tunnel:
		resource = "tunnels"
	case *v1alpha1.TunnelConfiguration:
		resource = "tunnelconfigurations"
	case *gatewayv1.GatewayClass:
		resource = "gatewayclasses"
	}
	if c.forbidden != verb+" "+resource {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "shared", errors.New(`User "jane" cannot `+verb+` resource "`+resource+`"`))
}

// clusterWith returns a cluster with a serving Gateway's objects.
func clusterWith(changes ...func(*objects)) *cluster {
	f := serving(changes...)
	var list []client.Object
	if f.gateway != nil {
		list = append(list, f.gateway)
	}
	if f.tunnel != nil {
		list = append(list, f.tunnel)
	}
	return newCluster(list...)
}

func (c *cluster) show(text string) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, strings.TrimPrefix(text, "Gateway infra/shared: "))
	return func() {}
}

func (c *cluster) target() Target {
	return Target{
		Client: c, Gateway: types.NamespacedName{Namespace: "infra", Name: "shared"}, ControllerName: controllerName, ControllerNamespace: "tunnel-gateway",
	}
}

// changeTunnel changes the Tunnel and its status, as the controller does.
func (c *cluster) changeTunnel(t *testing.T, change func(*v1alpha1.Tunnel)) {
	t.Helper()
	object := &v1alpha1.Tunnel{}
	if err := c.Get(t.Context(), c.target().tunnelKey(), object); err != nil {
		t.Fatal(err)
	}
	change(object)
	status := object.Status
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	object.Status = status
	if err := c.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

type result struct {
	message string
	err     error
	took    time.Duration
}

// run runs the operation in virtual time, for at most a minute, while the controller acts.
func (c *cluster) run(ctx context.Context, o Operation, controller func()) result {
	start, done := time.Now(), make(chan result, 1)
	go func() {
		message, err := c.target().Run(ctx, o, Waiting{Timeout: time.Minute, Show: c.show})
		done <- result{message, err, time.Since(start)}
	}()
	if controller != nil {
		controller()
	}
	r := <-done
	synctest.Wait() // the watches end with the operation
	return r
}

func TestOperationWaitsUntilItIsInEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clusterWith()
		got := c.run(t.Context(), RotateToken, func() {
			for _, p := range []v1alpha1.TokenPhase{v1alpha1.TokenRotating, v1alpha1.TokenRolling, v1alpha1.TokenDisconnecting, ""} {
				<-time.After(2 * time.Second)
				c.changeTunnel(t, func(o *v1alpha1.Tunnel) {
					o.Status.Token.Phase, o.Status.Token.Requested = p, o.Annotations[v1alpha1.RotateTokenAnnotation]
				})
			}
		})
		if got.err != nil || got.message != "Gateway infra/shared token rotated: the configuration is in effect, connectors ready: 2/2" || got.took != 9*time.Second {
			t.Errorf("got %+v, want a success one second after the last change", got)
		}
		want := []string{notProcessed, "requesting a new token from Cloudflare", "rolling out the new token, connectors ready: 2/2", "disconnecting the connectors with the old token"}
		if !slices.Equal(c.shown, want) {
			t.Errorf("shown = %q, want %q", c.shown, want)
		}
	})
}

func TestPauseAndResumeChangeTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clusterWith()
		annotation := func() string {
			g := &gatewayv1.Gateway{}
			if err := c.Get(t.Context(), c.target().Gateway, g); err != nil {
				t.Fatal(err)
			}
			return g.Annotations[v1alpha1.PausedAnnotation]
		}
		setPaused := func(value bool) func() {
			return func() {
				synctest.Wait()
				c.changeTunnel(t, func(o *v1alpha1.Tunnel) { o.Spec.Paused = value })
			}
		}
		for _, step := range []struct {
			operation  Operation
			controller func()
			message    string
			annotation string
		}{
			{Resume, nil, "Gateway infra/shared is not paused", ""},
			{Pause, setPaused(true), "Gateway infra/shared paused", "true"},
			{Pause, nil, "Gateway infra/shared is already paused", "true"},
			{Resume, setPaused(false), "Gateway infra/shared resumed: the configuration is in effect, connectors ready: 2/2", ""},
		} {
			got := c.run(t.Context(), step.operation, step.controller)
			if got.err != nil || got.message != step.message || annotation() != step.annotation {
				t.Errorf("%s: %+v with the annotation %q, want %q with %q", step.operation, got, annotation(), step.message, step.annotation)
			}
		}
	})
}

func TestOperationThatDoesNotWaitOnlyRequests(t *testing.T) {
	for _, o := range []Operation{Reconcile, Pause, Resume, RotateToken} {
		c := clusterWith(func(f *objects) {
			if o == Resume {
				f.gateway.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
			}
		})
		if got := c.request(t, o); got.err != nil || got.message != "Gateway infra/shared: "+string(o)+" requested" || len(c.shown) > 0 {
			t.Errorf("%s: %+v, shown %q", o, got, c.shown)
		}
	}
}

// request requests the operation without waiting.
func (c *cluster) request(t *testing.T, o Operation) result {
	message, err := c.target().Run(t.Context(), o, Waiting{Show: c.show})
	return result{message: message, err: err}
}

const pausedMessage = "Gateway infra/shared is paused, so its token cannot be rotated; resume it first"

func TestOperationThatDoesNotComeIntoEffect(t *testing.T) {
	for name, test := range map[string]struct {
		operation  Operation
		changes    []func(*objects)
		controller func(*testing.T, *cluster)
		want       string
		took       time.Duration
	}{
		"the controller does not run": {
			Reconcile, nil, nil, "Gateway infra/shared: timed out after 1m0s: the controller has not processed the request yet. The request stays in effect", time.Minute,
		},
		"a user must act": {
			RotateToken, nil, func(t *testing.T, c *cluster) {
				synctest.Wait()
				c.changeTunnel(t, func(o *v1alpha1.Tunnel) {
					f := objects{tunnel: o}
					notReady("RotationBlocked", "The controller cannot rotate the token: connector.enabled is false.")(&f)
					o.Status.Reconciled = o.Annotations[v1alpha1.ReconcileAnnotation]
				})
			}, "Gateway infra/shared: The controller cannot rotate the token: connector.enabled is false. The request stays in effect", time.Second,
		},
		"the Gateway moves to another controller": {
			Reconcile, nil, func(t *testing.T, c *cluster) {
				synctest.Wait()
				g := &gatewayv1.Gateway{}
				if err := c.Get(t.Context(), c.target().Gateway, g); err != nil {
					t.Fatal(err)
				}
				g.Spec.GatewayClassName = "other"
				if err := c.Update(t.Context(), g); err != nil {
					t.Fatal(err)
				}
			}, `Gateway infra/shared: the request is lost: GatewayClass "other" belongs to controller example.com/other; set --controller-name to use that controller`, time.Second,
		},
		"another Gateway gets the Tunnel": {
			Reconcile, nil, func(t *testing.T, c *cluster) {
				synctest.Wait()
				c.changeTunnel(t, func(o *v1alpha1.Tunnel) { o.Spec.Gateway.Name = "other" })
			}, "Gateway infra/shared: the request is lost: Tunnel tunnel-gateway/infra.shared belongs to Gateway infra/other of controller tunnelgateway.dev/controller, so Gateway infra/shared cannot use it; see the Programmed condition of Gateway infra/shared", time.Second,
		},
		"a paused Gateway rotates no token": {RotateToken, all(paused), nil, pausedMessage, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clusterWith(test.changes...)
				got := c.run(t.Context(), test.operation, func() {
					if test.controller != nil {
						test.controller(t, c)
					}
				})
				if got.err == nil || got.err.Error() != test.want || got.took != test.took {
					t.Errorf("got %v after %s, want %s after %s", got.err, got.took, test.want, test.took)
				}
			})
		})
	}
}

func TestInterruptedOperationStaysRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := clusterWith()
		if got := c.run(ctx, Reconcile, func() { <-time.After(time.Second); cancel() }); !errors.Is(got.err, ErrStillRequested) {
			t.Errorf("got %+v, want ErrStillRequested", got)
		}
	})
}

// unusable is a Gateway on which an operation is not possible.
type unusable struct {
	changes   []func(*objects)
	forbidden string
	want      string
}

func unusableGateways() map[string]unusable {
	const yet = "Gateway infra/shared has no Tunnel in namespace tunnel-gateway yet"
	renamed := func(namespace, name string) []func(*objects) {
		return all(tunnelGone, func(f *objects) { f.gateway.Namespace, f.gateway.Name = namespace, name })
	}
	return map[string]unusable{
		"a letter is missing":               {renamed("infra", "share"), "", "Gateway infra/shared: not found; did you mean infra/share?"},
		"another namespace":                 {renamed("platform-team", "shared"), "", "Gateway infra/shared: not found; did you mean platform-team/shared?"},
		"another name":                      {renamed("infra", "internal"), "", "Gateway infra/shared: not found; Gateways of this controller: infra/internal"},
		"no Gateway":                        {all(tunnelGone, gatewayGone), "", "Gateway infra/shared: not found; no Gateway uses this controller"},
		"a class of another controller":     {all(func(f *objects) { f.gateway.Spec.GatewayClassName = "other" }), "", `Gateway infra/shared: GatewayClass "other" belongs to controller example.com/other; set --controller-name to use that controller`},
		"a missing class":                   {all(func(f *objects) { f.gateway.Spec.GatewayClassName = "none" }), "", `Gateway infra/shared: GatewayClass "none" not found`},
		"no Tunnel":                         {all(tunnelGone), "", yet + "; set --controller-namespace if the controller runs in another namespace"},
		"no Tunnel, not accepted":           {all(tunnelGone, gatewayIs("Accepted", "False", "No account.")), "", yet + ": No account"},
		"a Tunnel of another controller":    {all(func(f *objects) { f.tunnel.Spec.ControllerName = "example.com/other" }), "", "Tunnel tunnel-gateway/infra.shared belongs to Gateway infra/shared of controller example.com/other, so Gateway infra/shared cannot use it; see the Programmed condition of Gateway infra/shared"},
		"no permission to read the Gateway": {nil, "get gateways", `read Gateway infra/shared: gateways "shared" is forbidden: User "jane" cannot get resource "gateways"; docs/commands.md contains the required role`},
		"no permission to read the Tunnel":  {nil, "get tunnels", `read Tunnel tunnel-gateway/infra.shared: tunnels "shared" is forbidden: User "jane" cannot get resource "tunnels"; docs/commands.md contains the required role`},
		"no permission to annotate":         {nil, "patch tunnels", `annotate Tunnel tunnel-gateway/infra.shared: tunnels "shared" is forbidden: User "jane" cannot patch resource "tunnels"; docs/commands.md contains the required role`},
	}
}

func TestGatewayThatCannotBeUsedIsExplained(t *testing.T) {
	for name, test := range unusableGateways() {
		t.Run(name, func(t *testing.T) {
			c := clusterWith(test.changes...)
			c.forbidden = test.forbidden
			if got := c.request(t, Reconcile); got.err == nil || got.err.Error() != test.want {
				t.Errorf("error = %v, want %s", got.err, test.want)
			}
		})
	}
}

// symptoms are the message parts that the page about the commands explains.
var symptoms = []string{
	"not found; did you mean", "not found; Gateways of this controller:", "has no Tunnel in namespace", "; set --controller-name", "is forbidden: User", notProcessed,
	"the Gateway is not Accepted: ", "the Gateway is not Programmed: ", "is paused, so its token cannot be rotated", "the controller changes nothing; resume it",
	"the controller has not begun to change the data plane", "changing the data plane to ",
	"the request stays in effect", "the controller has not processed the last change to the Gateway yet", "another client changed the annotation", "another client removed its annotation",
}

func TestCommandsPageHasTheWordsOfTheMessages(t *testing.T) {
	data, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	messages := pausedMessage + ErrStillRequested.Error()
	for _, row := range append(effectRows(), waitRows()...) {
		messages += row.want.refused + row.want.lost + row.want.outstanding
	}
	for _, test := range unusableGateways() {
		messages += test.want
	}
	for _, symptom := range symptoms {
		if !strings.Contains(string(data), symptom) {
			t.Errorf("the page does not contain %q", symptom)
		}
		if !strings.Contains(messages, symptom) {
			t.Errorf("no message contains %q", symptom)
		}
	}
}
