package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// poisonedImport returns a route to a ServiceImport with the values.
func poisonedImport(t *testing.T, name, refName, ip, portName, appProtocol string) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": map[string]any{"namespace": "shop", "name": "shared"},
			"spec": map[string]any{"gatewayClassName": "cloudflare-tunnel", "listeners": []any{map[string]any{"name": "all", "port": 80, "protocol": "HTTP"}}},
		},
		map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{"namespace": "shop", "name": "route"},
			"spec": map[string]any{"parentRefs": []any{map[string]any{"name": "shared"}}, "rules": []any{map[string]any{
				"backendRefs": []any{map[string]any{"group": "multicluster.x-k8s.io", "kind": "ServiceImport", "name": refName, "port": 80}},
			}}},
		},
		map[string]any{
			"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "metadata": map[string]any{"namespace": "shop", "name": name},
			"spec": map[string]any{"type": "ClusterSetIP", "ips": []any{ip}, "ports": []any{map[string]any{"port": 80, "name": portName, "appProtocol": appProtocol}}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Neither the API server nor the CRD checks the addresses, names and ports of a
// ServiceImport. A value leads only to the address that it is, or nowhere, and Envoy
// accepts the whole table.
func TestPoisonedServiceImports(t *testing.T) {
	long := strings.Repeat("9", 100_000)
	for i, values := range [][4]string{
		{"web", "10.42.0.1", "http", "http"}, // the only one without poison
		{"web", "2001:db8::1", "%ENVIRONMENT(TOKEN)%", "https"},
		{"web", "127.1", "", ""}, {"web", "0x7f000001", "", ""}, {"web", "2130706433", "", ""}, {"web", "127.0.0.1:10080", "", ""},
		{"web", "[::1]", "", ""}, {"web", "::ffff:7f00:1", "", ""}, {"web", "fe80::1%lo", "", ""}, {"web", "10.42.0.1/../..", "", ""},
		{"web", "user@10.42.0.1", "", ""}, {"web", "10.42.0.1,127.0.0.1", "", ""}, {"web", "10.42.0.1\r\nHost: x", "", ""}, {"web", "１２７.0.0.1", "", ""},
		{"web", "metadata.google.internal", "", ""}, {"web", "localhost", "", ""}, {"web", "", "", ""}, {"web", " 10.42.0.1", "", ""}, {"web", long, "", ""},
		{"web", "10.42.0.1", long, ""}, {"web", "10.42.0.1", "a\x00b\n", ""}, {"web", "10.42.0.1", "", long}, {"web", "10.42.0.1", "", "kubernetes.io/h2c\x00"},
		{"web.80.0123456789abcdef", "10.42.0.1", "", ""}, {"../web", "10.42.0.1", "", ""}, {"web/x", "10.42.0.1", "", ""}, {"web\n1", "10.42.0.1", "", ""}, {"%ENVIRONMENT(TOKEN)%", "10.42.0.1", "", ""},
	} {
		t.Run(fmt.Sprintf("%.40q", values), func(t *testing.T) {
			input := manifest.Options{Stdin: bytes.NewReader(poisonedImport(t, "web", values[0], values[1], values[2], values[3]))}
			files, err := state.FromFiles([]string{"-"}, input, options.ControllerName, config.DefaultClassName)
			if err != nil {
				t.Fatal(err)
			}
			for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
				d := decide(t, files, plane)[0]
				if plane == v1alpha1.DataPlaneIngressRules {
					service := rulesConfiguration(d.result.Table).Ingress[0].Service
					wantAddress(t, service, values[1])
					if i == 0 && service != "http://10.42.0.1:80" {
						t.Errorf("the rule leads to %s", service)
					}
				} else {
					resources := envoy.Render(d.result.Table)
					wantAcceptable(t, resources, values[1])
					if i == 0 && len(resources.Clusters) != 1 {
						t.Errorf("there are %d clusters, want 1", len(resources.Clusters))
					}
				}
				for _, c := range d.report.Routes[0].Parents[0].Conditions {
					if len(c.Message) > 1024 || strings.ContainsAny(c.Message, "\x00\r") {
						t.Errorf("%s has the message %.200q", c.Type, c.Message)
					}
				}
			}
		})
	}
}

// wantAddress checks that a rule leads to the address, or nowhere.
func wantAddress(t *testing.T, service, written string) {
	t.Helper()
	if service == "http_status:500" {
		return
	}
	u, err := url.Parse(service)
	if err != nil || u.Port() != "80" || u.User != nil || u.Path != "" {
		t.Fatalf("the rule leads to %q (%v)", service, err)
	}
	if got, want := netip.MustParseAddr(u.Hostname()), netip.MustParseAddr(written); got != want || !got.IsGlobalUnicast() {
		t.Errorf("the rule leads to %s, want %s", got, want)
	}
}

// wantAcceptable checks that Envoy accepts the resources, and that each cluster leads to
// the address.
func wantAcceptable(t *testing.T, r *envoy.Resources, written string) {
	t.Helper()
	for _, c := range r.Routes {
		if err := envoy.Validate(c); err != nil {
			t.Error(err)
		}
	}
	for _, c := range r.Clusters {
		if err := envoy.Validate(c); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(c.Name, "i.shop.web.80.") || len(c.Name) > 100 {
			t.Errorf("the cluster's name is %.200q", c.Name)
		}
		address := c.LoadAssignment.GetEndpoints()[0].LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
		if got, want := netip.MustParseAddr(address), netip.MustParseAddr(written); got != want || !got.IsGlobalUnicast() {
			t.Errorf("the cluster leads to %s, want %s", got, want)
		}
	}
}

// The schema of ServiceImports accepts names that the names of Services, which they have, are
// not.
func TestNamesOfServiceImportsAreChecked(t *testing.T) {
	for _, name := range []string{"web.v1", strings.Repeat("w", 64), strings.Repeat("w", 253)} {
		input := manifest.Options{Stdin: bytes.NewReader(poisonedImport(t, name, name, "10.42.0.1", "", "https"))}
		files, err := state.FromFiles([]string{"-"}, input, options.ControllerName, config.DefaultClassName)
		if err != nil {
			t.Fatal(err)
		}
		if clusters := envoy.Render(decide(t, files, v1alpha1.DataPlaneEnvoy)[0].result.Table).Clusters; len(clusters) > 0 {
			t.Errorf("%q: there are %d clusters, want none", name, len(clusters))
		}
	}
}
