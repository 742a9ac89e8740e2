package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The specs share one environment. Only the last spec changes it.
var _ = Describe("plan", Ordered, ContinueOnFailure, func() {
	var env *environment
	BeforeAll(func(ctx SpecContext) {
		env = newEnvironment()
		env.start()
		env.createAllKinds()
		Eventually(env.hostnames).WithArguments("shared").Should(ContainElements("home.example.com", "team.example.com"))
		env.waitUntilIdle(ctx)
	})

	It("has the same output for a cluster and its dump", func(ctx SpecContext) {
		live := env.plan("--kubeconfig", kubeconfig)
		Expect(live.stderr).To(BeEmpty())
		Expect(live.stdout).To(And(ContainSubstring("InvalidCertificateRef"), ContainSubstring(":8080"),
			ContainSubstring(env.tunnel("shared")+".cfargotunnel.com"), ContainSubstring(`"connectTimeout": 7`)))
		// The controller can write a status between the two.
		Eventually(func() string {
			dumped := env.plan("-f", env.dumpObjects(ctx))
			return cmp.Diff(dumped, env.plan("--kubeconfig", kubeconfig), cmp.AllowUnexported(commandResult{}))
		}).Should(BeEmpty())

		By("selecting one of several Gateways")
		selected := env.plan("--kubeconfig", kubeconfig, "--gateway", env.namespace+"/other")
		Expect(selected.stdout).To(And(ContainSubstring(`"name": "other"`), ContainSubstring("other.example.com")))
		Expect(selected.stdout).NotTo(ContainSubstring("team.example.com"))
		none := env.plan("--kubeconfig", kubeconfig, "--gateway", env.namespace+"/none")
		Expect(none.status).To(Equal(1))
		Expect(none.stderr).To(And(ContainSubstring("not found"), ContainSubstring(env.namespace+"/other, "+env.namespace+"/shared")))

		By("completing the names of Gateways")
		offered := runCommand("__complete", "plan", "--kubeconfig", kubeconfig, "--controller-name", env.controllerName, "--gateway", "")
		Expect(offered.stdout).To(Equal(env.namespace + "/other\n" + env.namespace + "/shared\n:4\n"))
	})

	It("lists the missing permissions for a user without permissions", func() {
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, "jane", path)).To(Succeed())
		got := env.plan("--kubeconfig", path)
		Expect(got.status).To(Equal(1))
		Expect(got.stdout).To(BeEmpty())
		for _, kind := range []string{"httproutes", "tunnelconfigurations", "tunnels in namespace " + env.controllerNamespace, "namespaces", "services"} {
			Expect(got.stderr).To(ContainSubstring(kind))
		}
		Expect(got.stderr).To(HavePrefix(`tunnel-gateway: user "jane" cannot list gatewayclasses, `))
		Expect(strings.Count(got.stderr, "\n")).To(Equal(1))
	})

	It("assumes that an unreadable certificate is valid", func(ctx SpecContext) {
		user, err := createViewer(ctx, kube, "")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, user, path)).To(Succeed())
		got := env.plan("--kubeconfig", path)
		Expect(got.status).To(Equal(0), got.stderr)
		Expect(got.stderr).To(Equal("warning: no permission to get Secret " + env.namespace + "/missing, so its certificate is not validated\n"))
		Expect(got.stdout).NotTo(ContainSubstring("InvalidCertificateRef"))
	})

	It("works as a kubectl plugin", func() {
		plugin := filepath.Join(GinkgoT().TempDir(), "kubectl-tunnel_gateway")
		Expect(os.Symlink(binary, plugin)).To(Succeed())
		got := runCommandAs(plugin, "plan", "--kubeconfig", kubeconfig, "--controller-name", env.controllerName, "--gateway", "a/b")
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(HavePrefix("kubectl tunnel-gateway: Gateway a/b: not found"))
	})

	It("predicts the result of a change", func(ctx SpecContext) {
		By("treating new objects as the newest")
		file := env.writeFile("change.yaml", `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: a-new}
spec:
  parentRef: {name: shared}
  listeners:
  - {name: taken, hostname: team.example.com, port: 80, protocol: HTTP}
  - {name: free, hostname: free.example.com, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: team}
spec:
  parentRef: {name: shared}
  listeners: [{name: web, hostname: team.example.com, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: shared}, {kind: ListenerSet, name: team}, {kind: ListenerSet, name: a-new}]
  rules:
  - {matches: [{path: {value: /changed}}], backendRefs: [{name: web, port: 80}]}
`)
		before := env.resourceVersions(ctx)
		planned := env.plan("-f", file, "--kubeconfig", kubeconfig, "--namespace", env.namespace)
		Expect(planned.stderr).To(BeEmpty())
		Expect(planned.stdout).To(And(ContainSubstring("HostnameConflict"), ContainSubstring("free.example.com"), ContainSubstring("^/changed(/|$)")))
		Expect(env.resourceVersions(ctx)).To(Equal(before), "plan does not write to the cluster")

		By("applying the change")
		Eventually(func() bool {
			return time.Since(latest(env.listenerSet("team", "")).CreationTimestamp.Time) > 2*time.Second
		}).Should(BeTrue())
		env.applyFile(ctx, file)
		Eventually(env.hostnames).WithArguments("shared").Should(ContainElement("free.example.com"))
		env.waitUntilIdle(ctx)
		Expect(withoutTransitionTimes(env.plan("--kubeconfig", kubeconfig).stdout)).To(Equal(withoutTransitionTimes(planned.stdout)))
	})
})

// createAllKinds creates objects of each kind that plan reads.
func (env *environment) createAllKinds() {
	GinkgoHelper()
	g := env.gateway("shared", "home.example.com")
	useOwnSettings(g)
	secure := env.listenerSet("secure", "secure.example.com")
	secure.Spec.Listeners[0].Port, secure.Spec.Listeners[0].Protocol = 443, gatewayv1.HTTPSProtocolType
	secure.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "missing"}}}
	headless := env.service("pods")
	headless.Spec = corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("web")}}}
	endpoints := &discoveryv1.EndpointSlice{ObjectMeta: env.objectMeta("pods"), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.9"}}},
		Ports:     []discoveryv1.EndpointPort{{Port: ptr.To[int32](8080)}}}
	endpoints.Labels = map[string]string{discoveryv1.LabelServiceName: "pods"}
	env.create(env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{ConnectTimeout: ptr.To[v1alpha1.Duration]("7s")}}),
		env.service("web"), headless, endpoints, g, env.gateway("other", "other.example.com"),
		env.listenerSet("team", "team.example.com"), env.listenerSet("z-late", "team.example.com"), secure,
		// The route to the pods comes first, because the oldest of the two routes wins.
		env.route("pods", "pods", gatewayParent("shared")),
		env.route("web", "web", gatewayParent("shared"), listenerSetParent("team"), listenerSetParent("secure")), env.route("other", "web", gatewayParent("other")), env.grpcRoute("grpc"))
}

type commandResult struct {
	stdout, stderr string
	status         int
}

// plan runs plan for the environment's controller.
func (env *environment) plan(arguments ...string) commandResult {
	GinkgoHelper()
	got := runCommand(append([]string{"plan", "-o", "json", "--controller-name", env.controllerName, "--controller-namespace", env.controllerNamespace}, arguments...)...)
	got.stderr = mistakeWarning.ReplaceAllString(got.stderr, "")
	got.stdout = mistakeList.ReplaceAllString(got.stdout, "")
	return got
}

// mistakeWarning and mistakeList match the mistakes in objects, because other specs'
// environments share the cluster, and have routes without a parent.
var (
	mistakeWarning = regexp.MustCompile(`(?m)^warning: (HTTPRoute|GRPCRoute|ListenerSet) .*\n`)
	mistakeList    = regexp.MustCompile(`(?s),\n  "mistakes": \[(\]|\n.*?\n  \])`)
)

func runCommand(arguments ...string) commandResult {
	GinkgoHelper()
	return runCommandAs(binary, arguments...)
}

// progressLine matches the progress messages that plan prints on a slow machine.
var progressLine = regexp.MustCompile(`(?m)^(checking|reading|building) .* \.\.\.\n`)

// runCommandAs runs the program at a path. Its messages begin with the file name.
func runCommandAs(path string, arguments ...string) commandResult {
	GinkgoHelper()
	var stdout, stderr bytes.Buffer
	command := exec.Command(path, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		Expect(err).NotTo(HaveOccurred())
	}
	return commandResult{stdout.String(), progressLine.ReplaceAllString(stderr.String(), ""), command.ProcessState.ExitCode()}
}

func (env *environment) writeFile(name, text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// dumpObjects writes the environment's objects to a file, in the format of kubectl get -o
// json.
func (env *environment) dumpObjects(ctx context.Context) string {
	GinkgoHelper()
	var items []any
	add := func(namespace, version, kind string) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(kind + "List")
		Expect(kube.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		for i := range list.Items {
			items = append(items, list.Items[i].Object)
		}
	}
	for kind, version := range map[string]string{
		"Gateway": gatewayAPI, "ListenerSet": gatewayAPI, "HTTPRoute": gatewayAPI, "GRPCRoute": gatewayAPI,
		"TunnelConfiguration": projectAPI, "Service": "v1", "EndpointSlice": "discovery.k8s.io/v1", "Secret": "v1",
	} {
		add(env.namespace, version, kind)
	}
	add(env.controllerNamespace, projectAPI, "TunnelConfiguration")
	add(env.controllerNamespace, projectAPI, "Tunnel")
	for _, clusterScoped := range []*unstructured.Unstructured{
		newObject(gatewayAPI, "GatewayClass", "", env.className), newObject("v1", "Namespace", "", env.namespace), newObject("v1", "Namespace", "", env.controllerNamespace),
	} {
		items = append(items, latest(clusterScoped).Object)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	Expect(err).NotTo(HaveOccurred())
	return env.writeFile("all.json", string(text))
}

// applyFile applies manifests to the environment's namespace.
func (env *environment) applyFile(ctx context.Context, file string) {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	objects, err := decodeManifests(bytes.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		object.SetNamespace(env.namespace)
		err := kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
		Expect(err).NotTo(HaveOccurred())
	}
}

// withoutTransitionTimes returns the text's lines without the conditions' transition
// times, which plan cannot predict.
func withoutTransitionTimes(text string) []string {
	return strings.Split(regexp.MustCompile(`"lastTransitionTime": "[^"]*"`).ReplaceAllString(text, ""), "\n")
}
