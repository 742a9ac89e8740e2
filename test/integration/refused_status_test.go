package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var _ = Describe("a status that an admission policy refuses", lifecycle, func() {
	It("affects nothing else, and is written after the policy is gone", func(ctx SpecContext) {
		env := newEnvironment()
		address := freeAddress()
		g, set := env.gateway("shared", "*.example.com"), env.listenerSet("team", "team.example.org")
		refused, deleted := env.route("refused", "web", gatewayParent("shared")), env.route("deleted", "web", gatewayParent("shared"))
		policy := env.refuseStatuses(ctx, refused.Name, deleted.Name)
		env.create(env.service("web"), g, set, env.route("team", "web", listenerSetParent("team")))
		env.start("--metrics-address=" + address)
		env.create(refused, deleted)
		var others []*gatewayv1.HTTPRoute
		for i := range 20 {
			route := env.route(fmt.Sprintf("other-%02d", i), "web", gatewayParent("shared"))
			route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(route.Name + ".example.com")}
			env.create(route)
			others = append(others, route)
		}
		shared := []string{"gateway_namespace=" + env.namespace, "gateway=shared"}
		for _, other := range others {
			Eventually(routeAccepted(other, "shared")).Should(Equal("True Accepted"))
		}
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Eventually(env.get).WithArguments("shared", "refused.example.com", "/").Should(Equal("web"))
		Eventually(metricValue(address, "tunnel_gateway_routes", append(shared, "state=accepted")...)).Should(Equal(23.0))
		Eventually(metricValue(address, "tunnel_gateway_unwritten_statuses", shared...)).Should(Equal(2.0))
		Expect(metricValue(address, "tunnel_gateway_gateway_programmed", shared...)()).To(Equal(1.0))
		Expect(metricValue(address, "controller_runtime_reconcile_errors_total", "controller=gateway")()).To(Equal(0.0))
		Eventually(env.eventMessages).WithArguments(ctx, refused.Name, "StatusNotWritten").Should(ContainElement(ContainSubstring("this status is refused")))

		By("pushing and reporting a change")
		env.delete(deleted)
		update(others[0], func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames[0] = "changed.example.com" })
		Eventually(env.get).WithArguments("shared", "changed.example.com", "/").Should(Equal("web"))
		Eventually(func() int64 { return routeConditions(others[0], "shared")[0].ObservedGeneration }).Should(Equal(int64(2)))
		Eventually(metricValue(address, "tunnel_gateway_unwritten_statuses", shared...)).Should(Equal(1.0))
		Expect(latest(refused).Status.Parents).To(BeEmpty())

		By("writing the status after the policy is gone, without any other change")
		env.delete(policy...)
		Eventually(routeAccepted(refused, "shared")).Should(Equal("True Accepted"))
		Eventually(metricValue(address, "tunnel_gateway_unwritten_statuses", shared...)).Should(Equal(-1.0))
	})
})

// refuseStatuses creates a policy that refuses the HTTPRoutes' statuses, and waits until
// it is in effect. It returns the policy's objects.
func (env *environment) refuseStatuses(ctx context.Context, routes ...string) []client.Object {
	GinkgoHelper()
	name := metav1.ObjectMeta{Name: env.namespace + "-statuses"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: labelSelector("kubernetes.io/metadata.name", env.namespace),
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{gatewayv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"httproutes/status"}},
			}}},
		},
		Validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf("!(object.metadata.name in ['%s'])", strings.Join(append(routes, "probe"), "', '")), Message: "this status is refused",
		}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	probe := env.route("probe", "web", gatewayParent("none"))
	env.create(policy, binding, probe)
	objects := []client.Object{policy.DeepCopy(), binding.DeepCopy()}
	DeferCleanup(func(ctx SpecContext) {
		for _, object := range objects {
			Expect(client.IgnoreNotFound(kube.Delete(ctx, object))).To(Succeed())
		}
	})
	Eventually(func() error {
		probe := latest(probe)
		probe.Status.Parents = []gatewayv1.RouteParentStatus{} // required
		return kube.Status().Update(ctx, probe, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("this status is refused")))
	return objects
}
