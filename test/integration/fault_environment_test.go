package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

// faultEnvironment is an environment with two connectors that can serve a load.
type faultEnvironment struct {
	*environment
	node    *node.Node
	xds     string // address on which the controllers serve Envoys
	gateway *gatewayv1.Gateway
	// probe is a route whose hostname changes, to find out whether changes take effect.
	probe  *gatewayv1.HTTPRoute
	probes int
	// address is where a server listens that forwards requests through the tunnel.
	address string
	// The load has this number of WebSockets, and the same number of streams.
	connections int
	leader      *controllerproc.Process
	proxy       *apiProxy // through which the controller connects to the API server, or nil
}

const (
	// loadHost is the host to which the load sends requests.
	loadHost = "load.example.com"
	// By default, the load has loadConnections WebSockets and as many streams.
	loadConnections = 4
	// loadRate is in requests per second.
	loadRate = 20
)

// maxLag is the edge's maximum lag by default. Cloudflare's maintainers expect ten
// seconds.
const maxLag = 15 * time.Second

// anyLag returns a lag up to maxLag.
func anyLag() simulator.Lag {
	return simulator.Lag{Connected: rand.N(maxLag), Unregistered: rand.N(maxLag)}
} // #nosec G404 -- a test

// newFaultEnvironment returns an environment without a running controller. Environments
// with different numbers can exist at the same time. The edge notices after the lag that
// connectors change, or at once if the lag is nil.
func newFaultEnvironment(number int, lag func() simulator.Lag) *faultEnvironment {
	GinkgoHelper()
	env := &faultEnvironment{
		environment: newLaggingEnvironment(lag), node: startBed().Node, xds: xdsAddressOf(number), connections: loadConnections,
	}
	env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) {
		// WebSockets end with the grace period.
		if c.Connector.GracePeriod = ptr.To(v1alpha1.Duration("3s")); lag != nil {
			c.Connector.GracePeriod = ptr.To(v1alpha1.Duration("20s"))
		}
		c.Connector.Envoy = &v1alpha1.EnvoyProxy{Image: ptr.To(envoyImageOf(number))}
	})
	service := env.service("load")
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: env.objectMeta(service.Name), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{env.serve(load.Backend()), env.serve(load.Backend())},
		Ports:     []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service.Name}
	env.create(service, slice)
	return env
}

// changeClass changes the settings of the GatewayClass.
func (env *environment) changeClass(change func(*v1alpha1.TunnelConfigurationSpec)) {
	GinkgoHelper()
	update(env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) { change(&c.Spec) })
}

// startLeader starts a controller and returns it.
func (env *faultEnvironment) startLeader(arguments ...string) *controllerproc.Process {
	GinkgoHelper()
	return env.startReplica(append([]string{"--xds-bind-address=" + env.xds}, arguments...)...)
}

// serveLoad starts a controller and creates the routes. It returns when the load can start.
func (env *faultEnvironment) serveLoad(arguments ...string) {
	GinkgoHelper()
	env.startServing(arguments...)
	env.awaitServing()
}

// startServing starts a controller and creates the routes.
func (env *faultEnvironment) startServing(arguments ...string) {
	GinkgoHelper()
	env.leader = env.startLeader(arguments...)
	env.gateway = env.environment.gateway("shared", "*.example.com")
	route := env.route("load", "load", gatewayParent("shared"))
	route.Spec.Hostnames = []gatewayv1.Hostname{loadHost}
	env.probe = env.route("probe", "load", gatewayParent("shared"))
	env.probe.Spec.Hostnames = []gatewayv1.Hostname{"probe-0.example.com"}
	env.create(env.gateway, route, env.probe)
}

// awaitServing waits until the load can start.
func (env *faultEnvironment) awaitServing() {
	GinkgoHelper()
	Eventually(env.visit).WithArguments("shared", loadHost, "/fast").Should(Equal("/fast "))
	Eventually(programmed(env.gateway)).Should(Equal("True Programmed"))
	Eventually(env.readyPods).Should(HaveLen(2))
	server := httptest.NewServer(env.cloudflare.Tunnel(env.tunnel("shared")))
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	env.address = server.Listener.Addr().String()
}

// expectFollowed expects that a changed route takes effect in all connectors.
func (env *faultEnvironment) expectFollowed() {
	GinkgoHelper()
	Eventually(env.changeProbe()).Should(HaveEach("/fast "))
	Eventually(dataPlaneReady(env.gateway)).Should(Equal("True Ready"))
}

// changeProbe changes a route and returns a function that requests it from the connectors, which
// answer in turn.
func (env *faultEnvironment) changeProbe() func() []string {
	GinkgoHelper()
	env.probes++
	host := fmt.Sprintf("probe-%d.example.com", env.probes)
	update(env.probe, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(host)} })
	return func() (answers []string) {
		for range 8 {
			answers = append(answers, env.visit("shared", host, "/fast"))
		}
		return answers
	}
}

// underLoad runs a fault while the environment is under load, and reports what happened to the
// load until a second after the fault.
func (env *faultEnvironment) underLoad(name string, fault func(*load.Load)) load.Result {
	GinkgoHelper()
	l := load.Start(load.Options{Address: env.address, Host: loadHost, Connections: env.connections})
	defer l.Stop()
	Eventually(l.Sent).Should(BeNumerically(">", 3*loadRate/2)) // then, as many slow requests end as begin
	Eventually(func() int {
		_, open := l.InFlight()
		return open
	}).Should(Equal(2 * env.connections))
	fault(l)
	Eventually(l.Sent).Should(BeNumerically(">", l.Sent()+loadRate))
	result := l.Stop()
	AddReportEntry(fmt.Sprintf("measured: under load, %s: %s", name, result))
	GinkgoWriter.Printf("%s: %s\n%s\n", name, result, strings.Join(result.Failures, "\n"))
	Expect(result.Messages).To(BeNumerically(">=", 2*env.connections), name)
	return result
}

// expectNothingLost runs a fault under load and expects that no request fails, and that no
// WebSocket or stream breaks.
func (env *faultEnvironment) expectNothingLost(name string, fault func()) {
	GinkgoHelper()
	result := env.underLoad(name, func(*load.Load) { fault() })
	Expect(result.Failures).To(BeEmpty(), name)
}

// expectNoneFailed runs a fault under load during which connectors stop, and expects that
// no request fails. A WebSocket or a stream ends with its connector, so each can end once
// per connector that stops.
func (env *faultEnvironment) expectNoneFailed(name string, stopping int, fault func()) {
	GinkgoHelper()
	result := env.underLoad(name, func(*load.Load) { fault() })
	Expect(result.Failed).To(BeZero(), "%s: %q", name, result.Failures)
	Expect(result.Unopened).To(BeZero(), "%s: %q", name, result.Failures)
	Expect(result.Broken).To(BeNumerically("<=", stopping*2*env.connections), "%s: %q", name, result.Failures)
}

func (env *faultEnvironment) readyPods() []corev1.Pod {
	GinkgoHelper()
	return slices.DeleteFunc(env.connectorPods(), func(p corev1.Pod) bool { return !isPodReady(&p) || p.DeletionTimestamp != nil })
}

// rolledOut reports whether all connector pods are ready and have the current template.
func (env *faultEnvironment) rolledOut() bool {
	GinkgoHelper()
	d := connectorObject(env.environment, &appsv1.Deployment{})
	if !exists(d) || d.Status.ObservedGeneration != d.Generation {
		return false
	}
	replicas := ptr.Deref(d.Spec.Replicas, 0)
	return d.Status.UpdatedReplicas == replicas && d.Status.AvailableReplicas == replicas && len(env.connectorPods()) == int(replicas)
}

// changeLeader starts a controller and stops the leader, as when the controller is rolled
// out.
func (env *faultEnvironment) changeLeader() {
	GinkgoHelper()
	previous := env.leader
	env.leader = env.startLeader()
	Expect(previous.Stop()).To(Succeed())
	env.expectFollowed()
}

// killEnvoy kills one connector's Envoy, and returns when it is ready again.
func (env *faultEnvironment) killEnvoy(ctx context.Context, index int) {
	GinkgoHelper()
	pod := env.readyPods()[index]
	restarts := pod.Status.InitContainerStatuses[0].RestartCount
	Expect(env.node.KillContainer(ctx, client.ObjectKeyFromObject(&pod), "envoy")).To(Succeed())
	Eventually(func() bool {
		current := latest(pod.DeepCopy())
		return current.Status.InitContainerStatuses[0].RestartCount > restarts && isPodReady(current)
	}).Should(BeTrue())
}

// envoyMemory returns each Envoy's resident memory in bytes, by pod name.
func (env *faultEnvironment) envoyMemory() map[string]int {
	GinkgoHelper()
	memory := map[string]int{}
	for _, pod := range env.readyPods() {
		process, ok := strings.CutPrefix(pod.Status.InitContainerStatuses[0].ContainerID, "process://")
		Expect(ok).To(BeTrue())
		text, err := os.ReadFile("/proc/" + process + "/statm")
		Expect(err).NotTo(HaveOccurred())
		pages, err := strconv.Atoi(strings.Fields(string(text))[1])
		Expect(err).NotTo(HaveOccurred())
		memory[pod.Name] = pages * os.Getpagesize()
	}
	return memory
}
