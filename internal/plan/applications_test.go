package plan_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

const (
	managedAccess = `access: {applications: Managed, teamName: acme, policies: [{name: employees, id: 8f3e0000-0000-4000-8000-000000000000}]},
  hostnames: {from: NamespaceAnnotation}, `
	infraPermits = `
---
{apiVersion: v1, kind: Namespace, metadata: {name: infra, annotations: {tunnelgateway.dev/hostnames: "*.example.com"}}}
`
	webPolicy = `
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: AccessPolicy
metadata: {name: web, namespace: infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  policies: [%]
`
)

// managedCluster is an [accessCluster] with the settings of the GatewayClass in the
// controller's namespace, where they have to be.
func managedCluster(listeners, class string) string {
	return strings.ReplaceAll(accessCluster(listeners, class, ""), "platform", "tunnel-gateway")
}

func policyFor(names string) string { return strings.ReplaceAll(webPolicy, "%", names) }

const oneListener = `{name: a, hostname: a.example.com, port: 80, protocol: HTTP}`

func TestAHostnameWithAnOutstandingApplicationIsExplained(t *testing.T) {
	p := planOf(t, managedCluster(oneListener, managedAccess)+infraPermits+policyFor("employees"))
	want := []plan.HostnameAccess{{
		Hostname: "a.example.com", State: access.Closed, Reason: "Pending",
		Demand: &plan.AccessDemand{Level: "AccessPolicy", Object: "AccessPolicy infra/web", Policies: []string{"employees"}, SessionDuration: "24h0m0s", Application: "a.example.com"},
	}}
	p.Gateways[0].Access[0].Message = ""
	if diff := cmp.Diff(want, p.Gateways[0].Access); diff != "" {
		t.Errorf("access differs (-want +got):\n%s", diff)
	}
	out := table(t, p)
	for _, text := range []string{
		"a.example.com  closed: Pending  employees  24h      a.example.com  AccessPolicy infra/web",
		"The applications of Cloudflare Access have not been read.",
		"http_status:403", "closed hostname",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("the output does not contain %q:\n%s", text, out)
		}
	}
	if !p.Healthy() || len(p.Problems()) > 0 {
		t.Errorf("an outstanding application is a problem: %v", p.Problems())
	}
}

func TestAHostnameThatAUserMustFixIsAProblem(t *testing.T) {
	for name, test := range map[string]struct{ class, policies, permits, reason string }{
		"policy not in the catalogue": {managedAccess, "nosuch", infraPermits, "PolicyNotFound"},
		"hostname not permitted":      {managedAccess, "employees", "", "HostnameNotPermitted"},
		"applications are disabled":   {strings.Replace(managedAccess, "Managed", "Disabled", 1), "employees", infraPermits, "Disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, managedCluster(oneListener, test.class)+test.permits+policyFor(test.policies))
			if got := p.Gateways[0].Access[0]; got.State != access.Closed || got.Reason != test.reason {
				t.Errorf("got %+v", got)
			}
			if p.Healthy() || len(p.Problems()) == 0 {
				t.Error("the plan is healthy")
			}
			if out := table(t, p); !strings.Contains(out, "a.example.com: Access: closed: "+test.reason+": ") {
				t.Errorf("the output does not name the problem:\n%s", out)
			}
		})
	}
}

func TestAHostnameThatInheritsADemandIsNamed(t *testing.T) {
	const entry = `listenerConfigurations: [{protocolPort: "*", hostname: "*.example.com", access: {required: true, policies: [employees]}}]`
	p := planOf(t, managedCluster(oneListener+`, {name: w, hostname: "*.example.com", port: 80, protocol: HTTP}`, managedAccess+entry))
	got := p.Gateways[0].Access
	if len(got) != 2 || got[0].Demand.Entry != "*.example.com" || got[1].Demand.Entry != "" || got[0].Demand.Level != "GatewayClass" {
		t.Errorf("got %+v and %+v", got[0].Demand, got[1].Demand)
	}
	if out := table(t, p); !strings.Contains(out, "TunnelConfiguration tunnel-gateway/defaults, entry for *.example.com (GatewayClass)") {
		t.Errorf("the output does not name the entry:\n%s", out)
	}
}

// Requests that are explained at a time share one plan that assumes the applications, and
// leave their plan as it is.
func TestExplanationsShareTheAssumption(t *testing.T) {
	p := planOf(t, managedCluster(oneListener, managedAccess)+infraPermits+policyFor("employees"))
	before := printed(t, p)
	var group sync.WaitGroup
	plans := make([]*plan.Plan, 4)
	for i := range plans {
		group.Go(func() {
			request := routing.Request{Host: "a.example.com", Path: fmt.Sprintf("/x/%d", i)}
			explained, err := p.ForRequest(t.Context(), request)
			if err != nil {
				t.Error(err)
				return
			}
			if a := explained.Explain(request).Traces[0].Access; a.State != access.Protected {
				t.Errorf("got %+v", a)
			}
			plans[i], _ = p.AssumingApplications(t.Context())
		})
	}
	group.Wait()
	for _, other := range plans {
		if other == nil || other == p || other != plans[0] {
			t.Errorf("the plans %p are not one other plan than %p", plans, p)
		}
	}
	if after := printed(t, p); after != before {
		t.Errorf("the plan has changed to:\n%s", after)
	}
	open := planOf(t, shared)
	if assumed, err := open.AssumingApplications(t.Context()); assumed != open || err != nil {
		t.Errorf("without a demand: another plan %p, or the error %v", assumed, err)
	}
}

// Plan assumes the applications for an explanation, so that it names the route that answers.
func TestExplanationAssumesTheApplication(t *testing.T) {
	source := read(t, managedCluster(oneListener, managedAccess)+infraPermits+policyFor("employees"), "-")
	p, err := plan.BuildAssumingApplications(t.Context(), source, options, now)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Explain(routing.Request{Method: "GET", Host: "a.example.com", Path: "/x"}).Traces[0]
	if got.Access.State != access.Protected || got.Access.AUDTags != nil || !strings.Contains(got.Access.Message, "is closed") {
		t.Errorf("got %+v", got.Access)
	}
	if got.Answer.Status == 403 {
		t.Errorf("the request is answered with %+v", got.Answer)
	}
}

func TestExplanationNamesTheLevelThatDecides(t *testing.T) {
	p := planOf(t, managedCluster(oneListener, managedAccess)+infraPermits+policyFor("employees"))
	request := routing.Request{Method: "GET", Host: "a.example.com", Path: "/x"}
	if warning := p.Unserved(request); warning != "" {
		t.Errorf("got the warning %q", warning)
	}
	e := p.Explain(request)
	if len(e.Traces) != 1 || e.Traces[0].Access == nil || e.Traces[0].Access.State != access.Closed || e.Traces[0].Answer.Status != 403 {
		t.Fatalf("got %+v", e.Traces)
	}
	var out strings.Builder
	if err := e.WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"Answered with status 403", "Access: a.example.com is closed: Pending", "demanded by AccessPolicy infra/web, with the policies employees",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the output does not contain %q:\n%s", text, out.String())
		}
	}
}
