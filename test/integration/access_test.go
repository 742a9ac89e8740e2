package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// requiredFor returns an entry that requires a Cloudflare Access token for the hostname.
func requiredFor(hostname, tag string) v1alpha1.ListenerConfiguration {
	return v1alpha1.ListenerConfiguration{ProtocolPort: v1alpha1.EveryPort, Hostname: hostname, Access: &v1alpha1.Access{
		Required: true, TeamName: ptr.To("shop"), AUDTags: []v1alpha1.AUDTag{v1alpha1.AUDTag(tag)},
	}}
}

// accessByHostname returns the Access settings of those rules on the Gateway "shared"
// that lead to a backend.
func (env *environment) accessByHostname() map[string]*provider.AccessSettings {
	access := map[string]*provider.AccessSettings{}
	for _, rule := range env.configuration("shared").Ingress {
		if rule.Service != "http_status:404" {
			access[rule.Hostname] = rule.OriginRequest.Access
		}
	}
	return access
}

var _ = Describe("Cloudflare Access", func() {
	It("protects a hostname and reports an unprotected wildcard above it", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		useOwnSettings(g)
		own := env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{ListenerConfigurations: []v1alpha1.ListenerConfiguration{requiredFor("admin.example.com", "admin")}})
		env.create(own, env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		admin := &provider.AccessSettings{Required: true, TeamName: "shop", AUDTag: []string{"admin"}}
		Eventually(env.accessByHostname).Should(Equal(map[string]*provider.AccessSettings{"admin.example.com": admin, "*.example.com": nil}))
		Eventually(env.events).WithArguments(ctx, "shared").Should(ContainElement("Warning AccessBypass"))
		Eventually(acceptedMessage).WithArguments(g).Should(ContainSubstring("admin.example.com (through the rules for *.example.com)"))

		update(own, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.ListenerConfigurations = append(c.Spec.ListenerConfigurations, requiredFor("*.example.com", "all"))
		})
		all := &provider.AccessSettings{Required: true, TeamName: "shop", AUDTag: []string{"all"}}
		Eventually(env.accessByHostname).Should(Equal(map[string]*provider.AccessSettings{"admin.example.com": admin, "*.example.com": all}))
		Eventually(acceptedMessage).WithArguments(g).Should(Equal("The Gateway is accepted."))
	})

	It("that the class requires applies as a whole, on every port", func() {
		env := newEnvironment()
		env.start()
		env.create(
			env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{
				MergingMode: ptr.To(v1alpha1.MergingModePreferGateway), ListenerConfigurations: []v1alpha1.ListenerConfiguration{requiredFor("a.example.com", "class")},
			}),
			env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{ListenerConfigurations: []v1alpha1.ListenerConfiguration{
				{ProtocolPort: "HTTP:8080", Hostname: "a.example.com", Access: &v1alpha1.Access{}}, requiredFor("b.example.com", "own"),
			}}))
		env.useClassSettings("defaults")
		g := env.gateway("shared", "a.example.com", "b.example.com")
		useOwnSettings(g)
		g.Spec.Listeners[0].Port = gatewayv1.PortNumber(8080)
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(env.accessByHostname).Should(Equal(map[string]*provider.AccessSettings{
			"a.example.com": {Required: true, TeamName: "shop", AUDTag: []string{"class"}},
			"b.example.com": {Required: true, TeamName: "shop", AUDTag: []string{"own"}},
		}))
	})
})
