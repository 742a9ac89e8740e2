package integration

import (
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The chart's ClusterRoles for users, which the kustomize base contains too.
const (
	viewerRole     = "tunnel-gateway-viewer"
	teamViewerRole = "tunnel-gateway-team-viewer"
)

// The specs use a real API server's authorizer for users of different teams.
var _ = Describe("plan for a user without all permissions", users, Ordered, func() {
	var env *environment
	var team, other string
	BeforeAll(func(ctx SpecContext) {
		env = newEnvironment()
		env.start()
		team, other = env.namespace+"-team", env.namespace+"-other"
		for _, name := range []string{team, other} {
			env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		first := env.listenerSetIn(other, "first", "taken.example.com")
		env.create(env.gateway("shared", "home.example.com"), first)
		Eventually(listenerSetCondition(first, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		late := env.listenerSetIn(team, "web", "team.example.com")
		late.Spec.Listeners = append(late.Spec.Listeners, gatewayv1.ListenerEntry{
			Name: "taken", Hostname: ptr.To(gatewayv1.Hostname("taken.example.com")), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		})
		service := env.service("web")
		service.Namespace = team
		route := env.route("web", "web", listenerSetParent("web"))
		route.Namespace = team
		env.create(late, service, route)
		Eventually(env.hostnames).WithArguments("shared").Should(ContainElement("team.example.com"))
		env.waitUntilIdle(ctx)
	})

	// planAs runs plan as the user, for the namespace of the team.
	planAs := func(user string, arguments ...string) commandResult {
		GinkgoHelper()
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, user, path)).To(Succeed())
		return runCommand(append([]string{
			"plan", "--kubeconfig", path, "--namespace", team, "--controller-name", env.controllerName, "--controller-namespace", env.controllerNamespace,
		}, arguments...)...)
	}
	command := func(role, user string) string {
		return "To permit it: kubectl create clusterrolebinding " + role + "-" + user +
			" --clusterrole=" + role + "." + env.controllerNamespace + " --user=" + user + "\n"
	}

	It("needs at least one permission", func() {
		user := uniqueName("outsider")
		got := planAs(user, "--why", "team.example.com")
		Expect(got.status).To(Equal(1))
		Expect(got.stdout).To(BeEmpty())
		Expect(got.stderr).To(And(HavePrefix(`tunnel-gateway: user "`+user+`" cannot list gatewayclasses, gateways, listenersets, `), HaveSuffix(command(viewerRole, user))))
		Expect(strings.Count(got.stderr, "\n")).To(Equal(1))
	})

	It("shows the statuses to a user with view in the team's namespace", func(ctx SpecContext) {
		user := bindRole(ctx, uniqueName("viewer"), team, viewerRole)
		got := planAs(user, "--why", "team.example.com", "--strict")
		Expect(got.status).To(Equal(0), got.stderr)
		gateway := env.namespace + "/shared"
		Expect(strings.Split(got.stdout, "\n")).To(Equal([]string{
			"team.example.com/: no decision is possible",
			"Statuses in the cluster, where a decision is not possible:",
			"  HTTPRoute " + team + "/web (team.example.com, taken.example.com) on ListenerSet " + team + "/web: Accepted=True, ResolvedRefs=True",
			"  ListenerSet " + team + "/web listener web (team.example.com) on Gateway " + gateway + ": Accepted=True, Conflicted=False, ResolvedRefs=True, Programmed=True",
			"Not known: whether Gateways, ListenerSets, HTTPRoutes and GRPCRoutes outside namespace " + team + " claim the same hostnames or answer the same requests",
			"Not known: what Gateway " + gateway + ` does, because user "` + user + `" cannot get Gateway ` + gateway,
			"",
		}))
		Expect(got.stderr).To(And(HavePrefix(`warning: user "`+user+`" cannot list gatewayclasses, `), ContainSubstring("; get Gateway "+gateway+". "), HaveSuffix(command(teamViewerRole, user))))
		Expect(strings.Count(got.stderr, "\n")).To(Equal(1))

		By("reporting the conflict that the status reports")
		got = planAs(user, "--why", "taken.example.com", "--strict")
		Expect(got.status).To(Equal(2))
		Expect(got.stdout).To(ContainSubstring("listener taken (taken.example.com) on Gateway " + gateway + ": Conflicted=True, HostnameConflict: "))

		By("refusing to compare incomplete configurations")
		got = planAs(user, "--diff", "--cloudflare-api-token", "token", "--cloudflare-account-id", strings.Repeat("0", 32))
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(HavePrefix("tunnel-gateway: --diff compares complete configurations: user "))
	})

	It("decides for a user who may read the platform's objects by their names", func(ctx SpecContext) {
		user := bindRole(ctx, bindRole(ctx, uniqueName("member"), team, viewerRole), "", teamViewerRole)
		got := planAs(user, "--why", "team.example.com", "--strict")
		Expect(got.stdout).To(And(ContainSubstring("Answered by HTTPRoute "+team+"/web rule 0"), ContainSubstring("Not known: whether Gateways, ListenerSets, ")))
		Expect(got.stdout).NotTo(ContainSubstring("no decision"))

		By("taking the conflict from the status")
		got = planAs(user, "--why", "taken.example.com", "--strict")
		Expect(got.status).To(Equal(2))
		Expect(got.stdout).To(And(ContainSubstring("HostnameConflict: "), ContainSubstring("No route that you can read matches the request.")))

		By("planning a manifest")
		file := env.writeFile("new.yaml", `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: new}
spec:
  parentRef: {name: shared, namespace: `+env.namespace+`}
  listeners: [{name: web, hostname: new.example.com, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: new}
spec:
  parentRefs: [{kind: ListenerSet, name: new}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`)
		got = planAs(user, "-f", file, "--why", "new.example.com")
		Expect(got.status).To(Equal(0), got.stderr)
		Expect(got.stdout).To(ContainSubstring("Answered by HTTPRoute " + team + "/new rule 0"))
	})

	It("knows everything with the viewer role", func(ctx SpecContext) {
		got := planAs(bindRole(ctx, uniqueName("viewer"), "", viewerRole), "--why", "team.example.com")
		Expect(got.status).To(Equal(0), got.stderr)
		Expect(got.stderr).NotTo(ContainSubstring("cannot"))
		Expect(got.stdout).To(And(ContainSubstring("Answered by HTTPRoute "+team+"/web rule 0"), Not(ContainSubstring("Not known"))))
	})
})

// listenerSetIn returns a ListenerSet for the Gateway "shared" in another namespace.
func (env *environment) listenerSetIn(namespace, name, hostname string) *gatewayv1.ListenerSet {
	set := env.listenerSet(name, hostname)
	set.Namespace = namespace
	set.Spec.ParentRef.Namespace = ptr.To(gatewayv1.Namespace(env.namespace))
	return set
}

// bindRole binds a ClusterRole to the user in a namespace, or in all, and returns the user.
func bindRole(ctx context.Context, user, namespace, role string) string {
	GinkgoHelper()
	Expect(bind(ctx, kube, user, namespace, latest(newObject(rbacAPI, "ClusterRole", "", role)))).To(Succeed())
	return user
}
