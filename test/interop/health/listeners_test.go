package health

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// programmed makes kubectl wait until a Gateway or ListenerSet is programmed.
const programmed = "--for=condition=Programmed"

// TestInvalidListenerDegradesTheGatewayOnlyInArgoCD adds a listener whose certificate
// does not exist. The scripts in the guide make Argo CD ignore it.
func TestInvalidListenerDegradesTheGatewayOnlyInArgoCD(t *testing.T) {
	e := newEnvironment(t)
	e.create("00-platform.yaml", "10-team-a.yaml", "20-team-b.yaml")
	e.startController()
	e.expectHealthy("the samples")

	invalid := httpsListenerSet().Spec.Listeners[0]
	shared := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared"}}
	change(e, shared, func(g *gatewayv1.Gateway) { g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener(invalid)) })
	const name = "Gateway platform/shared"
	e.expectHealth(name, argoCD, healthDegraded, "Listener: ", "secure")
	e.expectHealth(name, argoCDLenient, healthHealthy, "1 of 2 listeners are not served")
	e.expectHealth(name, flux, healthHealthy)
	e.expectHealth(name, kstatus, healthHealthy)
	e.expectKubectl("wait", "-n=platform", programmed, "gateway/shared")
	for _, other := range e.history.names() {
		if other != name {
			e.g.Expect(e.history.flaps(other, e.checks[argoCD])).To(BeEmpty(), "the health of other objects must not change")
		}
	}

	secret := e.certificate()
	secret.Namespace = "platform"
	e.createObject(secret)
	e.expectHealth(name, argoCD, healthHealthy)
	e.expectHealth(name, argoCDLenient, healthHealthy, "All listeners are served")
}

// TestHostnameConflictDegradesOnlyTheLaterListenerSet checks that a conflict affects
// neither the Gateway nor the hostname's owner.
func TestHostnameConflictDegradesOnlyTheLaterListenerSet(t *testing.T) {
	e := newEnvironment(t)
	e.create("00-platform.yaml", "10-team-a.yaml", "20-team-b.yaml")
	e.startController()
	e.expectHealthy("the samples")
	mixed := httpsListenerSet()
	mixed.Name, mixed.Spec.Listeners[0].TLS = "mixed", nil
	mixed.Spec.Listeners[0].Port, mixed.Spec.Listeners[0].Protocol = 80, gatewayv1.HTTPProtocolType
	mixed.Spec.Listeners = append(mixed.Spec.Listeners, *mixed.Spec.Listeners[0].DeepCopy())
	mixed.Spec.Listeners[1].Name, mixed.Spec.Listeners[1].Hostname = "conflicted", ptr.To[gatewayv1.Hostname]("shared.example.com")
	e.createObject(mixed)
	e.create("30-team-b-conflict.yaml")

	const partial, complete = "ListenerSet team-a/mixed", "ListenerSet team-b/team-b-late"
	e.expectHealth(partial, argoCD, healthDegraded, "Listener: ")
	e.expectHealth(partial, argoCDLenient, healthHealthy, "1 of 2 listeners are not served")
	e.expectHealth(partial, flux, healthHealthy)
	e.expectKubectl("wait", "-n=team-a", programmed, "listenerset/mixed")

	e.expectHealth(complete, argoCD, healthDegraded)
	e.expectHealth(complete, argoCDLenient, healthDegraded)
	e.expectHealth(complete, flux, healthProgressing)
	e.expectHealth(complete, kstatus, healthHealthy)
	out, err := e.kubectl("wait", "-n=team-b", "--timeout=0s", programmed, "listenerset/team-b-late")
	e.g.Expect(err).To(HaveOccurred(), out)
	e.expectHealth("HTTPRoute team-b/takeover", argoCD, healthHealthy)
	for _, name := range []string{"Gateway platform/shared", "ListenerSet team-a/team-a", "ListenerSet team-b/team-b", "HTTPRoute team-a/web"} {
		e.expectHealth(name, argoCD, healthHealthy)
		e.g.Expect(e.history.flaps(name, e.checks[argoCD])).To(BeEmpty(), "the health of other objects must not change")
	}

	change(e, mixed, func(s *gatewayv1.ListenerSet) { s.Spec.Listeners = s.Spec.Listeners[:1] })
	owner := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "team-a"}}
	e.g.Expect(e.kube.Delete(t.Context(), owner)).To(Succeed())
	for _, tool := range conditionTools {
		e.expectHealth(partial, tool, healthHealthy)
		e.expectHealth(complete, tool, healthHealthy)
	}
}

// expectHealth waits until the tool assesses the object with the health, and with a
// message that contains the parts.
func (e *environment) expectHealth(name, tool, health string, parts ...string) {
	e.t.Helper()
	e.g.Eventually(e.health).WithArguments(name, tool).Should(Equal(health), "%s in %s", name, tool)
	for _, part := range parts {
		e.g.Eventually(func() string { return e.history.latest(name, e.checks[tool]).message }).Should(ContainSubstring(part), "%s in %s", name, tool)
	}
}

// expectKubectl runs kubectl successfully and returns its output.
func (e *environment) expectKubectl(arguments ...string) string {
	e.t.Helper()
	out, err := e.kubectl(arguments...)
	e.g.Expect(err).NotTo(HaveOccurred(), out)
	return out
}
