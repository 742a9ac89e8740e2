package controller

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

var gatewayResource = schema.GroupResource{Group: gatewayv1.GroupName, Resource: "gateways"}

func gatewayCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: gatewayResource.String()}}
}

// readErrors are possible errors when a Gateway is read.
var readErrors = map[string]error{
	"the object is not found": apierrors.NewNotFound(gatewayResource, "shared"),
	"404 from a proxy": &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Details: &metav1.StatusDetails{
			Name: "shared", Group: gatewayResource.Group, Kind: gatewayResource.Resource,
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Message: "404 page not found"}},
		},
	}},
	"the kind is not served": &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
		Message: "the server could not find the requested resource",
	}},
	"404 without details": &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
	}},
	"another object is not found": apierrors.NewNotFound(gatewayResource, "other"),
	"forbidden":                   apierrors.NewForbidden(gatewayResource, "shared", errors.New("not granted")),
	"timeout":                     context.DeadlineExceeded,
}

// failGateways makes Gateway reads from the API server fail with the error.
func (h *harness) failGateways(err error) {
	h.gateways.live = interceptor.NewClient(h.kube, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*gatewayv1.Gateway); ok {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

func TestOnlyTheAPIServerConfirmsThatAGatewayIsGone(t *testing.T) {
	// Only the API server's own response confirms that a Gateway does not exist.
	const unknown, gone = tunnel.GatewayUnknown, tunnel.GatewayGone
	for name, test := range map[string]struct {
		err    string // a key in readErrors
		change func(*harness)
		want   tunnel.GatewayState
	}{
		"the Gateway exists":            {"", func(*harness) {}, tunnel.GatewayExists},
		"the Gateway does not exist":    {"", func(h *harness) { h.delete(h.gateway()) }, gone},
		"404 from a proxy":              {"404 from a proxy", func(*harness) {}, unknown},
		"the kind is not served":        {"the kind is not served", func(*harness) {}, unknown},
		"404 without details":           {"404 without details", func(*harness) {}, unknown},
		"404 for another name":          {"another object is not found", func(*harness) {}, unknown},
		"the read is forbidden":         {"forbidden", func(*harness) {}, unknown},
		"the API server is unavailable": {"timeout", func(*harness) {}, unknown},
		"NotFound from the API server":  {"the object is not found", func(*harness) {}, gone},
		"the namespace is gone and Gateways are served": {"forbidden", func(h *harness) {
			h.delete(namespaceObject("infra"))
		}, gone},
		"the namespace is gone and Gateways are not served": {"the kind is not served", func(h *harness) {
			h.delete(gatewayCRD())
			h.delete(namespaceObject("infra"))
		}, unknown},
		"the Gateway and its CRD are gone": {"", func(h *harness) {
			h.delete(h.gateway())
			h.delete(gatewayCRD())
		}, unknown},
		"the Gateway is gone and its CRD is being deleted": {"", func(h *harness) {
			h.delete(h.gateway())
			h.deleteWithFinalizer(gatewayCRD())
		}, unknown},
		"the Gateway and its CRD are being deleted": {"", func(h *harness) {
			h.changeGateway(func(g *gatewayv1.Gateway) { g.Finalizers = []string{"example.com/finalizer"} })
			h.delete(h.gateway())
			h.deleteWithFinalizer(gatewayCRD())
		}, unknown},
		"the Gateway is being deleted": {"", func(h *harness) {
			h.changeGateway(func(g *gatewayv1.Gateway) { g.Finalizers = []string{"example.com/finalizer"} })
			h.delete(h.gateway())
		}, gone},
		"the class is missing": {"", func(h *harness) {
			h.delete(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}})
		}, unknown},
		"the class belongs to another controller": {"", func(h *harness) { h.moveToAnotherClass() }, tunnel.GatewayNotManaged},
		"the namespace is out of scope": {"", func(h *harness) {
			h.delete(h.gateway())
			h.gateways.inScope = func(namespace string) bool { return namespace != "infra" }
		}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			test.change(h)
			if test.err != "" {
				h.failGateways(readErrors[test.err])
			}
			if got := h.gateways.read(t.Context(), h.key.NamespacedName); got.State != test.want {
				t.Errorf("the state is %d, want %d", got.State, test.want)
			}
		})
	}
}

func TestUnreadableNamespaceIsNotGone(t *testing.T) {
	// An unreadable namespace does not count as gone.
	for name, err := range map[string]error{
		"404 from a proxy": readErrors["404 from a proxy"],
		"forbidden":        apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "infra", errors.New("not granted")),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.gateways.live = interceptor.NewClient(h.kube, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					switch object.(type) {
					case *gatewayv1.Gateway:
						return readErrors["forbidden"]
					case *corev1.Namespace:
						return err
					}
					return c.Get(ctx, key, object, options...)
				},
			})
			if got := h.gateways.read(t.Context(), h.key.NamespacedName); got.State != tunnel.GatewayUnknown {
				t.Errorf("the state is %d, want unknown", got.State)
			}
		})
	}
}

// deleteWithFinalizer adds a finalizer to an object and deletes it.
func (h *harness) deleteWithFinalizer(o client.Object) {
	h.t.Helper()
	if err := h.kube.Get(h.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		h.t.Fatal(err)
	}
	o.SetFinalizers([]string{"example.com/finalizer"})
	if err := h.kube.Update(h.t.Context(), o); err != nil {
		h.t.Fatal(err)
	}
	h.delete(o)
}

// moveToAnotherClass gives the Gateway a GatewayClass that belongs to another
// controller.
func (h *harness) moveToAnotherClass() {
	h.t.Helper()
	h.create(&gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"},
	})
	h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "other" })
}

func TestTunnelServesWhileTheGatewayStateIsUnknown(t *testing.T) {
	// The tunnel serves until the API server confirms that the Gateway is gone.
	for name, change := range map[string]func(*harness){
		"reads fail":          func(h *harness) { h.delete(h.gateway()); h.failGateways(readErrors["404 from a proxy"]) },
		"reads are forbidden": func(h *harness) { h.delete(h.gateway()); h.failGateways(readErrors["forbidden"]) },
		"the CRDs and the namespace are gone": func(h *harness) {
			h.delete(h.gateway())
			h.delete(namespaceObject("infra"))
			h.delete(gatewayCRD())
			h.failGateways(readErrors["the kind is not served"])
		},
		"the CRD is being deleted": func(h *harness) {
			h.delete(h.gateway())
			h.deleteWithFinalizer(gatewayCRD())
		},
		"the class is missing": func(h *harness) {
			h.delete(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}})
		},
		"the namespace is out of scope": func(h *harness) {
			h.delete(h.gateway())
			h.gateways.inScope = func(string) bool { return false }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newConnectorHarness(t)
			h.reconcileFor(time.Second)
			change(h)
			h.reconcileFor(20 * time.Minute)
			if len(h.cloud.LiveTunnels()) != 1 || h.deployment() == nil {
				t.Errorf("the tunnels are %+v and the Deployment is %+v, want one of each", h.cloud.LiveTunnels(), h.deployment())
			}
			h.wantReady(v1alpha1.TunnelServing, conditions.ReasonGatewayUnknown)
		})
	}
}

func TestUnknownStateRestartsTheRetirementDelay(t *testing.T) {
	// The retirement delay starts again if it is unknown in the meantime whether the
	// Gateway exists.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(20 * time.Second)
	h.failGateways(readErrors["forbidden"])
	h.reconcileFor(5 * time.Second)
	h.gateways.live = h.kube
	h.reconcileFor(25 * time.Second)
	if len(h.cloud.LiveTunnels()) != 1 {
		t.Error("the tunnel was deleted before the end of the second delay")
	}
	h.reconcileFor(20 * time.Second)
	if len(h.cloud.LiveTunnels()) != 0 {
		t.Error("the tunnel was not deleted after the delay")
	}
}

// setOtherStatus writes another controller's condition to the Gateway.
func (h *harness) setOtherStatus(condition metav1.Condition) {
	h.t.Helper()
	g := &gatewayv1.Gateway{}
	if err := h.kube.Get(h.t.Context(), h.key.NamespacedName, g); err != nil {
		h.t.Fatal(err)
	}
	condition.ObservedGeneration = g.Generation
	g.Status.Conditions = []metav1.Condition{condition}
	if err := h.kube.Status().Update(h.t.Context(), g); err != nil {
		h.t.Fatal(err)
	}
}

func TestTunnelRetiresWhenTheGatewayChangesItsClass(t *testing.T) {
	// If a Gateway moves to another controller's GatewayClass, its Tunnel retires. The
	// statuses that the other controller has written do not change.
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "set", Generation: 1}}
	set.Spec.ParentRef.Name = "shared"
	set.Spec.Listeners = []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	h := newHarness(t, set)
	h.reconcileFor(time.Second)
	h.moveToAnotherClass()
	h.reconcileOnce()
	other := metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Other", LastTransitionTime: metav1.NewTime(startTime)}
	if err := h.kube.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	h.setOtherStatus(other)
	set.Status.Conditions = []metav1.Condition{other}
	if err := h.kube.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	h.reconcileFor(time.Minute)
	if len(h.cloud.LiveTunnels()) != 0 || h.tunnelObject() != nil {
		t.Errorf("the tunnels %+v and the Tunnel %+v were not deleted", h.cloud.LiveTunnels(), h.tunnelObject())
	}
	if err := h.kube.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	if len(set.Status.Conditions) != 1 || set.Status.Conditions[0].Reason != "Other" {
		t.Errorf("the conditions of the other controller were replaced by %+v", set.Status.Conditions)
	}
}
