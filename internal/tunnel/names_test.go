package tunnel_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

func TestTunnelObjectIsNamedAfterItsGateway(t *testing.T) {
	for _, c := range []struct{ description, namespace, name, want string }{
		{"short", "infra", "shared", "infra.shared"},
		{"with dots", "infra", "shop.example.com", "infra.shop.example.com"},
		{"begins with a digit", "1", "2", "1.2"},
		{"63 characters", "infra", repeat("g", 57), "infra." + repeat("g", 57)},
		{"64 characters", "infra", repeat("g", 58), "infra." + repeat("g", 40) + "-10e4370ac45956a1"},
		{"dots and dashes at the cut", "infra", repeat("a", 38) + "-.-" + repeat("b", 30), "infra." + repeat("a", 38) + "-5fcb2224e64c9c87"},
		{"the cut is after the namespace", repeat("n", 45), repeat("g", 18), repeat("n", 45) + "-739b66a037888b24"},
		{"the longest", repeat("n", 63), repeat("g", 253), repeat("n", 46) + "-157805ad40ce537b"},
	} {
		t.Run(c.description, func(t *testing.T) {
			if got := tunnel.ObjectName(gatewayOf(c.namespace, c.name)); got != c.want {
				t.Errorf("ObjectName = %q, want %q", got, c.want)
			}
		})
	}
}

func TestConnectorObjectsAreNamedAfterTheirGateway(t *testing.T) {
	for _, c := range []struct{ description, namespace, name, want string }{
		{"short", "infra", "shared", "infra-shared-276e722498919bb9"},
		{"with dots", "infra", "shop.example.com", "infra-shop-example-com-298643c8a606ed65"},
		{"begins with a digit", "1", "2", "1-2-d939926f05444b0f"},
		{"29 characters", "infra", repeat("g", 23), "infra-" + repeat("g", 23) + "-2937dbaec2564f35"},
		{"30 characters", "infra", repeat("g", 24), "infra-" + repeat("g", 23) + "-e0423d70f7ad05fb"},
		{"45 characters", "infra", repeat("g", 39), "infra-" + repeat("g", 23) + "-97841f0a8a00a846"},
		{"a dot at the cut", "infra", repeat("a", 22) + "." + repeat("b", 9), "infra-" + repeat("a", 22) + "-393980d6ad36b26d"},
		{"dashes at the cut", "infra", repeat("a", 9) + repeat("-", 20) + "b", "infra-" + repeat("a", 9) + "-891035bfd7c3c4a6"},
		{"the longest", repeat("n", 63), repeat("g", 253), repeat("n", 29) + "-157805ad40ce537b"},
	} {
		t.Run(c.description, func(t *testing.T) {
			if got := tunnel.ConnectorName(gatewayOf(c.namespace, c.name)); got != c.want {
				t.Errorf("ConnectorName = %q, want %q", got, c.want)
			}
		})
	}
}

func TestRemoteNameContainsClusterIDAndGateway(t *testing.T) {
	for _, c := range []struct{ description, namespace, name, want string }{
		{"short", "infra", "shared", "prod.infra.shared"},
		{"96 characters", "infra", repeat("g", 85), "prod.infra." + repeat("g", 85)},
		{"97 characters", "infra", repeat("g", 86), "prod.infra." + repeat("g", 68) + "-d507f003e8fc1900"},
		{"a dot at the cut", "infra", repeat("a", 67) + "." + repeat("b", 30), "prod.infra." + repeat("a", 67) + "-799b057a1848f0f9"},
		{"the longest", repeat("n", 63), repeat("g", 253), "prod." + repeat("n", 63) + "." + repeat("g", 10) + "-157805ad40ce537b"},
	} {
		t.Run(c.description, func(t *testing.T) {
			if got := tunnel.RemoteName("prod", gatewayOf(c.namespace, c.name)); got != c.want {
				t.Errorf("RemoteName = %q, want %q", got, c.want)
			}
		})
	}
}

func TestDefaultClusterIDDependsOnClusterAndController(t *testing.T) {
	const uid, controller = "7c1e2a34-0000-4000-8000-000000000001", "tunnelgateway.dev/controller"
	got := tunnel.DefaultClusterID(uid, controller)
	if want := "261891eb54"; got != want {
		t.Errorf("DefaultClusterID = %q, want %q", got, want)
	}
	if got == tunnel.DefaultClusterID(uid, controller+"2") {
		t.Error("two controllers in one cluster have the same cluster ID")
	}
	if got == tunnel.DefaultClusterID("7c1e2a34-0000-4000-8000-000000000002", controller) {
		t.Error("one controller name in two clusters has the same cluster ID")
	}
}

// TestNamesSeparateNamespaceAndName compares Gateways whose namespaces and names result in
// the same text when they are joined by a dot or a dash.
func TestNamesSeparateNamespaceAndName(t *testing.T) {
	for _, c := range [][2]types.NamespacedName{
		{gatewayOf("a", "b.c"), gatewayOf("a-b", "c")},
		{gatewayOf("a", "b.c"), gatewayOf("a", "b-c")},
		{gatewayOf("a", "b-c"), gatewayOf("a-b", "c")},
	} {
		if a, b := tunnel.ObjectName(c[0]), tunnel.ObjectName(c[1]); a == b {
			t.Errorf("%s and %s both have the object name %s", c[0], c[1], a)
		}
		if a, b := tunnel.ConnectorName(c[0]), tunnel.ConnectorName(c[1]); a == b {
			t.Errorf("%s and %s both have the connector name %s", c[0], c[1], a)
		}
		if a, b := tunnel.RemoteName("c1", c[0]), tunnel.RemoteName("c1", c[1]); a == b {
			t.Errorf("%s and %s both have the tunnel name %s", c[0], c[1], a)
		}
	}
	// Otherwise Gateway c in a.b and Gateway b.c in a would have the same object name.
	if problems := validation.IsDNS1123Label("a.b"); len(problems) == 0 {
		t.Error("a namespace with a dot is valid, so object names are ambiguous")
	}
}

// TestNamesAreValidAtEveryLength tests names with a character that cannot be the last one
// at every position where a name can be cut.
func TestNamesAreValidAtEveryLength(t *testing.T) {
	for _, unit := range []string{"a", "a.b", "ab--c", "a.b-c", "0", "a.0-b.c--d"} {
		for length := 1; length <= 253; length++ {
			name := strings.Trim(repeat(unit, 253)[:length], "-.")
			for _, namespace := range []string{"n", repeat("n", 28), repeat("n", 29), repeat("n", 45), repeat("n-0", 21)} {
				checkNames(t, gatewayOf(namespace, name))
			}
		}
	}
}

// TestNamesAreDistinct generates names from few characters, so that many of them have the
// same beginning or differ only in a dot.
func TestNamesAreDistinct(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- every run must use the same Gateways
	seen := map[string]types.NamespacedName{}
	for range 20_000 {
		gateway := gatewayOf(randomLabel(random, 63), randomSubdomain(random))
		checkNames(t, gateway)
		for description, name := range map[string]string{
			"object":    tunnel.ObjectName(gateway),
			"connector": tunnel.ConnectorName(gateway),
			"remote":    tunnel.RemoteName("c1", gateway),
		} {
			if other, ok := seen[description+name]; ok && other != gateway {
				t.Fatalf("%s and %s both have the %s name %s", gateway, other, description, name)
			}
			seen[description+name] = gateway
		}
	}
}

// checkNames checks the names against what the API server and Cloudflare require.
func checkNames(t *testing.T, gateway types.NamespacedName) {
	t.Helper()
	object := tunnel.ObjectName(gateway)
	if problems := append(validation.IsDNS1123Subdomain(object), validation.IsValidLabelValue(object)...); len(problems) > 0 {
		t.Errorf("%s: object name %s: %v", gateway, object, problems)
	}
	name := tunnel.ConnectorName(gateway)
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > 46 {
		t.Errorf("%s: connector name %s has %d characters: %v", gateway, name, len(name), problems)
	}
	// A ReplicaSet name has a hash with up to 10 characters.
	prefix := name + "-0123456789-"
	if pod := names.SimpleNameGenerator.GenerateName(prefix); !strings.HasPrefix(pod, prefix) {
		t.Errorf("%s: Deployment %s has a pod %s, whose name does not contain the whole hash", gateway, name, pod)
	}
	for _, clusterID := range []string{"c1", repeat("c", 63)} {
		remote := tunnel.RemoteName(clusterID, gateway)
		if problems := validation.IsDNS1123Subdomain(remote); len(problems) > 0 || len(remote) > 96 || !strings.HasPrefix(remote, tunnel.NamePrefix(clusterID)) {
			t.Errorf("%s: tunnel name %s has %d characters: %v", gateway, remote, len(remote), problems)
		}
	}
}

func gatewayOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func repeat(unit string, count int) string { return strings.Repeat(unit, count) }

func randomLabel(random *rand.Rand, longest int) string {
	label := make([]byte, 1+random.IntN(longest))
	for i := range label {
		label[i] = "aaaa0-"[random.IntN(6)]
	}
	label[0], label[len(label)-1] = 'a', 'a'
	return string(label)
}

func randomSubdomain(random *rand.Rand) string {
	name := randomLabel(random, 63)
	for len(name) < 250 && random.IntN(3) > 0 {
		name += "." + randomLabel(random, min(63, 252-len(name)))
	}
	return name
}
