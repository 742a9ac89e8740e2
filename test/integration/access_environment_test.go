package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	accessAccount = "account" // the controllers' account
	accessTeam    = "acme"
	accessReady   = "tunnelgateway.dev/AccessReady"
	// ada is an employee, and eve a contractor.
	ada, eve = "ada@example.com", "eve@example.org"
)

// accessEnvironment is an environment whose GatewayClass manages applications of Cloudflare
// Access. Its catalogue has the policies employees and contractors. Every name directly
// below example.com leads to the Gateway "shared" as soon as lead is called.
type accessEnvironment struct {
	*environment
	applications *access.Database
	database     *zones.Database
	zone         string
	reached      atomic.Pointer[http.Header] // of the last request that the backend received
}

func newAccessEnvironment(changes ...func(*v1alpha1.TunnelConfigurationSpec)) *accessEnvironment {
	GinkgoHelper()
	env := &accessEnvironment{environment: &environment{}, database: zones.New(zones.Options{})}
	env.zone = env.database.Add(zones.Zone{Name: "example.com", Account: accessAccount})
	env.applications = access.New(access.Options{TeamName: accessTeam})
	for name, domain := range map[string]string{"employees": "example.com", "contractors": "example.org"} {
		env.applications.AddPolicy(accessAccount, access.Policy{
			ID: name + "-id", Name: name, Decision: "allow",
			Include: []json.RawMessage{fmt.Appendf(nil, `{"email_domain":{"domain":%q}}`, domain)},
		})
	}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Clone()
		env.reached.Store(&header)
		_, _ = fmt.Fprint(w, r.Host) //nolint:gosec // G705: no browser shows it
	}))
	DeferCleanup(backend.Close)
	env.prepare(simulator.Options{
		Zones: env.database, Access: env.applications, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, backend.Listener.Addr().String())
		},
	})
	spec := v1alpha1.TunnelConfigurationSpec{
		Hostnames: &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)},
		Access: &v1alpha1.AccessApplications{
			Applications: ptr.To(v1alpha1.ApplicationsManaged), TeamName: ptr.To(accessTeam), OpeningDelay: ptr.To(v1alpha1.Duration("1s")),
			Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "employees-id"}, {Name: "contractors", ID: "contractors-id"}},
		},
	}
	for _, change := range changes {
		change(&spec)
	}
	env.create(env.classSettings("access", spec), env.service("web"))
	env.useClassSettings("access")
	DeferCleanup(func(ctx SpecContext) { // other specs' controllers report on the policies too
		Expect(kube.DeleteAllOf(ctx, &v1alpha1.AccessPolicy{}, client.InNamespace(env.namespace))).To(Succeed())
	})
	return env
}

// permit permits the namespace to use the hostnames.
func (env *accessEnvironment) permit(namespace string, hostnames ...string) {
	GinkgoHelper()
	update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, "tunnelgateway.dev/hostnames", strings.Join(hostnames, ", "))
	})
}

// serve creates the Gateway "shared" with a listener for each hostname and a route for all,
// and waits until its tunnel exists. The environment's namespace may use the hostnames.
func (env *accessEnvironment) serve(hostnames ...string) *gatewayv1.Gateway {
	GinkgoHelper()
	env.permit(env.namespace, hostnames...)
	g := env.gateway("shared", hostnames...)
	env.create(g, env.route("web", "web", gatewayParent("shared")))
	Eventually(programmed(g)).Should(Equal("True Programmed"))
	name, kind, content := "*.example.com", "CNAME", env.tunnel("shared")+".cfargotunnel.com"
	_, err := env.database.Create(env.zone, zones.Fields{Name: &name, Type: &kind, Content: &content, Proxied: ptr.To(true)})
	Expect(err).NotTo(HaveOccurred())
	return g
}

// policy returns an AccessPolicy for a listener of the Gateway "shared".
func (env *accessEnvironment) policy(name, section string, policies ...v1alpha1.PolicyName) *v1alpha1.AccessPolicy {
	return &v1alpha1.AccessPolicy{ObjectMeta: env.objectMeta(name), Spec: v1alpha1.AccessPolicySpec{
		TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
			LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Group: gatewayv1.GroupName, Kind: "Gateway", Name: "shared"},
			SectionName:                ptr.To(gatewayv1.SectionName(section)),
		}},
		Policies: policies,
	}}
}

// policyCondition returns the condition of the AccessPolicy for the Gateway "shared" as
// "Status Reason".
func (env *accessEnvironment) policyCondition(p *v1alpha1.AccessPolicy, kind string) func() string {
	return func() string {
		for _, ancestor := range latest(p).Status.Ancestors {
			if ancestor.AncestorRef.Name == "shared" {
				return formatCondition(ancestor.Conditions, kind)
			}
		}
		return "no status"
	}
}

// protect creates the AccessPolicy, and waits until the hostname's application is in effect.
func (env *accessEnvironment) protect(p *v1alpha1.AccessPolicy) {
	GinkgoHelper()
	env.create(p)
	Eventually(env.policyCondition(p, "Programmed")).Should(HavePrefix("True "))
}

// edgeAnswer is the answer to a visitor: the status, and the backend's text with 200.
type edgeAnswer struct {
	status int
	header http.Header
	// reached is the header that the backend received, or nil.
	reached *http.Header
}

func (env *accessEnvironment) sendTo(handler http.Handler, method, host string, header http.Header) edgeAnswer {
	request := httptest.NewRequest(method, "http://"+host+"/", http.NoBody)
	maps.Copy(request.Header, header)
	env.reached.Store(nil)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return edgeAnswer{recorder.Code, recorder.Header(), env.reached.Load()}
}

// ask sends a visitor's request through the edge, and returns the status.
func (env *accessEnvironment) ask(host string, header ...string) int {
	return env.sendTo(env.cloudflare.Visitors(), http.MethodGet, host, headerOf(header)).status
}

// behind sends a request from behind the edge to the connector of the Gateway "shared",
// and returns the status.
func (env *accessEnvironment) behind(host string, header ...string) int {
	return env.sendTo(env.cloudflare.Tunnel(env.tunnel("shared")), http.MethodGet, host, headerOf(header)).status
}

// headerOf returns a header of names and values.
func headerOf(pairs []string) http.Header {
	header := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		header.Add(pairs[i], pairs[i+1])
	}
	return header
}

// login logs a user in to the application of the hostname.
func (env *accessEnvironment) login(host, email string) simulator.Session {
	GinkgoHelper()
	session, err := env.cloudflare.Login(accessAccount, host, email)
	Expect(err).NotTo(HaveOccurred())
	return session
}

// application returns the application that protects adminHost.
func (env *accessEnvironment) application() access.Application {
	GinkgoHelper()
	app, ok := env.applications.Covering(accessAccount, adminHost, "/")
	Expect(ok).To(BeTrue(), "no application protects %s", adminHost)
	return app
}

// accessRequests counts the requests to the API for Access by method and path, with "*" for
// IDs.
func (env *accessEnvironment) accessRequests() map[string]int {
	counts := map[string]int{}
	for _, r := range env.cloudflare.Requests() {
		if _, path, ok := strings.Cut(r.Path, "/access/"); ok {
			kind, _, _ := strings.Cut(path, "/")
			counts[r.Method+" "+kind]++
		}
	}
	return counts
}
