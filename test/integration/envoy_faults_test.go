package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

// outage is how long the controller and the API server are away.
const outage = time.Minute

// loadFault is a fault that a spec injects under load into an environment with Envoys.
type loadFault struct {
	*faultEnvironment
	run func(context.Context, *faultEnvironment)
}

var _ = Describe("with the data plane Envoy and under load", underLoad, func() {
	It("no request is lost during faults and changes", func(ctx SpecContext) {
		var faults []loadFault
		for _, run := range []func(context.Context, *faultEnvironment){loseConnectors, loseController, loseAPIServer, changeOften} {
			faults = append(faults, loadFault{newFaultEnvironment(len(faults), anyLag), run})
		}
		for _, run := range []func(context.Context, *faultEnvironment){replaceConnectors, rotateToken, evictConnectors, changeDataPlanes} {
			faults = append(faults, loadFault{newRolloutEnvironment(len(faults)), run})
		}
		proxy := newAPIProxy()
		for number, f := range faults {
			if number == 2 {
				f.proxy = proxy
				f.startServing("--kubeconfig=" + proxy.kubeconfig)
			} else {
				f.startServing()
			}
		}
		for _, f := range faults {
			f.awaitServing()
		}
		runConcurrently(faults, func(f loadFault) { f.run(ctx, f.faultEnvironment) })
	})
})

// loseConnectors kills an Envoy, replaces the connectors, and changes the leader, the
// certificates and the certificate authority.
func loseConnectors(ctx context.Context, env *faultEnvironment) {
	env.expectFewFailed(ctx, "an Envoy is killed and restarted at once", 300*time.Millisecond)
	env.node.SetRestartDelay(time.Second)
	defer env.node.SetRestartDelay(0)
	env.expectFewFailed(ctx, "an Envoy is killed and restarted after a second", 1500*time.Millisecond)

	env.expectNoneFailed("the connectors are replaced", 2, func() {
		replaced := env.readyPods()
		env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) {
			c.Connector.PodAnnotations = map[string]v1alpha1.AnnotationValue{"example.com/rollout": "1"}
		})
		Eventually(func() bool { return env.rolledOut() && env.readyPods()[0].UID != replaced[0].UID }).Should(BeTrue())
	})
	env.expectNothingLost("the leader changes", env.changeLeader)
	env.expectNothingLost("a certificate is renewed", func() {
		env.expireCertificate()
		env.changeLeader() // so that the Envoys connect again
	})
	env.expectNothingLost("the certificate authority is replaced", env.replaceAuthority)
	env.expectNothingLost("Envoy rejects a configuration", env.provokeRejection)
}

// loseController kills the only controller, and starts another one later.
func loseController(_ context.Context, env *faultEnvironment) {
	env.expectNothingLost("the controller is away for "+outage.String(), func() {
		env.leader.Kill()
		Consistently(env.visit, outage, time.Second).WithArguments("shared", loadHost, "/fast").Should(Equal("/fast "))
		env.leader = env.startLeader()
		env.expectFollowed()
	})
}

// loseAPIServer interrupts all connections from the controller to the API server. The
// controller loses its lease and exits, and starts again like a container that fails.
func loseAPIServer(_ context.Context, env *faultEnvironment) {
	exits := 0
	env.expectNothingLost("the API server is away for "+outage.String(), func() {
		env.proxy.inject(&apiFault{matches: anyPath, handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }})
		restart := func() {
			if hasExited(env.leader.Exited()) {
				exits++
				env.leader.Kill() // so that its exit status does not matter
				env.leader = env.startLeader("--kubeconfig=" + env.proxy.kubeconfig)
			}
		}
		Consistently(func() string {
			restart()
			return env.visit("shared", loadHost, "/fast")
		}, outage, time.Second).Should(Equal("/fast "))
		env.proxy.clear()
		answers := env.changeProbe()
		Eventually(func() []string {
			restart()
			return answers()
		}).Should(HaveEach("/fast "))
	})
	AddReportEntry(fmt.Sprintf("measured: the controller exited %d times while the API server was away", exits))
}

const (
	bursts = 3
	// changesPerBurst is the number of route changes in each burst, which takes at least
	// burstDuration.
	changesPerBurst = 300
	burstDuration   = 20 * time.Second
	// maxMemoryGrowth is how much more memory an Envoy may use in the last burst.
	maxMemoryGrowth = 4 << 20
)

// changeOften changes routes in bursts, and compares how much memory the Envoys use after
// each.
func changeOften(_ context.Context, env *faultEnvironment) {
	const services, routes = 10, 30
	for i := range services {
		env.create(env.service(fmt.Sprintf("s%d", i)))
	}
	var changed []*gatewayv1.HTTPRoute
	for i := range routes {
		route := env.route(fmt.Sprintf("r%02d", i), "s0", gatewayParent("shared"))
		env.create(route)
		changed = append(changed, route)
	}
	var memory []map[string]int
	env.expectNothingLost(fmt.Sprintf("routes change %d times", bursts*changesPerBurst), func() {
		for burst := range bursts {
			next := time.NewTicker(burstDuration / changesPerBurst)
			defer next.Stop()
			for i := range changesPerBurst {
				<-next.C
				update(changed[i%routes], func(r *gatewayv1.HTTPRoute) {
					r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%03d.example.com", (burst*7+i)%changesPerBurst))}
					toService(fmt.Sprintf("s%d", (burst+i)%services))(r)
				})
			}
			env.expectFollowed()
			memory = append(memory, env.envoyMemory())
		}
	})
	Expect(memory[bursts-1]).To(HaveLen(2))
	for pod, last := range memory[bursts-1] {
		var sizes []string
		for _, m := range memory {
			sizes = append(sizes, fmt.Sprintf("%.1f MiB", float64(m[pod])/(1<<20)))
		}
		AddReportEntry(fmt.Sprintf("measured: the memory of an Envoy after each burst of %d changes: %s", changesPerBurst, strings.Join(sizes, ", ")))
		Expect(last-memory[bursts-2][pod]).To(BeNumerically("<", maxMemoryGrowth), strings.Join(sizes, ", "))
	}
}

// In at least one of maxKills kills, few requests must fail. Other processes on this
// machine can delay an Envoy's start.
const maxKills = 4

// expectFewFailed kills an Envoy under load. In every kill, only requests in flight may
// fail, and requests until the Envoy is ready. In one of several kills, only requests in
// flight may fail, and requests within the duration.
func (env *faultEnvironment) expectFewFailed(ctx context.Context, name string, duration time.Duration) {
	GinkgoHelper()
	for kill := range maxKills {
		var requests, open int
		var unready time.Duration
		result := env.underLoad(name, func(l *load.Load) {
			requests, open = l.InFlight()
			killed := time.Now()
			env.killEnvoy(ctx, kill%2)
			unready = time.Since(killed)
		})
		limit := float64(requests) + duration.Seconds()*loadRate
		AddReportEntry(fmt.Sprintf("measured: under load, %s: %d requests were in flight, and Envoy was ready after %s: %d failed, the limit is %.0f",
			name, requests, unready.Round(time.Millisecond), result.Failed, limit))
		Expect(result.Failed).To(BeNumerically("<=", float64(requests)+unready.Seconds()*loadRate), "%q", result.Failures)
		Expect(result.Broken).To(BeNumerically("<=", open), "%q", result.Failures)
		if float64(result.Failed) <= limit {
			return
		}
	}
	Fail(name + ": too many requests failed after each kill")
}

// provokeRejection creates a route that the Envoys in the test bed reject, and removes
// it.
func (env *faultEnvironment) provokeRejection() {
	GinkgoHelper()
	route := env.route("rejected", "load", gatewayParent("shared"))
	route.Spec.Hostnames = []gatewayv1.Hostname{"rejected.example.com"}
	expression := "/" + strings.Repeat("[a-z0-9]{1,20}", 10)
	route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
		Type: ptr.To(gatewayv1.PathMatchRegularExpression), Value: ptr.To(expression),
	}}}
	env.create(route)
	Eventually(dataPlaneReady(env.gateway)).Should(Equal("False EnvoyRejected"))
	message := conditionMessage(latest(env.gateway).Status.Conditions, "tunnelgateway.dev/DataPlaneReady")
	AddReportEntry("measured: the message of a rejection: " + message)
	Expect(message).To(And(ContainSubstring("Report the error as a bug"), ContainSubstring("regex")))
	Expect(programmed(env.gateway)()).To(Equal("True Programmed"))
	env.delete(route)
	env.expectFollowed()
}
