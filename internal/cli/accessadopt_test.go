package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// accessObjects are a Gateway whose GatewayClass demands applications for all its hostnames.
const accessObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: b1c5e9a4-5a0f-4a2e-9d4b-0f3f5a0c7c11}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: tunnel-gateway, name: defaults}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: defaults, namespace: tunnel-gateway}
spec:
  access: {applications: Managed, teamName: acme, policies: [{name: employees, id: POLICY}]}
  listenerConfigurations:
  - {protocolPort: "*", hostname: "*.example.com", access: {required: true, policies: [employees]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: platform}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners:
  - {name: a, hostname: a.example.com, port: 80, protocol: HTTP}
  - {name: b, hostname: b.example.com, port: 80, protocol: HTTP}
  - {name: c, hostname: c.example.com, port: 80, protocol: HTTP}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: Tunnel
metadata: {name: platform.shared, namespace: tunnel-gateway}
spec:
  gateway: {namespace: platform, name: shared}
  controllerName: tunnelgateway.dev/controller
  clusterUID: b1c5e9a4-5a0f-4a2e-9d4b-0f3f5a0c7c11
  accountID: main
  name: cluster.platform.shared
  deletionPolicy: Delete
status: {tunnelID: 6ff42ae2-765d-4adf-8112-31c55c1551ef, phase: Serving}
`

// accessBed is a cluster with accessObjects, and an account with applications for a.example.com
// and, together with another hostname, for b.example.com.
type accessBed struct {
	client.WithWatch
	*simulator.Server
	database *access.Database
	ids      map[string]string // of the applications
}

// newAccessBed returns a bed. With the same policies, the application for a.example.com has
// those of the demand.
func newAccessBed(t *testing.T, samePolicies bool) *accessBed {
	t.Helper()
	database := access.New(access.Options{})
	policy := database.AddPolicy("main", access.Policy{Name: "employees", Decision: "allow"}).ID
	text := strings.ReplaceAll(accessObjects, "POLICY", policy)
	set, err := manifest.Read([]string{"-"}, manifest.Options{Stdin: strings.NewReader(text), Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	b := &accessBed{database: database, ids: map[string]string{}}
	b.WithWatch = fake.NewClientBuilder().WithScheme(manifest.Scheme()).WithObjects(set.Objects...).WithStatusSubresource(&v1alpha1.Tunnel{}).Build()
	token := rand.Text()
	b.Server = simulator.New(simulator.Options{Token: "another", Access: database})
	b.Restrict(token, simulator.Grant{Permissions: []simulator.Permission{simulator.AccessRead}})
	server := httptest.NewServer(b.API())
	t.Cleanup(server.Close)
	policies := `[]`
	if samePolicies {
		policies = `["` + policy + `"]`
	}
	for hostname, body := range map[string]string{
		"a.example.com": `"domain":"a.example.com","policies":` + policies,
		"b.example.com": `"domain":"b.example.com","self_hosted_domains":["b.example.com","other.example.com"]`,
	} {
		created, err := database.Create("main", []byte(`{"type":"self_hosted","name":"by hand",`+body+`}`))
		if err != nil {
			t.Fatal(err)
		}
		b.ids[hostname] = created.ID
	}
	for variable, value := range map[string]string{
		"CLOUDFLARE_ACCOUNT_ID": "", "CLOUDFLARE_API_TOKEN_SECRET": "", "NO_COLOR": "", "CLOUDFLARE_API_TOKEN": token, "CLOUDFLARE_BASE_URL": server.URL + "/client/v4",
	} {
		t.Setenv(variable, value)
	}
	return b
}

func (b *accessBed) run(t *testing.T, arguments ...string) result {
	var o accessAdoptOptions
	cmd := &cobra.Command{Use: "adopt", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, names []string) error {
		if err := o.checkToken(); err != nil {
			return err
		}
		return o.executeOn(cmd, b.WithWatch, names)
	}}
	o.addFlags(cmd.Flags())
	var stdout, stderr bytes.Buffer
	cmd.SetArgs(arguments)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err := cmd.ExecuteContext(t.Context())
	return result{stdout.String(), stderr.String(), err}
}

func (b *accessBed) tunnel(t *testing.T) *v1alpha1.Tunnel {
	t.Helper()
	o := &v1alpha1.Tunnel{}
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: "tunnel-gateway", Name: "platform.shared"}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// withController runs the command while the controller adopts everything that is requested.
func (b *accessBed) withController(t *testing.T, arguments ...string) (result, []v1alpha1.ApplicationAdoption) {
	t.Helper()
	done := make(chan result, 1)
	go func() { done <- b.run(t, arguments...) }()
	var requested []v1alpha1.ApplicationAdoption
	for {
		select {
		case r := <-done:
			return r, requested
		case <-time.After(10 * time.Millisecond):
		}
		o := b.tunnel(t)
		entries, err := o.RequestedApplicationAdoptions()
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 || o.Status.Access != nil {
			continue
		}
		requested, o.Status.Access = entries, &v1alpha1.TunnelAccessStatus{}
		for _, e := range entries {
			o.Status.Access.Adoptions = append(o.Status.Access.Adoptions, v1alpha1.ApplicationAdoptionResult{
				Hostname: e.Hostname, Requested: e.Requested, Result: v1alpha1.RecordAdopted, Message: "To undo it, remove the tag.",
			})
		}
		if err := b.Status().Update(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
}

// wantNoRequest checks that the command asked for nothing and changed nothing.
func (b *accessBed) wantNoRequest(t *testing.T) {
	t.Helper()
	if entries, err := b.tunnel(t).RequestedApplicationAdoptions(); err != nil || len(entries) > 0 {
		t.Errorf("requested %v, %v", entries, err)
	}
	for _, r := range b.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("sent %s %s", r.Method, r.Path)
		}
	}
}

func TestAccessAdoptLetsTheControllerAdoptTheApplication(t *testing.T) {
	b := newAccessBed(t, true)
	got, requested := b.withController(t, "A.example.com.")
	if got.err != nil || len(requested) != 1 || requested[0].Hostname != "a.example.com" || requested[0].ID != b.ids["a.example.com"] {
		t.Errorf("error %v, requested %+v", got.err, requested)
	}
	for _, want := range []string{"a.example.com  by hand", "a.example.com  Adopted  platform/shared\n", "a.example.com: To undo it, remove the tag.\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the output does not contain %q:\n%s", want, got.stdout)
		}
	}
}

func TestAccessAdoptPrintsJSON(t *testing.T) {
	b := newAccessBed(t, false)
	got, requested := b.withController(t, "a.example.com", "--yes", "-o", "json")
	var printed struct{ Applications []map[string]any }
	if err := json.Unmarshal([]byte(got.stdout), &printed); err != nil || got.err != nil || len(requested) != 1 {
		t.Fatalf("errors %v and %v, requested %v", err, got.err, requested)
	}
	if a := printed.Applications[0]; len(printed.Applications) != 1 || a["result"] != "Adopted" || a["changesPolicies"] != true || a["id"] != b.ids["a.example.com"] {
		t.Errorf("printed %v", a)
	}
}

func TestAccessAdoptRequestsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		err, text string
	}{
		"dry run":               {[]string{"a.example.com", "--dry-run"}, "", "a.example.com  by hand"},
		"other policies":        {[]string{"a.example.com"}, "the controller would replace the policies of applications (a.example.com), and the command cannot ask", ""},
		"more than a hostname":  {[]string{"a.example.com", "b.example.com", "--yes"}, "1 of 2 applications cannot be adopted; the command has requested nothing", "b.example.com: the application also protects other.example.com."},
		"no application":        {[]string{"c.example.com", "--yes"}, "1 of 1 applications cannot be adopted", "no application is for exactly this hostname"},
		"a hostname not wanted": {[]string{"aa.example.com"}, `aa.example.com: no Gateway demands an application with this hostname; demand the protection first; did you mean a.example.com?`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newAccessBed(t, false)
			got := b.run(t, test.arguments...)
			if test.err == "" && got.err != nil || test.err != "" && (got.err == nil || !strings.Contains(got.err.Error(), test.err)) {
				t.Errorf("error = %v, want %q", got.err, test.err)
			}
			if !strings.Contains(got.stdout, test.text) {
				t.Errorf("the output does not contain %q:\n%s", test.text, got.stdout)
			}
			b.wantNoRequest(t)
		})
	}
}

func TestAccessAdoptNeedsThePermission(t *testing.T) {
	b := newAccessBed(t, true)
	t.Setenv("CLOUDFLARE_API_TOKEN", "tunnels")
	b.Restrict("tunnels", simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit}})
	if got := b.run(t, "a.example.com"); got.err == nil || !strings.HasSuffix(got.err.Error(), "the API token needs the permission Access: Apps and Policies Read") {
		t.Errorf("error = %v", got.err)
	}
	b.wantNoRequest(t)
	t.Setenv("CLOUDFLARE_API_TOKEN", "")
	if got := b.run(t, "a.example.com"); got.err == nil || !strings.Contains(got.err.Error(), "your own token with the permission Access: Apps and Policies Read; the controller's token is not used") {
		t.Errorf("error = %v", got.err)
	}
	if requests := b.Requests(); slices.ContainsFunc(requests, func(r simulator.Request) bool { return r.Status == http.StatusOK }) {
		t.Errorf("sent %v", requests)
	}
}
