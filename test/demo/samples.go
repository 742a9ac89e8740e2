package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// apply creates the objects in a directory, file by file in order.
func apply(ctx context.Context, c client.Client, dir string) error {
	set, err := manifest.Read([]string{dir}, manifest.Options{Namespace: "default"})
	if err != nil {
		return err
	}
	for _, object := range withDemoSettings(set.Objects) {
		err := c.Create(ctx, object)
		if _, ok := object.(*corev1.Namespace); ok && apierrors.IsAlreadyExists(err) {
			continue // other samples have the same namespace
		}
		if err != nil {
			return fmt.Errorf("create %s: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// withDemoSettings returns the objects with settings by which the controller manages the
// records in the demo's zone and the applications in its account, by which connectors become ready at once, because the
// simulated edge has no lag, and by which Envoys connect to ClusterIPs: the machine has no
// pod network, and the API server accepts no loopback address in an EndpointSlice. A class
// without settings gets its own. All settings are in the
// controller's namespace, because DNS settings have no effect elsewhere.
func withDemoSettings(objects []client.Object) []client.Object {
	var changed []client.Object
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.TunnelConfiguration:
			addDemoSettings(o)
		case *gatewayv1.GatewayClass:
			if o.Spec.ParametersRef == nil {
				configuration := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
				addDemoSettings(configuration)
				changed = append(changed, configuration)
				o.Spec.ParametersRef = &gatewayv1.ParametersReference{Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: o.Name}
			}
			o.Spec.ParametersRef.Namespace = new(gatewayv1.Namespace(cluster.ControllerNamespace))
		}
		changed = append(changed, object)
	}
	return changed
}

func addDemoSettings(c *v1alpha1.TunnelConfiguration) {
	c.Namespace = cluster.ControllerNamespace
	c.Spec.DNS, c.Spec.Access = newDNS(), newAccess()
	if c.Spec.Connector == nil {
		c.Spec.Connector = &v1alpha1.Connector{}
	}
	c.Spec.Connector.ReadyDelay = new(v1alpha1.Delay("0s"))
	if c.Spec.Connector.Envoy == nil {
		c.Spec.Connector.Envoy = &v1alpha1.EnvoyProxy{}
	}
	c.Spec.Connector.Envoy.Backends = new(v1alpha1.BackendsService)
}

// waitUntilProgrammed waits until every Gateway is programmed, its connectors are ready, its
// hostnames have records, and every ListenerSet and route has its status. The controller writes that status after it
// has pushed the configuration.
func waitUntilProgrammed(ctx context.Context, c client.Client) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		objects, err := list(ctx, c)
		if err != nil {
			return false, err
		}
		waiting := slices.ContainsFunc(objects.gateways, func(g gatewayv1.Gateway) bool {
			return !conditions.TypeProgrammed.IsTrue(g.Status.Conditions) ||
				!conditions.TypeConnectorsReady.IsTrue(g.Status.Conditions) || !conditions.TypeDNSReady.IsTrue(g.Status.Conditions)
		}) || slices.ContainsFunc(objects.sets, func(s gatewayv1.ListenerSet) bool {
			accepted := conditions.TypeAccepted.Find(s.Status.Conditions)
			return accepted == nil || accepted.Status == metav1.ConditionUnknown
		}) || slices.ContainsFunc(objects.routes, func(r gatewayv1.HTTPRoute) bool {
			return len(r.Status.Parents) < len(r.Spec.ParentRefs) || slices.ContainsFunc(r.Status.Parents, unresolved)
		})
		return len(objects.gateways) > 0 && !waiting, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the samples are programmed: %w", err)
	}
	return nil
}

// unresolved reports whether the controller has not found all Services that a route
// names.
func unresolved(parent gatewayv1.RouteParentStatus) bool {
	return !conditions.TypeResolvedRefs.IsTrue(parent.Conditions)
}

// objects are the Gateway API objects in the cluster.
type objects struct {
	gateways []gatewayv1.Gateway
	sets     []gatewayv1.ListenerSet
	routes   []gatewayv1.HTTPRoute
}

func list(ctx context.Context, c client.Client) (objects, error) {
	var gateways gatewayv1.GatewayList
	var sets gatewayv1.ListenerSetList
	var routes gatewayv1.HTTPRouteList
	err := errors.Join(c.List(ctx, &gateways), c.List(ctx, &sets), c.List(ctx, &routes))
	return objects{gateways.Items, sets.Items, routes.Items}, err
}
