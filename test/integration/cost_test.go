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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The specs count requests, writes and reconciles. They never measure time.
var _ = Describe("the cost of a change", slow, func() {
	It("is at most 8 configuration writes for 900 routes that are created concurrently", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.settle(ctx)
		w.edge.ResetRequests()
		writes := w.countWrites(ctx, &gatewayv1.HTTPRouteList{})

		const burst = 900
		w.createAtOnce(burst, func(i int) client.Object {
			route := w.route(fmt.Sprintf("r%03d", i), "web", toGateway("shared"))
			route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%03d.example.com", i))}
			return route
		})
		Eventually(func() int { return len(w.hostnames("shared")) }, time.Minute).Should(Equal(burst))
		w.settle(ctx)
		Expect(w.edge.Count(http.MethodPut, configurations)).To(BeNumerically("<=", 8))
		Expect(w.edge.Count(http.MethodGet, configurations)).To(BeZero())
		Expect(writes()).To(And(BeNumerically(">=", burst), BeNumerically("<=", 1.1*burst)))
	})

	It("is zero when the readiness of an endpoint changes", func(ctx SpecContext) {
		w := newWorld()
		reconciles := w.startCounting()
		service := w.service("web")
		service.Spec.ClusterIP = corev1.ClusterIPNone
		service.Spec.Ports[0].TargetPort.Type, service.Spec.Ports[0].TargetPort.StrVal = 1, "http"
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  w.meta("web-1"),
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](8080)}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
		g := w.gateway("shared", "a.example.com")
		w.create(service, slice, g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		w.settle(ctx)
		w.edge.ResetRequests()
		before, versions := reconciles(), w.versions(ctx)
		change(slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr.To(false) })
		w.settle(ctx)
		Expect(reconciles()).To(Equal(before))
		Expect(w.versions(ctx)).To(Equal(versions))
		Expect(w.edge.Count("", "")).To(BeZero())

		By("changing the port of the endpoints")
		change(slice, func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = ptr.To[int32](9090) })
		Eventually(w.edge.Count).WithArguments(http.MethodPut, configurations).Should(Equal(1))
	})

	It("is one configuration write, and no write to other objects, for a new listener of the Gateway", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		set := w.listenerSet("team", "team.example.com")
		w.create(w.service("web"), g, set, w.route("team", "web", toSet("team")))
		for i := range 10 {
			w.create(w.route(fmt.Sprintf("r%d", i), "web", toGateway("shared")))
		}
		Eventually(setSays(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		w.settle(ctx)
		w.edge.ResetRequests()
		routes, sets := w.countWrites(ctx, &gatewayv1.HTTPRouteList{}), w.countWrites(ctx, &gatewayv1.ListenerSetList{})
		change(g, func(g *gatewayv1.Gateway) {
			more := g.Spec.Listeners[0]
			more.Name, more.Hostname = "more", ptr.To[gatewayv1.Hostname]("more.example.com")
			more.AllowedRoutes = &gatewayv1.AllowedRoutes{Kinds: []gatewayv1.RouteGroupKind{{Kind: "GRPCRoute"}}}
			g.Spec.Listeners = append(g.Spec.Listeners, more)
		})
		Eventually(w.get).WithArguments("shared", "more.example.com", "/").Should(Equal("404"))
		Eventually(func() int { return len(fresh(g).Status.Listeners) }).Should(Equal(2))
		w.settle(ctx)
		Expect(w.edge.Count(http.MethodPut, configurations)).To(Equal(1))
		Expect(w.edge.Count("", "")).To(Equal(1))
		Expect(routes()).To(BeZero())
		Expect(sets()).To(BeZero())
	})

	It("does not depend on the number of other Gateways, with 50 Gateways of 20 routes each", func(ctx SpecContext) {
		const gateways, routes = 50, 20
		w := newWorld()
		w.create(w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Limits: &v1alpha1.Limits{TunnelsPerNamespace: ptr.To[int32](gateways)}}))
		w.referClass("defaults")
		w.start()
		w.create(w.service("web"))
		w.createAtOnce(gateways, func(i int) client.Object {
			return w.gateway(fmt.Sprintf("g%02d", i), fmt.Sprintf("*.g%02d.example.com", i))
		})
		w.createAtOnce(gateways*routes, func(i int) client.Object {
			gateway := fmt.Sprintf("g%02d", i%gateways)
			route := w.route(fmt.Sprintf("%s-r%02d", gateway, i/gateways), "web", toGateway(gateway))
			route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("r%02d.%s.example.com", i/gateways, gateway))}
			return route
		})
		for i := range gateways {
			Eventually(w.hostnames, 3*time.Minute).WithArguments(fmt.Sprintf("g%02d", i)).Should(HaveLen(routes))
			Eventually(w.token, time.Minute).WithArguments(fmt.Sprintf("g%02d", i)).ShouldNot(BeEmpty())
		}
		w.settle(ctx)
		w.stop()
		before := w.versions(ctx)
		w.edge.ResetRequests()

		By("reading each configuration once at the start, and writing nothing")
		reconciles := w.startCounting("--drift-interval=1m")
		Eventually(w.edge.Count, time.Minute).WithArguments(http.MethodGet, configurations).Should(Equal(gateways))
		w.settle(ctx)
		Expect(w.versions(ctx)).To(Equal(before))
		Expect(w.edge.Count("", "")).To(Equal(gateways))

		By("writing one configuration for one change, without a reconcile of the other Gateways")
		w.edge.ResetRequests()
		reconcilesBefore := reconciles()
		one := w.route("g07-more", "web", toGateway("g07"))
		one.Spec.Hostnames = []gatewayv1.Hostname{"more.g07.example.com"}
		w.create(one)
		Eventually(routeSays(one, "g07")).Should(Equal("True Accepted"))
		w.settle(ctx)
		Expect(w.edge.Count(http.MethodPut, configurations)).To(Equal(1))
		Expect(reconciles()-reconcilesBefore).To(BeNumerically("<", 10), "reconciles")

		By("reading back at most one configuration per second")
		w.edge.ResetRequests()
		Eventually(w.edge.Count, 2*time.Minute).WithArguments(http.MethodGet, configurations).Should(BeNumerically(">=", 15))
		requests := w.edge.Requests()
		Expect(requests[len(requests)-1].Time.Sub(requests[0].Time)).To(BeNumerically(">=", time.Duration(len(requests)-2)*time.Second))
	})
})

// createConcurrently creates the objects from several goroutines.
func (w *world) createAtOnce(count int, object func(int) client.Object) {
	GinkgoHelper()
	var next atomic.Int64
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			defer GinkgoRecover()
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				w.create(object(i))
			}
		})
	}
	running.Wait()
}

// countWrites counts the updates of objects of a kind. The returned function
// returns the number of updates since the call.
func (w *world) countWrites(ctx context.Context, list client.ObjectList) func() int {
	GinkgoHelper()
	Expect(kube.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	watcher, err := kube.Watch(ctx, list, client.InNamespace(w.namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
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

// startWithReconcileCount starts the controller. The returned function returns
// the number of reconciles of Gateways since the start.
func (w *world) startCounting(arguments ...string) func() int {
	GinkgoHelper()
	address := freeAddress()
	w.start(append([]string{"--metrics-address=" + address}, arguments...)...)
	return func() int {
		GinkgoHelper()
		var total int
		Eventually(func() (err error) {
			total, err = passesAt("http://" + address + "/metrics")
			return err
		}).Should(Succeed())
		Expect(total).To(BeNumerically(">", 0))
		return total
	}
}

// reconcileCount returns the number of reconciles of Gateways in the metrics.
func passesAt(url string) (int, error) {
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
