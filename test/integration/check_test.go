package integration

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("the command check", records, func() {
	It("says whether a hostname works, and at which step it does not", func() {
		c := newHostnameCheck()
		c.start()
		g := c.serve("shared", "shop.example.com", "other.example.com")
		Eventually(c.names).Should(ContainElement("shop.example.com"))

		By("checking a hostname that works")
		Eventually(c.checking("shop.example.com")).Should(And(HaveField("Status", 0), HaveField("Failed", BeEmpty())))
		Expect(c.check("shop.example.com").Findings["request"]).To(ContainSubstring("200"))
		Expect(c.check("shop.example.com", "--no-request").Findings["request"]).To(ContainSubstring("--no-request"))

		for _, f := range c.faults(g) {
			By("checking a hostname with " + f.name)
			f.cause()
			Eventually(c.checking(f.target)).Should(And(HaveField("Status", 2), HaveField("Failed", ContainElement(f.step)),
				HaveField("Findings", HaveKeyWithValue(f.step, ContainSubstring(f.message)))), f.name)
			f.repair()
			Eventually(c.checking("shop.example.com")).Should(HaveField("Failed", BeEmpty()), f.name)
		}
	})
})

// fault is a fault that a step of check finds.
type fault struct {
	name, target, step, message string
	cause, repair               func()
}

// faults returns faults of the cluster, DNS and the edge.
func (c *hostnameCheck) faults(g *gatewayv1.Gateway) []fault {
	route, service := c.sectionRoute("shared", 0), c.service("web")
	setPort := func(port int32) func() {
		return func() {
			update(route, func(r *gatewayv1.HTTPRoute) { r.Spec.Rules[0].BackendRefs[0].Port = &port })
		}
	}
	setReady := func(ready bool) func() {
		return func() {
			update(c.endpoints, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = &ready })
		}
	}
	setReplicas := func(replicas int32) func() {
		return func() {
			c.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) { s.Connector.Replicas = &replicas })
		}
	}
	nothing := func() {}
	name := fmt.Sprintf("Service %s/%s", service.Namespace, service.Name)
	return []fault{
		{"a wrong port", "shop.example.com", "backend", name + " has no TCP port 8080; port 80 leads to targetPort 8080", setPort(8080), setPort(80)},
		{"no ready endpoint", "shop.example.com", "backend", name + " port 80: no endpoint is ready", setReady(false), setReady(true)},
		{"no connector", "shop.example.com", "objects", "No connector of Gateway " + c.namespace + "/shared is connected", setReplicas(0), setReplicas(1)},
		{"another path", "other.example.com/none", "decision", "status 404", func() {
			update(c.sectionRoute("shared", 1), func(r *gatewayv1.HTTPRoute) {
				r.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: new("/some")}}}
			})
		}, nothing},
		{"a misspelled name", "shop.exmaple.com", "decision", "did you mean shop.example.com?", nothing, nothing},
		{"the record of another tunnel", "taken.example.com", "dns", "", func() {
			c.addRecord("taken.example.com", "CNAME", "00000000-765d-4adf-8112-31c55c1551ef.cfargotunnel.com")
			update(g, func(g *gatewayv1.Gateway) {
				taken := *g.Spec.Listeners[0].DeepCopy()
				taken.Name, taken.Hostname = "l2", new(gatewayv1.Hostname("taken.example.com"))
				g.Spec.Listeners = append(g.Spec.Listeners, taken)
			})
			c.create(c.sectionRoute("shared", 2))
		}, nothing},
	}
}

// hostnameCheck is an environment with Cloudflare's edge.
type hostnameCheck struct {
	*dnsEnvironment
	endpoints *discoveryv1.EndpointSlice
	edge      string // the address of Cloudflare's edge
	ca        string // a file with the authority of its certificates
}

// newHostnameCheck creates an environment in which the Service "web" has a ready endpoint.
func newHostnameCheck() *hostnameCheck {
	GinkgoHelper()
	c := &hostnameCheck{dnsEnvironment: newDNSEnvironment()}
	update(c.service("web"), func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(8080) })
	c.cloudflare.Restrict(readToken, simulator.Grant{Permissions: []simulator.Permission{simulator.ZoneRead, simulator.DNSRead}})
	c.endpoints = &discoveryv1.EndpointSlice{
		ObjectMeta: c.objectMeta("web"), AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: ptr.To[int32](8080)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}
	c.endpoints.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	c.create(c.endpoints)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	c.cloudflare.ListenVisitors(listener)
	c.edge, c.ca = listener.Addr().String(), filepath.Join(GinkgoT().TempDir(), "ca.pem")
	Expect(os.WriteFile(c.ca, c.cloudflare.VisitorCAPEM(), 0o600)).To(Succeed())
	return c
}

// checked is what check found.
type checked struct {
	Status int
	// Failed are the steps that failed.
	Failed []string
	// Findings are the messages by step.
	Findings map[string]string
}

// checking returns a function that runs check for the target.
func (c *hostnameCheck) checking(target string) func() checked {
	return func() checked { return c.check(target) }
}

// check runs check for the target, and returns what it found.
func (c *hostnameCheck) check(target string, arguments ...string) checked {
	GinkgoHelper()
	flags := []string{
		"check", target, "-o", "json", "--connect-to", c.edge, "--ca-file", c.ca, "--kubeconfig", kubeconfig,
		"--controller-name", c.controllerName, "--controller-namespace", c.controllerNamespace,
	}
	command := exec.Command(binary, append(flags, arguments...)...)
	command.Env = append(os.Environ(), "CLOUDFLARE_API_TOKEN="+readToken, "CLOUDFLARE_BASE_URL="+c.apiURL)
	command.Stderr = GinkgoWriter
	output, _ := command.Output() // the exit status follows
	found := checked{Status: command.ProcessState.ExitCode(), Findings: map[string]string{}}
	var report struct {
		Steps []struct {
			Name, Result string
			Findings     []struct{ Result, Message string }
		}
	}
	Expect(json.Unmarshal(output, &report)).To(Succeed(), string(output))
	for _, step := range report.Steps {
		if step.Result == "failed" {
			found.Failed = append(found.Failed, step.Name)
		}
		for _, f := range step.Findings {
			found.Findings[step.Name] += fmt.Sprintln(f.Result, f.Message)
		}
	}
	return found
}
