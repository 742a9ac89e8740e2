package plan_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

var (
	options = plan.Options{
		Options: gateway.Options{
			ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
		},
		Account: credentials.Default{Account: fake.AccountID, Token: "token"},
	}
	now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// account is a Cloudflare account with one tunnel. The tunnel has the name for
// Gateway infra/g with the cluster ID "c", and a configuration for old.example.com.
type account struct {
	*fake.Provider
	id   provider.TunnelID
	hash string
}

// newAccount returns a new account without recorded calls.
func newAccount(t *testing.T) *account {
	t.Helper()
	c := &account{Provider: fake.New()}
	c.id = c.create(t, "c.infra.g")
	configuration := *planOf(t, gatewayFor("old.example.com", "")).Gateways[0].Config
	c.hash = configuration.Hash()
	c.SetConfiguration(c.id, configuration)
	c.ResetCalls()
	return c
}

func (c *account) create(t *testing.T, name string) provider.TunnelID {
	t.Helper()
	created, err := c.CreateTunnel(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return created.ID
}

// open implements [plan.OpenAccount].
func (c *account) open(context.Context, credentials.Source) (provider.Provider, error) {
	return c.Provider, nil
}

// kubeSystem is the namespace that identifies a cluster.
const kubeSystem = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: cluster}}\n"

// tunnelObject returns Gateway infra/g's Tunnel object with the given status.
func tunnelObject(status string) string {
	return `
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: Tunnel
metadata: {name: infra.g, namespace: tunnel-gateway, uid: t, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  gateway: {namespace: infra, name: g}
  controllerName: tunnelgateway.dev/controller
  clusterUID: cluster
  accountID: "` + fake.AccountID + `"
  name: c.infra.g
  deletionPolicy: Delete
status: {` + status + `}
` + kubeSystem
}

// otherTunnelObject returns another Gateway's Tunnel object that adopts a tunnel.
func otherTunnelObject(id provider.TunnelID) string {
	other := strings.NewReplacer("infra.g", "infra.other", "name: g}", "name: other}", "uid: t,", "uid: o,", "deletionPolicy: Delete", "deletionPolicy: Retain\n  existing: {id: "+string(id)+"}")
	return strings.TrimSuffix(other.Replace(tunnelObject("tunnelID: "+string(id))), kubeSystem)
}

func (c *account) recorded() string { return tunnelObject("tunnelID: " + string(c.id)) }

// written returns a Tunnel object that records the account's tunnel and the
// configuration that the controller wrote last.
func (c *account) written(hash string) string {
	return tunnelObject("tunnelID: " + string(c.id) + ", configuration: {hash: " + hash + "}")
}

func adopting(object string, id provider.TunnelID) string {
	return strings.Replace(object, "deletionPolicy: Delete", "deletionPolicy: Retain\n  existing: {id: "+string(id)+"}", 1)
}

const paused = "    " + v1alpha1.PausedAnnotation + ": \"true\"\n"

// gatewayFor returns Gateway infra/g with one hostname and additional annotations.
func gatewayFor(hostname, annotations string) string {
	return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: g
  namespace: infra
  annotations:
    example.com/a: b
` + annotations + `
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: a, hostname: ` + hostname + `, port: 80, protocol: HTTP}]
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: class, namespace: tunnel-gateway}
spec: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: infra}
spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: tunnel-gateway, name: class}
`
}

// gatewayWithTunnelSettings returns Gateway infra/g with settings for its tunnel.
func gatewayWithTunnelSettings(hostname, settings string) string {
	return strings.Replace(gatewayFor(hostname, ""), "spec: {}", "spec: {tunnel: {"+settings+"}}", 1)
}

// existing returns the setting that adopts a tunnel.
func existing(id provider.TunnelID) string { return "existing: {id: " + string(id) + "}" }

// wantDiff compares what WriteDiff prints.
func wantDiff(t *testing.T, p *plan.Plan, want string) {
	t.Helper()
	var out strings.Builder
	if err := p.WriteDiff(&out, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
		t.Errorf("the output differs (-want +got):\n%s", diff)
	}
}

const (
	change = `--- tunnel %s (version 1)
+++ Gateway infra/g
@@ -1,4 +1,4 @@
 ingress:
-- hostname: old.example.com
+- hostname: new.example.com
   service: http://web.infra.svc.cluster.local:80
 - service: http_status:404
`
	addition = `--- new tunnel
+++ Gateway infra/g
@@ -0,0 +1,4 @@
+ingress:
+- hostname: new.example.com
+  service: http://web.infra.svc.cluster.local:80
+- service: http_status:404
`
	same = "Gateway infra/g: no difference\n"

	goneTunnel  = provider.TunnelID("11111111-1111-4111-8111-111111111111")
	otherTunnel = provider.TunnelID("22222222-2222-4222-8222-222222222222")
)

// note returns the line for a remark about Gateway infra/g.
func note(text string) string { return "Gateway infra/g: " + text + "\n" }
