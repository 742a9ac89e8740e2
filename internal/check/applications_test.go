package check_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// demanding makes the GatewayClass demand an application with the policy for shop.example.com.
func demanding(policy string) []string {
	return []string{"spec:\n  dataPlane: IngressRules\n", `spec:
  dataPlane: IngressRules
  access: {applications: Managed, teamName: acme, policies: [{name: employees, id: 8f3e0000-0000-4000-8000-000000000000}]}
  listenerConfigurations:
  - {protocolPort: "*", hostname: shop.example.com, access: {required: true, policies: [` + policy + `]}}
`}
}

// accessReady sets the condition of the ListenerSet whose listener receives the request.
func accessReady(s metav1.ConditionStatus, r conditions.Reason, message string) func(*cluster) {
	return func(c *cluster) {
		each(c, func(o *gatewayv1.ListenerSet) {
			condition(&o.Status.Conditions, conditions.TypeAccessReady, s, r, message)
		})
	}
}

// TestTheStatusSaysWhetherAnApplicationExists checks the step access, and that the steps in
// the cluster do not fail because the check does not read the account.
func TestTheStatusSaysWhetherAnApplicationExists(t *testing.T) {
	for name, test := range map[string]struct {
		policy string
		change func(*cluster)
		want   check.Result
		text   string
		// decision is the result of the step decision.
		decision check.Result
	}{
		"protected": {"employees", accessReady(metav1.ConditionTrue, conditions.ReasonProtected, "An application protects each hostname."), ok,
			"Protected: requests need a Cloudflare Access token.", ok},
		"closed": {"employees", accessReady(metav1.ConditionFalse, conditions.ReasonApplicationExists, "shop.example.com (closed): another application has it."), failed,
			"Closed: Cloudflare Access must protect the hostname, and no application does. ApplicationExists:", ok},
		"open": {"employees", accessReady(metav1.ConditionFalse, conditions.ReasonPending, "shop.example.com (open): the application is outstanding."), warning,
			"Open until it is protected: Pending:", ok},
		"another hostname": {"employees", accessReady(metav1.ConditionFalse, conditions.ReasonPending, "a.shop.example.com (closed): the application is outstanding."), unknown,
			"whether this one is among them is not known", ok},
		"no condition": {"employees", func(c *cluster) {
			each(c, func(o *gatewayv1.ListenerSet) { o.Status.Conditions = nil })
		}, unknown, "No status says whether", ok},
		"a policy that the catalogue lacks": {"nosuch", func(*cluster) {}, failed, "PolicyNotFound: ", failed},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, demanding(test.policy)...)
			test.change(c)
			u, err := check.ParseTarget(shop)
			if err != nil {
				t.Fatal(err)
			}
			source, p := c.plan(t)
			checker := check.Checker{
				Source: source, Plan: p, ControllerName: config.DefaultControllerName, ControllerNamespace: controllerNamespace,
				Network: probe.Network{Resolver: noResolver{}, Dial: noDial},
			}
			for _, step := range checker.Run(t.Context(), check.Request{URL: u, NoRequest: true}).Steps {
				switch step.Name {
				case check.StepAccess:
					if text := textOf(step); step.Result != test.want || !strings.Contains(text, test.text) {
						t.Errorf("the step access is %s, want %s and %q:\n%s", step.Result, test.want, test.text, text)
					}
				case check.StepDecision:
					if step.Result != test.decision {
						t.Errorf("the step decision is %s, want %s:\n%s", step.Result, test.decision, textOf(step))
					}
				case check.StepObjects:
					if text := textOf(step); strings.Contains(text, "AccessReady") || strings.Contains(text, "does not match the objects") {
						t.Errorf("the step objects reports on Access:\n%s", text)
					}
				}
			}
		})
	}
}

// textOf returns what the step has found.
func textOf(s check.Step) string {
	var lines []string
	for _, f := range s.Findings {
		lines = append(lines, f.Message)
	}
	return strings.Join(lines, "\n")
}
