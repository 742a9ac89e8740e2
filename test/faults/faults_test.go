package faults

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// faults returns all faults.
func faults() []fault {
	all := []fault{
		{name: "Cloudflare refuses a revoked token that is replaced later", run: revokeToken},
		{name: "Cloudflare is down", run: loseCloudflare},
		{name: "Cloudflare blocks the token for ages", run: blockToken("9999999999")},
		{name: "Cloudflare blocks the token until a time in the past", run: blockToken(time.Unix(0, 0).UTC().Format(http.TimeFormat)), onlyLong: true},
		{name: "Cloudflare answers with every kind of error in turn", run: answerInTurn, onlyLong: true},
	}
	for _, r := range responses() {
		all = append(all, fault{name: "Cloudflare answers with " + r.name, run: failRequests(r), onlyLong: true})
	}
	return append(all, clusterFaults()...)
}

// response is a wrong answer, or none, to some requests.
type response struct {
	name string
	// times is after how many failures of a call the client returns an error.
	times int
	fault simulator.Fault
}

// beyondRetries is how often a call fails until the client returns the error.
const beyondRetries = 6

// responses returns all wrong answers.
func responses() []response {
	jsonHeader := http.Header{"Content-Type": {"application/json"}}
	truncated := http.Header{"Content-Type": {"application/json"}, "Content-Length": {"1000"}}
	until := http.Header{"Retry-After": {time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)}}
	stall := 12 * time.Second // longer than a call may take
	if *long > 0 {
		stall = 30 * time.Second
	}
	return []response{
		{"a stall", 1, simulator.Fault{Latency: stall}},
		{"429 and seconds", 1, simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Second}},
		{"429 and a date", 1, simulator.Fault{Status: http.StatusTooManyRequests, Header: until}},
		{"500", beyondRetries, simulator.Fault{Status: http.StatusInternalServerError}},
		{"502 in HTML", beyondRetries, simulator.Fault{Status: http.StatusBadGateway, Body: "<html>Bad gateway</html>"}},
		{"a reset before a write", beyondRetries, simulator.Fault{Drop: simulator.DropBeforeWrite}},
		{"a reset after a write", beyondRetries, simulator.Fault{Drop: simulator.DropAfterWrite}},
		{"a text", 2, simulator.Fault{Body: "OK"}},
		{"a truncated object", 2, simulator.Fault{Body: `{"success":true,"errors":[],"messages":[],"result":{"id":"`, Header: truncated}},
		{"a string instead of an object", 2, simulator.Fault{Body: `{"success":true,"errors":[],"messages":[],"result":"nothing"}`, Header: jsonHeader}},
		{"null", 2, simulator.Fault{Body: `null`, Header: jsonHeader}},
	}
}

// The paths of the API for records and applications.
var zonePaths, accessPaths = []string{"/zones/*/*", "/zones/*/*/*"}, []string{"/accounts/*/access/*", "/accounts/*/access/*/*"}

// failRequests makes the first requests with each method fail while objects are created, and then
// requests about records and about applications.
func failRequests(r response) func(*world) {
	return func(w *world) {
		for _, paths := range [][]string{{""}, zonePaths, accessPaths} {
			happened := w.inject(r, paths...)
			w.churn()
			w.eventually("the fault", func() string {
				if happened.Load() == 0 {
					return "has not happened"
				}
				return ""
			})
			pause(w.Context(), time.Second)
			w.cloudflare.ClearFaults()
			w.settle()
		}
	}
}

// inject makes the first requests with each method for the paths fail, and counts them.
func (w *world) inject(r response, paths ...string) *atomic.Int64 {
	happened, f := &atomic.Int64{}, r.fault
	f.Before = func(simulator.Request) { happened.Add(1) }
	for _, f.Path = range paths {
		for _, f.Method = range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if f.Times = r.times; f.Method == http.MethodPost {
				f.Times = 1 // the client does not repeat a creation
			}
			w.cloudflare.Inject(f)
		}
	}
	return happened
}

// answerInTurn makes every second request fail, each in another way, while objects change.
func answerInTurn(w *world) {
	var happened atomic.Int64
	all := responses()
	for i, r := range all {
		f := r.fault
		f.Before, f.Times, f.Skip = func(simulator.Request) { happened.Add(1) }, 1, i
		w.cloudflare.Inject(f)
	}
	for range len(all) {
		w.churn()
		w.settle()
		if happened.Load() == int64(len(all)) {
			return
		}
	}
	w.Errorf("%d of %d faults happened", happened.Load(), len(all))
}

// churn changes all objects that a fault affects: it creates a Gateway, a ListenerSet with
// a hostname and their routes, or deletes them if the last call has created them. Both change the
// tunnels, records and applications.
func (w *world) churn() {
	w.Helper()
	if name := w.extra; name != "" {
		w.extra = ""
		w.deleteExtra(name)
		return
	}
	w.extra = w.newName("extra")
	w.createExtra(w.extra)
}

// createExtra creates what churn creates. The name determines the data plane.
func (w *world) createExtra(name string) {
	w.Helper()
	w.createGateway([]string{"rules", "envoy"}[(name[len(name)-1]-'0')%2], name)
	for plane := range planes {
		set := name + "-" + plane
		w.create(newListenerSet(plane, set, set+".example.com"), newRoute("team", set, "team", parentSet(set)))
	}
}

// deleteExtra deletes what createExtra creates.
func (w *world) deleteExtra(name string) {
	w.Helper()
	w.delete(&gatewayv1.Gateway{ObjectMeta: in("infra", name)}, newPolicy(name))
	for _, section := range []string{"open", "admin", "probe"} {
		w.delete(newRoute("infra", name+"-"+section, ""))
	}
	for _, set := range []string{name + "-team", name + "-rules", name + "-envoy"} {
		w.delete(newListenerSet(name, set, ""), newRoute("team", set, ""))
	}
}

// revokeToken revokes the API token, and replaces it after the controller has reported it.
func revokeToken(w *world) {
	w.cloudflare.SetToken("another")
	w.cloudflare.Inject(simulator.Fault{Status: http.StatusForbidden, Method: http.MethodPut})
	w.churn()
	update(w, newRoute("infra", "rules-probe", ""), func(r *gatewayv1.HTTPRoute) { atPath(r, "/revoked") })
	w.eventually("the report about the token", func() string {
		var g gatewayv1.Gateway
		if err := w.kube.Get(w.Context(), client.ObjectKey{Namespace: "infra", Name: "rules"}, &g); err != nil {
			return err.Error()
		}
		if c := meta.FindStatusCondition(g.Status.Conditions, "Programmed"); c == nil || c.Status == "True" {
			return fmt.Sprintf("Programmed is %v", c)
		}
		return ""
	})
	w.replaceToken()
	w.cloudflare.ClearFaults()
}

// replaceToken makes Cloudflare accept only a new API token, and updates the Secret with it.
func (w *world) replaceToken() {
	w.Helper()
	w.token = w.newName("token")
	w.cloudflare.SetToken(w.token)
	update(w, &corev1.Secret{ObjectMeta: in(cluster.ControllerNamespace, "cloudflare")}, func(s *corev1.Secret) { s.Data["token"] = []byte(w.token) })
}

// loseCloudflare makes every request fail for a while.
func loseCloudflare(w *world) {
	w.cloudflare.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
	w.churn()
	outage := 5 * time.Second
	if *long > 0 {
		outage = time.Minute
	}
	pause(w.Context(), outage)
}

// blockToken refuses one request with a Retry-After that the client does not believe, and expects
// that no request follows for a while. A replaced token is not blocked.
func blockToken(retryAfter string) func(*world) {
	return func(w *world) {
		blocked := make(chan struct{}, 1)
		w.cloudflare.Inject(simulator.Fault{
			Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {retryAfter}}, Times: 1,
			Before: func(simulator.Request) { blocked <- struct{}{} },
		})
		w.churn()
		select {
		case <-blocked:
		case <-time.After(timeout):
			w.Fatal("no request was blocked")
		}
		pause(w.Context(), 500*time.Millisecond) // requests in flight
		before := w.cloudflare.Count("", "")
		pause(w.Context(), 2*time.Second)
		if after := w.cloudflare.Count("", ""); after > before {
			w.Errorf("%d requests followed a Retry-After of %s", after-before, retryAfter)
		}
		w.replaceToken()
	}
}
