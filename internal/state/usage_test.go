package state_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// gatewayCreatedAt returns a Gateway that was created at the second. At 0 it has no
// creation timestamp, like a Gateway in a file.
func gatewayCreatedAt(namespace, name, class string, second int) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{}
	g.Namespace, g.Name, g.Spec.GatewayClassName = namespace, name, gatewayv1.ObjectName(class)
	if second > 0 {
		g.CreationTimestamp = metav1.NewTime(time.Unix(int64(second), 0))
	}
	return g
}

func beingDeleted(g *gatewayv1.Gateway) *gatewayv1.Gateway {
	g.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	return g
}

// tunnelOf returns a controller's Tunnel for a Gateway. The Tunnel is in the namespace in.
func tunnelOf(in, controller, namespace, name string) *v1alpha1.Tunnel {
	t := &v1alpha1.Tunnel{}
	t.Namespace, t.Name = in, controller[:4]+"."+namespace+"."+name
	t.Spec.ControllerName, t.Spec.Gateway = controller, v1alpha1.GatewayReference{Namespace: namespace, Name: name}
	return t
}

func TestLoadCountsTheTunnelsOfANamespace(t *testing.T) {
	// Load counts the older Gateways that the controller manages, and its Tunnels without a
	// managed Gateway.
	class := func(name, controller string) *gatewayv1.GatewayClass {
		c := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(controller)}}
		c.Name = name
		return c
	}
	const otherController = "example.com/controller"
	shared := gatewayCreatedAt("team", "shared", "tunnel", 50)
	for name, test := range map[string]struct {
		others          []client.Object
		older, orphaned int
	}{
		"no other object":   {nil, 0, 0},
		"an older Gateway":  {[]client.Object{gatewayCreatedAt("team", "z", "tunnel", 49)}, 1, 0},
		"a younger Gateway": {[]client.Object{gatewayCreatedAt("team", "a", "tunnel", 51)}, 0, 0},
		"a Gateway of the same second with a lower name":                 {[]client.Object{gatewayCreatedAt("team", "a", "tunnel", 50)}, 1, 0},
		"a Gateway of the same second with a higher name":                {[]client.Object{gatewayCreatedAt("team", "z", "tunnel", 50)}, 0, 0},
		"a Gateway without a creation timestamp":                         {[]client.Object{gatewayCreatedAt("team", "a", "tunnel", 0)}, 0, 0},
		"an older Gateway of another managed class":                      {[]client.Object{gatewayCreatedAt("team", "z", "second", 49)}, 1, 0},
		"an older Gateway of another controller":                         {[]client.Object{gatewayCreatedAt("team", "z", "unmanaged", 49)}, 0, 0},
		"an older Gateway without a class":                               {[]client.Object{gatewayCreatedAt("team", "z", "missing", 49)}, 0, 0},
		"an older Gateway in another namespace":                          {[]client.Object{gatewayCreatedAt("infra", "z", "tunnel", 49)}, 0, 0},
		"an older Gateway that is being deleted":                         {[]client.Object{beingDeleted(gatewayCreatedAt("team", "z", "tunnel", 49))}, 0, 0},
		"the Tunnel of the Gateway":                                      {[]client.Object{tunnelOf("gateways", controllerName, "team", "shared")}, 0, 0},
		"an older Gateway and its Tunnel":                                {[]client.Object{gatewayCreatedAt("team", "z", "tunnel", 49), tunnelOf("gateways", controllerName, "team", "z")}, 1, 0},
		"a younger Gateway and its Tunnel":                               {[]client.Object{gatewayCreatedAt("team", "a", "tunnel", 51), tunnelOf("gateways", controllerName, "team", "a")}, 0, 0},
		"a Tunnel without a Gateway":                                     {[]client.Object{tunnelOf("gateways", controllerName, "team", "gone")}, 0, 1},
		"the Tunnel of a Gateway that is being deleted":                  {[]client.Object{beingDeleted(gatewayCreatedAt("team", "z", "tunnel", 49)), tunnelOf("gateways", controllerName, "team", "z")}, 0, 1},
		"the Tunnel of a Gateway with an unmanaged class":                {[]client.Object{gatewayCreatedAt("team", "z", "unmanaged", 49), tunnelOf("gateways", controllerName, "team", "z")}, 0, 1},
		"the Tunnel of a Gateway without a class":                        {[]client.Object{gatewayCreatedAt("team", "z", "missing", 49), tunnelOf("gateways", controllerName, "team", "z")}, 0, 1},
		"a Tunnel of another controller":                                 {[]client.Object{tunnelOf("gateways", otherController, "team", "gone")}, 0, 0},
		"a Tunnel for another namespace":                                 {[]client.Object{tunnelOf("gateways", controllerName, "infra", "gone")}, 0, 0},
		"a Tunnel outside the controller's namespace":                    {[]client.Object{tunnelOf("team", controllerName, "team", "gone")}, 0, 0},
		"a Tunnel and a Gateway with the same name in another namespace": {[]client.Object{gatewayCreatedAt("infra", "z", "tunnel", 49), tunnelOf("gateways", controllerName, "team", "z")}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			all := append([]client.Object{class("tunnel", controllerName), class("second", controllerName), class("unmanaged", otherController), shared}, test.others...)
			loader := state.Loader{Reader: memory(t, all), ControllerName: controllerName, ControllerNamespace: "gateways"}
			loaded, err := loader.Load(t.Context(), state.GatewayKey("team", "shared"))
			if err != nil {
				t.Fatal(err)
			}
			if s := loaded.Snapshot; s.OlderGateways != test.older || s.OrphanedTunnels != test.orphaned {
				t.Errorf("got %d older Gateways and %d orphaned Tunnels, want %d and %d", s.OlderGateways, s.OrphanedTunnels, test.older, test.orphaned)
			}
		})
	}
}

func TestLoadReturnsErrorsOfCountingTunnels(t *testing.T) {
	// A read error must not look like a namespace without Tunnels.
	for _, kind := range []string{"*v1.GatewayClassList", "*v1.GatewayList", "*v1alpha1.TunnelList"} {
		t.Run(kind, func(t *testing.T) {
			reader := failingReader{memory(t, objects(t, clusterManifests)), func(_ client.ObjectKey, object any) bool { return fmt.Sprintf("%T", object) == kind }}
			loader := state.Loader{Reader: reader, CABundles: state.DirectCABundles{Reader: reader}, ControllerName: controllerName, ControllerNamespace: "gateways"}
			if _, err := loader.Load(t.Context(), state.GatewayKey("infra", "shared")); !errors.Is(err, errRead) {
				t.Errorf("got %v, want %v", err, errRead)
			}
		})
	}
}
