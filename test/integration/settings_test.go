package integration

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var _ = Describe("settings", func() {
	DescribeTable("of the GatewayClass and the Gateway are merged", func(mode *v1alpha1.MergingMode, connect int64) {
		env := newEnvironment()
		env.start()
		env.create(
			env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{MergingMode: mode, OriginRequest: &v1alpha1.OriginRequest{
				ConnectTimeout: ptr.To[v1alpha1.Duration]("10s"), NoHappyEyeballs: ptr.To(true),
			}}),
			env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{
				ConnectTimeout: ptr.To[v1alpha1.Duration]("20s"), KeepAliveTimeout: ptr.To[v1alpha1.Duration]("1m30s"),
			}}))
		env.useClassSettings("defaults")
		g := env.gateway("shared", "a.example.com")
		useOwnSettings(g)
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(env.configuration("shared").OriginRequest).To(Equal(provider.OriginRequest{
			ConnectTimeout: &connect, NoHappyEyeballs: ptr.To(true), KeepAliveTimeout: ptr.To[int64](90),
		}))
	},
		Entry("with precedence of the class by default", nil, int64(10)),
		Entry("with precedence of the class", ptr.To(v1alpha1.MergingModePreferGatewayClass), int64(10)),
		Entry("with precedence of the Gateway", ptr.To(v1alpha1.MergingModePreferGateway), int64(20)),
	)

	It("of a listener apply to the rules of its routes", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com", "b.example.com")
		useOwnSettings(g)
		env.create(env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{ListenerConfigurations: []v1alpha1.ListenerConfiguration{{
			ProtocolPort: "HTTP:80", Hostname: "b.example.com",
			Access: &v1alpha1.Access{Required: true, TeamName: ptr.To("shop"), AUDTags: []v1alpha1.AUDTag{"4714c1358e65fe4b"}},
		}}}), env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(env.hostnames).WithArguments("shared").Should(ConsistOf("a.example.com", "b.example.com"))
		for _, rule := range env.configuration("shared").Ingress {
			if rule.Hostname == "b.example.com" {
				Expect(rule.OriginRequest.Access).To(Equal(&provider.AccessSettings{Required: true, TeamName: "shop", AUDTag: []string{"4714c1358e65fe4b"}}))
			} else {
				Expect(rule.OriginRequest.Access).To(BeNil(), rule.Hostname)
			}
		}
	})

	It("take effect when they change", func() {
		env := newEnvironment()
		env.start()
		settings, defaults := env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{}), env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{})
		g := env.gateway("shared", "a.example.com")
		useOwnSettings(g)
		env.create(settings, defaults, g)
		env.useClassSettings("defaults")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.OriginRequest = &v1alpha1.OriginRequest{KeepAliveConnections: ptr.To[int32](7)}
		})
		Eventually(env.originRequest).Should(Equal(provider.OriginRequest{KeepAliveConnections: ptr.To[int64](7)}))
		update(defaults, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.OriginRequest = &v1alpha1.OriginRequest{KeepAliveConnections: ptr.To[int32](8)}
			c.Spec.Connector = &v1alpha1.Connector{Image: ptr.To("registry.example.com/cloudflared:1")}
		})
		Eventually(env.originRequest).Should(Equal(provider.OriginRequest{KeepAliveConnections: ptr.To[int64](8)}))
		Eventually(env.connectorImage).Should(Equal("registry.example.com/cloudflared:1"))
	})

	DescribeTable("have no effect while they are invalid",
		func(ctx SpecContext, invalidate, fix func(*environment, *v1alpha1.TunnelConfiguration), message string) {
			env := newEnvironment()
			env.create(env.classSettings("class", withAllowedLabels(v1alpha1.TunnelConfigurationSpec{})))
			env.useClassSettings("class")
			env.start()
			settings := env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{KeepAliveConnections: ptr.To[int32](7)}})
			g := env.gateway("shared", "*.example.com")
			useOwnSettings(g)
			env.create(settings, env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
			Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
			before := env.deployment()
			env.waitUntilIdle(ctx)
			env.cloudflare.ResetRequests()

			invalidate(env, settings)
			Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
			Expect(acceptedMessage(g)).To(ContainSubstring(message))
			update(g, func(g *gatewayv1.Gateway) { // the label and the route would change objects
				g.Spec.Infrastructure.Labels = map[gatewayv1.LabelKey]gatewayv1.LabelValue{"example.com/team": "shop"}
			})
			env.create(env.route("more", "web", gatewayParent("shared")))
			env.waitUntilIdle(ctx)
			Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeZero())
			Expect(env.originRequest()).To(Equal(provider.OriginRequest{KeepAliveConnections: ptr.To[int64](7)}))
			Expect(env.get("shared", "a.example.com", "/")).To(Equal("web"), "the Gateway continues to serve")
			after := env.deployment()
			Expect(after.UID).To(Equal(before.UID))
			Expect(after.Generation).To(Equal(before.Generation))
			Expect(after.Labels).To(Equal(before.Labels))

			fix(env, settings)
			Eventually(accepted(g)).Should(Equal("True Accepted"))
			Eventually(programmed(g)).Should(Equal("True Programmed"))
			Eventually(func() map[string]string { return env.deployment().Labels }).Should(HaveKeyWithValue("example.com/team", "shop"))
		},
		Entry("because the Gateway's settings contain an account", func(_ *environment, c *v1alpha1.TunnelConfiguration) {
			update(c, func(c *v1alpha1.TunnelConfiguration) {
				c.Spec.Account = &v1alpha1.Account{AccountID: ptr.To("another")}
			})
		}, removeForbiddenFields, "account"),
		Entry("because the Gateway's settings contain an image", func(_ *environment, c *v1alpha1.TunnelConfiguration) {
			update(c, func(c *v1alpha1.TunnelConfiguration) {
				c.Spec.Connector = &v1alpha1.Connector{Image: ptr.To("registry.example.com/mine:1")}
			})
		}, removeForbiddenFields, "image"),
		Entry("because the Gateway's settings are deleted", func(env *environment, c *v1alpha1.TunnelConfiguration) { env.delete(c) },
			func(env *environment, c *v1alpha1.TunnelConfiguration) {
				env.create(env.gatewaySettings(c.Name, c.Spec))
			}, "does not exist"),
		Entry("because the class refers to missing settings", func(env *environment, _ *v1alpha1.TunnelConfiguration) { env.useClassSettings("missing") },
			func(env *environment, _ *v1alpha1.TunnelConfiguration) {
				env.create(env.classSettings("missing", withAllowedLabels(v1alpha1.TunnelConfigurationSpec{})))
			}, "does not exist"),
		Entry("because the class no longer permits a field", func(env *environment, _ *v1alpha1.TunnelConfiguration) { env.allowGatewayFields() },
			func(env *environment, _ *v1alpha1.TunnelConfiguration) {
				update(env.classSettings(permissionsName, v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
					c.Spec = withAllowedLabels(c.Spec)
					c.Spec.AllowedGatewayFields = []v1alpha1.GatewayField{"originRequest"}
				})
			}, "does not permit spec.originRequest."),
		Entry("because the class's account is outside the controller's namespace", func(env *environment, _ *v1alpha1.TunnelConfiguration) {
			env.create(env.gatewaySettings("outside", v1alpha1.TunnelConfigurationSpec{Account: &v1alpha1.Account{AccountID: ptr.To("account")}}))
			env.useClassSettingsIn(env.namespace, "outside")
		}, func(env *environment, _ *v1alpha1.TunnelConfiguration) {
			update(env.gatewaySettings("outside", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
				c.Spec = withAllowedLabels(v1alpha1.TunnelConfigurationSpec{})
			})
		}, "spec.account has an effect only in the controller's namespace"),
	)

	It("delay a new Gateway until they are created", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		useOwnSettings(g)
		env.create(g)
		Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Tunnels()).To(BeEmpty())
		Expect(env.remainingObjects("shared")).To(BeEmpty())
		env.create(env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{}))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
	})

	It("of an unsupported kind prevent the creation of a tunnel", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{Kind: "ConfigMap", Name: "own"}}
		env.create(g)
		Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		Expect(env.cloudflare.Tunnels()).To(BeEmpty())
	})

	DescribeTable("are rejected by the API server if they contain",
		func(spec v1alpha1.TunnelConfigurationSpec, message string) {
			env := newEnvironment()
			err := kube.Create(context.Background(), env.gatewaySettings("own", spec))
			Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("both replicas and autoscaling", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{
			Replicas: ptr.To[int32](2), Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: ptr.To[int32](3)},
		}}, "connector has both replicas and autoscaling: set only one of them"),
		Entry("an empty existing tunnel", v1alpha1.TunnelConfigurationSpec{Tunnel: &v1alpha1.TunnelSettings{
			Existing: &v1alpha1.ExistingTunnel{},
		}}, "existing is empty: set id, or takeover in the TunnelConfiguration of a GatewayClass, or remove existing"),
		Entry("replica bounds that exclude every number", v1alpha1.TunnelConfigurationSpec{Limits: &v1alpha1.Limits{
			ConnectorReplicas: &v1alpha1.ReplicaBounds{Min: ptr.To[int32](5)},
		}}, "min is greater than max: lower min (default 1) or raise max (default 4)"),
		Entry("required access without a team name", v1alpha1.TunnelConfigurationSpec{ListenerConfigurations: []v1alpha1.ListenerConfiguration{{
			ProtocolPort: "HTTPS:443", Access: &v1alpha1.Access{Required: true, AUDTags: []v1alpha1.AUDTag{"4714c1358e65fe4b"}},
		}}}, "access is required but has neither policies nor teamName, so tokens cannot be validated: set policies, set teamName and audTags, or set required to false"),
		Entry("a duration that cloudflared does not support", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{
			ConnectTimeout: ptr.To[v1alpha1.Duration]("500ms"),
		}}, "must be a positive number of whole seconds, written in hours, minutes and seconds, such as 30s or 1m30s"),
	)
})

// withAllowedLabels adds a permitted label prefix to GatewayClass settings.
func withAllowedLabels(spec v1alpha1.TunnelConfigurationSpec) v1alpha1.TunnelConfigurationSpec {
	spec.Connector = &v1alpha1.Connector{AllowedMetadataPrefixes: []string{"example.com"}}
	return spec
}

// removeForbiddenFields removes the fields that a Gateway's settings must not
// contain.
func removeForbiddenFields(_ *environment, c *v1alpha1.TunnelConfiguration) {
	update(c, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Account, c.Spec.Connector = nil, nil })
}

// originRequest returns the origin settings in the configuration for the Gateway
// "shared".
func (env *environment) originRequest() provider.OriginRequest {
	return env.configuration("shared").OriginRequest
}

func (env *environment) connectorImage() string {
	return env.deployment().Spec.Template.Spec.Containers[0].Image
}

func acceptedMessage(g *gatewayv1.Gateway) string {
	return conditionMessage(latest(g).Status.Conditions, string(gatewayv1.GatewayConditionAccepted))
}

// conditionMessage returns a condition's message, or "".
func conditionMessage(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// gatewaySettings returns a TunnelConfiguration in the Gateways' namespace.
func (env *environment) gatewaySettings(name string, spec v1alpha1.TunnelConfigurationSpec) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: env.objectMeta(name), Spec: spec}
}

// useOwnSettings makes the Gateway refer to the settings "own".
func useOwnSettings(g *gatewayv1.Gateway) {
	if g.Spec.Infrastructure == nil {
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{}
	}
	g.Spec.Infrastructure.ParametersRef = &gatewayv1.LocalParametersReference{
		Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "own",
	}
}

// classSettings returns a TunnelConfiguration in the controller's namespace, for
// the GatewayClass.
func (env *environment) classSettings(name string, spec v1alpha1.TunnelConfigurationSpec) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: env.controllerNamespace, Name: name}, Spec: spec}
}

// permissionsName is the name for the TunnelConfiguration that
// [environment.allowGatewayFields] creates.
const permissionsName = "permissions"

// allowGatewayFields makes the GatewayClass permit its Gateways exactly these fields, and
// any number of connector replicas.
func (env *environment) allowGatewayFields(fields ...v1alpha1.GatewayField) {
	GinkgoHelper()
	if fields == nil {
		fields = []v1alpha1.GatewayField{}
	}
	env.create(env.classSettings(permissionsName, v1alpha1.TunnelConfigurationSpec{
		AllowedGatewayFields: fields,
		Limits:               &v1alpha1.Limits{ConnectorReplicas: &v1alpha1.ReplicaBounds{Min: ptr.To[int32](0), Max: ptr.To[int32](25)}},
	}))
	env.useClassSettings(permissionsName)
}

// useClassSettings makes the GatewayClass refer to settings in the controller's
// namespace.
func (env *environment) useClassSettings(name string) *gatewayv1.GatewayClass {
	GinkgoHelper()
	return env.useClassSettingsIn(env.controllerNamespace, name)
}

// useClassSettingsIn makes the GatewayClass refer to settings in any namespace.
func (env *environment) useClassSettingsIn(namespace, name string) *gatewayv1.GatewayClass {
	GinkgoHelper()
	class := &gatewayv1.GatewayClass{}
	class.Name = env.className
	update(class, func(class *gatewayv1.GatewayClass) {
		class.Spec.ParametersRef = &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: name, Namespace: ptr.To(gatewayv1.Namespace(namespace)),
		}
	})
	return class
}
