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
	DescribeTable("of the class and of the Gateway are merged in the document", func(mode *v1alpha1.MergingMode, connect int64) {
		w := newWorld()
		w.start()
		w.create(
			w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{MergingMode: mode, OriginRequest: &v1alpha1.OriginRequest{
				ConnectTimeout: ptr.To[v1alpha1.Duration]("10s"), NoHappyEyeballs: ptr.To(true),
			}}),
			w.settings("own", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{
				ConnectTimeout: ptr.To[v1alpha1.Duration]("20s"), KeepAliveTimeout: ptr.To[v1alpha1.Duration]("1m30s"),
			}}))
		w.referClass("defaults")
		g := w.gateway("shared", "a.example.com")
		referToOwn(g)
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.document("shared").OriginRequest).To(Equal(provider.OriginRequest{
			ConnectTimeout: &connect, NoHappyEyeballs: ptr.To(true), KeepAliveTimeout: ptr.To[int64](90),
		}))
	},
		Entry("the class's first, when nothing is said", nil, int64(10)),
		Entry("the class's first", ptr.To(v1alpha1.MergingModePreferGatewayClass), int64(10)),
		Entry("the Gateway's first", ptr.To(v1alpha1.MergingModePreferGateway), int64(20)),
	)

	It("of listeners are in the rules of their routes", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com", "b.example.com")
		referToOwn(g)
		w.create(w.settings("own", v1alpha1.TunnelConfigurationSpec{ListenerConfigurations: []v1alpha1.ListenerConfiguration{{
			ProtocolPort: "HTTP:80", Hostname: "b.example.com",
			Access: &v1alpha1.Access{Required: true, TeamName: ptr.To("shop"), AUDTags: []v1alpha1.AUDTag{"4714c1358e65fe4b"}},
		}}}), w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.hostnames).WithArguments("shared").Should(ConsistOf("a.example.com", "b.example.com"))
		for _, rule := range w.document("shared").Ingress {
			if rule.Hostname == "b.example.com" {
				Expect(rule.OriginRequest.Access).To(Equal(&provider.Access{Required: true, TeamName: "shop", AUDTag: []string{"4714c1358e65fe4b"}}))
			} else {
				Expect(rule.OriginRequest.Access).To(BeNil(), rule.Hostname)
			}
		}
	})

	It("take effect when they change", func() {
		w := newWorld()
		w.start()
		settings, defaults := w.settings("own", v1alpha1.TunnelConfigurationSpec{}), w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{})
		g := w.gateway("shared", "a.example.com")
		referToOwn(g)
		w.create(settings, defaults, g)
		w.referClass("defaults")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		change(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.OriginRequest = &v1alpha1.OriginRequest{KeepAliveConnections: ptr.To[int32](7)}
		})
		Eventually(w.origin).Should(Equal(provider.OriginRequest{KeepAliveConnections: ptr.To[int64](7)}))
		change(defaults, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.OriginRequest = &v1alpha1.OriginRequest{KeepAliveConnections: ptr.To[int32](8)}
			c.Spec.Connector = &v1alpha1.Connector{Image: ptr.To("registry.example.com/cloudflared:1")}
		})
		Eventually(w.origin).Should(Equal(provider.OriginRequest{KeepAliveConnections: ptr.To[int64](8)}))
		Eventually(w.image).Should(Equal("registry.example.com/cloudflared:1"))
	})

	DescribeTable("that are not valid leave everything as it is, until they are mended",
		func(ctx SpecContext, spoil, mend func(*world, *v1alpha1.TunnelConfiguration), says string) {
			w := newWorld()
			w.create(w.classSettings("class", allowing(v1alpha1.TunnelConfigurationSpec{})))
			w.referClass("class")
			w.start()
			settings := w.settings("own", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{KeepAliveConnections: ptr.To[int32](7)}})
			g := w.gateway("shared", "*.example.com")
			referToOwn(g)
			w.create(settings, w.service("web"), g, w.route("web", "web", toGateway("shared")))
			Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
			before := w.deployment()
			w.settle(ctx)
			w.edge.ResetRequests()

			spoil(w, settings)
			Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
			Expect(acceptedMessage(g)).To(ContainSubstring(says))
			change(g, func(g *gatewayv1.Gateway) { // both would change something
				g.Spec.Infrastructure.Labels = map[gatewayv1.LabelKey]gatewayv1.LabelValue{"example.com/team": "shop"}
			})
			w.create(w.route("more", "web", toGateway("shared")))
			w.settle(ctx)
			Expect(w.edge.Count(http.MethodPut, configurations)).To(BeZero())
			Expect(w.origin()).To(Equal(provider.OriginRequest{KeepAliveConnections: ptr.To[int64](7)}))
			Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"), "what served serves")
			after := w.deployment()
			Expect(after.UID).To(Equal(before.UID))
			Expect(after.Generation).To(Equal(before.Generation))
			Expect(after.Labels).To(Equal(before.Labels))

			mend(w, settings)
			Eventually(accepted(g)).Should(Equal("True Accepted"))
			Eventually(programmed(g)).Should(Equal("True Programmed"))
			Eventually(func() map[string]string { return w.deployment().Labels }).Should(HaveKeyWithValue("example.com/team", "shop"))
		},
		Entry("an account in the Gateway's", func(_ *world, c *v1alpha1.TunnelConfiguration) {
			change(c, func(c *v1alpha1.TunnelConfiguration) {
				c.Spec.Account = &v1alpha1.Account{AccountID: ptr.To("another")}
			})
		}, takeOut, "account"),
		Entry("an image in the Gateway's", func(_ *world, c *v1alpha1.TunnelConfiguration) {
			change(c, func(c *v1alpha1.TunnelConfiguration) {
				c.Spec.Connector = &v1alpha1.Connector{Image: ptr.To("registry.example.com/mine:1")}
			})
		}, takeOut, "image"),
		Entry("the Gateway's deleted", func(w *world, c *v1alpha1.TunnelConfiguration) { w.delete(c) },
			func(w *world, c *v1alpha1.TunnelConfiguration) { w.create(w.settings(c.Name, c.Spec)) }, "does not exist"),
		Entry("a class that refers to what is missing", func(w *world, _ *v1alpha1.TunnelConfiguration) { w.referClass("missing") },
			func(w *world, _ *v1alpha1.TunnelConfiguration) {
				w.create(w.classSettings("missing", allowing(v1alpha1.TunnelConfigurationSpec{})))
			}, "does not exist"),
		Entry("a permission that the class withdraws", func(w *world, _ *v1alpha1.TunnelConfiguration) { w.permit() },
			func(w *world, _ *v1alpha1.TunnelConfiguration) {
				change(w.classSettings(permissions, v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
					c.Spec = allowing(c.Spec)
					c.Spec.AllowedGatewayFields = []v1alpha1.GatewayField{"originRequest"}
				})
			}, "does not permit spec.originRequest."),
		Entry("an account of the class outside the controller's namespace", func(w *world, _ *v1alpha1.TunnelConfiguration) {
			w.create(w.settings("elsewhere", v1alpha1.TunnelConfigurationSpec{Account: &v1alpha1.Account{AccountID: ptr.To("account")}}))
			w.referClassTo(w.namespace, "elsewhere")
		}, func(w *world, _ *v1alpha1.TunnelConfiguration) {
			change(w.settings("elsewhere", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
				c.Spec = allowing(v1alpha1.TunnelConfigurationSpec{})
			})
		}, "spec.account has an effect only in the controller's namespace"),
	)

	It("that are missing at first hold a Gateway up, until they are there", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		referToOwn(g)
		w.create(g)
		Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		w.settle(ctx)
		Expect(w.edge.Tunnels()).To(BeEmpty())
		Expect(w.leftOver("shared")).To(BeEmpty())
		w.create(w.settings("own", v1alpha1.TunnelConfigurationSpec{}))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
	})

	It("of another kind hold a Gateway up", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{Kind: "ConfigMap", Name: "own"}}
		w.create(g)
		Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		Expect(w.edge.Tunnels()).To(BeEmpty())
	})

	DescribeTable("that cannot be meant are refused by the API server, which says why",
		func(spec v1alpha1.TunnelConfigurationSpec, says string) {
			w := newWorld()
			err := kube.Create(context.Background(), w.settings("own", spec))
			Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("replicas and autoscaling", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{
			Replicas: ptr.To[int32](2), Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: ptr.To[int32](3)},
		}}, "connector has both replicas and autoscaling: set replicas for a fixed number, or autoscaling, not both"),
		Entry("an existing tunnel without anything about it", v1alpha1.TunnelConfigurationSpec{Tunnel: &v1alpha1.TunnelSettings{
			Existing: &v1alpha1.ExistingTunnel{},
		}}, "existing is empty: set id, or takeover in the TunnelConfiguration of a GatewayClass, or leave existing out"),
		Entry("bounds of replicas that exclude every number", v1alpha1.TunnelConfigurationSpec{Limits: &v1alpha1.Limits{
			ConnectorReplicas: &v1alpha1.ReplicaBounds{Min: ptr.To[int32](5)},
		}}, "min is greater than max: lower min, which is 1 by default, or raise max, which is 4 by default"),
		Entry("access without a team", v1alpha1.TunnelConfigurationSpec{ListenerConfigurations: []v1alpha1.ListenerConfiguration{{
			ProtocolPort: "HTTPS:443", Access: &v1alpha1.Access{Required: true, AUDTags: []v1alpha1.AUDTag{"4714c1358e65fe4b"}},
		}}}, "access is required but has no teamName, without which no token can be checked: set teamName, or set required to false"),
		Entry("a duration that cloudflared does not take", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{
			ConnectTimeout: ptr.To[v1alpha1.Duration]("500ms"),
		}}, "must be a positive time in whole seconds, written in hours, minutes and seconds, as in 30s or 1m30s"),
	)
})

// allowing adds to the settings of a class that its Gateways may label their
// connectors.
func allowing(spec v1alpha1.TunnelConfigurationSpec) v1alpha1.TunnelConfigurationSpec {
	spec.Connector = &v1alpha1.Connector{AllowedMetadataPrefixes: []string{"example.com"}}
	return spec
}

// takeOut takes out of settings what a Gateway's owner must not set.
func takeOut(_ *world, c *v1alpha1.TunnelConfiguration) {
	change(c, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Account, c.Spec.Connector = nil, nil })
}

// origin returns how the connectors of the Gateway "shared" talk to backends.
func (w *world) origin() provider.OriginRequest { return w.document("shared").OriginRequest }

// image returns the image of the connectors.
func (w *world) image() string { return w.deployment().Spec.Template.Spec.Containers[0].Image }

func acceptedMessage(g *gatewayv1.Gateway) string {
	c := meta.FindStatusCondition(fresh(g).Status.Conditions, string(gatewayv1.GatewayConditionAccepted))
	return c.Message
}

// settings returns a TunnelConfiguration for Gateways, to which nothing refers
// yet.
func (w *world) settings(name string, spec v1alpha1.TunnelConfigurationSpec) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: w.meta(name), Spec: spec}
}

// referToOwn makes the Gateway refer to the settings "own".
func referToOwn(g *gatewayv1.Gateway) {
	if g.Spec.Infrastructure == nil {
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{}
	}
	g.Spec.Infrastructure.ParametersRef = &gatewayv1.LocalParametersReference{
		Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "own",
	}
}

// classSettings returns a TunnelConfiguration for the class, in the controller's
// namespace, to which nothing refers yet.
func (w *world) classSettings(name string, spec v1alpha1.TunnelConfigurationSpec) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: name}, Spec: spec}
}

// permissions is the name of the TunnelConfiguration that [world.permit] creates.
const permissions = "permissions"

// permit makes the class permit exactly these fields to its Gateways, and any
// number of connectors.
func (w *world) permit(fields ...v1alpha1.GatewayField) {
	GinkgoHelper()
	if fields == nil {
		fields = []v1alpha1.GatewayField{}
	}
	w.create(w.classSettings(permissions, v1alpha1.TunnelConfigurationSpec{
		AllowedGatewayFields: fields,
		Limits:               &v1alpha1.Limits{ConnectorReplicas: &v1alpha1.ReplicaBounds{Min: ptr.To[int32](0), Max: ptr.To[int32](25)}},
	}))
	w.referClass(permissions)
}

// referClass makes the class refer to settings in the controller's namespace.
func (w *world) referClass(name string) *gatewayv1.GatewayClass {
	GinkgoHelper()
	return w.referClassTo(w.system, name)
}

// referClassTo makes the class refer to settings in any namespace.
func (w *world) referClassTo(namespace, name string) *gatewayv1.GatewayClass {
	GinkgoHelper()
	class := &gatewayv1.GatewayClass{}
	class.Name = w.class
	change(class, func(class *gatewayv1.GatewayClass) {
		class.Spec.ParametersRef = &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: name, Namespace: ptr.To(gatewayv1.Namespace(namespace)),
		}
	})
	return class
}
