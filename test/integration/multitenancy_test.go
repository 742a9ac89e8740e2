package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

func TestPlanReportsOnlyTheMissingCertificate(t *testing.T) {
	// As the guide states, plan reports only the missing certificate.
	for _, listener := range planManifests(t, "", filepath.Join(samplesDir, "multi-tenancy")).Gateways[0].Listeners {
		want := ""
		if listener.Owner.Name == "orders-secure" {
			want = string(gatewayv1.ListenerReasonInvalidCertificateRef)
		}
		if listener.Reason != want {
			t.Errorf("%s: %q, want %q", listener.Hostname, listener.Reason, want)
		}
	}
}

// The specs follow docs/guides/multi-tenancy.md and apply its files.
var _ = Describe("the setup of the multi-tenancy guide", users, Ordered, ContinueOnFailure, func() {
	const guide = "multi-tenancy/"
	var env *environment
	var platform, orders, journal client.Client
	var terminating *gatewayv1.ListenerSet
	get := func(host string) string {
		id, ok := env.cloudflare.TunnelID(env.tunnelNameIn("gateways", "shared"))
		if !ok {
			return "no tunnel"
		}
		return env.getThrough(id, host, "/")
	}

	BeforeAll(func() {
		env = newEnvironment()
		env.start()
		platform, orders, journal = clientAs("pat", "platform-team"), clientAs("olga", "orders-team"), clientAs("jo", "journal-team")
		env.applySamples(kube, guide+"00-roles.yaml", guide+"10-teams.yaml", guide+"70-backends.yaml")
		env.applySamples(platform, guide+"30-gateway.yaml")
		DeferCleanup(env.deleteAndWait, &gatewayv1.Gateway{ObjectMeta: objectMetaIn("gateways", "shared")})
		env.applySamples(orders, guide+"40-orders.yaml")
		env.applySamples(journal, guide+"50-journal.yaml")
		// Created before the policy, and with one of the team's finalizers.
		terminating = teamListenerSet("journal", "terminating", "terminating.example.com", 8080)
		terminating.Finalizers = []string{"example.com/cleanup"}
		Expect(journal.Create(context.Background(), terminating)).To(Succeed())
	})

	AfterAll(func(ctx SpecContext) { env.deletePolicies(ctx, guide+"20-policy.yaml") })

	It("serves the hostnames of each team with the team's own permissions", func(ctx SpecContext) {
		Eventually(get).WithArguments("www.example.com").Should(Equal("home"))
		Eventually(get).WithArguments("orders.example.com").Should(Equal("cart"))
		Eventually(get).WithArguments("www.journal.example.com").Should(Equal("pages"))
		id, _ := env.cloudflare.TunnelID(env.tunnelNameIn("gateways", "shared"))
		Eventually(func() string {
			configuration, _ := env.cloudflare.StoredConfiguration(id)
			return string(configuration)
		}).Should(ContainSubstring("comments.journal.example.com"))

		By("reading the status with the team's permissions")
		set := &gatewayv1.ListenerSet{}
		Expect(orders.Get(ctx, client.ObjectKey{Namespace: "orders", Name: "orders"}, set)).To(Succeed())
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		gateway := &gatewayv1.Gateway{ObjectMeta: objectMetaIn("gateways", "shared")}
		Eventually(programmed(gateway)).Should(Equal("True Programmed"))
		Expect(orders.Get(ctx, client.ObjectKeyFromObject(gateway), gateway)).To(Succeed())
		Expect(gateway.Status.Addresses[0].Value).To(Equal(id + ".cfargotunnel.com"))
	})

	It("lets a team change and delete its own objects", func(ctx SpecContext) {
		set := teamListenerSet("orders", "more", "more.orders.example.com", 80)
		route := env.route("more", "cart", listenerSetParent("more"))
		route.Namespace = "orders"
		grpc := env.grpcRoute("more")
		grpc.Namespace = "orders"
		for _, object := range []client.Object{set, route, grpc} {
			Expect(orders.Create(ctx, object)).To(Succeed())
		}
		Eventually(get).WithArguments("more.orders.example.com").Should(Equal("cart"))
		Eventually(updateAs[*gatewayv1.ListenerSet]).WithArguments(orders, set, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners[0].Hostname = ptr.To(gatewayv1.Hostname("other.orders.example.com"))
		}).Should(Succeed())
		Eventually(updateAs[*gatewayv1.HTTPRoute]).WithArguments(orders, route, func(r *gatewayv1.HTTPRoute) {
			r.Labels = map[string]string{"example.com/tier": "web"}
		}).Should(Succeed())
		Eventually(get).WithArguments("other.orders.example.com").Should(Equal("cart"))
		Expect(orders.List(ctx, &gatewayv1.GRPCRouteList{}, client.InNamespace("orders"))).To(Succeed())
		for _, object := range []client.Object{set, route, grpc} {
			Expect(orders.Delete(ctx, object)).To(Succeed())
		}
		Eventually(get).WithArguments("other.orders.example.com").Should(Equal("404"))
		Expect(get("more.orders.example.com")).To(Equal("404"))
	})

	DescribeTable("does not allow a team", func(ctx SpecContext, perform operation) {
		Expect(perform(ctx, client.NewDryRunClient(orders))).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	}, deniedToTeams())

	DescribeTable("allows the platform team", func(ctx SpecContext, perform operation) {
		Expect(perform(ctx, client.NewDryRunClient(platform))).To(Succeed())
	}, allowedToPlatformTeam())

	DescribeTable("does not allow the platform team", func(ctx SpecContext, perform operation) {
		Expect(perform(ctx, client.NewDryRunClient(platform))).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	}, deniedToPlatformTeam())

	It("lets a team watch the shared Gateway, but no other Gateway", func(ctx SpecContext) {
		shared := client.MatchingFields{"metadata.name": "shared"}
		Expect(orders.List(ctx, &gatewayv1.GatewayList{}, client.InNamespace("gateways"), shared)).To(Succeed())
		other := client.MatchingFields{"metadata.name": "other"}
		Expect(orders.List(ctx, &gatewayv1.GatewayList{}, client.InNamespace("gateways"), other)).
			To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	})

	It("reports a hostname that a team may not use", func(ctx SpecContext) {
		taken := teamListenerSet("journal", "taken", "orders.example.com", 80)
		DeferCleanup(env.delete, taken)
		Expect(journal.Create(ctx, taken)).To(Succeed())
		Eventually(listenerCondition(taken, gatewayv1.ListenerEntryConditionAccepted)).Should(HaveField("Reason", "HostnameNotPermitted"))
		Expect(listenerCondition(taken, gatewayv1.ListenerEntryConditionAccepted)().Message).To(Equal(
			`Hostname "orders.example.com" is not permitted: the annotation tunnelgateway.dev/hostnames of namespace "journal" is "journal.example.com, *.journal.example.com". Use a permitted hostname, or ask a cluster administrator to change the annotation.`))
		Expect(listenerSetCondition(taken, gatewayv1.ListenerSetConditionAccepted)()).To(Equal("False ListenersNotValid"))

		By("deleting the owner of the hostname")
		Expect(orders.Delete(ctx, teamListenerSet("orders", "orders", "", 80))).To(Succeed())
		Eventually(get).WithArguments("orders.example.com").Should(Equal("404"))
		Expect(listenerCondition(taken, gatewayv1.ListenerEntryConditionAccepted)()).To(HaveField("Reason", "HostnameNotPermitted"))
		env.applySamples(orders, guide+"40-orders.yaml")
		Eventually(get).WithArguments("orders.example.com").Should(Equal("cart"))
	})

	It("reports a hostname conflict without naming the other team", func(ctx SpecContext) {
		permit("journal", ptr.To("*.journal.example.com, orders.example.com"))
		DeferCleanup(permit, "journal", ptr.To("journal.example.com, *.journal.example.com"))
		// Of two ListenerSets from the same second, the first in alphabetical order takes precedence.
		owner := latest(teamListenerSet("orders", "orders", "", 80))
		Eventually(func() time.Duration { return time.Since(owner.CreationTimestamp.Time) }).Should(BeNumerically(">", 2*time.Second))
		taken, port := teamListenerSet("journal", "taken", "orders.example.com", 80), teamListenerSet("journal", "port", "orders.example.com", 443)
		route := env.route("taken", "pages", listenerSetParent("taken"))
		route.Namespace = "journal"
		for _, object := range []client.Object{taken, port, route} {
			Expect(journal.Create(ctx, object)).To(Succeed())
		}
		Eventually(listenerCondition(taken, gatewayv1.ListenerEntryConditionConflicted)).Should(HaveField("Reason", "HostnameConflict"))
		Expect(listenerCondition(taken, gatewayv1.ListenerEntryConditionConflicted)().Message).To(
			Equal(`Hostname "orders.example.com" on port 80 is already claimed by another ListenerSet, which takes precedence. Use another hostname.`))
		Expect(listenerSetCondition(taken, gatewayv1.ListenerSetConditionAccepted)()).To(Equal("False ListenersNotValid"))
		Eventually(listenerCondition(port, gatewayv1.ListenerEntryConditionAccepted)).Should(HaveField("Reason", "PortUnavailable"))
		Expect(listenerCondition(port, gatewayv1.ListenerEntryConditionAccepted)().Message).To(ContainSubstring("by another ListenerSet"))
		Expect(get("orders.example.com")).To(Equal("cart"))

		By("deleting and recreating the owner of the hostname")
		env.delete(port)
		Expect(orders.Delete(ctx, teamListenerSet("orders", "orders", "", 80))).To(Succeed())
		Eventually(get).WithArguments("orders.example.com").Should(Equal("pages"))
		env.applySamples(orders, guide+"40-orders.yaml")
		recreated := teamListenerSet("orders", "orders", "", 80)
		Eventually(listenerSetCondition(recreated, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("False ListenersNotValid"))
		Expect(get("orders.example.com")).To(Equal("pages"))

		env.delete(taken, route)
		Eventually(get).WithArguments("orders.example.com").Should(Equal("cart"))
	})

	It("gives a hostname to the oldest permitted ListenerSet", func(ctx SpecContext) {
		permit("journal", ptr.To("*.journal.example.com, sale.orders.example.com"))
		DeferCleanup(permit, "journal", ptr.To("journal.example.com, *.journal.example.com"))
		newer := teamListenerSet("orders", "newer", "sale.orders.example.com", 80)
		route := env.route("newer", "cart", listenerSetParent("newer"))
		route.Namespace = "orders"
		DeferCleanup(env.delete, newer, route)
		Expect(orders.Create(ctx, newer)).To(Succeed())
		Expect(orders.Create(ctx, route)).To(Succeed())
		Eventually(get).WithArguments("sale.orders.example.com").Should(Equal("cart"))
		oldest := teamListenerSet("journal", "journal", "", 80)
		before := latest(oldest).Spec.DeepCopy()
		update(oldest, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners = append(s.Spec.Listeners, teamListenerSet("", "", "sale.orders.example.com", 80).Spec.Listeners...)
		})
		Eventually(listenerCondition(newer, gatewayv1.ListenerEntryConditionConflicted)).Should(HaveField("Reason", "HostnameConflict"))
		Eventually(get).WithArguments("sale.orders.example.com").ShouldNot(Equal("cart"))
		update(oldest, func(s *gatewayv1.ListenerSet) { s.Spec = *before })
		Eventually(get).WithArguments("sale.orders.example.com").Should(Equal("cart"))
	})

	It("rejects a route to another team's listeners or backends", func(ctx SpecContext) {
		unauthorized := env.route("unauthorized", "pages", gatewayv1.ParentReference{
			Kind: ptr.To(gatewayv1.Kind("ListenerSet")), Namespace: ptr.To(gatewayv1.Namespace("orders")), Name: "orders",
		}, gatewayv1.ParentReference{Namespace: ptr.To(gatewayv1.Namespace("gateways")), Name: "shared"})
		rival := env.route("rival", "cart", listenerSetParent("journal"))
		rival.Spec.Hostnames = []gatewayv1.Hostname{"rival.journal.example.com"}
		rival.Spec.Rules[0].BackendRefs[0].Namespace = ptr.To(gatewayv1.Namespace("orders"))
		unauthorized.Namespace, rival.Namespace = "journal", "journal"
		DeferCleanup(env.delete, unauthorized, rival)
		Expect(journal.Create(ctx, unauthorized)).To(Succeed())
		Expect(journal.Create(ctx, rival)).To(Succeed())
		Eventually(routeAccepted(unauthorized, "orders")).Should(Equal("False NotAllowedByListeners"))
		Eventually(routeAccepted(unauthorized, "shared")).Should(Equal("False NotAllowedByListeners"))
		Eventually(get).WithArguments("rival.journal.example.com").Should(Equal("500"))
		Eventually(func() string {
			return formatCondition(routeConditions(rival, "journal"), gatewayv1.RouteConditionResolvedRefs)
		}).Should(Equal("False RefNotPermitted"))
		Expect(get("orders.example.com")).To(Equal("cart"))
	})

	It("requires a ReferenceGrant for another namespace's certificate", func(ctx SpecContext) {
		secret := env.tlsSecret("orders-certificate")
		secret.Namespace = "gateways"
		Expect(platform.Create(ctx, secret)).To(Succeed())
		env.applySamples(orders, guide+"61-orders-certificate.yaml")
		set := teamListenerSet("orders", "orders-secure", "", 443)
		Eventually(listenerCondition(set, gatewayv1.ListenerEntryConditionResolvedRefs)).Should(HaveField("Reason", "RefNotPermitted"))

		forGateway := toReferenceGrant(env.readSample(guide + "60-certificate-grant.yaml")[0])
		forGateway.Name, forGateway.Spec.From[0].Kind = "for-gateway", "Gateway"
		Expect(platform.Create(ctx, forGateway)).To(Succeed())
		env.waitUntilIdle(ctx)
		Expect(listenerCondition(set, gatewayv1.ListenerEntryConditionResolvedRefs)()).To(HaveField("Reason", "RefNotPermitted"))
		env.applySamples(platform, guide+"60-certificate-grant.yaml")
		Eventually(listenerCondition(set, gatewayv1.ListenerEntryConditionResolvedRefs)).Should(HaveField("Reason", "ResolvedRefs"))
	})

	It("restricts a team to its ports with the admission policy", func(ctx SpecContext) {
		env.applySamples(kube, guide+"20-policy.yaml")
		journal := client.NewDryRunClient(journal)
		createSet := func(port gatewayv1.PortNumber) error {
			return journal.Create(ctx, teamListenerSet("journal", "try", "www.journal.example.com", port))
		}
		const ports = "HTTP on port 80 or HTTPS on port 443"
		Eventually(createSet).WithArguments(gatewayv1.PortNumber(8443)).Should(MatchError(ContainSubstring(ports)))
		Expect(createSet(80)).To(Succeed())
		Expect(createSet(443)).To(Succeed())
		for port, protocol := range map[gatewayv1.PortNumber]gatewayv1.ProtocolType{443: gatewayv1.HTTPProtocolType, 80: gatewayv1.HTTPSProtocolType} {
			swapped := teamListenerSet("journal", "try", "www.journal.example.com", port)
			swapped.Spec.Listeners[0].Protocol = protocol
			Expect(journal.Create(ctx, swapped)).To(MatchError(ContainSubstring(ports)), string(protocol))
		}

		By("checking updates, but not status updates of the controller")
		set := teamListenerSet("journal", "journal", "", 80)
		changePort := func(s *gatewayv1.ListenerSet) { s.Spec.Listeners[0].Port = 8443 }
		Eventually(updateAs[*gatewayv1.ListenerSet]).WithArguments(journal, set, changePort).Should(MatchError(ContainSubstring(ports)))
		addLabel := func(s *gatewayv1.ListenerSet) { s.Labels = map[string]string{"example.com/tier": "web"} }
		Eventually(updateAs[*gatewayv1.ListenerSet]).WithArguments(journal, set, addLabel).Should(Succeed())
		env.applySamples(orders, guide+"40-orders.yaml")
		env.applySamples(clientAs("jo", "journal-team"), guide+"50-journal.yaml")
		last := teamListenerSet("orders", "last", "last.orders.example.com", 80)
		Expect(orders.Create(ctx, last)).To(Succeed())
		Eventually(listenerSetCondition(last, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
	})

	It("checks the ports in every namespace, but only for the shared Gateway", func(ctx SpecContext) {
		kube := client.NewDryRunClient(kube)
		early := teamListenerSet(env.namespace, "early", "early.example.com", 8443)
		Expect(kube.Create(ctx, early.DeepCopy())).To(MatchError(ContainSubstring("listeners are HTTP on port 80")))
		otherGateway := early.DeepCopy()
		otherGateway.Spec.ParentRef.Name = "other"
		Expect(kube.Create(ctx, otherGateway)).To(Succeed())
		sameNamespace := early.DeepCopy()
		sameNamespace.Spec.ParentRef.Namespace = nil // refers to a Gateway with this name in the ListenerSet's namespace
		Expect(kube.Create(ctx, sameNamespace)).To(Succeed())
		inside := early.DeepCopy()
		inside.Namespace, inside.Spec.ParentRef.Namespace = "gateways", nil
		Expect(kube.Create(ctx, inside)).To(MatchError(ContainSubstring("listeners are HTTP on port 80")))
	})

	It("allows deleting but not updating a ListenerSet against the policy", func(ctx SpecContext) {
		Expect(terminating.Finalizers).NotTo(BeEmpty())
		Expect(journal.Delete(ctx, terminating)).To(Succeed())
		Eventually(updateAs[*gatewayv1.ListenerSet]).WithArguments(journal, terminating, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners[0].Port = 8443
		}).Should(MatchError(ContainSubstring("listeners are HTTP on port 80")))
		Eventually(updateAs[*gatewayv1.ListenerSet]).WithArguments(journal, terminating, func(s *gatewayv1.ListenerSet) {
			s.Finalizers = nil
		}).Should(Succeed())
		Eventually(func() error { return kube.Get(ctx, client.ObjectKeyFromObject(terminating), terminating) }).
			Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})

	It("limits the size of routes and ListenerSets", func(ctx SpecContext) {
		journal := client.NewDryRunClient(journal)
		large := teamListenerSet("journal", "large", "", 80)
		large.Spec.Listeners = nil
		for i := range 17 {
			entry := teamListenerSet("", "", fmt.Sprintf("n%d.journal.example.com", i), 80).Spec.Listeners[0]
			entry.Name = gatewayv1.SectionName(fmt.Sprintf("n%d", i))
			large.Spec.Listeners = append(large.Spec.Listeners, entry)
		}
		Expect(journal.Create(ctx, large)).To(MatchError(ContainSubstring("at most 16 listeners")))

		createRoute := func(parents, hostnames, matches int) error {
			route := env.route("large", "pages", listenerSetParent("journal"))
			route.Namespace = "journal"
			for i := 1; i < parents; i++ {
				route.Spec.ParentRefs = append(route.Spec.ParentRefs, listenerSetParent(fmt.Sprintf("n%d", i)))
			}
			for i := range hostnames {
				route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("n%d.journal.example.com", i)))
			}
			route.Spec.Rules[0].Matches = make([]gatewayv1.HTTPRouteMatch, matches)
			return journal.Create(ctx, route)
		}
		Eventually(createRoute).WithArguments(1, 1, 33).Should(MatchError(ContainSubstring("at most 32 matches")))
		Expect(createRoute(1, 9, 1)).To(MatchError(ContainSubstring("at most 8 hostnames")))
		Expect(createRoute(3, 1, 1)).To(MatchError(ContainSubstring("at most 2 parents")))
		expression := env.route("expression", "pages", listenerSetParent("journal"))
		expression.Namespace = "journal"
		expression.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type: new(gatewayv1.PathMatchRegularExpression), Value: new("/a|/b"),
		}}}
		Expect(journal.Create(ctx, expression)).To(MatchError(ContainSubstring("no regular expressions")))
		Expect(createRoute(2, 8, 32)).To(Succeed())
	})

	It("stops serving a namespace that loses its label", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}
		patch := client.RawPatch(client.Merge.Type(), []byte(`{"metadata":{"labels":{"example.com/team":null}}}`))
		Expect(kube.Patch(ctx, namespace, patch)).To(Succeed())
		Eventually(listenerSetCondition(teamListenerSet("orders", "orders", "", 80), gatewayv1.ListenerSetConditionAccepted), 10*time.Second).
			Should(Equal("False NotAllowed"))
		Eventually(get).WithArguments("orders.example.com").Should(Equal("404"))
		Expect(get("www.journal.example.com")).To(Equal("pages"))
	})
})

// deletePolicies deletes the objects in the file, which would affect other specs.
func (env *environment) deletePolicies(ctx context.Context, file string) {
	GinkgoHelper()
	for _, object := range env.readSample(file) {
		Expect(client.IgnoreNotFound(kube.Delete(ctx, object))).To(Succeed())
	}
}

func objectMetaIn(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// teamListenerSet returns a ListenerSet with one listener for the guide's Gateway. The
// protocol is HTTP on port 80, and HTTPS on other ports.
func teamListenerSet(namespace, name, hostname string, port gatewayv1.PortNumber) *gatewayv1.ListenerSet {
	entry := gatewayv1.ListenerEntry{Name: "web", Port: port, Protocol: gatewayv1.HTTPSProtocolType}
	if port == 80 {
		entry.Protocol = gatewayv1.HTTPProtocolType
	}
	if hostname != "" {
		entry.Hostname = ptr.To(gatewayv1.Hostname(hostname))
	}
	return &gatewayv1.ListenerSet{ObjectMeta: objectMetaIn(namespace, name), Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Namespace: ptr.To(gatewayv1.Namespace("gateways")), Name: "shared"},
		Listeners: []gatewayv1.ListenerEntry{entry},
	}}
}

// listenerCondition reads the ListenerSet and returns a condition on its first listener.
func listenerCondition(set *gatewayv1.ListenerSet, kind gatewayv1.ListenerEntryConditionType) func() metav1.Condition {
	return func() metav1.Condition {
		for _, entry := range latest(set).Status.Listeners {
			if c := meta.FindStatusCondition(entry.Conditions, string(kind)); c != nil {
				return *c
			}
		}
		return metav1.Condition{}
	}
}

func toReferenceGrant(object *unstructured.Unstructured) *gatewayv1beta1.ReferenceGrant {
	GinkgoHelper()
	typed := &gatewayv1beta1.ReferenceGrant{}
	Expect(kube.Scheme().Convert(object, typed, nil)).To(Succeed())
	return typed
}
