package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// accessToken is the header with a token for the audience. An empty audience is no token.
func accessToken(audience string) string {
	if audience == "" {
		return "Accept: */*"
	}
	return "Cf-Access-Jwt-Assertion: " + signedToken(audience)
}

// signedTokens are tokens by audience: the tests send each thousands of times.
var signedTokens sync.Map

// signedToken returns a token of the team in [requiredFor], valid for an hour.
func signedToken(audience string) string {
	token, _ := signedTokens.LoadOrStore(audience, sync.OnceValue(func() string {
		return simulator.Claims{Team: "shop", Audience: []string{audience}}.Sign()
	}))
	return token.(func() string)()
}

// hostForms returns forms in which a visitor can send a host. A connector and Envoy
// compare some forms differently.
func hostForms(host string) []string {
	label, rest, _ := strings.Cut(host, ".")
	upper, mixed := strings.ToUpper(host), label+"."+strings.ToUpper(rest[:1])+rest[1:]
	return []string{
		host, upper, strings.ToUpper(label) + "." + rest, mixed,
		host + ".", host + "..", upper + ".", mixed + ".",
		host + ":80", host + ":443", host + ":", host + ":x", host + ":80:80", host + ".:80", upper + ":80", upper + ".:443",
		"." + host, ".." + host, "." + rest, "." + rest + ":80", "x." + host, "X." + host, "x." + host + ".:80",
		"[" + host + "]", "[" + host + "]:80", "[" + upper + "]:80", "[" + host + ".]:80", "[" + host + "%25a]:80", "[." + rest + "]:80",
		"visitor@" + host, host + "@" + host, host + "%00", host + "%2e", host + "/." + rest,
	}
}

// targets returns request targets in which a visitor can name a host.
func targets(host string) []string {
	return []string{
		"/", "//" + host + "/", "http://" + host + "/", "https://" + strings.ToUpper(host) + "/", "http://" + host + ".:80/",
		"a:http://" + host + "/", "a:https://" + host + ":443/", "a:ws://" + host + "/", "a:" + host + "/", "a:" + host, "a:*", "*", "/%2f%2e%2e/",
	}
}

// raw sends the bytes on a separate connection through the tunnel of the Gateway
// "shared". It returns the response body if the status is 200, and otherwise the status.
func (env *environment) raw(address, request string) string {
	GinkgoHelper()
	connection, err := net.Dial("tcp", address)
	Expect(err).NotTo(HaveOccurred())
	defer connection.Close() //nolint:errcheck // only read
	Expect(connection.SetDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
	_, err = io.WriteString(connection, request)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Sprint(response.StatusCode)
	}
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

// listenTunnel starts a server that forwards requests through the tunnel of the Gateway
// "shared", and returns its address.
func (env *environment) listenTunnel() string {
	GinkgoHelper()
	server := httptest.NewServer(env.cloudflare.Tunnel(env.tunnel("shared")))
	DeferCleanup(server.Close)
	return server.Listener.Addr().String()
}

// everyHostname stands for the listener and the Access entry without a hostname. No other
// hostname covers this host.
const everyHostname = "everything.example.org"

// protectedGateway creates the Gateway "shared" with the listeners, and for each hostname
// in audiences a route to the Service that is named like the audience.
func (env *environment) protectedGateway(listeners []string, audiences map[string]string) *gatewayv1.Gateway {
	GinkgoHelper()
	g := env.gateway("shared", listeners...)
	for i := range g.Spec.Listeners {
		if *g.Spec.Listeners[i].Hostname == everyHostname {
			g.Spec.Listeners[i].Hostname = nil
		}
	}
	env.create(g)
	services := map[string]bool{}
	for hostname, audience := range audiences {
		if !services[audience] {
			services[audience] = true
			env.backend(audience)
		}
		env.create(env.routeFor(hostname, audience))
	}
	return g
}

func (env *environment) routeFor(hostname, service string) *gatewayv1.HTTPRoute {
	route := env.route("r-"+strings.ReplaceAll(hostname, "*", "all"), service, gatewayParent("shared"))
	if hostname != everyHostname {
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(hostname)}
	}
	return route
}

// requireAccess replaces the Access entries in the GatewayClass settings.
func (env *environment) requireAccess(entries ...v1alpha1.ListenerConfiguration) {
	GinkgoHelper()
	update(env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
		c.Spec.ListenerConfigurations = entries
	})
}

// leak is a request that a Service answered although the request did not have the
// Service's token.
type leak struct{ target, host, token, service string }

// leaks sends requests for the hosts, in every form and with every token. It returns the
// requests that a Service answered although they did not have its token. The Services are
// named like the audiences, and "open" needs no token.
func (env *environment) leaks(hosts, services []string) (found []leak) {
	GinkgoHelper()
	address := env.listenTunnel()
	send := func(target, host, other string) {
		for _, token := range append([]string{""}, services...) {
			service := env.raw(address, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\n"+accessToken(token)+"\r\nX-Forwarded-Host: "+other+
				"\r\nX-Envoy-Original-Host: "+other+"\r\nX-Envoy-Original-Path: /\r\nConnection: close\r\n\r\n")
			if service != "open" && service != token && slices.Contains(services, service) {
				found = append(found, leak{target, host, token, service})
			}
		}
	}
	for _, host := range hosts {
		for _, other := range hosts {
			for _, form := range hostForms(host) {
				send("/", form, other)
			}
			for _, target := range targets(other) {
				send(target, host, other)
			}
		}
	}
	return found
}

var _ = Describe("Cloudflare Access with the data plane Envoy", withEnvoy, func() {
	DescribeTable("needs the most specific hostname's token in every host form",
		func(listeners []string, audiences map[string]string) {
			env := newEnvoyEnvironment()
			var entries []v1alpha1.ListenerConfiguration
			var hosts, services []string
			for hostname, audience := range audiences {
				entry := requiredFor(strings.TrimPrefix(hostname, everyHostname), audience)
				if audience == "open" {
					entry.Access = &v1alpha1.Access{}
				}
				entries = append(entries, entry)
				hosts = append(hosts, strings.Replace(hostname, "*.", "b.", 1))
				if !slices.Contains(services, audience) {
					services = append(services, audience)
				}
			}
			env.requireAccess(entries...)
			env.startWithEnvoy()
			g := env.protectedGateway(listeners, audiences)
			Eventually(programmed(g)).Should(Equal("True Programmed"))
			Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
			for hostname, audience := range audiences {
				host := strings.Replace(hostname, "*.", "b.", 1)
				Eventually(env.visit).WithArguments("shared", host, "/", accessToken(audience)).Should(Equal(audience), hostname)
				Expect(env.visit("shared", host+":443", "/", accessToken(audience))).To(Equal(audience))
			}
			Expect(env.leaks(hosts, services)).To(BeEmpty())
		},
		Entry("below an open wildcard", []string{"*.example.com"}, map[string]string{
			"*.example.com": "open", "admin.example.com": "admin", "*.staff.example.com": "staff", "public.staff.example.com": "open",
		}),
		Entry("with a wildcard of another audience", []string{"*.example.com", "*.staff.example.com"}, map[string]string{
			"*.example.com": "wildcard", "admin.example.com": "admin", "*.staff.example.com": "staff", "public.example.com": "open",
		}),
		Entry("where all hostnames need a token", []string{everyHostname, "*.example.com"}, map[string]string{
			everyHostname: "everything", "*.example.com": "wildcard", "admin.example.com": "admin", "*.staff.example.com": "staff", "public.example.net": "open",
		}),
	)

	const admin = "admin.example.com"

	It("begins under load without a failed request", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g := env.protectedGateway([]string{"*.example.com"}, map[string]string{"*.example.com": "open", admin: "admin"})
		Eventually(env.visit).WithArguments("shared", admin, "/").Should(Equal("admin"))
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
		for range 3 {
			env.underLoad(func() {
				env.requireAccess(requiredFor(admin, "admin"))
				Eventually(env.visit).WithPolling(time.Millisecond).WithArguments("shared", admin, "/").Should(Equal("403"))
				Expect(env.configuration("shared").Ingress[0].Hostname).To(Equal(admin))
				Consistently(env.visit, time.Second).WithPolling(time.Millisecond).WithArguments("shared", admin, "/").Should(Equal("403"))
				Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
			})
			Eventually(env.visit).WithArguments("shared", "ADMIN.example.com", "/").Should(Equal("404"))
			env.underLoad(func() {
				env.requireAccess()
				Eventually(env.visit).WithArguments("shared", admin, "/").Should(Equal("admin"))
				Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
				Eventually(func() int { return len(env.configuration("shared").Ingress) }).Should(Equal(1))
			})
		}
	})

	It("protects a new hostname even while Cloudflare refuses its rule", func() {
		env := newEnvoyEnvironment()
		env.requireAccess(requiredFor(admin, "admin"))
		env.startWithEnvoy()
		g := env.protectedGateway([]string{"a.example.com"}, map[string]string{"a.example.com": "open"})
		Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("open"))
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Status: http.StatusServiceUnavailable})
		env.backend("admin")
		route := env.routeFor(admin, "admin")
		set := env.listenerSet("more", admin)
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, listenerSetParent("more"))
		env.create(set, route)
		Eventually(env.cloudflare.Count).WithArguments(http.MethodPut, configurationPath).Should(BeNumerically(">", 1))
		Eventually(func() string {
			return conditionMessage(latest(g).Status.Conditions, "tunnelgateway.dev/DataPlaneReady")
		}).Should(ContainSubstring(admin))
		for range 20 {
			for _, form := range hostForms(admin) {
				for _, token := range []string{"", "admin"} {
					Expect(env.visit("shared", form, "/", accessToken(token))).NotTo(Equal("admin"))
				}
			}
		}
		env.cloudflare.ClearFaults()
		Eventually(env.visit).WithArguments("shared", admin, "/", accessToken("admin")).Should(Equal("admin"))
		Expect(env.visit("shared", admin, "/")).To(Equal("403"))
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
	})

	It("closes a hostname below an open wildcard until its rule applies", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g := env.protectedGateway([]string{"*.example.com"}, map[string]string{"*.example.com": "open", "www.example.com": "open"})
		Eventually(env.visit).WithArguments("shared", admin, "/").Should(Equal("open"))
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Status: http.StatusServiceUnavailable})
		env.requireAccess(requiredFor(admin, "admin"), requiredFor("www.example.com", "www"))
		for _, form := range []string{admin, strings.ToUpper(admin), admin + ".", admin + ":443"} {
			Eventually(env.visit).WithArguments("shared", form, "/").MustPassRepeatedly(20).Should(Equal("403"), form)
		}
		Expect(env.visit("shared", "other.example.com", "/")).To(Equal("open"))
		Expect(env.visit("shared", "www.example.com", "/")).To(Equal("open"))
		env.backend("secret")
		secret := env.routeFor("www.example.com", "secret")
		secret.Name = "secret"
		secret.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: new("/secret")}}}
		env.create(secret)
		Eventually(env.visit).WithArguments("shared", "www.example.com", "/secret").Should(Equal("403"))
		Expect(env.visit("shared", "www.example.com", "/")).To(Equal("open"))
		Expect(conditionMessage(latest(g).Status.Conditions, "tunnelgateway.dev/DataPlaneReady")).To(And(ContainSubstring(admin), ContainSubstring("www.example.com")))
		env.cloudflare.ClearFaults()
		Eventually(env.visit).WithArguments("shared", "www.example.com", "/secret", accessToken("www")).Should(Equal("secret"))
		Eventually(env.visit).WithArguments("shared", admin, "/", accessToken("admin")).Should(Equal("open"))
		for _, host := range []string{admin, "www.example.com"} {
			Expect(env.visit("shared", host, "/")).To(Equal("403"))
		}
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
	})

	It("does not close a served hostname while the Gateway is paused", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g := env.protectedGateway([]string{"*.example.com"}, map[string]string{"*.example.com": "open", admin: "admin"})
		Eventually(env.visit).WithArguments("shared", admin, "/").Should(Equal("admin"))
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
		update(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(env.tunnelCondition(g, "Ready")).Should(HaveSuffix("Paused"))
		env.requireAccess(requiredFor(admin, "admin"))
		Eventually(dataPlaneReady(g)).Should(Equal("False Pending"))
		Expect(conditionMessage(latest(g).Status.Conditions, "tunnelgateway.dev/DataPlaneReady")).To(ContainSubstring(admin))
		Consistently(env.visit, time.Second).WithArguments("shared", admin, "/").Should(Equal("admin"))

		// A leader that did not serve the hostname without Access does not begin to.
		env.stop()
		env.startWithEnvoy()
		Eventually(env.visit).WithArguments("shared", admin, "/").MustPassRepeatedly(50).Should(Equal("403")) // each Envoy
		update(g, func(g *gatewayv1.Gateway) { delete(g.Annotations, v1alpha1.PausedAnnotation) })
		Eventually(env.visit).WithArguments("shared", admin, "/", accessToken("admin")).Should(Equal("admin"))
		Expect(env.visit("shared", admin, "/")).To(Equal("403"))
	})
})

// underLoad calls f while visitors with a token send requests for admin.example.com. None
// fails, except if the edge matched a request with the rules from before a change and
// Envoy gets it after the change. That request gets 404, and the next one does not.
func (env *environment) underLoad(f func()) {
	GinkgoHelper()
	done := make(chan struct{})
	var visitors sync.WaitGroup
	for range 4 {
		visitors.Go(func() {
			defer GinkgoRecover()
			for {
				select {
				case <-done:
					return
				default:
					answer := env.visit("shared", "admin.example.com", "/", accessToken("admin"))
					if answer == "404" {
						answer = env.visit("shared", "admin.example.com", "/", accessToken("admin"))
					}
					Expect(answer).To(Equal("admin"))
				}
			}
		})
	}
	defer visitors.Wait()
	defer close(done)
	f()
}
