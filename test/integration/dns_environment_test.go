package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	dnsAccount = "account" // the controllers' account
	dnsZone    = "example.com"
	// The condition types.
	dnsReady             = "tunnelgateway.dev/DNSReady"
	edgeCertificateReady = "tunnelgateway.dev/EdgeCertificateReady"
	published            = "True Published"
	// signingKey is the Secret with the key that marks records.
	signingKey = "tunnel-gateway-dns-key"
)

// dnsEnvironment is an environment with DNS zones. Its GatewayClass has settings with the
// name "dns".
type dnsEnvironment struct {
	*environment
	database *zones.Database
	zone     string // ID of example.com
	// delay is how long the nameservers take to notice a change, at most; see
	// [time.Duration].
	delay atomic.Int64
}

// newDNSEnvironment creates an environment whose GatewayClass manages example.com. The
// connectors are ready as soon as their pods exist.
func newDNSEnvironment(changes ...func(*v1alpha1.TunnelConfigurationSpec)) *dnsEnvironment {
	GinkgoHelper()
	env := &dnsEnvironment{environment: &environment{}}
	env.database = zones.New(zones.Options{Delay: env.nextDelay})
	env.zone = env.database.Add(zones.Zone{Name: dnsZone, Account: dnsAccount})
	env.prepare(simulator.Options{Dial: simulator.NamedOrigins(serviceName), Zones: env.database})
	env.create(env.classSettings("dns", newDNSSpec(changes...)), env.service("web"))
	env.useClassSettings("dns")
	env.runPods(kube)
	return env
}

// nextDelay returns how long the nameservers take to notice a change.
func (env *dnsEnvironment) nextDelay() time.Duration {
	if limit := time.Duration(env.delay.Load()); limit > 0 {
		return zones.RandomDelay(limit)()
	}
	return 0
}

// newDNSSpec returns settings that manage example.com.
func newDNSSpec(changes ...func(*v1alpha1.TunnelConfigurationSpec)) v1alpha1.TunnelConfigurationSpec {
	spec := v1alpha1.TunnelConfigurationSpec{
		Connector: &v1alpha1.Connector{Replicas: ptr.To[int32](1), ReadyDelay: ptr.To(v1alpha1.Delay("0s"))},
		DNS: &v1alpha1.DNS{
			Mode: ptr.To(v1alpha1.DNSManage), Zones: []v1alpha1.DNSZone{{Name: dnsZone}}, DeletionDelay: ptr.To(v1alpha1.Duration("1s")),
		},
	}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

// changeSettings changes the settings of the GatewayClass.
func (env *dnsEnvironment) changeSettings(change func(*v1alpha1.TunnelConfigurationSpec)) {
	GinkgoHelper()
	update(env.classSettings("dns", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) { change(&c.Spec) })
}

// runPods makes all connector pods in the client's cluster ready, as a kubelet would, until
// the spec ends.
func (env *environment) runPods(c client.Client) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { env.markAllPodsReady(ctx, c) }, 200*time.Millisecond)
	})
	DeferCleanup(func() {
		stop()
		running.Wait()
	})
}

// markAllPodsReady ignores errors, because the next call repeats it.
func (env *environment) markAllPodsReady(ctx context.Context, c client.Client) {
	var pods corev1.PodList
	_ = c.List(ctx, &pods, client.InNamespace(env.controllerNamespace))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if isPodReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_ = c.Status().Update(ctx, pod)
	}
}

// addRecord adds a proxied record that the controller has not created.
func (env *dnsEnvironment) addRecord(name, kind, content string) {
	GinkgoHelper()
	_, err := env.database.Create(env.zone, zones.Fields{Name: &name, Type: &kind, Content: &content, Proxied: ptr.To(kind != "NS" && kind != "TXT")})
	Expect(err).NotTo(HaveOccurred())
}

// records returns the records of example.com, sorted.
func (env *dnsEnvironment) records() []string { return env.recordsIn(env.zone) }

// recordsIn returns the records of a zone in the form "name type content", sorted.
func (env *dnsEnvironment) recordsIn(zone string) []string {
	found := []string{}
	for _, r := range env.database.Records(zone) {
		found = append(found, fmt.Sprintf("%s %s %s", r.Name, r.Type, r.Content))
	}
	slices.Sort(found)
	return found
}

// names returns the names of the records in example.com, sorted.
func (env *dnsEnvironment) names() []string {
	found := []string{}
	for _, r := range env.database.Records(env.zone) {
		found = append(found, r.Name)
	}
	slices.Sort(found)
	return found
}

// cname returns the record that leads the name to the Gateway's tunnel, as records does.
func (env *dnsEnvironment) cname(name, gateway string) string {
	return fmt.Sprintf("%s CNAME %s.cfargotunnel.com", name, env.tunnel(gateway))
}

// request sends a visitor's request, which the zones' records lead to a tunnel. It returns the
// name of the Service that responded, or the status code.
func (env *dnsEnvironment) request(host string) string {
	recorder := httptest.NewRecorder()
	env.cloudflare.Visitors().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "http://"+host+"/", http.NoBody))
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// zoneRequests counts the requests about zones by method. The total has the key "".
func (env *dnsEnvironment) zoneRequests() map[string]int {
	counts := map[string]int{}
	for _, r := range env.cloudflare.Requests() {
		if strings.HasPrefix(r.Path, "/zones") {
			counts[r.Method]++
			counts[""]++
		}
	}
	return counts
}

// zoneWrites counts the requests that change records.
func (env *dnsEnvironment) zoneWrites() int {
	counts := env.zoneRequests()
	return counts[""] - counts[http.MethodGet]
}

// serve creates a Gateway in the environment's namespace with a listener and a route for each
// hostname. All routes send requests to the Service "web".
func (env *dnsEnvironment) serve(name string, hostnames ...string) *gatewayv1.Gateway {
	GinkgoHelper()
	g := env.gateway(name, hostnames...)
	env.create(g)
	for i := range hostnames {
		env.create(env.sectionRoute(name, i))
	}
	return g
}

// sectionRoute returns a route at one of the listeners that serve creates.
func (env *dnsEnvironment) sectionRoute(gateway string, listener int) *gatewayv1.HTTPRoute {
	parent := gatewayParent(gateway)
	parent.SectionName = ptr.To(gatewayv1.SectionName(fmt.Sprintf("l%d", listener)))
	return env.route(fmt.Sprintf("%s-%d", gateway, listener), "web", parent)
}

// hostnameSets creates a ListenerSet of the Gateway "shared" with a route for each hostname, and
// returns the ListenerSets by hostname.
func (env *dnsEnvironment) hostnameSets(hostnames ...string) map[string]*gatewayv1.ListenerSet {
	GinkgoHelper()
	sets := map[string]*gatewayv1.ListenerSet{}
	for i, hostname := range hostnames {
		name := fmt.Sprintf("set%d", i)
		sets[hostname] = env.listenerSet(name, hostname)
		env.create(sets[hostname], env.route(name, "web", listenerSetParent(name)))
	}
	return sets
}

// conditionsOf returns a condition of each ListenerSet as "Status Reason", by hostname.
func conditionsOf(sets map[string]*gatewayv1.ListenerSet, kind string) func() map[string]string {
	return func() map[string]string {
		found := map[string]string{}
		for hostname, set := range sets {
			found[hostname] = formatCondition(latest(set).Status.Conditions, kind)
		}
		return found
	}
}

// dnsCondition returns the Gateway's condition DNSReady as "Status Reason".
func dnsCondition(g *gatewayv1.Gateway) func() string {
	return gatewayCondition(g, dnsReady)
}

// hasSigningKey reports whether the controller has created the key that marks records.
func (env *dnsEnvironment) hasSigningKey() bool {
	GinkgoHelper()
	err := kube.Get(context.Background(), client.ObjectKey{Namespace: env.controllerNamespace, Name: signingKey}, &corev1.Secret{})
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return !apierrors.IsNotFound(err)
}
