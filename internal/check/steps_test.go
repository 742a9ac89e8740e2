package check_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

const shop = "https://shop.example.com/"

// situation is a cluster with a fault, or without one.
type situation struct {
	name, target string
	// replacements change the manifests before the controller writes the statuses.
	replacements []string
	// change changes the cluster afterwards.
	change func(*cluster)
	// want are the results of the steps decision, objects and backend.
	want [3]check.Result
}

// condition gives an object another condition.
func condition(list *[]metav1.Condition, t conditions.Type, s metav1.ConditionStatus, r conditions.Reason, message string) {
	setCondition(list, t.New(s, r, message))
}

func gatewayCondition(t conditions.Type, r conditions.Reason, message string) func(*cluster) {
	return func(c *cluster) {
		each(c, func(o *gatewayv1.Gateway) { condition(&o.Status.Conditions, t, metav1.ConditionFalse, r, message) })
	}
}

func tunnelCondition(t conditions.Type, r conditions.Reason, message string) func(*cluster) {
	return func(c *cluster) {
		each(c, func(o *v1alpha1.Tunnel) { condition(&o.Status.Conditions, t, metav1.ConditionFalse, r, message) })
	}
}

func changeTunnel(change func(*v1alpha1.Tunnel)) func(*cluster) {
	return func(c *cluster) { each(c, change) }
}

func changeEndpoints(change func(*discoveryv1.EndpointSlice)) func(*cluster) {
	return func(c *cluster) { each(c, change) }
}

func pod(ports ...int32) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-1", Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []corev1.Container{{Name: "web"}}
	for _, port := range ports {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: port})
	}
	return p
}

func withPod(p *corev1.Pod) func(*cluster) {
	return func(c *cluster) { c.pods = fake.NewClientBuilder().WithObjects(p).Build() }
}

const (
	ok, warning, failed, unknown = check.OK, check.Warning, check.Failed, check.Unknown
)

// TestStepsInTheCluster checks a request in each situation. The golden file contains what the
// user reads.
func TestStepsInTheCluster(t *testing.T) {
	var got bytes.Buffer
	for _, all := range [][]situation{decisions, statuses, tunnels, backends, permissions} {
		for _, s := range all {
			c := newCluster(t, s.replacements...)
			if s.change != nil {
				s.change(c)
			}
			target := s.target
			if target == "" {
				target = shop
			}
			report := c.check(t, target)
			for n, step := range report.Steps {
				if step.Result != s.want[n] {
					t.Errorf("%s: step %s is %s, want %s: %+v", s.name, step.Name, step.Result, s.want[n], step.Findings)
				}
			}
			got.WriteString("# " + s.name + "\n")
			if err := report.WriteTable(&got, check.Style{}); err != nil {
				t.Fatal(err)
			}
			got.WriteString("\n")
		}
	}
	compareGolden(t, "testdata/steps.golden.txt", got.String())
}

// withEnvoy are the replacements for the data plane Envoy.
var withEnvoy = []string{"dataPlane: IngressRules", "dataPlane: Envoy"}

var decisions = []situation{
	{name: "everything works", want: [3]check.Result{ok, ok, ok}},
	{name: "everything works, with Envoy", replacements: withEnvoy, want: [3]check.Result{ok, ok, ok}},
	{name: "gRPC", target: "grpc.example.com/echo.Echo/Say", want: [3]check.Result{ok, ok, ok}},
	{name: "a redirect, and problems with other rules", target: "shop.example.com/moved", replacements: withEnvoy, want: [3]check.Result{ok, warning, ok}},
	{name: "a filter that the data plane does not support", target: "shop.example.com/moved", want: [3]check.Result{failed, ok, unknown}},
	{name: "a redirect to itself", target: "shop.example.com/loop", replacements: withEnvoy, want: [3]check.Result{failed, warning, ok}},
	{name: "nothing serves the hostname", target: "shop.exmaple.com", want: [3]check.Result{failed, unknown, unknown}},
	{name: "no Gateway", replacements: []string{"controllerName: tunnelgateway.dev/controller\n  parametersRef", "controllerName: example.com/other\n  parametersRef"}, want: [3]check.Result{failed, unknown, unknown}},
	{name: "no route", target: "www.example.com", want: [3]check.Result{failed, ok, unknown}},
	{name: "no route for the path", replacements: []string{"{type: PathPrefix, value: /}", "{type: PathPrefix, value: /shop}"}, want: [3]check.Result{failed, ok, unknown}},
	{name: "a route with a missing parent", replacements: []string{"{kind: ListenerSet, name: shop, sectionName: web}", "{kind: ListenerSet, name: shopp}"}, want: [3]check.Result{failed, ok, unknown}},
	{name: "a route that its listener does not allow", replacements: []string{"{kind: ListenerSet, name: shop, sectionName: web}", "{kind: ListenerSet, name: shop, sectionName: wbe}"}, want: [3]check.Result{failed, ok, unknown}},
	{name: "a Gateway that is not accepted", replacements: []string{"spec:\n  gatewayClassName", "spec:\n  addresses: [{value: 192.0.2.1}]\n  gatewayClassName"}, want: [3]check.Result{failed, failed, unknown}},
	{name: "some requests get an error", target: "shop.example.com/unresolved", replacements: withEnvoy, want: [3]check.Result{ok, warning, failed}},
	{name: "an older route matches the same path", replacements: append([]string{"{type: Exact, value: /moved}", "{type: PathPrefix, value: /}"}, withEnvoy...), want: [3]check.Result{ok, warning, ok}},
	{name: "two Gateways, of which one works", replacements: withSecondGateway, want: [3]check.Result{warning, warning, warning}},
	{name: "two Gateways, of which none works", replacements: append(append([]string{}, withSecondGateway...), "backendRefs: [{name: web, port: 80}]", "backendRefs: [{name: web, port: 81}]"), want: [3]check.Result{warning, failed, failed}},
	{name: "a listener without its certificate", replacements: []string{"hostname: shop.example.com, port: 80, protocol: HTTP", "hostname: shop.example.com, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: shop-tls}]}"}, want: [3]check.Result{failed, failed, unknown}},
}

// withSecondGateway adds a Gateway without a Tunnel that serves the same hostname.
var withSecondGateway = []string{"{apiVersion: v1, kind: Namespace, metadata: {name: kube-system", `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: second, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: shop, hostname: shop.example.com, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: second, namespace: team}
spec: {parentRefs: [{name: second, namespace: infra}], rules: [{backendRefs: [{name: web, port: 8080}]}]}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system`}

var statuses = []situation{
	{name: "the controller has not processed the Gateway", change: func(c *cluster) {
		each(c, func(o *gatewayv1.Gateway) { o.Status.Conditions = nil })
	}, want: [3]check.Result{ok, failed, ok}},
	{name: "a condition for an older generation", change: func(c *cluster) {
		each(c, func(o *gatewayv1.HTTPRoute) { o.Generation++ })
	}, want: [3]check.Result{ok, warning, ok}},
	{name: "a Gateway that is not programmed", change: gatewayCondition(conditions.TypeProgrammed, conditions.ReasonPending, "The controller is updating the tunnel's configuration."), want: [3]check.Result{ok, failed, ok}},
	{name: "settings that are not applied", change: gatewayCondition(conditions.TypeProgrammed, conditions.ReasonSettingsNotApplied, "The account differs."), want: [3]check.Result{ok, warning, ok}},
	{name: "Envoys that reject the configuration", change: gatewayCondition(conditions.TypeDataPlaneReady, conditions.ReasonEnvoyRejected, "Envoy rejected the configuration."), want: [3]check.Result{ok, warning, ok}},
	{name: "a route without an entry of the controller", change: func(c *cluster) {
		each(c, func(o *gatewayv1.HTTPRoute) { o.Status.Parents = nil })
	}, want: [3]check.Result{ok, warning, ok}},
	{name: "a route that the controller has not accepted", change: func(c *cluster) {
		each(c, func(o *gatewayv1.HTTPRoute) {
			condition(&o.Status.Parents[0].Conditions, conditions.TypeAccepted, metav1.ConditionFalse, conditions.ReasonLimitExceeded, "The route exceeds a limit.")
		})
	}, want: [3]check.Result{ok, failed, ok}},
	{name: "a ListenerSet without a status for its listener", change: func(c *cluster) {
		each(c, func(o *gatewayv1.ListenerSet) { o.Status.Listeners = nil })
	}, want: [3]check.Result{ok, failed, ok}},
}

var tunnels = []situation{
	{name: "no connector", change: func(c *cluster) {
		gatewayCondition(conditions.TypeConnectorsReady, conditions.ReasonUnavailable, "0 of 2 connectors are available.")(c)
		each(c, func(o *v1alpha1.Tunnel) { o.Status.Connectors.Ready = 0 })
	}, want: [3]check.Result{ok, failed, ok}},
	{name: "connectors that are scaled to 0", change: gatewayCondition(conditions.TypeConnectorsReady, conditions.ReasonNoReplicas, "Deployment shared is scaled to 0. Increase spec.connector.replicas."), want: [3]check.Result{ok, failed, ok}},
	{name: "a rollout of connectors", change: gatewayCondition(conditions.TypeConnectorsReady, conditions.ReasonRollingOut, "1 of 2 connectors has the current settings."), want: [3]check.Result{ok, warning, ok}},
	{name: "connectors that the user runs", replacements: []string{"dataPlane: IngressRules\n---", "dataPlane: IngressRules\n  connector: {enabled: false}\n---"}, want: [3]check.Result{ok, unknown, ok}},
	{name: "connectors without a state", change: func(c *cluster) {
		each(c, func(o *gatewayv1.Gateway) { o.Status.Conditions = o.Status.Conditions[:2] })
	}, want: [3]check.Result{ok, unknown, ok}},
	{name: "no Tunnel", change: remove[*v1alpha1.Tunnel], want: [3]check.Result{ok, failed, ok}},
	{name: "a blocked Tunnel", change: func(c *cluster) {
		each(c, func(o *v1alpha1.Tunnel) { o.Status.Phase = v1alpha1.TunnelBlocked })
		tunnelCondition(conditions.TypeTunnelReady, conditions.ReasonTunnelInUse, "Tunnel other has claimed the same tunnel at Cloudflare.")(c)
	}, want: [3]check.Result{ok, failed, ok}},
	{name: "a new Tunnel", change: changeTunnel(func(o *v1alpha1.Tunnel) { o.Status = v1alpha1.TunnelStatus{} }), want: [3]check.Result{ok, failed, ok}},
	{name: "Cloudflare rejects the token", change: tunnelCondition(conditions.TypeTunnelReady, conditions.ReasonUnauthorized, "Cloudflare rejected the API token."), want: [3]check.Result{ok, warning, ok}},
	{name: "a configuration that is not in effect", change: tunnelCondition(conditions.TypeTunnelConfigurationApplied, conditions.ReasonPending, "The desired configuration is not in effect yet."), want: [3]check.Result{ok, warning, ok}},
	{name: "another configuration in effect", change: changeTunnel(func(o *v1alpha1.Tunnel) { o.Status.Configuration.Hash = "another" }), want: [3]check.Result{ok, warning, ok}},
	{name: "a pause", change: changeTunnel(func(o *v1alpha1.Tunnel) {
		o.Spec.Paused, o.Status.PausedSince, o.Status.Configuration.Hash = true, &metav1.Time{Time: now}, "before"
	}), want: [3]check.Result{ok, warning, ok}},
	{name: "a change during a pause", change: func(c *cluster) {
		const message = "The Gateway has been paused."
		each(c, func(o *gatewayv1.Gateway) { o.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"} })
		gatewayCondition(conditions.TypeProgrammed, conditions.ReasonPending, message)(c)
		each(c, func(o *v1alpha1.Tunnel) {
			o.Spec.Paused, o.Status.PausedSince, o.Status.Configuration.Hash = true, &metav1.Time{Time: now}, "before"
		})
		tunnelCondition(conditions.TypeTunnelReady, conditions.ReasonPaused, message)(c)
		tunnelCondition(conditions.TypeTunnelConfigurationApplied, conditions.ReasonPaused, message)(c)
	}, want: [3]check.Result{ok, failed, ok}},
	{name: "a data plane change", change: func(c *cluster) {
		each(c, func(o *v1alpha1.Tunnel) {
			o.Status.DataPlaneChange = &v1alpha1.DataPlaneChange{Phase: v1alpha1.DataPlaneAddingEnvoy}
		})
		tunnelCondition(conditions.TypeTunnelDataPlaneApplied, conditions.ReasonDataPlaneChanging, "The change waits for new connectors.")(c)
	}, want: [3]check.Result{ok, warning, ok}},
}

var backends = []situation{
	{name: "a port that the Service does not have", replacements: []string{"backendRefs: [{name: web, port: 80}]", "backendRefs: [{name: web, port: 8080}]"}, want: [3]check.Result{ok, ok, failed}},
	{name: "a port that no port leads to", replacements: []string{"backendRefs: [{name: web, port: 80}]", "backendRefs: [{name: web, port: 9090}]"}, want: [3]check.Result{ok, ok, failed}},
	{name: "a Service that does not exist", replacements: []string{"backendRefs: [{name: web, port: 80}]", "backendRefs: [{name: wbe, port: 80}]"}, want: [3]check.Result{ok, ok, failed}},
	{name: "an ExternalName", replacements: []string{"clusterIP: 10.96.0.10", "type: ExternalName\n  externalName: example.net"}, want: [3]check.Result{ok, ok, failed}},
	{name: "no endpoint is ready", change: changeEndpoints(func(o *discoveryv1.EndpointSlice) {
		for n := range o.Endpoints {
			o.Endpoints[n].Conditions.Ready = new(false)
		}
	}), want: [3]check.Result{ok, ok, failed}},
	{name: "one endpoint is ready", change: changeEndpoints(func(o *discoveryv1.EndpointSlice) {
		o.Endpoints[len(o.Endpoints)-1].Conditions.Ready = new(o.Name != "web-1")
	}), want: [3]check.Result{ok, ok, ok}},
	{name: "endpoints that terminate", change: changeEndpoints(func(o *discoveryv1.EndpointSlice) {
		for n := range o.Endpoints {
			o.Endpoints[n].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		}
	}), want: [3]check.Result{ok, ok, warning}},
	{name: "no pod has the labels", change: remove[*discoveryv1.EndpointSlice], want: [3]check.Result{ok, ok, failed}},
	{name: "a Service without a selector", replacements: []string{"  selector: {app: web}\n", ""}, change: remove[*discoveryv1.EndpointSlice], want: [3]check.Result{ok, ok, failed}},
	{name: "a named target port that no container has", replacements: []string{"targetPort: 8080", "targetPort: htpp"}, change: changeEndpoints(func(o *discoveryv1.EndpointSlice) { o.Ports = nil }), want: [3]check.Result{ok, ok, failed}},
	{name: "a target port that is none of the container ports", change: withPod(pod(3000, 9000)), want: [3]check.Result{ok, ok, warning}},
	{name: "a target port that a container names", change: withPod(pod(3000, 8080)), want: [3]check.Result{ok, ok, ok}},
	{name: "containers that name no port", change: withPod(pod()), want: [3]check.Result{ok, ok, ok}},
}

// forTeam permits reading everything in the namespace team, and some other objects.
func forTeam(others ...string) func(*cluster) {
	return func(c *cluster) {
		c.permits = func(kind, namespace, name string) bool {
			return namespace == "team" || slices.Contains(others, strings.TrimSpace(kind+" "+name))
		}
	}
}

var permissions = []situation{
	{name: "permissions for one namespace", change: forTeam(), want: [3]check.Result{warning, unknown, unknown}},
	{name: "permissions for one namespace, and a route that is not accepted", replacements: []string{"sectionName: web", "sectionName: wbe"}, change: forTeam(), want: [3]check.Result{failed, unknown, unknown}},
	{name: "permissions for one namespace, another hostname", target: "other.example.net", change: forTeam(), want: [3]check.Result{unknown, unknown, unknown}},
	{name: "permissions for one namespace and the Gateway", change: forTeam("Gateway shared", "GatewayClass cloudflare-tunnel", "TunnelConfiguration defaults", "Namespace team", "Namespace infra"), want: [3]check.Result{unknown, unknown, ok}},
	{name: "permissions for no endpoints and no Service", change: func(c *cluster) {
		c.permits = func(kind, _, _ string) bool { return kind != "EndpointSlice" && kind != "Service" }
	}, want: [3]check.Result{unknown, unknown, unknown}},
	{name: "permissions for no endpoints", change: func(c *cluster) {
		c.permits = func(kind, _, _ string) bool { return kind != "EndpointSlice" }
	}, want: [3]check.Result{unknown, unknown, unknown}},
}

func request(target string) routing.Request {
	r, err := routing.ParseRequest(target)
	if err != nil {
		panic(err)
	}
	return r
}
