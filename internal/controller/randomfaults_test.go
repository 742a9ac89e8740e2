package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// mostGateways is how many Gateways exist at most in the test.
const mostGateways = 8

// Users change random objects with records and applications, while the Cloudflare API, the API
// server, the clock and the process fail at random. After each operation, no hostname that stays
// protected is open. Whenever the faults end, tunnels, records, applications and statuses are as
// the objects ask for.
func TestRandomOperationsWithFaultsOfRecordsAndApplications(t *testing.T) {
	seed := randomSeed()
	t.Logf("repeat the operations with -operations.seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		w := newRandomFaults(t, seed)
		defer w.close()
		defer func() {
			if t.Failed() {
				for _, o := range list[v1alpha1.Tunnel](w.outageHarness, &v1alpha1.TunnelList{}) {
					t.Log(o.Name, o.Status.Phase, o.Status.TunnelID, o.Status.Conditions)
				}
				for _, r := range w.cloudflare.Requests() {
					t.Log(r.Time.Format(time.TimeOnly), r.Method, r.Path, r.Status)
				}
			}
		}()
		for i := range *operationCount {
			t.Logf("%s: operation %d: %s", time.Now().Format(time.TimeOnly), i+1, w.operate())
			if i%10 == 9 {
				w.heal()
			}
			w.wantProtected()
			if t.Failed() {
				t.FailNow()
			}
		}
	})
}

// randomFaults is a controller in whose surroundings everything can fail.
type randomFaults struct {
	*outageHarness
	*failures
	random *rand.Rand
	// gateways are the numbers of the Gateways that exist, and created counts all of them.
	gateways map[int]bool
	created  int
	changes  int
	// protectedHosts are the hostnames that were protected at the last check, and still are to be.
	protectedHosts map[string]bool
}

func newRandomFaults(t *testing.T, seed uint64) *randomFaults {
	t.Helper()
	w := &randomFaults{
		outageHarness: newOutageHarness(t, 0), failures: newFailures(seed), random: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // the test must be reproducible
		gateways: map[int]bool{}, protectedHosts: map[string]bool{},
	}
	w.injectError = w.failWrite
	for range 3 {
		w.add()
	}
	w.start()
	return w
}

// randomOperation is a change by a user, or a fault.
type randomOperation struct {
	name string
	do   func(*randomFaults)
}

var randomOperations = []randomOperation{
	{"create a Gateway", (*randomFaults).add},
	{"delete a Gateway", (*randomFaults).remove},
	{"change a route", (*randomFaults).change},
	{"add or remove an AccessPolicy", (*randomFaults).togglePolicy},
	{"delete a record", (*randomFaults).deleteRecord},
	{"let requests about tunnels fail", func(w *randomFaults) {
		w.failRequests("/accounts/*/cfd_tunnel", "/accounts/*/cfd_tunnel/*", "/accounts/*/cfd_tunnel/*/*")
	}},
	{"let requests about records fail", func(w *randomFaults) { w.failRequests("/zones", "/zones/*/*") }},
	{"let requests about records fail", func(w *randomFaults) { w.failRequests("/zones/*/dns_records/*") }},
	{"let requests about applications fail", func(w *randomFaults) { w.failRequests("/accounts/*/access/*") }},
	{"let requests about applications fail", func(w *randomFaults) { w.failRequests("/accounts/*/access/*/*") }},
	{"let all requests fail", func(w *randomFaults) { w.failRequests("") }},
	{"let writes to the API server fail", func(w *randomFaults) { w.setFailing(w.random.IntN(80)) }},
	{"restart the controller", (*randomFaults).restartProcess},
	{"set the clock", func(w *randomFaults) { w.skew.Store(int64(time.Duration(w.random.IntN(7200)-3600) * time.Second)) }},
}

// operate performs one random operation, and lets time pass. It returns the operation's name.
func (w *randomFaults) operate() string {
	w.t.Helper()
	o := randomOperations[w.random.IntN(len(randomOperations))]
	o.do(w)
	time.Sleep(time.Duration(w.random.IntN(60_000)) * time.Millisecond) //nolint:forbidigo // virtual time
	w.stopConnectors()
	return o.name
}

// heal ends all faults, and compares everything with the objects.
func (w *randomFaults) heal() {
	w.t.Helper()
	w.setFailing(0)
	w.cloudflare.ClearFaults()
	time.Sleep(time.Minute) //nolint:forbidigo // virtual time
	w.stopConnectors()
	w.converge(30 * time.Minute)
	clear(w.protectedHosts)
	for name := range w.protected() {
		w.protectedHosts[name.Name+".example.com"] = true
	}
}

// add creates a Gateway.
func (w *randomFaults) add() {
	if len(w.gateways) >= mostGateways {
		w.remove()
		return
	}
	w.createGateway(w.created)
	w.gateways[w.created] = true
	w.created += 1 + w.random.IntN(protectedEvery) // some have an AccessPolicy
}

// pick returns the number of a random Gateway, and false if there is none.
func (w *randomFaults) pick() (int, bool) {
	all := slices.Sorted(maps.Keys(w.gateways))
	if len(all) == 0 {
		return 0, false
	}
	return all[w.random.IntN(len(all))], true
}

// remove deletes a Gateway, its route and its AccessPolicy.
func (w *randomFaults) remove() {
	w.t.Helper()
	i, ok := w.pick()
	if !ok {
		return
	}
	delete(w.gateways, i)
	key := gatewayNumber(i)
	delete(w.protectedHosts, key.Name+".example.com")
	for _, object := range gatewayObjects(key) {
		if err := client.IgnoreNotFound(w.kube.Delete(w.t.Context(), object)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// change changes a route.
func (w *randomFaults) change() {
	w.t.Helper()
	if i, ok := w.pick(); ok {
		w.changes++
		w.changeRoute(i, fmt.Sprintf("/change-%d", w.changes))
	}
}

// togglePolicy adds the AccessPolicy of a Gateway, or removes it.
func (w *randomFaults) togglePolicy() {
	w.t.Helper()
	i, ok := w.pick()
	if !ok {
		return
	}
	key := gatewayNumber(i)
	delete(w.protectedHosts, key.Name+".example.com")
	err := w.kube.Create(w.t.Context(), policyOf(key))
	if client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		w.delete(policyOf(key))
	}
}

// deleteRecord deletes a record, as a user does in the dashboard.
func (w *randomFaults) deleteRecord() {
	w.t.Helper()
	all := w.records.Records(w.zone)
	if len(all) == 0 {
		return
	}
	if err := w.records.Delete(w.zone, all[w.random.IntN(len(all))].ID); err != nil {
		w.t.Fatal(err)
	}
}

// randomResponses are how requests fail.
var randomResponses = []simulator.Fault{
	{Status: http.StatusTooManyRequests, RetryAfter: 20 * time.Second},
	{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"99999"}}},
	{Status: http.StatusInternalServerError},
	{Drop: simulator.DropBeforeWrite},
	{Drop: simulator.DropAfterWrite},
	{Latency: 30 * time.Second},
	{Latency: 15 * time.Second, Late: true}, // at most a call's timeout after its end
	{Body: "<html>maintenance</html>"},
	{Body: `null`, Header: http.Header{"Content-Type": {"application/json"}}},
	{Body: `{"success":true,"errors":[],"messages":[],"result":"nothing"}`, Header: http.Header{"Content-Type": {"application/json"}}},
	{Body: `{"success":true,"errors":[],"messages":[],"result":{}}`, Header: http.Header{"Content-Type": {"application/json"}}},
}

// failRequests lets some of the next requests for the paths fail.
func (w *randomFaults) failRequests(paths ...string) {
	f := randomResponses[w.random.IntN(len(randomResponses))]
	f.Times, f.Skip = 1+w.random.IntN(8), w.random.IntN(3)
	f.Method = []string{"", http.MethodPost, http.MethodDelete}[w.random.IntN(3)]
	w.t.Logf("%d of the requests %s %q fail: %d %v %s %s", f.Times, f.Method, paths, f.Status, f.Drop, f.Latency, f.Body)
	for _, f.Path = range paths {
		w.cloudflare.Inject(f)
	}
}

// restartProcess replaces the controller process.
func (w *randomFaults) restartProcess() {
	w.close()
	w.start()
}

// stopConnectors stops the connectors of deleted Gateways, as their users do.
func (w *randomFaults) stopConnectors() {
	w.t.Helper()
	gateways := &gatewayv1.GatewayList{}
	if err := w.kube.List(w.t.Context(), gateways); err != nil {
		w.t.Fatal(err)
	}
	exist := map[string]bool{}
	for i := range gateways.Items {
		exist[tunnel.RemoteName("west", client.ObjectKeyFromObject(&gateways.Items[i]))] = true
	}
	for _, t := range w.cloudflare.Tunnels() {
		if !t.Deleted && !exist[t.Name] {
			w.cloudflare.Disconnect(t.ID)
		}
	}
}

// wantProtected checks that the tunnels' rules let no request without a session through to a
// hostname that stays protected.
func (w *randomFaults) wantProtected() {
	w.t.Helper()
	for _, found := range w.tunnels() {
		for _, rule := range found.rules {
			if w.protectedHosts[rule.Hostname] && !rule.OriginRequest.Access.Required && !strings.HasPrefix(rule.Service, "http_status:") {
				w.t.Errorf("%s is open in tunnel %s", rule.Hostname, found.name)
			}
		}
	}
}

// gatewayObjects returns what createGateway creates for a Gateway.
func gatewayObjects(key state.Key) []client.Object {
	g, route, policy := newGateway(key.Name, ""), newRoute(), policyOf(key)
	g.Namespace, route.Namespace, route.Name = key.Namespace, key.Namespace, key.Name
	return []client.Object{g, route, policy}
}
