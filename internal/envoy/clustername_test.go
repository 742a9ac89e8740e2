package envoy_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

func TestClusterNames(t *testing.T) {
	const hash = "0123456789abcdef"
	label63 := "a123456789a123456789a123456789a123456789a123456789a123456789abc"
	for name, want := range map[string]string{
		"s.shop.web.80." + hash:                       "shop/web:80 false",
		"i.shop.web.80." + hash:                       "shop/web:80 true",
		"s.0.9-a.65535." + hash:                       "0/9-a:65535 false",
		"s." + label63 + "." + label63 + ".1." + hash: label63 + "/" + label63 + ":1 false",
		"": "", "s.": "", "*": "", "xds": "", "s....": "",
		"t.shop.web.80." + hash: "", "S.shop.web.80." + hash: "", "shop.web.80." + hash: "",
		"s.shop.web.80":               "",
		"s.shop.web.80." + hash + ".": "", "s.shop.web.x.80." + hash: "", "s.web.80." + hash: "",
		"s..web.80." + hash: "", "s.shop..80." + hash: "", "s.shop.web.." + hash: "",
		"s.shop.web.0." + hash: "", "s.shop.web.65536." + hash: "", "s.shop.web.-1." + hash: "",
		"s.shop.web.+80." + hash: "", "s.shop.web.080." + hash: "", "s.shop.web.8_0." + hash: "", "s.shop.web.0x50." + hash: "",
		"s.shop.web.80." + hash[1:]: "", "s.shop.web.80." + hash + "0": "", "s.shop.web.80.0123456789ABCDEF": "", "s.shop.web.80.0123456789abcdeg": "",
		"s.Shop.web.80." + hash: "", "s.shop.we_b.80." + hash: "", "s.-shop.web.80." + hash: "", "s.shop.web-.80." + hash: "",
		"s.shop/x.web.80." + hash: "", "s.shop.wéb.80." + hash: "", "s.shop.web\x00.80." + hash: "", " s.shop.web.80." + hash: "",
		"s.a" + label63 + ".web.80." + hash: "", "s.shop.a" + label63 + ".80." + hash: "",
	} {
		got := ""
		if parsed, ok := envoy.ParseClusterName(name); ok {
			got = fmt.Sprintf("%s:%d %t", parsed.Source.NamespacedName, parsed.Port, parsed.Source.Import)
			if parsed.Name != name {
				t.Errorf("%q is parsed as %q", name, parsed.Name)
			}
		}
		if got != want {
			t.Errorf("%q is parsed as %q, want %q", name, got, want)
		}
	}
}

// A name that is accepted says nothing but its parts.
func FuzzClusterNames(f *testing.F) {
	f.Add("s.shop.web.80.0123456789abcdef")
	f.Add("i.shop.web.080.0123456789abcdef")
	f.Fuzz(func(t *testing.T, name string) {
		parsed, ok := envoy.ParseClusterName(name)
		if !ok {
			return
		}
		prefix := envoy.ClusterPrefix
		if parsed.Source.Import {
			prefix = envoy.ImportPrefix
		}
		again := fmt.Sprintf("%s%s.%s.%d.%s", prefix, parsed.Source.Namespace, parsed.Source.Name, parsed.Port, name[len(name)-16:])
		if again != name {
			t.Errorf("%q is parsed as %+v", name, parsed)
		}
	})
}

// The names of the rendered clusters contain their Services and ports.
func TestRenderedClusterNames(t *testing.T) {
	b := routing.Backend{Service: types.NamespacedName{Namespace: "shop", Name: "web"}, Headless: true, ServicePort: 8080, PortName: "http"}
	route := &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: b.Service}
	r := envoy.Render(&routing.Table{Groups: []routing.Group{{Hostname: "app.example.com", Namespace: "shop", Entries: []*routing.Entry{{
		Hostname: "app.example.com", RouteHostname: "app.example.com", Source: routing.Source{Route: route}, Match: &routing.Match{Path: routing.Path{Value: "/app"}},
		Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: b, Weight: 1}}}},
	}}}}})
	parsed, ok := envoy.ParseClusterName(r.Endpoints[0].Cluster)
	if !ok || parsed.Source != (envoy.EndpointSource{NamespacedName: b.Service}) || parsed.Port != b.ServicePort {
		t.Errorf("%q is parsed as %+v, %t", r.Endpoints[0].Cluster, parsed, ok)
	}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080, Name: "http"}}}}
	if got, ok := parsed.EndpointsOf(service, r.Endpoints[0].Limit); !ok || got != r.Endpoints[0] {
		t.Errorf("the endpoints are %+v, want %+v", got, r.Endpoints[0])
	}
}

// A cluster has no endpoints if its Service no longer has the port.
func TestPortOfClusterName(t *testing.T) {
	name, _ := envoy.ParseClusterName("s.shop.web.80.0123456789abcdef")
	port := func(number int32, name string, p corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Port: number, Name: name, Protocol: p}
	}
	for _, test := range []struct {
		name string
		spec corev1.ServiceSpec
		want string
	}{
		{"by number", corev1.ServiceSpec{Ports: []corev1.ServicePort{port(81, "a", ""), port(80, "b", corev1.ProtocolTCP)}}, "b "},
		{"family", corev1.ServiceSpec{Ports: []corev1.ServicePort{port(80, "", "")}, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}}, " IPv6"},
		{"UDP", corev1.ServiceSpec{Ports: []corev1.ServicePort{port(80, "a", corev1.ProtocolUDP)}}, "none"},
		{"another port", corev1.ServiceSpec{Ports: []corev1.ServicePort{port(8080, "a", "")}}, "none"},
		{"no Service", corev1.ServiceSpec{}, "none"},
		{"ExternalName", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, Ports: []corev1.ServicePort{port(80, "a", "")}}, "none"},
	} {
		got := "none"
		if e, ok := name.EndpointsOf(&corev1.Service{Spec: test.spec}, 7); ok {
			got = e.PortName + " " + string(e.Family)
			if e.Limit != 7 || e.Cluster != name.Name || e.Source() != name.Source {
				t.Errorf("%s: got %+v", test.name, e)
			}
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
