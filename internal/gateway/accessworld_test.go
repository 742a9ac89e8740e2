package gateway_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	edge "github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// protectedWorld is an installation with two Gateways, an account, and the leader that decides
// about them with the product's code. Objects and applications change, requests fail, answers
// are lost, the leader changes, and time passes.
type protectedWorld struct {
	*testing.T
	*rand.Rand
	database *edge.Database
	cloud    *fake.Access
	class    *v1alpha1.TunnelConfiguration
	spaces   map[string]*corev1.Namespace
	policies []*v1alpha1.AccessPolicy
	gateways []*protectedGateway
	// accessFails and tunnelsFail report whether Cloudflare's API answers, and loses that some
	// answers are lost. unknown reports whether AccessPolicies cannot be read.
	accessFails, tunnelsFail, loses, unknown bool
	// wall is the time, and uptime that of the leader.
	wall, uptime time.Duration
	facts        access.Facts
	report       access.Report
	// due is the uptime of the executor's next step; 0 if there is none.
	due time.Duration
	// domains are the domains of all applications that ever existed, by AUD tag.
	domains map[string][]string
	seen    worldCounts
	log     []string
	// leader counts the leaders, and objects the AccessPolicies.
	leader, objects int
}

const worldAccount = "account"

var (
	worldStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	worldPools = map[string][]string{ // hostnames of listeners, by the namespace of their owner
		"infra":  {"www.example.com", "*.example.com", "*.example.org", ""},
		"team-a": {"app.example.com", "*.app.example.com", "a.example.org"},
		"team-b": {"shop.example.com", "deep.app.example.com", "*.b.example.org"},
	}
	worldRouteHostnames = map[string][]string{
		"infra":  {"www.example.com", "z.example.com", "y.z.example.com", "z.example.org", "*.example.com"},
		"team-a": {"app.example.com", "x.app.example.com", "y.x.app.example.com", "a.example.org"},
		"team-b": {"shop.example.com", "deep.app.example.com", "w.b.example.org"},
	}
	worldHosts = []string{
		"www.example.com", "z.example.com", "y.z.example.com", "app.example.com", "x.app.example.com", "y.x.app.example.com",
		"deep.app.example.com", "shop.example.com", "a.example.org", "z.example.org", "w.b.example.org", "v.b.example.org",
	}
	worldEntries = []string{"", "*.example.com", "www.example.com", "*.app.example.com", "app.example.com", "*.example.org", "z.example.com", "*.b.example.org"}
	worldOwners  = []string{"infra", "team-a", "team-b"}
	worldPaths   = []string{"/", "/x"}
)

func newProtectedWorld(t *testing.T, seed uint64) *protectedWorld {
	t.Helper()
	w := &protectedWorld{
		T: t, Rand: rand.New(rand.NewPCG(seed, 41)), //nolint:gosec // the test must be reproducible
		database: edge.New(edge.Options{}), spaces: map[string]*corev1.Namespace{}, domains: map[string][]string{},
		wall: time.Hour, uptime: time.Minute,
	}
	w.cloud = fake.NewAccess(w.database, worldAccount)
	for _, id := range []string{"employees", "ci", "guests"} {
		w.database.AddPolicy(worldAccount, edge.Policy{ID: id, Name: id, Decision: "allow"})
	}
	for _, name := range worldOwners {
		w.spaces[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"tunnelgateway.dev/hostnames": "*.example.com *.example.org",
		}}}
	}
	w.class = configuration("platform", "defaults", v1alpha1.TunnelConfigurationSpec{
		Hostnames: &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)},
		Access: &v1alpha1.AccessApplications{
			Applications: new(v1alpha1.ApplicationsManaged), TeamName: new("acme"),
			Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "employees"}, {Name: "ci", ID: "ci"}, {Name: "guests", ID: "guests"}},
		},
	})
	w.class.CreationTimestamp = metav1.NewTime(worldStart)
	for i, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneIngressRules} {
		if seed%2 == 1 {
			plane = map[bool]v1alpha1.DataPlane{true: v1alpha1.DataPlaneIngressRules, false: v1alpha1.DataPlaneEnvoy}[i == 0]
		}
		w.gateways = append(w.gateways, newProtectedGateway(w, i, plane))
	}
	w.startLeader()
	return w
}

// startLeader makes another process the leader.
func (w *protectedWorld) startLeader() {
	w.uptime, w.due, w.report = time.Minute, 0, access.Report{}
	w.facts = access.Facts{
		Identity:     ownership.Identity{ClusterID: "prod", ClusterUID: "6f1c", Key: []byte("0123456789abcdef0123456789abcdef")},
		TokenVersion: "1",
	}
	for _, g := range w.gateways {
		g.forget()
	}
}

func (w *protectedWorld) chance(percent int) bool { return w.IntN(100) < percent }

func (w *protectedWorld) note(format string, arguments ...any) {
	w.log = append(w.log, fmt.Sprintf("%s %s", w.wall, fmt.Sprintf(format, arguments...)))
}

// applications returns the settings of the class.
func (w *protectedWorld) isManaged() bool {
	return *w.class.Spec.Access.Applications == v1alpha1.ApplicationsManaged
}

// snapshot returns what the leader, or an observer who knows all objects, sees for a Gateway.
func (w *protectedWorld) snapshot(g *protectedGateway, omniscient bool) *gateway.Snapshot {
	s := &gateway.Snapshot{
		Now: worldStart.Add(w.wall), Gateway: g.object, ListenerSets: g.sets, HTTPRoutes: g.routes, Namespaces: w.spaces,
		ClassConfiguration: w.class, GatewayConfiguration: g.configuration, DataPlane: g.plane,
		AccessPolicies: w.policies, AccessPoliciesUnknown: w.unknown && !omniscient,
	}
	if s.AccessPoliciesUnknown {
		s.AccessPolicies = nil
	}
	setParametersRefs(s)
	for name := range w.spaces {
		service := types.NamespacedName{Namespace: name, Name: "web"}
		s.Services.Set(service, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	return s
}

func worldOptions() gateway.Options {
	o := envoyOptions()
	o.ControllerNamespace = "platform"
	o.DataPlanes = routing.DataPlanes{
		v1alpha1.DataPlaneIngressRules: randomOptions.DataPlanes[v1alpha1.DataPlaneIngressRules], v1alpha1.DataPlaneEnvoy: envoyOfFiles(),
	}
	return o
}

// reconcile lets the executor and the Gateways work until nothing is due.
func (w *protectedWorld) reconcile() {
	for range 3 {
		for _, g := range w.gateways {
			g.reconcile()
		}
		w.facts.GatewaysKnown = true
		w.execute()
	}
	for _, g := range w.gateways {
		g.reconcile()
	}
}

// pass lets time pass, with a reconcile whenever something is due.
func (w *protectedWorld) pass(d time.Duration) {
	end := w.uptime + d
	for range 40 {
		next := end
		for _, due := range append([]time.Duration{w.due}, w.dueOfGateways()...) {
			if due > w.uptime {
				next = min(next, due)
			}
		}
		w.wall += next - w.uptime
		w.uptime = next
		w.reconcile()
		if next == end {
			return
		}
	}
	w.wall += end - w.uptime
	w.uptime = end
	w.reconcile()
}

func (w *protectedWorld) dueOfGateways() (due []time.Duration) {
	for _, g := range w.gateways {
		due = append(due, g.due)
	}
	return due
}

// execute executes the steps about the account.
func (w *protectedWorld) execute() {
	w.facts.Uptime, w.facts.Clock = w.uptime, worldStart.Add(w.wall)
	w.facts.Classes = []access.Class{{Name: "tunnel", Created: worldStart, Settings: w.gateways[0].applications()}}
	w.facts.Gateways = nil
	for _, g := range w.gateways {
		w.facts.Gateways = append(w.facts.Gateways, g.facts)
	}
	w.due = 0
	for range 60 {
		w.facts.Memory = access.Observe(w.facts)
		step := access.Decide(w.facts)
		if step.Ends() {
			if step.Action == access.Wait {
				w.due = w.uptime + max(step.Delay, time.Second)
			}
			break
		}
		w.facts.Memory = access.Conclude(w.facts.Memory, step, w.call(step))
		for _, a := range w.database.Applications(worldAccount) {
			w.domains[a.AUD] = a.Domains
		}
	}
	w.facts.Memory = access.Observe(w.facts)
	w.report = access.NewReport(w.facts)
}

// call executes one step.
func (w *protectedWorld) call(step access.Step) access.Result {
	r := access.Result{Sent: w.uptime, Uptime: w.uptime}
	failure := func() error { return &provider.UnavailableError{Err: fmt.Errorf("status 503")} }
	if w.accessFails {
		r.Err = failure()
	}
	switch {
	case step.Action == access.Apply:
		r.Err = nil
		for _, write := range step.Writes {
			result := access.WriteResult{Err: failure()}
			if !w.accessFails {
				result = w.write(write)
				if w.loses && w.chance(30) {
					result = access.WriteResult{Err: failure()}
				}
			}
			r.Writes = append(r.Writes, result)
		}
	case w.accessFails:
	case step.Action == access.ReadApplications:
		r.Applications, r.Err = w.cloud.Applications(w.Context())
	case step.Action == access.ReadPolicies:
		r.Policies, r.Err = w.cloud.Policies(w.Context())
	}
	return r
}

func (w *protectedWorld) write(write access.Write) (r access.WriteResult) {
	w.seen.writes++
	switch write.Operation {
	case access.EnsureTag:
		r.Err = w.cloud.EnsureTag(w.Context(), write.Tag)
	case access.Create:
		r.Application, r.Err = w.cloud.Create(w.Context(), write.Spec)
	case access.Update:
		r.Application, r.Err = w.cloud.Update(w.Context(), write.Last, write.Spec)
	case access.Revoke:
		r.Err = w.cloud.RevokeTokens(w.Context(), write.Last.ID)
	case access.Delete:
		r.Err = w.cloud.Delete(w.Context(), write.Last)
	}
	w.note("%s %s: %v", write.Operation, write.Hostname, r.Err)
	return r
}

// owner returns a random owner of listeners.
func (w *protectedWorld) owner() string {
	return slices.Sorted(maps.Keys(worldPools))[w.IntN(len(worldPools))]
}
