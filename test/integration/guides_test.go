package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The specs apply the manifests and patches from the guides to Envoy features, and check
// what the guides describe.
var _ = Describe("a guide to a feature of Envoy", envoyRollouts, Ordered, ContinueOnFailure, func() {
	// initialGracePeriod is the connectors' grace period before the guides change it.
	const initialGracePeriod = 2 * time.Second
	var env *environment
	var id string

	BeforeAll(func() {
		env = newEnvoyEnvironment()
		env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guideNamespace}})
		for _, object := range env.adapt(parseManifests(readFiles(samplesDir+"/envoy", ".yaml")[samplesDir+"/envoy/00-platform.yaml"], "the sample")) {
			if object.GetKind() == "TunnelConfiguration" {
				Expect(unstructured.SetNestedField(object.Object, initialGracePeriod.String(), "spec", "connector", "gracePeriod")).To(Succeed())
			}
			applyStrictly(object)
		}
		env.startWithEnvoy()
		Eventually(dataPlaneReady(&gatewayv1.Gateway{ObjectMeta: objectMetaIn("platform", "envoy")})).Should(Equal("True Ready"))
		id, _ = env.cloudflare.TunnelID(env.tunnelNameIn("platform", "envoy"))
	})

	It("splits requests by weight, and selects the canary by a header", func() {
		g := env.readGuide("canary-and-blue-green.md", id)
		env.guideBackend("shop", answer("stable"))
		env.guideBackend("shop-canary", answer("canary"))
		g.apply(0)
		Eventually(g.count).WithArguments(100).Should(And(HaveLen(2), HaveKey("200 stable"), HaveKey("200 canary"))) // from both Envoys
		// Each range is at least five standard deviations wide on both sides.
		counts := g.count(1000)
		Expect(counts).To(And(HaveLen(2), HaveKeyWithValue("200 canary", BeNumerically("~", 100, 50))))
		for range 20 {
			Expect(g.get("/", "x-canary: always")).To(Equal("200 canary"))
		}
		g.patch(0)
		Eventually(func() int { return g.count(100)["200 canary"] }).Should(BeNumerically(">", 30))
		Expect(g.count(500)).To(And(HaveLen(2), HaveKeyWithValue("200 canary", BeNumerically("~", 250, 60))))
	})

	It("switches from blue to green and back without a failed request", func() {
		g := env.readGuide("canary-and-blue-green.md", id)
		env.guideBackend("shop-blue", answer("blue"))
		env.guideBackend("shop-green", answer("green"))
		g.apply(1)
		Eventually(g.count).WithArguments(50).Should(Equal(map[string]int{"200 blue": 50})) // from both Envoys
		Expect(g.get("/", "x-preview: green")).To(Equal("200 green"))

		defer g.keepVisiting("200 blue", "200 green")()
		g.patch(1)
		Eventually(g.get).WithArguments("/").Should(Equal("200 green"))
		Eventually(func() map[string]int { return g.count(100) }).Should(Equal(map[string]int{"200 green": 100}))
		g.patch(2)
		Eventually(func() map[string]int { return g.count(100) }).Should(Equal(map[string]int{"200 blue": 100}))
	})

	It("returns 504 after a timeout, and lets streams continue", func() {
		g := env.readGuide("timeouts.md", id)
		const work = 3 * time.Second // in the backend
		canceled := make(chan string, 10)
		env.guideBackend("shop", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := path.Base(r.URL.Path)
			switch name {
			case "socket":
				echoServer("shop").ServeHTTP(w, r)
				return
			case "stream":
				_, _ = io.WriteString(w, "begin ")
				_ = http.NewResponseController(w).Flush()
			}
			if name == "slow" || name == "stream" {
				select {
				case <-time.After(work):
				case <-r.Context().Done():
				}
				if r.Context().Err() != nil { // also if this process has no time for a second
					canceled <- r.URL.Path
				}
			}
			_, _ = io.WriteString(w, "end")
		}))
		g.apply(0)
		Eventually(g.count).WithArguments(20).Should(Equal(map[string]int{"200 end": 20})) // from all connectors

		var visiting sync.WaitGroup
		const granularity = 100 * time.Millisecond // Envoy's timers, with a margin
		visit := func(path string, after time.Duration, status int, body string, failure types.GomegaMatcher) {
			visiting.Go(func() {
				defer GinkgoRecover()
				start := time.Now()
				gotStatus, gotBody, err := g.request(http.MethodGet, path, "")
				Expect(time.Since(start)).To(BeNumerically(">=", after-granularity), path)
				Expect([]any{gotStatus, gotBody}).To(Equal([]any{status, body}), path)
				Expect(err).To(failure, path)
			})
		}
		succeed, fail := Not(HaveOccurred()), HaveOccurred()
		visit("/api/slow", 2*time.Second, http.StatusGatewayTimeout, "upstream request timeout", succeed)
		visit("/export/slow", time.Second, http.StatusGatewayTimeout, "upstream request timeout", succeed)
		visit("/slow", work, http.StatusOK, "end", succeed)
		visit("/export/stream", work, http.StatusOK, "begin end", succeed)
		visit("/api/stream", 2*time.Second, http.StatusOK, "begin ", fail)
		visiting.Go(func() {
			defer GinkgoRecover()
			socket := g.webSocket("/api/socket")
			Consistently(socket.echo, work).WithArguments("hello").Should(Equal("shop: hello"))
		})
		visiting.Wait()
		var paths []string
		for range 3 {
			var path string
			Eventually(canceled).Should(Receive(&path), "only %v were canceled", paths)
			paths = append(paths, path)
		}
		Expect(paths).To(ConsistOf("/api/slow", "/export/slow", "/api/stream"))
	})

	It("sends copies of requests to a mirror, whose failure has no effect", func() {
		type copied struct{ Method, Path, Body, Internal string }
		g := env.readGuide("mirroring.md", id)
		copies, originals := make(chan copied, 1000), make(chan copied, 1000)
		var status atomic.Int64
		record := func(to chan copied, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			select {
			case to <- copied{r.Method, r.URL.Path, string(body), r.Header.Get("X-Envoy-Internal")}:
			default: // the spec no longer reads the originals
			}
		}
		env.guideBackend("shop", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			record(originals, r)
			_, _ = io.WriteString(w, "stable")
		}))
		mirror := env.guideBackend("shop-next", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			record(copies, r)
			if code := int(status.Load()); code == 0 {
				<-r.Context().Done() // does not answer
			} else {
				w.WriteHeader(code)
			}
		}))
		status.Store(http.StatusInternalServerError)
		g.apply(0)
		Eventually(g.count).WithArguments(20).Should(Equal(map[string]int{"200 stable": 20})) // from all connectors
		Eventually(copies).Should(Receive(HaveField("Path", "/")))
		for len(originals) > 0 {
			<-originals
		}
		for _, code := range []int64{http.StatusOK, http.StatusInternalServerError, 0} {
			status.Store(code)
			got, body, err := g.request(http.MethodPost, "/cart", "item=1", "X-Envoy-Internal: true")
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(http.StatusOK))
			Expect(body).To(Equal("stable"))
			Eventually(originals).Should(Receive(Equal(copied{http.MethodPost, "/cart", "item=1", ""})))
			Eventually(copies).Should(Receive(Equal(copied{http.MethodPost, "/cart", "item=1", "true"})))
		}

		By("mirroring a share")
		status.Store(http.StatusOK)
		g.patch(0)
		route := &gatewayv1.HTTPRoute{ObjectMeta: objectMetaIn(guideNamespace, "shop")}
		Expect(latest(route).Spec.Rules[0].Filters[0].RequestMirror.Percent).NotTo(BeNil())
		drain := func() (n int) {
			for ; len(copies) > 0; n++ {
				<-copies
			}
			return n
		}
		Eventually(func() int {
			drain()
			g.count(20)
			return drain()
		}).Should(BeNumerically("<", 12))
		Expect(g.count(500)).To(Equal(map[string]int{"200 stable": 500}))
		Eventually(func() int { return len(copies) }).Should(BeNumerically("~", 50, 35))

		By("removing the pods of the mirror")
		update(mirror, func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })
		Expect(g.count(100)).To(Equal(map[string]int{"200 stable": 100}))
	})

	It("keeps a WebSocket until its connector's grace period ends", func() {
		g := env.readGuide("websockets.md", id)
		env.guideBackend("chat", echoServer("chat"))
		env.guideBackend("other", echoServer("other"))
		g.apply(0)
		Eventually(g.get).WithArguments("/chat").Should(HavePrefix("400")) // not a WebSocket
		first := g.webSocket("/chat")
		Expect(first.echo("hello")).To(Equal("chat: hello"))

		route := &gatewayv1.HTTPRoute{ObjectMeta: objectMetaIn(guideNamespace, "chat")}
		update(route, toService("other"))
		Eventually(func() string { return g.webSocket("/chat").echo("hello") }).Should(Equal("other: hello"))
		Expect(first.echo("still here")).To(Equal("chat: still here"))
		Expect(kube.Delete(context.Background(), route)).To(Succeed())
		Eventually(g.get).WithArguments("/chat").Should(HavePrefix("404"))
		Consistently(first.echo, time.Second).WithArguments("hello").Should(Equal("chat: hello"))

		By("replacing the connectors")
		g.apply(0)
		Eventually(g.get).WithArguments("/chat").Should(HavePrefix("400"))
		g.apply(1)
		start := time.Now()
		Eventually(first.echo).WithPolling(20 * time.Millisecond).WithArguments("hello").ShouldNot(Equal("chat: hello"))
		Expect(time.Since(start)).To(BeNumerically(">=", initialGracePeriod))
		Expect(g.webSocket("/chat").echo("hello")).To(Equal("chat: hello"))
	})

	It("changes the data plane without a failed request", func() {
		g := env.readGuide("changing-the-data-plane.md", id)
		env.guideBackend("shop", answer("shop"))
		route := env.route("shop", "shop", gatewayv1.ParentReference{Name: "envoy", Namespace: ptr.To[gatewayv1.Namespace]("platform")})
		route.Namespace, route.Spec.Rules[0].BackendRefs[0].Port = guideNamespace, ptr.To[gatewayv1.PortNumber](8080)
		env.create(route)
		DeferCleanup(env.delete, route)
		Eventually(g.get).WithArguments("/").Should(Equal("200 shop"))
		g.apply(0)
		for _, name := range []string{"cloudflare-tunnel", "cloudflare-tunnel-envoy"} {
			class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Eventually(func() string { return formatCondition(latest(class).Status.Conditions, "Accepted") }).Should(Equal("True Accepted"))
		}

		defer g.keepVisiting("200 shop")()
		gateway := &gatewayv1.Gateway{ObjectMeta: objectMetaIn("platform", "envoy")}
		dataPlane := func() string {
			status := env.tunnelObject(gateway).Status
			return fmt.Sprintf("%s, change %v, %s", status.DataPlane, status.DataPlaneChange, formatCondition(status.Conditions, "DataPlaneApplied"))
		}
		const toEnvoy, toRules, toOtherClass = 0, 1, 2
		g.patch(toRules)
		Eventually(dataPlane).Should(Equal("IngressRules, change <nil>, True Applied"))
		g.patch(toEnvoy)
		Eventually(dataPlane).Should(Equal("Envoy, change <nil>, True Applied"))
		g.patch(toOtherClass)
		Eventually(dataPlane).Should(Equal("IngressRules, change <nil>, True Applied"))
		Expect(programmed(gateway)()).To(Equal("True Programmed"))
	})
})
