package integration

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// operate starts a command that requests an operation.
func (env *environment) operate(arguments ...string) *gexec.Session {
	GinkgoHelper()
	flags := []string{"--controller-name", env.controllerName, "--controller-namespace", env.controllerNamespace}
	session, err := gexec.Start(exec.Command(binary, append(arguments, flags...)...), nil, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(session.Kill)
	return session
}

// printedColumns returns what kubectl prints by default about the Gateway's Tunnel, by
// column. The API server renders the columns.
func (env *environment) printedColumns(ctx context.Context, g *gatewayv1.Gateway) (map[string]any, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/apis", &v1alpha1.GroupVersion, scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	content, err := api.Get().Namespace(env.controllerNamespace).Resource("tunnels").Name(env.tunnelObject(g).Name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var table metav1.Table
	if err := json.Unmarshal(content, &table); err != nil {
		return nil, err
	}
	columns := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return columns, nil
}

var _ = Describe("commands that wait", users, func() {
	It("need only the documented permissions", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		env.deployment()
		Eventually(func() string {
			env.markPodsReady()
			return connectorsReady(g)()
		}).Should(Equal("True Ready"))
		user, err := createUser(ctx, kube, "commands.md", env.controllerNamespace, "")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, user, path)).To(Succeed())
		name := env.namespace + "/shared"
		operate := func(verb string, flags ...string) *gexec.Session {
			return env.operate(append([]string{verb, name, "--kubeconfig", path}, flags...)...)
		}
		succeeds := func(verb, output string) {
			GinkgoHelper()
			session := operate(verb)
			Eventually(session).Should(gexec.Exit(0))
			Expect(string(session.Out.Contents())).To(Equal("Gateway " + name + " " + output + "\n"))
		}
		const inEffect = ": the configuration is in effect, connectors ready: 2/2"

		By("reconciling, which repairs an external change")
		env.waitUntilIdle(ctx)
		env.callCloudflareAPI(http.MethodPut, "/accounts/account/cfd_tunnel/"+env.tunnel("shared")+"/configurations", `{"config":{"ingress":[{"service":"http_status:418"}]}}`)
		succeeds("reconcile", "reconciled"+inEffect)
		Expect(env.hostnames("shared")).To(ConsistOf("a.example.com"))
		Expect(env.tunnelObject(g).Status.Reconciled).NotTo(BeEmpty())

		By("pausing")
		Expect(env.printedColumns(ctx, g)).To(HaveKeyWithValue("Paused", BeNil()))
		succeeds("pause", "paused")
		Eventually(env.printedColumns).WithArguments(ctx, g).Should(HaveKeyWithValue("Paused", MatchRegexp("^[0-9]+[ms]")))
		Expect(env.tunnelObject(g).Spec.Paused).To(BeTrue())
		succeeds("pause", "is already paused")
		succeeds("reconcile", "reconciled: the configuration is in effect, and the Gateway is paused")
		refused := operate("rotate-token")
		Eventually(refused).Should(gexec.Exit(1))
		Expect(refused.Err).To(gbytes.Say("is paused, so its token cannot be rotated"))

		By("changing the Gateway while it is paused, and resuming it")
		update(g, func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = new(gatewayv1.Hostname("b.example.com")) })
		Eventually(programmed(g)).ShouldNot(Equal("True Programmed"))
		notInEffect := operate("reconcile")
		Eventually(notInEffect).Should(gexec.Exit(1))
		Expect(notInEffect.Err).To(gbytes.Say("not in effect: the Gateway is paused"))
		succeeds("resume", "resumed"+inEffect)
		Expect(env.hostnames("shared")).To(ConsistOf("b.example.com"))

		By("rotating the token")
		before := env.tunnelToken("shared")
		rotation := operate("rotate-token")
		Eventually(func() string {
			env.markPodsReady()
			return string(env.tunnelObject(g).Status.Token.Phase) + env.tunnelObject(g).Status.Token.Requested
		}).Should(Not(BeEmpty()))
		Eventually(func() int {
			env.markPodsReady()
			return rotation.ExitCode()
		}).Should(Equal(0), string(rotation.Err.Contents()))
		Expect(string(rotation.Out.Contents())).To(Equal("Gateway " + name + " token rotated" + inEffect + "\n"))
		Expect(env.tunnelToken("shared")).NotTo(Equal(before))
		Expect(env.tunnelObject(g).Status.Token.Phase).To(BeEmpty())
	})

	It("say what is outstanding, and how the request continues", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(env.tunnelPhase(g)).Should(Equal(string(v1alpha1.TunnelServing)))
		env.stop()
		name := env.namespace + "/shared"

		By("waiting for a controller that does not run")
		late := env.operate("reconcile", name, "--kubeconfig", kubeconfig, "--timeout", "2s")
		Eventually(late).Should(gexec.Exit(1))
		Expect(string(late.Err.Contents())).To(HaveSuffix("tunnel-gateway: Gateway " + name + ": timed out after 2s: the controller has not processed the request yet. The request stays in effect\n"))
		Expect(string(late.Out.Contents())).To(BeEmpty())

		By("interrupting a command")
		interrupted := env.operate("pause", "shared", "-n", env.namespace, "--kubeconfig", kubeconfig)
		Eventually(interrupted.Err).Should(gbytes.Say("the controller has not processed the request yet"))
		interrupted.Signal(syscall.SIGINT)
		Eventually(interrupted).Should(gexec.Exit(130))
		Expect(interrupted.Err).To(gbytes.Say("tunnel-gateway: interrupted; the request stays in effect"))
		Expect(latest(g).Annotations).To(HaveKeyWithValue(v1alpha1.PausedAnnotation, "true"))

		By("requesting an operation without waiting")
		resume := env.operate("resume", name, "--kubeconfig", kubeconfig, "--wait=false")
		Eventually(resume).Should(gexec.Exit(0))
		Expect(string(resume.Out.Contents())).To(Equal("Gateway " + name + ": resume requested\n"))

		By("starting the controller, which handles the requests")
		env.start()
		Eventually(func() metav1.ObjectMeta { return env.tunnelObject(g).ObjectMeta }).Should(HaveField("Annotations", HaveKey(v1alpha1.ReconcileAnnotation)))
		Eventually(func() string { return env.tunnelObject(g).Status.Reconciled }, 30*time.Second).Should(Equal(env.tunnelObject(g).Annotations[v1alpha1.ReconcileAnnotation]))
	})

	It("explain a Gateway that they cannot use", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(env.tunnelPhase(g)).Should(Equal(string(v1alpha1.TunnelServing)))
		fails := func(message string, arguments ...string) {
			GinkgoHelper()
			session := env.operate(arguments...)
			Eventually(session).Should(gexec.Exit(1))
			Expect(string(session.Err.Contents())).To(And(HavePrefix("tunnel-gateway: "), ContainSubstring(message)))
		}
		fails("not found; did you mean "+env.namespace+"/shared?", "pause", env.namespace+"/shard", "--kubeconfig", kubeconfig)
		user, err := createUser(ctx, kube, "commands.md", env.controllerNamespace, "tunnels")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, user, path)).To(Succeed())
		fails(`cannot get resource "tunnels" in API group "tunnelgateway.dev"`, "reconcile", env.namespace+"/shared", "--kubeconfig", path)

		By("completing the names of Gateways")
		offered := runCommand("__complete", "pause", "--kubeconfig", kubeconfig, "--controller-name", env.controllerName, "-n", env.namespace, "")
		Expect(offered.stdout).To(Equal("shared\n:4\n"))
	})
})
