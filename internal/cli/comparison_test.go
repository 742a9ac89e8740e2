package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// The comparison of the page only reads, only when it is called, and finds what plan --diff
// finds. Without an API token, there is none.
func TestComparisonReadsWhenCalled(t *testing.T) {
	edge := simulator.New(simulator.Options{})
	server := httptest.NewServer(edge.API())
	t.Cleanup(server.Close)
	account := config.Cloudflare{AccountID: "main", APIToken: "token", BaseURL: server.URL + "/client/v4"}
	var accounts cloudflare.Client
	api, err := accounts.Open(cloudflare.Options{AccountID: account.AccountID, APIToken: string(account.APIToken), BaseURL: account.BaseURL})
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := api.CreateTunnel(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	edge.SetConfiguration(string(tunnel.ID), json.RawMessage(`{"ingress":[{"hostname":"old.example.com","service":"http://old:80"},{"service":"http_status:404"}]}`))
	edge.ResetRequests()
	manifests := fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: a, hostname: a.example.com, port: 80, protocol: HTTP}]
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: Tunnel
metadata: {name: infra.shared, namespace: tunnel-gateway}
spec:
  gateway: {namespace: infra, name: shared}
  controllerName: tunnelgateway.dev/controller
  clusterUID: b1c5e9a4-5a0f-4a2e-9d4b-0f3f5a0c7c11
  accountID: main
  name: shared
  deletionPolicy: Delete
status: {tunnelID: %s}
`, tunnel.ID)
	source, err := state.FromFiles([]string{"-"}, manifest.Options{Stdin: strings.NewReader(manifests)}, config.DefaultControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	read := func(context.Context) (*state.Source, error) { return source, nil }
	options := plan.Options{Options: gateway.Options{
		ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
	}}
	if without := (&diffOptions{cloudflare: config.Cloudflare{AccountID: "main"}}).comparison(read, options); without != nil {
		t.Error("there is a comparison without an API token")
	}
	compare := (&diffOptions{cloudflare: account}).comparison(read, options)
	if n := len(edge.Requests()); n > 0 {
		t.Errorf("%d requests before the comparison", n)
	}
	compared, err := compare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := compared.Gateways[0].Diff; d == nil || !strings.Contains(d.Unified, "\n-- hostname: old.example.com\n") {
		t.Errorf("got the difference %+v", d)
	}
	checkOnlyReads(t, edge)
	built, err := plan.Build(t.Context(), source, options, time.Now())
	if err != nil || built.Gateways[0].Diff != nil {
		t.Errorf("the page's plan has the difference %+v, or the error %v", built.Gateways[0].Diff, err)
	}
}

// checkOnlyReads checks that all requests to the edge were reads.
func checkOnlyReads(t *testing.T, edge *simulator.Server) {
	t.Helper()
	for _, request := range edge.Requests() {
		if request.Method != http.MethodGet {
			t.Errorf("unexpected request %s %s", request.Method, request.Path)
		}
	}
}
