package cli_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// accessManifests are the Gateway changed with a GatewayClass that manages applications, an
// AccessPolicy for its listener, and the Secret with the API token for Access, in the cluster
// of its Tunnel.
func (e *edge) accessManifests(t *testing.T, policy, token string) string {
	t.Helper()
	class := "{controllerName: tunnelgateway.dev/controller, parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: tunnel-gateway, name: access}}"
	manifests := strings.Replace(e.manifests(t, "changed"), "{controllerName: tunnelgateway.dev/controller}", class, 1) + `
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: b1c5e9a4-5a0f-4a2e-9d4b-0f3f5a0c7c11}}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: access, namespace: tunnel-gateway}
spec:
  hostnames: {from: NamespaceAnnotation}
  access: {applications: Managed, teamName: acme, apiToken: {name: access}, policies: [{name: employees, id: ` + policy + `}]}
---
{apiVersion: v1, kind: Namespace, metadata: {name: platform, annotations: {tunnelgateway.dev/hostnames: "*"}}}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: AccessPolicy
metadata: {name: all, namespace: platform}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: changed}], policies: [employees]}
`
	if token != "" {
		manifests += "---\n{apiVersion: v1, kind: Secret, metadata: {name: access, namespace: tunnel-gateway}, stringData: {token: " + token + "}}\n"
	}
	return manifests
}

func TestDiffReadsTheApplications(t *testing.T) {
	for name, test := range map[string]struct {
		permissions  []simulator.Permission // of the token for Access; nil if its Secret does not exist
		external     string                 // the hostname of an application that was made by hand
		strictStatus int
		want         []string
	}{
		"outstanding": {[]simulator.Permission{simulator.AccessRead}, "", 3, []string{
			"the controller would change these applications\n", "+ create application a.example.com (Gateway platform/changed)\n",
		}},
		"made by hand": {[]simulator.Permission{simulator.AccessRead}, "a.example.com", 2, []string{"+ create application b.example.com"}},
		"without the permission": {[]simulator.Permission{simulator.DNSRead}, "", 3, []string{
			"; the API token requires the permission Access: Apps and Policies Read\n",
		}},
		"without the Secret": {nil, "", 3, []string{"Applications of account main: not compared: "}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t)
			policy := e.applications.AddPolicy("main", access.Policy{Name: "employees", Decision: "allow"})
			if test.external != "" {
				if _, err := e.applications.Create("main", []byte(`{"type":"self_hosted","name":"x","domain":"`+test.external+`"}`)); err != nil {
					t.Fatal(err)
				}
			}
			e.Restrict(e.mainToken, simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit}})
			token := ""
			if test.permissions != nil {
				token = rand.Text()
				e.Restrict(token, simulator.Grant{Permissions: test.permissions})
			}
			e.ResetRequests()
			got := run(t, e.accessManifests(t, policy.ID, token), "plan", "-f", "-", "--diff", "--strict")
			if token != "" && strings.Contains(got.stdout+got.stderr, token) {
				t.Error("the output contains the token for Access")
			}
			if got.status != test.strictStatus || strings.Contains(got.stderr, "a.example.com: Access: closed: ApplicationExists: ") != (test.external != "") {
				t.Errorf("status %d, want %d; standard error: %s", got.status, test.strictStatus, got.stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("the output does not contain %q:\n%s", want, got.stdout)
				}
			}
			e.wantOnlyReads(t)
		})
	}
}

func TestDiffOfManifestsReadsNoApplications(t *testing.T) {
	e := newEdge(t)
	policy := e.applications.AddPolicy("main", access.Policy{Name: "employees", Decision: "allow"})
	manifests := strings.Replace(e.accessManifests(t, policy.ID, ""), "name: kube-system", "name: other", 1)
	got := run(t, manifests, "plan", "-f", "-", "--diff")
	if want := "Applications of account main: not compared: only a cluster shows which applications belong to the controller."; !strings.Contains(got.stdout, want) {
		t.Errorf("the output does not contain %q:\n%s%s", want, got.stdout, got.stderr)
	}
	if n := e.Count("GET", "/accounts/*/access/apps"); n != 0 {
		t.Errorf("%d requests for applications", n)
	}
}
