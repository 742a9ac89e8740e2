package gateway_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

func accessTarget(kind, name, section string) gatewayv1.LocalPolicyTargetReferenceWithSectionName {
	ref := gatewayv1.LocalPolicyTargetReferenceWithSectionName{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
		Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(kind), Name: gatewayv1.ObjectName(name),
	}}
	if section != "" {
		ref.SectionName = new(gatewayv1.SectionName(section))
	}
	return ref
}

func accessPolicy(namespace, name string, targets ...gatewayv1.LocalPolicyTargetReferenceWithSectionName) *v1alpha1.AccessPolicy {
	policy := &v1alpha1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 4}}
	policy.Spec.Policies, policy.Spec.TargetRefs = []v1alpha1.PolicyName{"employees"}, targets
	return policy
}

// accessSnapshot returns a Gateway with the hostname own.example.com and a ListenerSet with
// the hostname team.example.com, whose GatewayClass manages applications, and the policies.
func accessSnapshot(policies ...*v1alpha1.AccessPolicy) *gateway.Snapshot {
	s := reportSnapshot()
	withRules := tenantsSnapshot()
	s.Class, s.ClassConfiguration = withRules.Class, withRules.ClassConfiguration
	s.ClassConfiguration.Namespace = options.ControllerNamespace // spec.access is valid only there
	s.Class.Spec.ParametersRef.Namespace = new(gatewayv1.Namespace(options.ControllerNamespace))
	s.ClassConfiguration.Spec.Hostnames = &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)}
	s.ClassConfiguration.Spec.Access = &v1alpha1.AccessApplications{
		Applications: new(v1alpha1.ApplicationsManaged), TeamName: new("acme"), Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "id"}},
	}
	s.Namespaces["infra"] = s.Namespaces["team"].DeepCopy()
	permit(s, "infra", "*.example.com")
	permit(s, "team", "*.example.com")
	s.AccessPolicies = policies
	return s
}

// ancestorLines returns a line for each condition in the report's AccessPolicies.
func ancestorLines(r gateway.Report) []string {
	var lines []string
	for _, policy := range r.AccessPolicies {
		for _, ancestor := range policy.Ancestors {
			for _, c := range ancestor.Conditions {
				lines = append(lines, fmt.Sprintf("%s %s: %s %s %s", policy.NamespacedName, describeRef(ancestor.AncestorRef), c.Type, c.Status, c.Reason))
			}
		}
	}
	return lines
}

// The CustomResourceDefinition prevents these values. If they are stored all the same, the
// hostnames of the targets are closed.
func TestAnInvalidAccessPolicyClosesItsHostnames(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AccessPolicy){
		"no policies": func(p *v1alpha1.AccessPolicy) { p.Spec.Policies = nil },
		"no duration": func(p *v1alpha1.AccessPolicy) { p.Spec.SessionDuration = new(v1alpha1.SessionDuration("long")) },
		"other kind of target": func(p *v1alpha1.AccessPolicy) {
			p.Spec.TargetRefs = append(p.Spec.TargetRefs, accessTarget("HTTPRoute", "route", ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := accessPolicy("team", "web", accessTarget(gateway.KindListenerSet, "set", ""))
			change(policy)
			result := gateway.Build(accessSnapshot(policy), options)
			if r := result.Table.Access.Of("team.example.com"); r == nil || !r.Closed {
				t.Errorf("team.example.com requires %+v, want that it is closed", r)
			}
			want := []string{
				"team/web Gateway infra/shared: Accepted False Invalid", "team/web Gateway infra/shared: ResolvedRefs True ResolvedRefs",
				"team/web Gateway infra/shared: Programmed False Pending",
			}
			report := result.Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}})
			if diff := cmp.Diff(want, ancestorLines(report)); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
			if got := accessReady(report.ListenerSets[0].Status.Conditions); got != "False Invalid" {
				t.Errorf("AccessReady is %q", got)
			}
		})
	}
}

// A target without a Gateway of this controller is its own ancestor.
func TestATargetWithoutAManagedGatewayIsItsOwnAncestor(t *testing.T) {
	s := accessSnapshot(
		accessPolicy("team", "both", accessTarget(gateway.KindListenerSet, "set", "good"), accessTarget(gateway.KindListenerSet, "other", "")),
		accessPolicy("infra", "own", accessTarget(gateway.KindGateway, "shared", "")),
		accessPolicy("team", "gone"), // its status has an entry for the Gateway
	)
	r := gateway.ResetReport(reportGateway, s)
	want := []string{
		"team/both ListenerSet team/set: Accepted False TargetNotFound",
		"infra/own Gateway infra/shared: Accepted False TargetNotFound",
	}
	if diff := cmp.Diff(want, ancestorLines(r)); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
	if len(r.AccessPolicies) != 3 {
		t.Errorf("the report has %d AccessPolicies, want 3, because entries of the last one are to be removed", len(r.AccessPolicies))
	}
}

// While the Gateway is not accepted, an AccessPolicy is not programmed, also if it is not
// known what the Gateway's entries demand.
func TestAnAccessPolicyOfARejectedGatewayIsNotProgrammed(t *testing.T) {
	for name, change := range map[string]func(*gateway.Snapshot){
		"the settings are not valid": func(s *gateway.Snapshot) { s.ClassConfiguration = nil },
		"an address is requested": func(s *gateway.Snapshot) {
			s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := accessSnapshot(accessPolicy("infra", "web", accessTarget(gateway.KindGateway, "shared", "")))
			change(s)
			lines := ancestorLines(gateway.Build(s, options).Report(gateway.Outcome{}))
			if last := lines[len(lines)-1]; last != "infra/web Gateway infra/shared: Programmed False Pending" {
				t.Errorf("got %q", lines)
			}
		})
	}
}

// While AccessPolicies cannot be read, their statuses do not change, and it is not known
// what the hostnames demand.
func TestUnknownAccessPoliciesKeepTheirStatuses(t *testing.T) {
	s := accessSnapshot()
	s.AccessPoliciesUnknown = true
	result := gateway.Build(s, options)
	if !result.Demanded.Unknown {
		t.Error("the demands are said to be known")
	}
	if policies := result.Report(gateway.Outcome{}).AccessPolicies; len(policies) > 0 {
		t.Errorf("the report has %v", policies)
	}
}
