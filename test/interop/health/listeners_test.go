package health

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// programmed is what kubectl can wait for on a Gateway and a ListenerSet.
const programmed = "--for=condition=Programmed"

// TestOneBadListenerDegradesTheGateway in the eyes of Argo CD alone.
func TestOneBadListenerDegradesTheGateway(t *testing.T) {
	w := newWorld(t)
	w.create("00-platform.yaml", "10-team-a.yaml", "20-team-b.yaml")
	w.start()
	w.expectHealthy("the samples")

	bad := secureSet().Spec.Listeners[0]
	shared := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared"}}
	change(w, shared, func(g *gatewayv1.Gateway) { g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener(bad)) })
	const name = "Gateway platform/shared"
	w.expectVerdict(name, argoCD, healthDegraded, "Listener: ", "secure")
	w.expectVerdict(name, argoCDLenient, healthHealthy, "1 of 2 listeners are not served")
	w.expectVerdict(name, flux, healthHealthy)
	w.expectVerdict(name, kstatus, healthHealthy)
	w.expectKubectl("wait", "-n=platform", programmed, "gateway/shared")
	for _, other := range w.history.names() {
		if other != name {
			w.g.Expect(w.history.flaps(other, w.judges[argoCD])).To(BeEmpty(), "nobody else is to blame")
		}
	}

	secret := w.certificate()
	secret.Namespace = "platform"
	w.createObject(secret)
	w.expectVerdict(name, argoCD, healthHealthy)
	w.expectVerdict(name, argoCDLenient, healthHealthy, "All listeners are served")
}

// TestOneConflictedEntryDegradesTheListenerSet, and neither the Gateway nor
// whoever has the hostname.
func TestOneConflictedEntryDegradesTheListenerSet(t *testing.T) {
	w := newWorld(t)
	w.create("00-platform.yaml", "10-team-a.yaml", "20-team-b.yaml")
	w.start()
	w.expectHealthy("the samples")
	mixed := secureSet()
	mixed.Name, mixed.Spec.Listeners[0].TLS = "mixed", nil
	mixed.Spec.Listeners[0].Port, mixed.Spec.Listeners[0].Protocol = 80, gatewayv1.HTTPProtocolType
	mixed.Spec.Listeners = append(mixed.Spec.Listeners, *mixed.Spec.Listeners[0].DeepCopy())
	mixed.Spec.Listeners[1].Name, mixed.Spec.Listeners[1].Hostname = "taken", ptr.To[gatewayv1.Hostname]("shared.example.com")
	w.createObject(mixed)
	w.create("30-team-b-conflict.yaml")

	const some, all = "ListenerSet team-a/mixed", "ListenerSet team-b/team-b-late"
	w.expectVerdict(some, argoCD, healthDegraded, "Listener: ")
	w.expectVerdict(some, argoCDLenient, healthHealthy, "1 of 2 listeners are not served")
	w.expectVerdict(some, flux, healthHealthy)
	w.expectKubectl("wait", "-n=team-a", programmed, "listenerset/mixed")

	w.expectVerdict(all, argoCD, healthDegraded)
	w.expectVerdict(all, argoCDLenient, healthDegraded)
	w.expectVerdict(all, flux, healthProgressing)
	w.expectVerdict(all, kstatus, healthHealthy)
	out, err := w.kubectl("wait", "-n=team-b", "--timeout=0s", programmed, "listenerset/team-b-late")
	w.g.Expect(err).To(HaveOccurred(), out)
	w.expectVerdict("HTTPRoute team-b/takeover", argoCD, healthHealthy)
	for _, name := range []string{"Gateway platform/shared", "ListenerSet team-a/team-a", "ListenerSet team-b/team-b", "HTTPRoute team-a/web"} {
		w.expectVerdict(name, argoCD, healthHealthy)
		w.g.Expect(w.history.flaps(name, w.judges[argoCD])).To(BeEmpty(), "nobody else is to blame")
	}

	change(w, mixed, func(s *gatewayv1.ListenerSet) { s.Spec.Listeners = s.Spec.Listeners[:1] })
	first := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "team-a"}}
	w.g.Expect(w.kube.Delete(t.Context(), first)).To(Succeed())
	for _, by := range thorough {
		w.expectVerdict(some, by, healthHealthy)
		w.expectVerdict(all, by, healthHealthy)
	}
}

// expectVerdict waits for what the judge has to say of an object.
func (w *world) expectVerdict(name, by, health string, parts ...string) {
	w.t.Helper()
	w.g.Eventually(w.health).WithArguments(name, by).Should(Equal(health), "%s by %s", name, by)
	for _, part := range parts {
		w.g.Eventually(func() string { return w.history.latest(name, w.judges[by]).message }).Should(ContainSubstring(part), "%s by %s", name, by)
	}
}

// expectKubectl runs kubectl, which has to succeed, and returns what it printed.
func (w *world) expectKubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.kubectl(arguments...)
	w.g.Expect(err).NotTo(HaveOccurred(), out)
	return out
}
