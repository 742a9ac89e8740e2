package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/convert"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// The specs follow docs/guides/migration-from-cloudflared.md and apply its files.
var _ = Describe("the migration from cloudflared", Ordered, ContinueOnFailure, func() {
	var env *environment
	var written, before []byte // the old configuration: as written, and as stored by the API
	var id string              // the old tunnel
	var g *gatewayv1.Gateway
	get := func(tunnel, host, path string) string { return env.getThrough(tunnel, host, path) }

	BeforeAll(func() {
		env = newEnvironment()
		env.start()
		var err error
		written, err = remoteConfiguration()
		Expect(err).NotTo(HaveOccurred())
		env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "store"}})
		g = &gatewayv1.Gateway{ObjectMeta: objectMetaIn("store", "store")}
	})

	BeforeEach(func() {
		name := uniqueName("by-hand")
		env.callCloudflareAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"cloudflare"}`, name))
		id, _ = env.cloudflare.TunnelID(name)
		env.cloudflare.SetConfiguration(id, written)
		before, _ = env.cloudflare.StoredConfiguration(id)
		env.cloudflare.Connect(id, 2)
		env.applySamples(kube, migrationSamples+"20-routes.yaml", migrationSamples+"30-services.yaml")
		Expect(get(id, "store.example.com", "/api/logo.png")).To(Equal("api"))
		Expect(get(id, "closed.example.com", "/")).To(Equal("410"))
	})

	AfterEach(func() {
		if exists(g) {
			env.delete(g)
		}
		if object := env.tunnelObject(g); object != nil {
			env.delete(object)
		}
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
	})

	It("starts from a Deployment that the API server accepts", func(ctx SpecContext) {
		for _, object := range env.readSample(migrationSamples + "before/deployment.yaml") {
			strict := client.WithFieldValidation(client.NewDryRunClient(kube), "Strict")
			Expect(strict.Create(ctx, object)).To(Succeed())
		}
	})

	It("can use a new tunnel while the old tunnel still serves", func() {
		env.applySamples(kube, migrationSamples+"00-gateway.yaml", migrationSamples+"10-settings.yaml")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		newTunnel, _ := env.cloudflare.TunnelID(env.tunnelNameIn("store", "store"))
		Expect(newTunnel).NotTo(Equal(id))
		Expect(latest(g).Status.Addresses[0].Value).To(Equal(newTunnel + ".cfargotunnel.com"))
		for _, tunnel := range []string{id, newTunnel} {
			Expect(get(tunnel, "store.example.com", "/")).To(Equal("web"))
			Expect(get(tunnel, "store.example.com", "/api/logo.png")).To(Equal("api"))
			Expect(get(tunnel, "store.example.com", "/logo.png")).To(Equal("static"))
			Expect(get(tunnel, "store.example.com", "/old/download/1")).To(Equal("files"))
			Expect(get(tunnel, "x.preview.example.com", "/")).To(Equal("preview"))
		}
		configuration, _ := env.cloudflare.StoredConfiguration(id)
		Expect(configuration).To(MatchJSON(before), "the old configuration does not change")

		By("deleting the Gateway to roll back")
		env.deleteAndWait(g)
		_, ok := env.cloudflare.TunnelID(env.tunnelNameIn("store", "store"))
		Expect(ok).To(BeFalse())
		Expect(get(id, "store.example.com", "/")).To(Equal("web"))
	})

	It("can use converted objects, which serve every request like the old tunnel", func(ctx SpecContext) {
		input, result := env.applyConverted(migrationSamples+"before/config.yml", "store")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		set := &gatewayv1.ListenerSet{ObjectMeta: objectMetaIn("store", "store")}
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		newTunnel, _ := env.cloudflare.TunnelID(env.tunnelNameIn("store", "store"))
		matcher, err := convert.NewMatcher(input.Rules)
		Expect(err).NotTo(HaveOccurred())
		compared := 0
		for _, request := range input.Requests() {
			path := strings.TrimPrefix(request.String(), request.Host)
			if rule := result.Rules[matcher.Match(request.Host, request.Path)]; rule.Changed {
				Expect(get(newTunnel, request.Host, path)).To(Equal("404"), request.String())
				continue
			}
			Expect(get(newTunnel, request.Host, path)).To(Equal(get(id, request.Host, path)), request.String())
			compared++
		}
		Expect(compared).To(BeNumerically(">", 50))
	})

	It("can take over the old tunnel when permitted, and roll back", func(ctx SpecContext) {
		env.applySamples(kube, migrationSamples+"takeover/settings.yaml")
		update(&v1alpha1.TunnelConfiguration{ObjectMeta: objectMetaIn("store", "store")}, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Tunnel.Existing.ID = id
		})
		env.applySamples(kube, migrationSamples+"00-gateway.yaml")
		connectors := &appsv1.Deployment{ObjectMeta: objectMetaIn(env.controllerNamespace, tunnel.ConnectorName(client.ObjectKeyFromObject(g)))}
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Eventually(gatewayMessage(g)).Should(ContainSubstring("tunnel.existing.takeover"), "after the previous tunnel is deleted")
		env.waitUntilIdle(ctx)
		configuration, _ := env.cloudflare.StoredConfiguration(id)
		Expect(configuration).To(MatchJSON(before), "the controller does not write without permission")
		Expect(exists(connectors)).To(BeFalse())

		update(&v1alpha1.TunnelConfiguration{ObjectMeta: objectMetaIn(env.controllerNamespace, "migration")}, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{Takeover: ptr.To(true)}}
		})
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(latest(g).Status.Addresses[0].Value).To(Equal(id+".cfargotunnel.com"), "the address does not change")
		Expect(get(id, "store.example.com", "/api/logo.png")).To(Equal("api"))
		Expect(get(id, "store.example.com", "/logo.png")).To(Equal("static"))
		Expect(get(id, "closed.example.com", "/")).To(Equal("404"), "the rule has no equivalent")
		Eventually(exists).WithArguments(connectors).Should(BeTrue())

		By("restoring the old configuration while the Gateway is paused")
		annotate(g, v1alpha1.PausedAnnotation, "true")
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		env.cloudflare.SetConfiguration(id, written)
		annotate(g, "example.com/reconcile", "again")
		env.waitUntilIdle(ctx)
		Expect(get(id, "closed.example.com", "/")).To(Equal("410"))

		By("deleting the Gateway, which retains the adopted tunnel")
		env.delete(g)
		Eventually(env.tunnelPhase(g)).Should(Equal("Retained"))
		Eventually(exists).WithArguments(connectors).Should(BeFalse())
		Expect(get(id, "closed.example.com", "/")).To(Equal("410"))
		configuration, _ = env.cloudflare.StoredConfiguration(id)
		Expect(configuration).To(MatchJSON(before))
	})
})

// applyConverted converts a sample configuration into objects of the Gateway
// namespace/namespace, and applies them until the end of the spec.
func (env *environment) applyConverted(file, namespace string) (*convert.Configuration, *convert.Result) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(samplesDir, file))
	Expect(err).NotTo(HaveOccurred())
	input, err := convert.Parse(file, text)
	Expect(err).NotTo(HaveOccurred())
	result := convert.Convert(input, convert.Options{
		GatewayNamespace: namespace, GatewayName: namespace, ControllerName: env.controllerName, ControllerNamespace: env.controllerNamespace,
		ClusterDomain: config.DefaultClusterDomain, ListenerSets: true, DataPlane: v1alpha1.DataPlaneIngressRules,
	})
	var manifests bytes.Buffer
	Expect(result.WriteYAML(&manifests, file)).To(Succeed())
	objects, err := decodeManifests(&manifests)
	Expect(err).NotTo(HaveOccurred())
	strict := client.WithFieldValidation(kube, metav1.FieldValidationStrict)
	for _, object := range objects {
		Expect(strict.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"))).To(Succeed(), object.GetKind())
		if object.GetKind() != "Namespace" && object.GetKind() != "Gateway" {
			DeferCleanup(func() { env.delete(object) })
		}
	}
	return input, result
}

// annotate sets an annotation on the Gateway.
func annotate(g *gatewayv1.Gateway, name, value string) {
	GinkgoHelper()
	update(g, func(g *gatewayv1.Gateway) { metav1.SetMetaDataAnnotation(&g.ObjectMeta, name, value) })
}
