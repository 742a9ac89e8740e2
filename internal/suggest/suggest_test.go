package suggest_test

import (
	"testing"

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
