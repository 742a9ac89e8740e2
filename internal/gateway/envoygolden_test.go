package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// writeEnvoy writes the statuses of the routes, the rules of the tunnel if Access needs
// any, and the resources of Envoy, one route or cluster on each line.
func writeEnvoy(t *testing.T, w *bytes.Buffer, d decision) {
	t.Helper()
	fmt.Fprintf(w, "# %s\n", d.key)
	if d.result.Table == nil {
		fmt.Fprintln(w, "# not accepted: the data plane keeps its configuration")
		return
	}
	writeRoutes(w, d.report)
	c := ingress.EnvoyConfiguration(d.result.Table)
	if err := provider.Validate(*c); err != nil {
		t.Errorf("the connector rejects the configuration: %v", err)
	}
	if len(c.Ingress) > 1 || c.Ingress[0].OriginRequest.Access != nil {
		writeRules(w, c)
	}
	r := envoy.Render(d.result.Table)
	for _, c := range []*routev3.RouteConfiguration{r.Open, r.Protected} {
		fmt.Fprintf(w, "%s:\n", c.Name)
		for _, h := range c.VirtualHosts {
			fmt.Fprintf(w, "  %q:\n", h.Domains[0])
			for _, name := range h.ResponseHeadersToRemove {
				fmt.Fprintf(w, "  # removed from responses: %s\n", name)
			}
			for _, route := range h.Routes {
				fmt.Fprintf(w, "  - %s\n", oneLine(t, route))
			}
		}
	}
	fmt.Fprintln(w, "clusters:")
	for _, c := range r.Clusters {
		fmt.Fprintf(w, "- %s\n", oneLine(t, c))
	}
}

// oneLine returns the message as JSON with stable spaces.
func oneLine(t *testing.T, m proto.Message) string {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
