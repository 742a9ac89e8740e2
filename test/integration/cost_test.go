package integration

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The specs count requests, writes and reconciles. None expects something within a time.
var _ = Describe("the cost of a change", slow, func() {
	It("is about one configuration write per second for 900 new routes", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()
		writes := env.countWrites(ctx, &gatewayv1.HTTPRouteList{})

		const burst = 900
		start := time.Now()
		env.createConcurrently(burst, func(i int) client.Object {
			route := env.route(fmt.Sprintf("r%03d", i), "web", gatewayParent("shared"))
			route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%03d.example.com", i))}
			return route
		})
		Eventually(func() int { return len(env.hostnames("shared")) }).Should(Equal(burst))
		programming := time.Since(start)
		env.waitUntilIdle(ctx)
		// A slow machine spreads the routes over more writes.
		seconds := int(programming / time.Second)
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeNumerically("<=", max(8, 4+seconds)))
		Expect(env.cloudflare.Count(http.MethodGet, configurationPath)).To(BeZero())
		Expect(writes()).To(And(BeNumerically(">=", burst), BeNumerically("<=", 1.1*burst)))
	})

	It("is zero when the readiness of an endpoint changes", func(ctx SpecContext) {
		env := newEnvironment()
		reconciles := env.startWithReconcileCount()
		service := env.service("web")
		service.Spec.ClusterIP = corev1.ClusterIPNone
		service.Spec.Ports[0].TargetPort.Type, service.Spec.Ports[0].TargetPort.StrVal = 1, "http"
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  env.objectMeta("web-1"),
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](8080)}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
		g := env.gateway("shared", "a.example.com")
		env.create(service, slice, g, env.route("web", "web", gatewayParent("shared")))
		Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()
		before, versions := reconciles(), env.resourceVersions(ctx)
		update(slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr.To(false) })
		env.waitUntilIdle(ctx)
		Expect(reconciles()).To(Equal(before))
		Expect(env.resourceVersions(ctx)).To(Equal(versions))
		Expect(env.cloudflare.Count("", "")).To(BeZero())

		By("changing the port of the endpoints")
		update(slice, func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = ptr.To[int32](9090) })
		Eventually(env.cloudflare.Count).WithArguments(http.MethodPut, configurationPath).Should(Equal(1))
	})

	It("does not include reading unchanged Secrets", func(ctx SpecContext) {
		env := newEnvironment()
		env.cloudflare.SetToken("first")
		account, _, _ := env.createClassAccount()
		certificate := env.tlsSecret("cert")
		set := env.listenerSet("secure", "secure.example.com")
		set.Spec.Listeners[0].Port, set.Spec.Listeners[0].Protocol = 443, gatewayv1.HTTPSProtocolType
		set.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "cert"}}}
		g, route := env.gateway("shared", "*.example.com"), env.route("web", "web", gatewayParent("shared"))
		env.create(env.service("web"), certificate, g, set, route)
		proxy := newAPIProxy()
		env.start("--kubeconfig=" + proxy.kubeconfig)
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Eventually(env.tunnelToken).WithArguments("shared").ShouldNot(BeEmpty())
		env.waitUntilIdle(ctx)
		Expect(proxy.takeSecretReads()).To(ContainElements(HavePrefix("content of "), HavePrefix("content of ")))
		for i := range 5 {
			hostname := gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", i))
			update(route, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{hostname} })
			Eventually(env.hostnames).WithArguments("shared").Should(ContainElement(string(hostname)))
		}
		env.waitUntilIdle(ctx)
		Expect(proxy.takeSecretReads()).To(BeEmpty())

		By("changing the Secrets")
		update(account, func(s *corev1.Secret) { s.Labels = map[string]string{"changed": "true"} })
		update(certificate, func(s *corev1.Secret) { s.Data = env.tlsSecret("cert").Data })
		contents := []string{
			"content of /api/v1/namespaces/" + account.Namespace + "/secrets/" + account.Name,
			"content of /api/v1/namespaces/" + certificate.Namespace + "/secrets/" + certificate.Name,
		}
		var reads []string
		Eventually(func() []string { reads = append(reads, proxy.takeSecretReads()...); return reads }).Should(ContainElements(contents))
		env.waitUntilIdle(ctx)
		Expect(append(reads, proxy.takeSecretReads()...)).To(HaveEach(BeElementOf(contents)))
	})

	It("is one configuration write for a new listener", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		set := env.listenerSet("team", "team.example.com")
		env.create(env.service("web"), g, set, env.route("team", "web", listenerSetParent("team")))
		for i := range 10 {
			env.create(env.route(fmt.Sprintf("r%d", i), "web", gatewayParent("shared")))
		}
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()
		routes, sets := env.countWrites(ctx, &gatewayv1.HTTPRouteList{}), env.countWrites(ctx, &gatewayv1.ListenerSetList{})
		update(g, func(g *gatewayv1.Gateway) {
			additional := g.Spec.Listeners[0]
			additional.Name, additional.Hostname = "more", ptr.To[gatewayv1.Hostname]("more.example.com")
			additional.AllowedRoutes = &gatewayv1.AllowedRoutes{Kinds: []gatewayv1.RouteGroupKind{{Kind: "GRPCRoute"}}}
			g.Spec.Listeners = append(g.Spec.Listeners, additional)
		})
		Eventually(env.get).WithArguments("shared", "more.example.com", "/").Should(Equal("404"))
		Eventually(func() int { return len(latest(g).Status.Listeners) }).Should(Equal(2))
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(Equal(1))
		Expect(env.cloudflare.Count("", "")).To(Equal(1))
		Expect(routes()).To(BeZero())
		Expect(sets()).To(BeZero())
	})

	It("does not depend on the number of other Gateways", func(ctx SpecContext) {
		const gateways, routes = 50, 20
		env := newEnvironment()
		env.create(env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Limits: &v1alpha1.Limits{TunnelsPerNamespace: ptr.To[int32](gateways)}}))
		env.useClassSettings("defaults")
		env.start()
		env.create(env.service("web"))
		env.createConcurrently(gateways, func(i int) client.Object {
			return env.gateway(fmt.Sprintf("g%02d", i), fmt.Sprintf("*.g%02d.example.com", i))
		})
		env.createConcurrently(gateways*routes, func(i int) client.Object {
			gateway := fmt.Sprintf("g%02d", i%gateways)
			route := env.route(fmt.Sprintf("%s-r%02d", gateway, i/gateways), "web", gatewayParent(gateway))
			route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("r%02d.%s.example.com", i/gateways, gateway))}
			return route
		})
		for i := range gateways {
			Eventually(env.hostnames, 3*time.Minute).WithArguments(fmt.Sprintf("g%02d", i)).Should(HaveLen(routes))
			Eventually(env.tunnelToken).WithArguments(fmt.Sprintf("g%02d", i)).ShouldNot(BeEmpty())
		}
		env.waitUntilIdle(ctx)
		env.stop()
		before := env.resourceVersions(ctx)
		env.cloudflare.ResetRequests()

		By("reading each configuration once at the start, and writing nothing")
		// On a busy machine, a check for external changes in this part would add reconciles.
		reconciles := env.startWithReconcileCount("--drift-interval=1h")
		Eventually(env.cloudflare.Count).WithArguments(http.MethodGet, configurationPath).Should(Equal(gateways))
		env.waitUntilIdle(ctx)
		Expect(env.resourceVersions(ctx)).To(Equal(before))
		Expect(env.cloudflare.Count("", "")).To(Equal(gateways))

		By("writing one configuration, without a reconcile of other Gateways")
		env.cloudflare.ResetRequests()
		reconcilesBefore := reconciles()
		one := env.route("g07-more", "web", gatewayParent("g07"))
		one.Spec.Hostnames = []gatewayv1.Hostname{"more.g07.example.com"}
		env.create(one)
		Eventually(routeAccepted(one, "g07")).Should(Equal("True Accepted"))
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(Equal(1))
		Expect(reconciles()-reconcilesBefore).To(BeNumerically("<", 10), "reconciles")

		By("reading back at most one configuration per second")
		env.stop()
		env.cloudflare.ResetRequests()
		env.start("--drift-interval=1m")
		Eventually(env.cloudflare.Count).WithArguments(http.MethodGet, configurationPath).Should(Equal(gateways))
		env.cloudflare.ResetRequests()
		Eventually(env.cloudflare.Count).WithArguments(http.MethodGet, configurationPath).Should(BeNumerically(">=", 15))
		requests := env.cloudflare.Requests()
		Expect(requests[len(requests)-1].Time.Sub(requests[0].Time)).To(BeNumerically(">=", time.Duration(len(requests)-2)*time.Second))
	})
})

// createConcurrently creates the objects from several goroutines.
func (env *environment) createConcurrently(count int, object func(int) client.Object) {
	GinkgoHelper()
	var next atomic.Int64
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			defer GinkgoRecover()
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				env.create(object(i))
			}
		})
	}
	running.Wait()
}

// countWrites counts updates to objects of one kind. The returned function returns the
// count since the call.
func (env *environment) countWrites(ctx context.Context, list client.ObjectList) func() int {
	GinkgoHelper()
	Expect(kube.List(ctx, list, client.InNamespace(env.namespace))).To(Succeed())
	// When many objects change at once, the API server closes a watch whose client is too
	// slow.
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watchFunc(func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return kube.Watch(ctx, list, client.InNamespace(env.namespace), &client.ListOptions{Raw: &o})
	}))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watcher.Stop)
	var writes atomic.Int64
	go func() {
		for e := range watcher.ResultChan() {
			if e.Type == watch.Modified {
				writes.Add(1)
			}
		}
	}()
	return func() int { return int(writes.Load()) }
}

// watchFunc implements cache.WatcherWithContext.
type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// WatchWithContext implements cache.WatcherWithContext.
func (f watchFunc) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, o)
}

// startWithReconcileCount starts the controller. The returned function counts the Gateway
// reconciles since the start.
func (env *environment) startWithReconcileCount(arguments ...string) func() int {
	GinkgoHelper()
	address := freeAddress()
	env.start(append([]string{"--metrics-address=" + address}, arguments...)...)
	return func() int {
		GinkgoHelper()
		var total int
		Eventually(func() (err error) {
			total, err = reconcileCount("http://" + address + "/metrics")
			return err
		}).Should(Succeed())
		Expect(total).To(BeNumerically(">", 0))
		return total
	}
}

// reconcileCount reads the number of Gateway reconciles from the metrics.
func reconcileCount(url string) (int, error) {
	response, err := http.Get(url) // #nosec G107 -- the controller of the test
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	total := 0.0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, `controller_runtime_reconcile_total{controller="gateway"`) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return int(total), lines.Err()
}
