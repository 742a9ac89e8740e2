package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// writeEnvoy writes the route statuses, the tunnel's rules if Access needs any, and the
// Envoy resources, one route or cluster on each line.
func writeEnvoy(t *testing.T, w *bytes.Buffer, d decision) {
	t.Helper()
	fmt.Fprintf(w, "# %s\n", d.key)
	if d.result.Table == nil {
		fmt.Fprintln(w, "# not accepted: the data plane keeps its configuration")
		return
	}
	writeRoutes(w, d.report)
	c := ingress.EnvoyConfiguration(d.result.Table)
	if len(c.Ingress) > 1 || c.Ingress[0].OriginRequest.Access != nil {
		writeRules(w, c)
	}
	r := envoy.Render(d.result.Table)
	for _, c := range r.Routes {
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

// Envoy accepts every golden case's resources, and the connector the rules in front.
func TestEnvoyAcceptsEveryGoldenCase(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	tables := map[string]*envoy.Resources{}
	for _, input := range inputs {
		files, err := state.FromFiles([]string{input}, manifest.Options{Namespace: "default", Experimental: true}, options.ControllerName, config.DefaultClassName)
		if err != nil {
			continue // a case about an invalid manifest
		}
		for _, d := range decide(t, files, v1alpha1.DataPlaneEnvoy) {
			if d.result.Table == nil {
				continue
			}
			name := fmt.Sprintf("%s %s", input, d.key)
			tables[name] = envoy.Render(d.result.Table)
			if err := resourcesProblem(tables[name]); err != nil {
				t.Errorf("%s: the resources are not valid: %v", name, err)
			}
			if err := provider.Validate(*ingress.EnvoyConfiguration(d.result.Table)); err != nil {
				t.Errorf("%s: the connector rejects the configuration: %v", name, err)
			}
		}
	}
	wantEnvoyAccepts(t, tables)
}
