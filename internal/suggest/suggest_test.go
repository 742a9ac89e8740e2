package suggest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

func TestClosestFindsTheNameThatWasMeant(t *testing.T) {
	kinds := []string{"Gateway", "GatewayClass", "GRPCRoute", "HTTPRoute", "TCPRoute", "UDPRoute"}
	for word, want := range map[string]string{
		"HTTPRout":   "HTTPRoute",
		"HTTPRuote":  "HTTPRoute",
		"httproute":  "HTTPRoute",
		"HTTPRoutes": "HTTPRoute",
		"GRPCRout":   "GRPCRoute",
		"Gatway":     "Gateway",
		"Gatewayy":   "Gateway",
		"Gatewy":     "Gateway",
		"TDPRoute":   "TCPRoute", // as similar as UDPRoute, which comes later
		"Ingress":    "",
		"":           "",
	} {
		if got := suggest.Closest(word, kinds); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
	for word, want := range map[string]string{"pln": "plan", "paln": "plan", "ofs": "of", "plna": "plan", "nalp": "", "fo": "", "on": "", "plans": "plan", "serve": ""} {
		if got := suggest.Closest(word, []string{"controller", "plan", "version", "of"}); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestFieldFindsALongerName(t *testing.T) {
	fields := []string{"hostname", "hostnameTotal", "backendRefs", "matches", "path"}
	for word, want := range map[string]string{"backend": "backendRefs", "BACKEND": "backendRefs", "match": "matches", "pat": "path", "hostn": "", "bac": "", "": ""} {
		if got := suggest.Field(word, fields); got != want {
			t.Errorf("Field(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestSimilarSortsTheNamesByTheirDistance(t *testing.T) {
	names := []string{"shops.example.com", "ship.example.com", "SHOP.example.com", "blog.example.com", "ship.example.com"}
	want := []string{"SHOP.example.com", "ship.example.com", "shops.example.com"}
	if diff := cmp.Diff(want, suggest.Similar("shop.example.com", names, 5)); diff != "" {
		t.Errorf("similar names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], suggest.Similar("shop.example.com", names, 1)); diff != "" {
		t.Errorf("the most similar name (-want +got):\n%s", diff)
	}
}
