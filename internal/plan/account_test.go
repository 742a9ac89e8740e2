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

// cloud is an account with one tunnel, of the name that Gateway infra/g has with
// the cluster ID "c". It has the configuration of a Gateway for old.example.com.
type cloud struct {
	*fake.Provider
	id provider.TunnelID
	// hash is that of the configuration.
	hash string
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{Provider: fake.New()}
	c.id = c.create(t, "c.infra.g")
	held := *planOf(t, compared("old.example.com", "")).Gateways[0].Config
	c.hash = held.Hash()
	c.SetConfiguration(c.id, held)
	c.ResetCalls()
	return c
}

func (c *cloud) create(t *testing.T, name string) provider.TunnelID {
	t.Helper()
	created, err := c.CreateTunnel(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return created.ID
}

func (c *cloud) open(context.Context, credentials.Source) (provider.Provider, error) {
	return c.Provider, nil
}

// kubeSystem makes manifests those of a cluster.
const kubeSystem = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: cluster}}\n"

// object is the Tunnel object of Gateway infra/g, with that status.
func object(status string) string {
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

// rival is the Tunnel object of another Gateway that adopts a tunnel.
func rival(id provider.TunnelID) string {
	other := strings.NewReplacer("infra.g", "infra.other", "name: g}", "name: other}", "uid: t,", "uid: o,", "deletionPolicy: Delete", "deletionPolicy: Retain\n  existing: {id: "+string(id)+"}")
	return strings.TrimSuffix(other.Replace(object("tunnelID: "+string(id))), kubeSystem)
}

// record is the Tunnel object that records the tunnel.
func (c *cloud) record() string { return object("tunnelID: " + string(c.id)) }

// written is the Tunnel object that records the tunnel and the configuration that
// the controller wrote last.
func (c *cloud) written(hash string) string {
	return object("tunnelID: " + string(c.id) + ", configuration: {hash: " + hash + "}")
}

// adopting is a Tunnel object that adopts a tunnel.
func adopting(object string, id provider.TunnelID) string {
	return strings.Replace(object, "deletionPolicy: Delete", "deletionPolicy: Retain\n  existing: {id: "+string(id)+"}", 1)
}

const paused = "    " + v1alpha1.PausedAnnotation + ": \"true\"\n"

// compared is a Gateway of one hostname, with annotations.
func compared(hostname, annotations string) string {
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

// settled is the same with settings for its tunnel.
func settled(hostname, settings string) string {
	return strings.Replace(compared(hostname, ""), "spec: {}", "spec: {tunnel: {"+settings+"}}", 1)
}

func existing(id provider.TunnelID) string { return "existing: {id: " + string(id) + "}" }

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

// note is a line of Gateway infra/g.
func note(text string) string { return "Gateway infra/g: " + text + "\n" }
