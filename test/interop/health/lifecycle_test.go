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

// configurations is the API's path of the documents of all tunnels.
const configurations = "/accounts/*/cfd_tunnel/*/configurations"

// thorough are the judges that look at the conditions of the Gateway API.
var thorough = []string{argoCD, argoCDLenient, flux}

// TestHealthComesWithTheFirstPushAndStays goes through the life of the samples.
func TestHealthComesWithTheFirstPushAndStays(t *testing.T) {
	w := newWorld(t)
	w.waitForTheFirstPush()
	for _, event := range []struct {
		name    string
		happens func(*world)
	}{
		{"routes change", (*world).changeRoutes},
		{"a push takes long", during(1, simulator.Fault{Latency: 4 * time.Second})},
		{"Cloudflare limits a push", during(1, simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 3 * time.Second})},
		{"a team comes and goes", (*world).comeAndGo},
		{"a certificate is renewed", (*world).renewCertificate},
		{"somebody else edits the tunnel", (*world).editBehindItsBack},
		{"the controller is rolled out", restart((*world).stop)},
		{"the controller is killed", restart((*world).kill)},
		{"the controller starts while Cloudflare limits it", (*world).restartLimited},
	} {
		start := time.Now()
		event.happens(w)
		w.expectHealthy(event.name)
		w.expectNoFlaps(event.name)
		t.Logf("%s: healthy all the time, %s", event.name, time.Since(start).Round(time.Millisecond))
	}
}

// waitForTheFirstPush applies the samples and says who takes them for ready
// while nothing is at Cloudflare yet.
func (w *world) waitForTheFirstPush() {
	w.t.Helper()
	w.edge.Inject(simulator.Fault{Method: http.MethodPut, Path: configurations, Times: 1, Latency: 5 * time.Second})
	w.create("00-platform.yaml", "10-team-a.yaml", "20-team-b.yaml")
	w.createObject(w.certificate())
	w.createObject(secureSet())
	service, route := grpcRoute()
	w.createObject(service)
	w.createObject(route)
	w.start()
	w.g.Eventually(w.edge.Count).WithArguments(http.MethodPut, configurations).Should(Equal(1), "the first push is under way")
	for _, name := range []string{"Gateway platform/shared", "ListenerSet team-a/team-a", "ListenerSet team-a/secure"} {
		for _, by := range thorough {
			w.g.Expect(w.history.latest(name, w.judges[by]).health).To(Equal(healthProgressing), "%s by %s", name, by)
		}
		w.g.Expect(w.history.latest(name, w.judges[kstatus]).health).To(Equal(healthHealthy), "kstatus knows no conditions of the Gateway API")
	}
	waiting := []string{"wait", "-n=platform", programmed, "gateway/shared"}
	out, err := w.kubectl(append(waiting, "--timeout=0s")...)
	w.g.Expect(err).To(HaveOccurred(), out)
	w.expectKubectl(append(waiting, "--timeout=60s")...)
	w.expectKubectl("wait", "-n=team-a", programmed, "--timeout=60s", "listenerset", "--all")
	w.expectHealthy("the first push")
	w.expectNoFlaps("the first push")
	for _, name := range w.history.names() {
		for _, by := range thorough {
			w.g.Expect(w.history.seen(name, w.judges[by])).To(Equal([]string{healthProgressing, healthHealthy}), "%s by %s", name, by)
		}
	}
}

// TestPushThatFailsIsProgressing: while Cloudflare does not answer, though it is
// asked again, nothing is degraded, and whoever asks is told why. It passes by itself.
func TestPushThatFailsIsProgressing(t *testing.T) {
	w := newWorld(t)
	w.create("00-platform.yaml", "10-team-a.yaml")
	w.start()
	w.expectHealthy("the first push")
	w.edge.Inject(simulator.Fault{Method: http.MethodPut, Path: configurations, Status: http.StatusBadGateway})
	w.setPath(unique())
	gateway, set := "Gateway platform/shared", "ListenerSet team-a/team-a"
	for _, by := range thorough {
		w.g.Eventually(w.health).WithArguments(gateway, by).Should(Equal(healthProgressing), by)
		w.g.Eventually(w.health).WithArguments(set, by).Should(Equal(healthProgressing), by)
	}
	w.g.Expect(w.history.latest(gateway, w.judges[argoCD]).message).To(ContainSubstring("does not answer as documented"))
	w.edge.ClearFaults()
	w.expectHealthy("Cloudflare answers again")
	for _, name := range w.history.names() {
		for by, j := range w.judges {
			w.g.Expect(w.history.seen(name, j)).NotTo(ContainElement(Or(Equal(healthDegraded), Equal(healthUnknown))), "%s by %s", name, by)
		}
		if strings.HasPrefix(name, "HTTPRoute") {
			w.g.Expect(w.history.flaps(name, w.judges[argoCD])).To(BeEmpty(), "routes say nothing of the push")
		}
	}
}

// health returns what the judge says of the newest version.
func (w *world) health(name, by string) string { return w.history.latest(name, w.judges[by]).health }

// unique returns a path that no route had before.
func unique() string { return fmt.Sprintf("p%d", time.Now().UnixNano()) }

// expectHealthy waits until everything that is there is healthy, for all.
func (w *world) expectHealthy(event string) {
	w.t.Helper()
	for _, name := range w.history.names() {
		for by := range w.judges {
			w.g.Eventually(w.health, time.Minute).WithArguments(name, by).Should(Equal(healthHealthy), "%s: %s by %s", event, name, by)
		}
	}
}

// expectNoFlaps goes through the whole history.
func (w *world) expectNoFlaps(event string) {
	w.t.Helper()
	w.g.Expect(w.history.gaps()).To(BeEmpty())
	for _, name := range w.history.names() {
		for by, j := range w.judges {
			if flaps := w.history.flaps(name, j); len(flaps) > 0 {
				w.t.Errorf("%s: %s by %s\n%s\n\n%s", event, name, by, strings.Join(flaps, "\n"), w.history.tell(name, j))
			}
		}
	}
}

// setPath changes the path of a route, which the tunnel's document will have.
func (w *world) setPath(path string) {
	w.t.Helper()
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
	change(w, route, func(r *gatewayv1.HTTPRoute) { r.Spec.Rules[0].Matches[0].Path.Value = ptr.To("/" + path) })
}

// document returns the text of the document that Cloudflare has.
func (w *world) document() string {
	id, _ := w.edge.TunnelID("health.platform.shared")
	text, _ := w.edge.StoredConfiguration(id)
	return string(text)
}

func (w *world) changeRoutes() {
	for i := range 8 {
		w.setPath(fmt.Sprintf("v%d", i))
	}
	w.g.Eventually(w.document).Should(ContainSubstring("/v7"))
}

// during changes a route while so many pushes suffer the fault.
func during(times int, fault simulator.Fault) func(*world) {
	return func(w *world) {
		fault.Method, fault.Path, fault.Times = http.MethodPut, configurations, times
		w.edge.Inject(fault)
		path := unique()
		w.setPath(path)
		w.g.Eventually(w.document, time.Minute).Should(ContainSubstring(path))
	}
}

func secureSet() *gatewayv1.ListenerSet {
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

// grpcRoute returns a route of gRPC, and its backend, which speaks TLS.
func grpcRoute() (*corev1.Service, *gatewayv1.GRPCRoute) {
	at := metav1.ObjectMeta{Namespace: "team-a", Name: "grpc"}
	backend := gatewayv1.BackendObjectReference{Name: "grpc", Port: ptr.To[int32](443)}
	return &corev1.Service{ObjectMeta: at, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, AppProtocol: ptr.To("https")}}}},
		&gatewayv1.GRPCRoute{ObjectMeta: at, Spec: gatewayv1.GRPCRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{
				ParentRefs: []gatewayv1.ParentReference{{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: "secure"}},
			},
			Rules: []gatewayv1.GRPCRouteRule{{
				BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: backend}}},
			}},
		}}
}

// certificate returns a new certificate of the set's listener.
func (w *world) certificate() *corev1.Secret {
	w.t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("secure.example.com", nil, nil)
	w.g.Expect(err).NotTo(HaveOccurred())
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "secure"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	}
}

// renewCertificate also expects that nobody is told of it.
func (w *world) renewCertificate() {
	before, renewed := w.history.count(), w.certificate()
	change(w, &corev1.Secret{ObjectMeta: renewed.ObjectMeta}, func(s *corev1.Secret) { s.Data = renewed.Data })
	w.g.Consistently(w.history.count, 2*time.Second).Should(Equal(before))
}

// comeAndGo adds a ListenerSet with a route, waits until they are served, and
// deletes them.
func (w *world) comeAndGo() {
	set := secureSet()
	set.Name, set.Spec.Listeners[0].TLS = "guest", nil
	set.Spec.Listeners[0].Hostname = ptr.To[gatewayv1.Hostname]("guest.example.com")
	route := &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "guest"},
		Spec: gatewayv1.HTTPRouteSpec{CommonRouteSpec: gatewayv1.CommonRouteSpec{
			ParentRefs: []gatewayv1.ParentReference{{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: "guest"}},
		}},
	}
	w.createObject(route)
	w.createObject(set)
	w.g.Eventually(w.document).Should(ContainSubstring("guest.example.com"))
	w.expectHealthy("a team has come")
	w.g.Expect(w.kube.Delete(w.t.Context(), route)).To(Succeed())
	w.g.Expect(w.kube.Delete(w.t.Context(), set)).To(Succeed())
	w.g.Eventually(w.document).ShouldNot(ContainSubstring("guest.example.com"))
}

// editBehindItsBack writes the tunnel's document as another program would.
func (w *world) editBehindItsBack() {
	id, _ := w.edge.TunnelID("health.platform.shared")
	w.edge.SetConfiguration(id, []byte(`{"ingress":[{"service":"http_status:418"}]}`))
	w.g.Expect(w.document()).To(ContainSubstring("http_status:418"))
	w.g.Eventually(w.document, 2*driftInterval).ShouldNot(ContainSubstring("http_status:418"))
}

// restart ends the controller, changes a route meanwhile, and starts it again.
func restart(end func(*world)) func(*world) {
	return func(w *world) {
		end(w)
		path := unique()
		w.setPath(path)
		w.start()
		w.g.Eventually(w.document).Should(ContainSubstring(path))
	}
}

// restartLimited starts a controller to which Cloudflare at first says no.
func (w *world) restartLimited() {
	w.stop()
	w.edge.ResetRequests()
	w.edge.Inject(simulator.Fault{Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 3 * time.Second})
	w.start()
	w.g.Eventually(func() bool {
		return slices.ContainsFunc(w.edge.Requests(), func(r simulator.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/configurations") && r.Status == http.StatusOK
		})
	}).Should(BeTrue(), "it has read the document when it was let")
}
