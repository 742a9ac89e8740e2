package health

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// configurationPath is the API path for all tunnels' configurations.
const configurationPath = "/accounts/*/cfd_tunnel/*/configurations"

// conditionTools are the tools whose health checks evaluate the Gateway API conditions.
var conditionTools = []string{argoCD, argoCDLenient, flux}

// TestObjectsStayHealthyAfterTheFirstPush applies the samples and then
// causes events that must not make any object unhealthy.
func TestObjectsStayHealthyAfterTheFirstPush(t *testing.T) {
	e := newEnvironment(t)
	e.waitForFirstPush()
	for _, event := range []struct {
		name    string
		trigger func(*environment)
	}{
		{"routes change", (*environment).changeRoutes},
		{"a push is slow", withFault(1, simulator.Fault{Latency: 4 * time.Second})},
		{"Cloudflare rate-limits a push", withFault(1, simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 3 * time.Second})},
		{"a team is added and removed", (*environment).addAndRemoveTeam},
		{"a certificate is renewed", (*environment).renewCertificate},
		{"another client changes the configuration", (*environment).changeConfigurationExternally},
		{"the controller is rolled out", restartController((*environment).stopController)},
		{"the controller is killed", restartController((*environment).killController)},
		{"Cloudflare rate-limits the controller at its start", (*environment).restartRateLimited},
	} {
		start := time.Now()
		event.trigger(e)
		e.expectHealthy(event.name)
		e.expectNoFlaps(event.name)
		t.Logf("%s: always healthy (%s)", event.name, time.Since(start).Round(time.Millisecond))
	}
}

// waitForFirstPush applies the samples and checks their objects' health before and after
// the first push.
func (e *environment) waitForFirstPush() {
	e.t.Helper()
	e.edge.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Times: 1, Latency: 5 * time.Second})
	e.create("00-platform.yaml", "10-team-a.yaml", "20-team-b.yaml")
	e.createObject(e.certificate())
	e.createObject(httpsListenerSet())
	service, route := grpcRoute()
	e.createObject(service)
	e.createObject(route)
	e.startController()
	e.g.Eventually(e.edge.Count).WithArguments(http.MethodPut, configurationPath).Should(Equal(1), "the first push must be in progress")
	for _, name := range []string{"Gateway platform/shared", "ListenerSet team-a/team-a", "ListenerSet team-a/secure"} {
		for _, tool := range conditionTools {
			e.g.Expect(e.history.latest(name, e.checks[tool]).health).To(Equal(healthProgressing), "%s in %s", name, tool)
		}
		e.g.Expect(e.history.latest(name, e.checks[kstatus]).health).To(Equal(healthHealthy), "kstatus ignores the conditions of the Gateway API")
	}
	wait := []string{"wait", "-n=platform", programmed, "gateway/shared"}
	out, err := e.kubectl(append(wait, "--timeout=0s")...)
	e.g.Expect(err).To(HaveOccurred(), out)
	e.expectKubectl(append(wait, "--timeout=60s")...)
	e.expectKubectl("wait", "-n=team-a", programmed, "--timeout=60s", "listenerset", "--all")
	e.expectHealthy("the first push")
	e.expectNoFlaps("the first push")
	for _, name := range e.history.names() {
		for _, tool := range conditionTools {
			e.g.Expect(e.history.healthChanges(name, e.checks[tool])).To(Equal([]string{healthProgressing, healthHealthy}), "%s in %s", name, tool)
		}
	}
}

// TestFailingPushIsReportedAsProgressing checks that no object degrades when the
// Cloudflare API is down. The message reports the cause, and the objects become healthy
// again without a change.
func TestFailingPushIsReportedAsProgressing(t *testing.T) {
	e := newEnvironment(t)
	e.create("00-platform.yaml", "10-team-a.yaml")
	e.startController()
	e.expectHealthy("the first push")
	e.edge.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Status: http.StatusBadGateway})
	e.setPath(uniquePath())
	gateway, set := "Gateway platform/shared", "ListenerSet team-a/team-a"
	for _, tool := range conditionTools {
		e.g.Eventually(e.health).WithArguments(gateway, tool).Should(Equal(healthProgressing), tool)
		e.g.Eventually(e.health).WithArguments(set, tool).Should(Equal(healthProgressing), tool)
	}
	e.g.Expect(e.history.latest(gateway, e.checks[argoCD]).message).To(ContainSubstring("returns unexpected responses"))
	e.edge.ClearFaults()
	e.expectHealthy("the end of the outage")
	for _, name := range e.history.names() {
		for tool, check := range e.checks {
			e.g.Expect(e.history.healthChanges(name, check)).NotTo(ContainElement(Or(Equal(healthDegraded), Equal(healthUnknown))), "%s in %s", name, tool)
		}
		if strings.HasPrefix(name, "HTTPRoute") {
			e.g.Expect(e.history.flaps(name, e.checks[argoCD])).To(BeEmpty(), "the status of a route does not depend on the push")
		}
	}
}

// health returns the health of the object's latest version according to the tool.
func (e *environment) health(name, tool string) string {
	return e.history.latest(name, e.checks[tool]).health
}

// uniquePath returns a path that no route has used before.
func uniquePath() string { return fmt.Sprintf("p%d", time.Now().UnixNano()) }

// expectHealthy waits until all objects are healthy according to all tools.
func (e *environment) expectHealthy(event string) {
	e.t.Helper()
	for _, name := range e.history.names() {
		for tool := range e.checks {
			e.g.Eventually(e.health, time.Minute).WithArguments(name, tool).Should(Equal(healthHealthy), "%s: %s in %s", event, name, tool)
		}
	}
}

// expectNoFlaps checks the complete history of all objects.
func (e *environment) expectNoFlaps(event string) {
	e.t.Helper()
	e.g.Expect(e.history.watchErrors()).To(BeEmpty())
	for _, name := range e.history.names() {
		for tool, check := range e.checks {
			if flaps := e.history.flaps(name, check); len(flaps) > 0 {
				e.t.Errorf("%s: %s in %s\n%s\n\n%s", event, name, tool, strings.Join(flaps, "\n"), e.history.describe(name, check))
			}
		}
	}
}

// setPath changes a route's path, which changes the tunnel's configuration.
func (e *environment) setPath(path string) {
	e.t.Helper()
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
	change(e, route, func(r *gatewayv1.HTTPRoute) { r.Spec.Rules[0].Matches[0].Path.Value = ptr.To("/" + path) })
}

// storedConfiguration returns the tunnel's configuration at Cloudflare.
func (e *environment) storedConfiguration() string {
	id, _ := e.edge.TunnelID("health.platform.shared")
	text, _ := e.edge.StoredConfiguration(id)
	return string(text)
}

// changeRoutes changes a route several times and waits until the last change is
// pushed.
func (e *environment) changeRoutes() {
	for i := range 8 {
		e.setPath(fmt.Sprintf("v%d", i))
	}
	e.g.Eventually(e.storedConfiguration).Should(ContainSubstring("/v7"))
}

// withFault returns a function that changes a route while the fault affects the given
// number of pushes.
func withFault(times int, fault simulator.Fault) func(*environment) {
	return func(e *environment) {
		fault.Method, fault.Path, fault.Times = http.MethodPut, configurationPath, times
		e.edge.Inject(fault)
		path := uniquePath()
		e.setPath(path)
		e.g.Eventually(e.storedConfiguration, time.Minute).Should(ContainSubstring(path))
	}
}

// httpsListenerSet returns a ListenerSet with a listener that requires a certificate.
func httpsListenerSet() *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "secure"},
		Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Name: "shared", Namespace: ptr.To[gatewayv1.Namespace]("platform")},
			Listeners: []gatewayv1.ListenerEntry{{
				Name: "https", Hostname: ptr.To[gatewayv1.Hostname]("secure.example.com"), Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
				TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "secure"}}},
			}},
		},
	}
}

// grpcRoute returns a GRPCRoute and its backend, which uses TLS.
func grpcRoute() (*corev1.Service, *gatewayv1.GRPCRoute) {
	meta := metav1.ObjectMeta{Namespace: "team-a", Name: "grpc"}
	backend := gatewayv1.BackendObjectReference{Name: "grpc", Port: ptr.To[int32](443)}
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, AppProtocol: ptr.To("https")}}}},
		&gatewayv1.GRPCRoute{ObjectMeta: meta, Spec: gatewayv1.GRPCRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{
				ParentRefs: []gatewayv1.ParentReference{{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: "secure"}},
			},
			Rules: []gatewayv1.GRPCRouteRule{{
				BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: backend}}},
			}},
		}}
}

// certificate returns a new certificate for the listener in httpsListenerSet.
func (e *environment) certificate() *corev1.Secret {
	e.t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("secure.example.com", nil, nil)
	e.g.Expect(err).NotTo(HaveOccurred())
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "secure"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	}
}

// renewCertificate renews a certificate, which must not change any object.
func (e *environment) renewCertificate() {
	before, renewed := e.history.count(), e.certificate()
	change(e, &corev1.Secret{ObjectMeta: renewed.ObjectMeta}, func(s *corev1.Secret) { s.Data = renewed.Data })
	e.g.Consistently(e.history.count, 2*time.Second).Should(Equal(before))
}

// addAndRemoveTeam adds a ListenerSet with a route, waits until the controller has
// pushed them, and deletes them.
func (e *environment) addAndRemoveTeam() {
	set := httpsListenerSet()
	set.Name, set.Spec.Listeners[0].TLS = "guest", nil
	set.Spec.Listeners[0].Hostname = ptr.To[gatewayv1.Hostname]("guest.example.com")
	route := &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "guest"},
		Spec: gatewayv1.HTTPRouteSpec{CommonRouteSpec: gatewayv1.CommonRouteSpec{
			ParentRefs: []gatewayv1.ParentReference{{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: "guest"}},
		}},
	}
	e.createObject(route)
	e.createObject(set)
	e.g.Eventually(e.storedConfiguration).Should(ContainSubstring("guest.example.com"))
	e.expectHealthy("a team is added")
	e.g.Expect(e.kube.Delete(e.t.Context(), route)).To(Succeed())
	e.g.Expect(e.kube.Delete(e.t.Context(), set)).To(Succeed())
	e.g.Eventually(e.storedConfiguration).ShouldNot(ContainSubstring("guest.example.com"))
}

// changeConfigurationExternally replaces the tunnel's configuration and waits until the
// controller repairs it.
func (e *environment) changeConfigurationExternally() {
	id, _ := e.edge.TunnelID("health.platform.shared")
	e.edge.SetConfiguration(id, []byte(`{"ingress":[{"service":"http_status:418"}]}`))
	e.g.Expect(e.storedConfiguration()).To(ContainSubstring("http_status:418"))
	e.g.Eventually(e.storedConfiguration, 2*driftInterval).ShouldNot(ContainSubstring("http_status:418"))
}

// restartController returns a function that stops the controller, changes a route,
// and starts the controller again.
func restartController(stop func(*environment)) func(*environment) {
	return func(e *environment) {
		stop(e)
		path := uniquePath()
		e.setPath(path)
		e.startController()
		e.g.Eventually(e.storedConfiguration).Should(ContainSubstring(path))
	}
}

// restartRateLimited restarts the controller while Cloudflare rejects its first
// request.
func (e *environment) restartRateLimited() {
	e.stopController()
	e.edge.ResetRequests()
	e.edge.Inject(simulator.Fault{Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 3 * time.Second})
	e.startController()
	e.g.Eventually(func() bool {
		return slices.ContainsFunc(e.edge.Requests(), func(r simulator.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/configurations") && r.Status == http.StatusOK
		})
	}).Should(BeTrue(), "the controller must read the configuration after the retry delay")
}
