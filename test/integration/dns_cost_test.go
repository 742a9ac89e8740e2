package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// hostnamesPerRoute is the maximum in the Gateway API.
const hostnamesPerRoute = 16

var _ = Describe("the cost of 1,000 records", records, func() {
	It("is at most ten requests, and none while nothing changes", func(ctx SpecContext) {
		const count = 1000
		env := newDNSEnvironment(func(s *v1alpha1.TunnelConfigurationSpec) {
			s.DNS.MaxRecordsPerNamespace = ptr.To[int32](count)
			s.Limits = &v1alpha1.Limits{RulesPerTunnel: ptr.To[int32](2 * count)}
		})
		env.database.Update(env.zone, func(z *zones.Zone) { z.Plan = zones.Pro })
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		without := env.measureChange("without", "*.example.net")

		start := time.Now()
		env.createConcurrently((count+hostnamesPerRoute-1)/hostnamesPerRoute, func(i int) client.Object {
			route := env.route(fmt.Sprintf("r%02d", i), "web", gatewayParent("shared"))
			for j := i * hostnamesPerRoute; j < min(count, (i+1)*hostnamesPerRoute); j++ {
				route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%03d.example.com", j)))
			}
			return route
		})
		Eventually(env.names).Should(HaveLen(count))
		Eventually(dnsCondition(g)).Should(Equal(published))
		took := time.Since(start)
		env.waitUntilIdle(ctx)
		requests := env.zoneRequests()
		Expect(requests[""]).To(BeNumerically("<=", 10), "%v", requests)
		Expect(env.request("h000.example.com")).To(Equal("web"))
		Expect(env.request("h999.example.com")).To(Equal("web"))

		By("changing a tunnel beside the records")
		with := env.measureChange("with", "*.example.org")
		Expect(env.zoneRequests()).To(Equal(requests), "the zone was read a short time ago")
		AddReportEntry(fmt.Sprintf("measured: 1,000 records took %s and %d requests; a new hostname reached its tunnel after %s without records, and %s with them",
			took.Round(time.Millisecond), requests[""], without.Round(time.Millisecond), with.Round(time.Millisecond)))
	})
})

// measureChange returns the time from the creation of a route at another Gateway to its rule
// at Cloudflare. The hostname is in no zone.
func (env *dnsEnvironment) measureChange(gateway, hostname string) time.Duration {
	GinkgoHelper()
	g := env.gateway(gateway, hostname)
	env.create(g)
	Eventually(programmed(g)).Should(Equal("True Programmed"))
	route := env.route(gateway, "web", gatewayParent(gateway))
	start := time.Now()
	env.create(route)
	Eventually(env.hostnames).WithPolling(time.Millisecond).WithArguments(gateway).Should(ConsistOf(hostname))
	return time.Since(start)
}
