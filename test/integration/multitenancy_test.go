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
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

// The guide says that plan finds one thing wrong.
func TestOnlyTheCertificateIsMissing(t *testing.T) {
	for _, listener := range planOf(t, "", filepath.Join(samples, "multi-tenancy")).Gateways[0].Listeners {
		want := ""
		if listener.Owner.Name == "orders-secure" {
			want = string(gatewayv1.ListenerReasonInvalidCertificateRef)
		}
		if listener.Reason != want {
			t.Errorf("%s: %q, want %q", listener.Hostname, listener.Reason, want)
		}
	}
}

// The specs follow docs/guides/multi-tenancy.md, with its files.
var _ = Describe("the guide to multi-tenancy", Ordered, ContinueOnFailure, func() {
	const guide = "multi-tenancy/"
	var w *world
	var platform, orders, journal client.Client
	var ending *gatewayv1.ListenerSet
	get := func(host string) string {
		id, ok := w.edge.TunnelID(w.tunnelNameIn("gateways", "shared"))
		if !ok {
			return "no tunnel"
		}
		return w.getFrom(id, host, "/")
	}

	BeforeAll(func() {
		w = newWorld()
		w.start()
		platform, orders, journal = as("pat", "platform-team"), as("olga", "orders-team"), as("jo", "journal-team")
		w.apply(kube, guide+"00-roles.yaml", guide+"10-teams.yaml", guide+"70-backends.yaml")
		w.apply(platform, guide+"30-gateway.yaml")
		DeferCleanup(w.deleteAndWait, &gatewayv1.Gateway{ObjectMeta: inNamespace("gateways", "shared")})
		w.apply(orders, guide+"40-orders.yaml")
		w.apply(journal, guide+"50-journal.yaml")
		// From before the policy, and with a finalizer of the team's own.
		ending = teamSet("journal", "ending", "ending.example.com", 80)
		ending.Finalizers = []string{"example.com/mine"}
		Expect(journal.Create(context.Background(), ending)).To(Succeed())
	})

	AfterAll(func(ctx SpecContext) { w.deletePolicies(ctx, guide+"20-policy.yaml") })

	It("serves what each team wrote with its own rights", func(ctx SpecContext) {
		Eventually(get).WithArguments("www.example.com").Should(Equal("home"))
		Eventually(get).WithArguments("orders.example.com").Should(Equal("cart"))
		Eventually(get).WithArguments("www.journal.example.com").Should(Equal("pages"))
		id, _ := w.edge.TunnelID(w.tunnelNameIn("gateways", "shared"))
		document, _ := w.edge.StoredConfiguration(id)
		Expect(string(document)).To(ContainSubstring("comments.journal.example.com"))

		By("showing them what became of it")
		set := &gatewayv1.ListenerSet{}
		Expect(orders.Get(ctx, client.ObjectKey{Namespace: "orders", Name: "orders"}, set)).To(Succeed())
		Eventually(setSays(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		gateway := &gatewayv1.Gateway{ObjectMeta: inNamespace("gateways", "shared")}
		Eventually(programmed(gateway)).Should(Equal("True Programmed"))
		Expect(orders.Get(ctx, client.ObjectKeyFromObject(gateway), gateway)).To(Succeed())
		Expect(gateway.Status.Addresses[0].Value).To(Equal(id + ".cfargotunnel.com"))
	})

	It("lets a team change and delete what is its own", func(ctx SpecContext) {
		set := teamSet("orders", "more", "more.orders.example.com", 80)
		route := w.route("more", "cart", toSet("more"))
		route.Namespace = "orders"
		grpc := w.grpcRoute("more")
		grpc.Namespace = "orders"
		for _, object := range []client.Object{set, route, grpc} {
			Expect(orders.Create(ctx, object)).To(Succeed())
		}
		Eventually(get).WithArguments("more.orders.example.com").Should(Equal("cart"))
		Eventually(changeAs[*gatewayv1.ListenerSet]).WithArguments(orders, set, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners[0].Hostname = pointer(gatewayv1.Hostname("other.orders.example.com"))
		}).Should(Succeed())
		Eventually(changeAs[*gatewayv1.HTTPRoute]).WithArguments(orders, route, func(r *gatewayv1.HTTPRoute) {
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

	DescribeTable("forbids a team", func(ctx SpecContext, try attempt) {
		Expect(try(ctx, client.NewDryRunClient(orders))).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	}, notForTeams())

	DescribeTable("permits the platform team", func(ctx SpecContext, try attempt) {
		Expect(try(ctx, client.NewDryRunClient(platform))).To(Succeed())
	}, forThePlatformTeam())

	DescribeTable("forbids the platform team", func(ctx SpecContext, try attempt) {
		Expect(try(ctx, client.NewDryRunClient(platform))).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	}, notForThePlatformTeam())

	It("lets a team watch the Gateway, and no other", func(ctx SpecContext) {
		one := client.MatchingFields{"metadata.name": "shared"}
		Expect(orders.List(ctx, &gatewayv1.GatewayList{}, client.InNamespace("gateways"), one)).To(Succeed())
		other := client.MatchingFields{"metadata.name": "other"}
		Expect(orders.List(ctx, &gatewayv1.GatewayList{}, client.InNamespace("gateways"), other)).
			To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	})

	It("tells a team that a hostname is taken, and not by whom", func(ctx SpecContext) {
		taken, port := teamSet("journal", "taken", "orders.example.com", 80), teamSet("journal", "port", "orders.example.com", 443)
		route := w.route("taken", "pages", toSet("taken"))
		route.Namespace = "journal"
		for _, object := range []client.Object{taken, port, route} {
			Expect(journal.Create(ctx, object)).To(Succeed())
		}
		Eventually(entryOf(taken, gatewayv1.ListenerEntryConditionConflicted)).Should(HaveField("Reason", "HostnameConflict"))
		Expect(entryOf(taken, gatewayv1.ListenerEntryConditionConflicted)().Message).To(
			Equal(`Hostname "orders.example.com" on port 80 is already claimed by another ListenerSet, which takes precedence. Use another hostname.`))
		Expect(setSays(taken, gatewayv1.ListenerSetConditionAccepted)()).To(Equal("False ListenersNotValid"))
		Eventually(entryOf(port, gatewayv1.ListenerEntryConditionAccepted)).Should(HaveField("Reason", "PortUnavailable"))
		Expect(entryOf(port, gatewayv1.ListenerEntryConditionAccepted)().Message).To(ContainSubstring("by another ListenerSet"))
		Expect(get("orders.example.com")).To(Equal("cart"))

		By("handing the hostname on when its owner goes, even if it comes back")
		w.delete(port)
		Expect(orders.Delete(ctx, teamSet("orders", "orders", "", 80))).To(Succeed())
		Eventually(get).WithArguments("orders.example.com").Should(Equal("pages"))
		w.apply(orders, guide+"40-orders.yaml")
		again := teamSet("orders", "orders", "", 80)
		Eventually(setSays(again, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("False ListenersNotValid"))
		Expect(get("orders.example.com")).To(Equal("pages"))

		w.delete(taken, route)
		Eventually(get).WithArguments("orders.example.com").Should(Equal("cart"))
	})

	It("gives a hostname to the oldest set, also when a younger one served it first", func(ctx SpecContext) {
		young := teamSet("orders", "young", "sale.orders.example.com", 80)
		route := w.route("young", "cart", toSet("young"))
		route.Namespace = "orders"
		DeferCleanup(w.delete, young, route)
		Expect(orders.Create(ctx, young)).To(Succeed())
		Expect(orders.Create(ctx, route)).To(Succeed())
		Eventually(get).WithArguments("sale.orders.example.com").Should(Equal("cart"))
		old := teamSet("journal", "journal", "", 80)
		before := fresh(old).Spec.DeepCopy()
		change(old, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners = append(s.Spec.Listeners, teamSet("", "", "sale.orders.example.com", 80).Spec.Listeners...)
		})
		Eventually(entryOf(young, gatewayv1.ListenerEntryConditionConflicted)).Should(HaveField("Reason", "HostnameConflict"))
		Eventually(get).WithArguments("sale.orders.example.com").ShouldNot(Equal("cart"))
		change(old, func(s *gatewayv1.ListenerSet) { s.Spec = *before })
		Eventually(get).WithArguments("sale.orders.example.com").Should(Equal("cart"))
	})

	It("admits no route to what is another's", func(ctx SpecContext) {
		intruder := w.route("intruder", "pages", gatewayv1.ParentReference{
			Kind: pointer(gatewayv1.Kind("ListenerSet")), Namespace: pointer(gatewayv1.Namespace("orders")), Name: "orders",
		}, gatewayv1.ParentReference{Namespace: pointer(gatewayv1.Namespace("gateways")), Name: "shared"})
		thief := w.route("thief", "cart", toSet("journal"))
		thief.Spec.Hostnames = []gatewayv1.Hostname{"thief.journal.example.com"}
		thief.Spec.Rules[0].BackendRefs[0].Namespace = pointer(gatewayv1.Namespace("orders"))
		intruder.Namespace, thief.Namespace = "journal", "journal"
		DeferCleanup(w.delete, intruder, thief)
		Expect(journal.Create(ctx, intruder)).To(Succeed())
		Expect(journal.Create(ctx, thief)).To(Succeed())
		Eventually(routeSays(intruder, "orders")).Should(Equal("False NotAllowedByListeners"))
		Eventually(routeSays(intruder, "shared")).Should(Equal("False NotAllowedByListeners"))
		Eventually(get).WithArguments("thief.journal.example.com").Should(Equal("500"))
		Eventually(func() string { return say(conditionsFrom(thief, "journal"), gatewayv1.RouteConditionResolvedRefs) }).Should(Equal("False RefNotPermitted"))
		Expect(get("orders.example.com")).To(Equal("cart"))
	})

	It("needs a ReferenceGrant for the ListenerSet itself", func(ctx SpecContext) {
		secret := w.tlsSecret("orders-certificate")
		secret.Namespace = "gateways"
		Expect(platform.Create(ctx, secret)).To(Succeed())
		w.apply(orders, guide+"61-orders-certificate.yaml")
		set := teamSet("orders", "orders-secure", "", 443)
		Eventually(entryOf(set, gatewayv1.ListenerEntryConditionResolvedRefs)).Should(HaveField("Reason", "RefNotPermitted"))

		forGateway := grant(w.sample(guide + "60-certificate-grant.yaml")[0])
		forGateway.Name, forGateway.Spec.From[0].Kind = "for-gateway", "Gateway"
		Expect(platform.Create(ctx, forGateway)).To(Succeed())
		w.settle(ctx)
		Expect(entryOf(set, gatewayv1.ListenerEntryConditionResolvedRefs)()).To(HaveField("Reason", "RefNotPermitted"))
		w.apply(platform, guide+"60-certificate-grant.yaml")
		Eventually(entryOf(set, gatewayv1.ListenerEntryConditionResolvedRefs)).Should(HaveField("Reason", "ResolvedRefs"))
	})

	It("keeps a team to its domain with the policy", func(ctx SpecContext) {
		w.apply(kube, guide+"20-policy.yaml")
		journal := client.NewDryRunClient(journal)
		try := func(hostname string, port gatewayv1.PortNumber) error {
			return journal.Create(ctx, teamSet("journal", "try", hostname, port))
		}
		const outside = "every listener needs a hostname: journal.example.com or one below it"
		Eventually(try).WithArguments("orders.example.com", gatewayv1.PortNumber(80)).Should(MatchError(ContainSubstring(outside)))
		for _, hostname := range []string{"*.example.com", "example.com", "notjournal.example.com", "journal.example.com.evil.test", ""} {
			Expect(try(hostname, 80)).To(MatchError(ContainSubstring(outside)), hostname)
		}
		for _, hostname := range []string{"journal.example.com", "www.journal.example.com", "*.journal.example.com"} {
			Expect(try(hostname, 80)).To(Succeed(), hostname)
			Expect(try(hostname, 443)).To(Succeed(), hostname)
		}
		const ports = "HTTP on port 80 or HTTPS on port 443"
		Expect(try("www.journal.example.com", 8443)).To(MatchError(ContainSubstring(ports)))
		for port, protocol := range map[gatewayv1.PortNumber]gatewayv1.ProtocolType{443: gatewayv1.HTTPProtocolType, 80: gatewayv1.HTTPSProtocolType} {
			swapped := teamSet("journal", "try", "www.journal.example.com", port)
			swapped.Spec.Listeners[0].Protocol = protocol
			Expect(journal.Create(ctx, swapped)).To(MatchError(ContainSubstring(ports)), string(protocol))
		}

		By("looking at changes too, and not at the controller's statuses")
		set := teamSet("journal", "journal", "", 80)
		take := func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners[0].Hostname = pointer(gatewayv1.Hostname("*.orders.example.com"))
		}
		Eventually(changeAs[*gatewayv1.ListenerSet]).WithArguments(journal, set, take).Should(MatchError(ContainSubstring(outside)))
		label := func(s *gatewayv1.ListenerSet) { s.Labels = map[string]string{"example.com/tier": "web"} }
		Eventually(changeAs[*gatewayv1.ListenerSet]).WithArguments(journal, set, label).Should(Succeed())
		w.apply(orders, guide+"40-orders.yaml")
		w.apply(as("jo", "journal-team"), guide+"50-journal.yaml")
		last := teamSet("orders", "last", "last.orders.example.com", 80)
		Expect(orders.Create(ctx, last)).To(Succeed())
		Eventually(setSays(last, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
	})

	It("refuses sets of namespaces without a domain, at this Gateway alone", func(ctx SpecContext) {
		kube := client.NewDryRunClient(kube)
		early := teamSet(w.namespace, "early", "early.example.com", 80)
		Expect(kube.Create(ctx, early.DeepCopy())).To(MatchError(ContainSubstring("this namespace has no label example.com/domain")))
		elsewhere := early.DeepCopy()
		elsewhere.Spec.ParentRef.Name = "other"
		Expect(kube.Create(ctx, elsewhere)).To(Succeed())
		beside := early.DeepCopy()
		beside.Spec.ParentRef.Namespace = nil // the set's, which has another Gateway of this name
		Expect(kube.Create(ctx, beside)).To(Succeed())
		inside := early.DeepCopy()
		inside.Namespace, inside.Spec.ParentRef.Namespace = "gateways", nil
		Expect(kube.Create(ctx, inside)).To(MatchError(ContainSubstring("this namespace has no label")))
	})

	It("lets a set go that the policy would refuse, and not change on its way", func(ctx SpecContext) {
		Expect(ending.Finalizers).NotTo(BeEmpty())
		Expect(journal.Delete(ctx, ending)).To(Succeed())
		Eventually(changeAs[*gatewayv1.ListenerSet]).WithArguments(journal, ending, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners[0].Hostname = pointer(gatewayv1.Hostname("orders.example.com"))
		}).Should(MatchError(ContainSubstring("every listener needs a hostname")))
		Eventually(changeAs[*gatewayv1.ListenerSet]).WithArguments(journal, ending, func(s *gatewayv1.ListenerSet) {
			s.Finalizers = nil
		}).Should(Succeed())
		Eventually(func() error { return kube.Get(ctx, client.ObjectKeyFromObject(ending), ending) }).
			Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})

	It("keeps routes and sets to a size", func(ctx SpecContext) {
		journal := client.NewDryRunClient(journal)
		large := teamSet("journal", "large", "", 80)
		large.Spec.Listeners = nil
		for i := range 17 {
			entry := teamSet("", "", fmt.Sprintf("n%d.journal.example.com", i), 80).Spec.Listeners[0]
			entry.Name = gatewayv1.SectionName(fmt.Sprintf("n%d", i))
			large.Spec.Listeners = append(large.Spec.Listeners, entry)
		}
		Expect(journal.Create(ctx, large)).To(MatchError(ContainSubstring("at most 16 listeners")))

		try := func(parents, hostnames, matches int) error {
			route := w.route("large", "pages", toSet("journal"))
			route.Namespace = "journal"
			for i := 1; i < parents; i++ {
				route.Spec.ParentRefs = append(route.Spec.ParentRefs, toSet(fmt.Sprintf("n%d", i)))
			}
			for i := range hostnames {
				route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("n%d.journal.example.com", i)))
			}
			route.Spec.Rules[0].Matches = make([]gatewayv1.HTTPRouteMatch, matches)
			return journal.Create(ctx, route)
		}
		Eventually(try).WithArguments(1, 1, 33).Should(MatchError(ContainSubstring("at most 32 matches")))
		Expect(try(1, 9, 1)).To(MatchError(ContainSubstring("at most 8 hostnames")))
		Expect(try(3, 1, 1)).To(MatchError(ContainSubstring("at most 2 parents")))
		Expect(try(2, 8, 32)).To(Succeed())
	})

	It("stops serving a namespace that loses its label", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}
		patch := client.RawPatch(client.Merge.Type(), []byte(`{"metadata":{"labels":{"example.com/domain":null}}}`))
		Expect(kube.Patch(ctx, namespace, patch)).To(Succeed())
		Eventually(setSays(teamSet("orders", "orders", "", 80), gatewayv1.ListenerSetConditionAccepted), 10*time.Second).
			Should(Equal("False NotAllowed"))
		Eventually(get).WithArguments("orders.example.com").Should(Equal("404"))
		Expect(get("www.journal.example.com")).To(Equal("pages"))
	})
})

// deletePolicies deletes what the file has. It would stand in the way of other
// specs of this API server.
func (w *world) deletePolicies(ctx context.Context, file string) {
	GinkgoHelper()
	for _, object := range w.sample(file) {
		Expect(client.IgnoreNotFound(kube.Delete(ctx, object))).To(Succeed())
	}
}

func inNamespace(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// teamSet returns a set of one listener of the guide's Gateway; on port 80 it
// is HTTP, elsewhere HTTPS.
func teamSet(namespace, name, hostname string, port gatewayv1.PortNumber) *gatewayv1.ListenerSet {
	entry := gatewayv1.ListenerEntry{Name: "web", Port: port, Protocol: gatewayv1.HTTPSProtocolType}
	if port == 80 {
		entry.Protocol = gatewayv1.HTTPProtocolType
	}
	if hostname != "" {
		entry.Hostname = pointer(gatewayv1.Hostname(hostname))
	}
	return &gatewayv1.ListenerSet{ObjectMeta: inNamespace(namespace, name), Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Namespace: pointer(gatewayv1.Namespace("gateways")), Name: "shared"},
		Listeners: []gatewayv1.ListenerEntry{entry},
	}}
}

// entryOf reads the set and returns a condition of its first listener.
func entryOf(set *gatewayv1.ListenerSet, kind gatewayv1.ListenerEntryConditionType) func() metav1.Condition {
	return func() metav1.Condition {
		for _, entry := range fresh(set).Status.Listeners {
			if c := meta.FindStatusCondition(entry.Conditions, string(kind)); c != nil {
				return *c
			}
		}
		return metav1.Condition{}
	}
}

func grant(object *unstructured.Unstructured) *gatewayv1beta1.ReferenceGrant {
	GinkgoHelper()
	typed := &gatewayv1beta1.ReferenceGrant{}
	Expect(kube.Scheme().Convert(object, typed, nil)).To(Succeed())
	return typed
}
