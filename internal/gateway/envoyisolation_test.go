package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// A tenant's route does not change how other tenants' routes are rendered, with any
// values. The tenant uses its own hostnames, because the Gateway API lets it add routes
// to hostnames that it shares.
func TestTenantsDoNotChangeEachOthersRoutes(t *testing.T) {
	rendered := 0
	forEachProtectedCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		before := renderedHosts(t, s)
		if before == nil {
			return
		}
		d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 9)), snapshot: s, hostnames: randomHostnames, everything: true} //nolint:gosec // the test must be reproducible
		d.addTenant()
		after := renderedHosts(t, s)
		for hostname := range after {
			if strings.HasSuffix(hostname, ".tenant.example.org") {
				rendered++
				delete(after, hostname)
			}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the routes of the tenant change those of others (-before +after):\n%s", diff)
		}
	})
	if rendered == 0 {
		t.Error("no route of the tenant is rendered")
	}
}

// renderedHosts returns both listeners' routes and the clusters as text, by virtual host
// hostname. Each hostname has the clusters that its routes refer to.
func renderedHosts(t *testing.T, s *gateway.Snapshot) map[string]string {
	t.Helper()
	table := gateway.Build(s, envoyOptions()).Table
	if table == nil {
		return nil
	}
	resources, hosts := envoy.Render(table), map[string]string{}
	if err := resourcesProblem(resources); err != nil {
		t.Fatal(err)
	}
	for _, c := range resources.Routes {
		for _, h := range c.VirtualHosts {
			if len(h.Routes) == 0 {
				continue // the answer is 404, with and without the virtual host
			}
			text := oneLine(t, h)
			hosts[h.Domains[0]] += c.Name + ": " + text + "\n"
			for _, cluster := range resources.Clusters {
				if strings.Contains(text, `"`+cluster.Name+`"`) {
					hosts[h.Domains[0]] += oneLine(t, cluster) + "\n"
				}
			}
		}
	}
	return hosts
}

// addTenant adds a namespace with a ListenerSet on its own port, and with routes that
// contain values from the table.
func (d *randomizer) addTenant() {
	const namespace = "newcomer"
	labels := map[string]string{"kubernetes.io/metadata.name": namespace}
	d.snapshot.Namespaces[namespace] = &corev1.Namespace{}
	d.snapshot.Namespaces[namespace].Name, d.snapshot.Namespaces[namespace].Labels = namespace, labels
	d.snapshot.Namespaces[namespace].Annotations = map[string]string{"tunnelgateway.dev/hostnames": "*.tenant.example.org"}
	set := &gatewayv1.ListenerSet{ObjectMeta: d.meta(namespace, "set")}
	set.Spec.ParentRef.Name, set.Spec.ParentRef.Namespace = gatewayv1.ObjectName(d.snapshot.Gateway.Name), new(gatewayv1.Namespace(d.snapshot.Gateway.Namespace))
	for i, hostname := range []gatewayv1.Hostname{"*.tenant.example.org", "a.tenant.example.org"} {
		set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry{
			Name: gatewayv1.SectionName(fmt.Sprintf("l%d", i)), Protocol: gatewayv1.HTTPProtocolType, Port: 8081, Hostname: &hostname,
		})
	}
	d.snapshot.ListenerSets = append(d.snapshot.ListenerSets, set)
	parent := gatewayv1.ParentReference{Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind(gateway.KindListenerSet)), Name: "set"}
	d.service(types.NamespacedName{Namespace: namespace, Name: "web"}, func(service *corev1.Service) { service.Spec.Ports = []corev1.ServicePort{{Port: 80}} })
	for i := range 1 + d.IntN(3) {
		r := d.route(1000 + i)
		r.Namespace, r.Spec.ParentRefs, r.Spec.Hostnames = namespace, []gatewayv1.ParentReference{parent}, nil
		d.addValues(r)
		d.snapshot.HTTPRoutes = append(d.snapshot.HTTPRoutes, r)
	}
}

// addValues adds rules with values that the data plane must refuse or serve.
func (d *randomizer) addValues(r *gatewayv1.HTTPRoute) {
	value := func(values []routeValue) string { return pick(d, values...).value.(string) }
	texts := headerValues[:len(headerValues)-2] // the API refuses the last two
	for range d.IntN(4) {
		expression := gatewayv1.PathMatchRegularExpression
		r.Spec.Rules = append(r.Spec.Rules, gatewayv1.HTTPRouteRule{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &expression, Value: new(value(expressionValues))}}, {}},
			Filters: []gatewayv1.HTTPRouteFilter{
				{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &gatewayv1.HTTPHeaderFilter{
					Set: []gatewayv1.HTTPHeader{{Name: "x-a", Value: value(texts)}}, Remove: []string{pick(d, strings.Fields(framing+" "+changeable)...)},
				}},
				{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: &gatewayv1.HTTPURLRewriteFilter{
					Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: new(value(replacements[:20]))},
				}},
			},
			BackendRefs: webBackend(),
		})
	}
}
