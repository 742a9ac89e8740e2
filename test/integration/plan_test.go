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
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The specs look at one world; the last of them changes it.
var _ = Describe("plan", Ordered, ContinueOnFailure, func() {
	var w *world
	BeforeAll(func(ctx SpecContext) {
		w = newWorld()
		w.start()
		w.serveMuch()
		Eventually(w.hostnames).WithArguments("shared").Should(ContainElements("home.example.com", "team.example.com"))
		w.settle(ctx)
	})

	It("of a cluster is that of its objects in a file", func(ctx SpecContext) {
		live := w.plan("--kubeconfig", kubeconfig)
		Expect(live.stderr).To(BeEmpty())
		Expect(live.stdout).To(And(ContainSubstring("InvalidCertificateRef"), ContainSubstring(":8080"),
			ContainSubstring(w.tunnel("shared")+".cfargotunnel.com"), ContainSubstring(`"connectTimeout": 7`)))
		Expect(w.plan("-f", w.dump(ctx))).To(Equal(live))

		By("showing one Gateway of several")
		one := w.plan("--kubeconfig", kubeconfig, "--gateway", w.namespace+"/other")
		Expect(one.stdout).To(And(ContainSubstring(`"name": "other"`), ContainSubstring("other.example.com")))
		Expect(one.stdout).NotTo(ContainSubstring("team.example.com"))
		none := w.plan("--kubeconfig", kubeconfig, "--gateway", w.namespace+"/none")
		Expect(none.status).To(Equal(1))
		Expect(none.stderr).To(And(ContainSubstring("not found"), ContainSubstring(w.namespace+"/other, "+w.namespace+"/shared")))

		By("completing their names")
		offered := run("__complete", "plan", "--kubeconfig", kubeconfig, "--controller-name", w.controller, "--gateway", "")
		Expect(offered.stdout).To(Equal(w.namespace + "/other\n" + w.namespace + "/shared\n:4\n"))
	})

	It("tells somebody without permissions which ones are missing", func() {
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, "jane", path)).To(Succeed())
		got := w.plan("--kubeconfig", path)
		Expect(got.status).To(Equal(1))
		Expect(got.stdout).To(BeEmpty())
		for _, kind := range []string{"httproutes.gateway.networking.k8s.io", "tunnelconfigurations.tunnelgateway.dev", "tunnels.tunnelgateway.dev", "namespaces", "services"} {
			Expect(got.stderr).To(ContainSubstring(kind))
		}
		Expect(got.stderr).To(HavePrefix(`tunnel-gateway: user "jane" may not list: `))
		Expect(strings.Count(got.stderr, "\n")).To(Equal(1))
	})

	It("takes a certificate for valid that nobody may look at", func(ctx SpecContext) {
		user, err := makeViewer(ctx, kube, w.system, "")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, user, path)).To(Succeed())
		got := w.plan("--kubeconfig", path)
		Expect(got.status).To(Equal(0), got.stderr)
		Expect(got.stderr).To(Equal("warning: no permission to get Secret " + w.namespace + "/missing, so its certificate is not validated\n"))
		Expect(got.stdout).NotTo(ContainSubstring("InvalidCertificateRef"))
	})

	It("is a plugin of kubectl", func() {
		plugin := filepath.Join(GinkgoT().TempDir(), "kubectl-tunnel_gateway")
		Expect(os.Symlink(binary, plugin)).To(Succeed())
		got := runAs(plugin, "plan", "--kubeconfig", kubeconfig, "--controller-name", w.controller, "--gateway", "a/b")
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(HavePrefix("kubectl tunnel_gateway: Gateway a/b: not found"))
	})

	It("of a change is what comes of it", func(ctx SpecContext) {
		By("keeping the age of what changes, and making the new the youngest")
		file := w.write("change.yaml", `
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
		before := w.versions(ctx)
		planned := w.plan("-f", file, "--kubeconfig", kubeconfig, "--namespace", w.namespace)
		Expect(planned.stderr).To(BeEmpty())
		Expect(planned.stdout).To(And(ContainSubstring("HostnameConflict"), ContainSubstring("free.example.com"), ContainSubstring("^/changed(/|$)")))
		Expect(w.versions(ctx)).To(Equal(before), "it wrote")

		By("applying it")
		Eventually(func() bool {
			return time.Since(fresh(w.listenerSet("team", "")).CreationTimestamp.Time) > 2*time.Second
		}).Should(BeTrue())
		w.applyFile(ctx, file)
		Eventually(w.hostnames).WithArguments("shared").Should(ContainElement("free.example.com"))
		w.settle(ctx)
		Expect(withoutTimes(w.plan("--kubeconfig", kubeconfig).stdout)).To(Equal(withoutTimes(planned.stdout)))
	})
})

// serveMuch makes something of every kind that a plan reads.
func (w *world) serveMuch() {
	GinkgoHelper()
	g := w.gateway("shared", "home.example.com")
	referToOwn(g)
	secure := w.listenerSet("secure", "secure.example.com")
	secure.Spec.Listeners[0].Port, secure.Spec.Listeners[0].Protocol = 443, gatewayv1.HTTPSProtocolType
	secure.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "missing"}}}
	headless := w.service("pods")
	headless.Spec = corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("web")}}}
	endpoints := &discoveryv1.EndpointSlice{ObjectMeta: w.meta("pods"), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.9"}}},
		Ports:     []discoveryv1.EndpointPort{{Port: ptr.To[int32](8080)}}}
	endpoints.Labels = map[string]string{discoveryv1.LabelServiceName: "pods"}
	w.create(w.settings("own", v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{ConnectTimeout: ptr.To[v1alpha1.Duration]("7s")}}),
		w.service("web"), headless, endpoints, g, w.gateway("other", "other.example.com"),
		w.listenerSet("team", "team.example.com"), w.listenerSet("z-late", "team.example.com"), secure,
		w.route("web", "web", toGateway("shared"), toSet("team"), toSet("secure")),
		w.route("pods", "pods", toGateway("shared")), w.route("other", "web", toGateway("other")), w.grpcRoute("grpc"))
}

// outcome is what a command leaves behind.
type outcome struct {
	stdout, stderr string
	status         int
}

// plan runs the command for the class of the world.
func (w *world) plan(arguments ...string) outcome {
	GinkgoHelper()
	return run(append([]string{"plan", "-o", "json", "--controller-name", w.controller, "--controller-namespace", w.system}, arguments...)...)
}

func run(arguments ...string) outcome {
	GinkgoHelper()
	return runAs(binary, arguments...)
}

// progressLine is what a slow machine makes the program say besides.
var progressLine = regexp.MustCompile(`(?m)^(looking|reading|building) .* \.\.\.\n`)

// runAs runs the program under another name, which says how it is called.
func runAs(path string, arguments ...string) outcome {
	GinkgoHelper()
	var stdout, stderr bytes.Buffer
	command := exec.Command(path, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		Expect(err).NotTo(HaveOccurred())
	}
	return outcome{stdout.String(), progressLine.ReplaceAllString(stderr.String(), ""), command.ProcessState.ExitCode()}
}

func (w *world) write(name, text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// dump writes what there is of the world to a file, as kubectl get -o json
// does.
func (w *world) dump(ctx context.Context) string {
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
		"TunnelConfiguration": ownAPI, "Service": "v1", "EndpointSlice": "discovery.k8s.io/v1", "Secret": "v1",
	} {
		add(w.namespace, version, kind)
	}
	add(w.system, ownAPI, "TunnelConfiguration")
	add(w.system, ownAPI, "Tunnel")
	for _, alone := range []*unstructured.Unstructured{
		thing(gatewayAPI, "GatewayClass", "", w.class), thing("v1", "Namespace", "", w.namespace), thing("v1", "Namespace", "", w.system),
	} {
		items = append(items, fresh(alone).Object)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	Expect(err).NotTo(HaveOccurred())
	return w.write("all.json", string(text))
}

// applyFile applies manifests to the world's namespace.
func (w *world) applyFile(ctx context.Context, file string) {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	objects, err := decode(bytes.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		object.SetNamespace(w.namespace)
		err := kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
		Expect(err).NotTo(HaveOccurred())
	}
}

// impersonate writes a kubeconfig to path with which one is another user than
// with the one that there is.
func impersonate(kubeconfig, user, path string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, identity := range config.AuthInfos {
		identity.Impersonate = user
	}
	return clientcmd.WriteToFile(*config, path)
}

// makeViewer gives a user of a new name the roles in docs/plan.md, for a
// controller in the namespace, without the rule about one kind, if any.
func makeViewer(ctx context.Context, c client.Client, namespace, without string) (string, error) {
	text, err := os.ReadFile("../../docs/plan.md")
	if err != nil {
		return "", err
	}
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if shown == nil {
		return "", errors.New("docs/plan.md shows no role")
	}
	roles, err := decode(bytes.NewReader(shown[1]))
	if err != nil {
		return "", err
	}
	user := unique("viewer")
	var errs []error
	for _, role := range roles {
		role.SetName(user)
		if role.GetNamespace() != "" {
			role.SetNamespace(namespace)
		}
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		if err != nil {
			return "", err
		}
		role.Object["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
			resources := rule.(map[string]any)["resources"].([]any)
			return slices.Contains(resources, any(without))
		})
		binding := thing(rbacAPI, role.GetKind()+"Binding", role.GetNamespace(), user)
		binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": role.GetKind(), "name": user}
		binding.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}}
		errs = append(errs, c.Create(ctx, role), c.Create(ctx, binding))
	}
	return user, errors.Join(errs...)
}

// withoutTimes leaves out when a condition came to be as it is, which nobody
// knows before.
func withoutTimes(text string) []string {
	return strings.Split(regexp.MustCompile(`"lastTransitionTime": "[^"]*"`).ReplaceAllString(text, ""), "\n")
}
