package ingress_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// accessWorld is a tunnel, its Envoys and the leader that publishes to them. Writes fail, are
// lost or arrive late, the Gateway is paused, the leader changes, and time passes.
type accessWorld struct {
	dice *rand.Rand
	// actual is the configuration that the connectors have, and late a write that can
	// still arrive.
	actual provider.Configuration
	late   *provider.Configuration

	table    *routing.Table
	desired  *provider.Configuration
	changes  ingress.AccessChanges
	last     *envoy.Resources
	exposure ingress.Exposure
	observed ingress.Observed
	paused   bool
	recorded string
	uptime   time.Duration
	// open is, by hostname, what the open listener served before the hostname became
	// protected.
	open map[string]*openness
}

// openness is what the open listener served for a hostname.
type openness struct {
	since   time.Duration // when the hostname became protected; 0 before that
	answers map[string]string
}

var (
	pathsOfRequests = []string{"/", "/a", "/a/b", "/b"}
	hostsOfRequests = []string{"example.com", "x.example.com", "a.example.com", "x.a.example.com", "b.a.example.com", "c.example.com", "example.org", "x.example.org", "else.net"}
)

// changeTable changes the groups, the entries and the entries for Access.
func (w *accessWorld) changeTable() {
	fresh := randomTable(w.dice)
	slices.SortFunc(fresh.Groups, func(a, b routing.Group) int { return routing.CompareGroups(a.Hostname, b.Hostname) })
	for i := range fresh.Groups {
		g := &fresh.Groups[i]
		g.Entries = nil
		for _, prefix := range []string{"/a/b", "/a", ""} {
			if w.dice.IntN(3) > 0 {
				g.Entries = append(g.Entries, new(httpEntry(g.Hostname, prefix, fmt.Sprint("s", w.dice.IntN(3)))))
			}
		}
	}
	if w.table != nil && w.dice.IntN(2) == 0 { // change one of the two
		fresh.Groups = w.table.Groups
	} else if w.table != nil && w.dice.IntN(2) == 0 {
		fresh.Access = w.table.Access
	}
	w.table, w.desired = fresh, ingress.EnvoyConfiguration(fresh)
}

// publish publishes the routes, as a reconcile does before and after a write.
func (w *accessWorld) publish() {
	w.observed.Applied = w.observed.Applied && w.recorded == w.desired.Hash()
	w.changes, w.exposure = w.changes.Next(w.table, *w.desired, w.observed, w.last, w.uptime)
	w.last = envoy.RenderTransition(w.table, w.exposure.Transition, w.last)
	known := map[string]bool{}
	for _, host := range w.table.Hosts(w.exposure.Hostnames...) {
		known[host.Hostname] = true
		switch before := w.open[host.Hostname]; {
		case host.Access == nil:
			w.open[host.Hostname] = &openness{answers: openAnswers(envoy.Whole(envoy.ListenerOpen, w.last.Routes), host.Hostname)}
		case host.Access.IsClosed():
			delete(w.open, host.Hostname)
		case host.Access.IsWaiting(): // as before
		case before != nil && before.since == 0:
			before.since = w.uptime
		}
	}
	for hostname := range w.open {
		if !known[hostname] {
			delete(w.open, hostname)
		}
	}
}

// write writes the desired configuration. It can fail, get lost or arrive late.
func (w *accessWorld) write() {
	if w.paused || w.observed.Known && w.observed.Last.Hash() == w.desired.Hash() {
		return
	}
	if w.observed.Last == nil {
		w.read() // a process reads the configuration before it writes
	}
	w.recorded, w.observed.Applied = w.desired.Hash(), false
	switch w.dice.IntN(4) {
	case 0:
		w.observed.Known = false
	case 1: // lost on the way, or on the way back
		w.observed.Known = false
		w.late, w.observed.Late = w.desired, append(w.observed.Late, w.desired.Hash())
		if w.dice.IntN(2) == 0 {
			w.arrive()
		}
	default:
		w.actual = *w.desired
		w.observed = ingress.Observed{Last: w.desired, Known: true, Applied: w.observed.Late == nil, Late: w.observed.Late}
	}
}

// arrive applies a late write.
func (w *accessWorld) arrive() {
	if w.late != nil {
		w.actual = *w.late
		w.late = nil
	}
}

// read reads the configuration. A write that has not arrived may still do so.
func (w *accessWorld) read() {
	w.observed.Last, w.observed.Known = new(w.actual), true
	if w.observed.Late = nil; w.late != nil {
		w.observed.Late = []string{w.late.Hash()} // as the Tunnel records it
	}
}

// step is a reconcile after something has happened.
func (w *accessWorld) step() {
	switch w.dice.IntN(8) {
	case 0, 1, 2:
		w.changeTable()
	case 3:
		w.paused = !w.paused
	case 4:
		w.arrive()
	case 5: // a new leader does not know what earlier ones did
		w.changes, w.last, w.open = ingress.AccessChanges{}, nil, map[string]*openness{}
		w.observed = ingress.Observed{Applied: w.observed.Applied && w.late == nil}
	case 6:
		w.uptime += time.Duration(w.dice.IntN(4)) * time.Minute
	}
	w.publish()
	if w.dice.IntN(2) == 0 {
		w.read()
	}
	w.write()
	w.publish()
	if w.exposure.Until > 0 && w.dice.IntN(2) == 0 {
		w.uptime = w.exposure.Until
		w.publish()
	}
}

// openAnswers returns, by path, how the virtual host answers.
func openAnswers(c *routev3.RouteConfiguration, hostname string) map[string]string {
	answers := map[string]string{}
	for _, host := range c.VirtualHosts {
		if strings.TrimSuffix(host.Domains[0], "*") == hostname {
			for _, path := range pathsOfRequests {
				answers[path] = answerOf(host, path)
			}
		}
	}
	return answers
}

// answerOf returns the cluster or the status that answers a request.
func answerOf(host *routev3.VirtualHost, path string) string {
	for _, route := range host.Routes {
		prefix := route.Match.GetPathSeparatedPrefix()
		if prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/") {
			if status := route.GetDirectResponse().GetStatus(); status != 0 {
				return fmt.Sprint(status)
			}
			return route.GetRoute().GetCluster()
		}
	}
	return "404"
}

// visit returns the rule that a request meets, the hostname of the virtual host and the
// answer. A connector distinguishes the letter case of a host, and Envoy does not.
func (w *accessWorld) visit(host, path string) (rule provider.IngressRule, hostname, answer string) {
	rule = ruleFor(&w.actual, host)
	listener, isOpen := envoy.Whole(envoy.ListenerOpen, w.last.Routes), rule.Service == "http://127.0.0.1:10080"
	if !isOpen {
		listener = envoy.Whole(envoy.ListenerProtected, w.last.Routes)
	}
	hosts := map[string]*routev3.VirtualHost{}
	for _, h := range listener.VirtualHosts {
		hosts[strings.TrimSuffix(h.Domains[0], "*")] = h // "*" is the empty hostname
	}
	hostname, ok := routing.MostSpecific(hosts, strings.ToLower(host))
	switch {
	case !ok:
		return rule, "", "404"
	case !isOpen && host != strings.ToLower(host):
		return rule, hostname, "403"
	}
	return rule, hostname, answerOf(hosts[hostname], path)
}

// counts are the requests for protected hostnames that reach a backend through each
// listener, the requests for protected hostnames that do not, and the requests for closed
// and for open ones.
type counts struct{ protected, kept, refused, closed, waiting, open int }

// check checks the answers to all requests.
func (w *accessWorld) check(n *counts) (problems []string) {
	for _, host := range hostsOfRequests {
		for _, form := range []string{host, strings.ToUpper(host[:1]) + host[1:]} {
			for _, path := range pathsOfRequests {
				if problem := w.checkRequest(form, path, n); problem != "" {
					problems = append(problems, form+path+": "+problem)
				}
			}
		}
	}
	return problems
}

// checkRequest returns a problem with the answer to a request, or "".
func (w *accessWorld) checkRequest(host, path string, n *counts) string {
	rule, hostname, answer := w.visit(host, path)
	required := w.table.Access.Of(strings.ToLower(host))
	isForwarded := len(answer) > 3
	switch {
	case required == nil:
		n.open++
		return w.checkServed(host, path, isForwarded)
	case required.IsWaiting():
		n.waiting++
		return w.checkWaiting(hostname, path, answer, isForwarded && rule.OriginRequest.Access == nil)
	case required.IsClosed():
		n.closed++
		return w.checkClosed(host, answer)
	case !isForwarded:
		n.refused++
		if w.isInEffect() {
			return w.checkServed(host, path, false)
		}
		return ""
	case rule.OriginRequest.Access != nil:
		n.protected++
		if got := rule.OriginRequest.Access; len(got.AUDTag) != 1 || got.AUDTag[0] != string(required.AUDTags[0]) {
			return fmt.Sprintf("a token of %q is enough, not of %q", got.AUDTag, required.AUDTags)
		}
		return ""
	}
	n.kept++
	return w.checkKept(hostname, path, answer)
}

// checkKept returns a problem if an open hostname that needs a token answers what it did not
// answer before, or has been open for too long.
func (w *accessWorld) checkKept(hostname, path, answer string) string {
	switch before := w.open[hostname]; {
	case before == nil || before.answers[path] != answer:
		return fmt.Sprintf("%s answers on the open listener, and %+v was open before", answer, before)
	case w.uptime > before.since+5*time.Minute:
		return fmt.Sprintf("open for %s", w.uptime-before.since)
	}
	return ""
}

// checkClosed returns a problem if a closed hostname of the table does not return 403.
func (w *accessWorld) checkClosed(host, answer string) string {
	if answer == "403" || answer == "404" && w.table.Group(strings.ToLower(host)) == nil {
		return ""
	}
	return "the hostname is closed, but the answer is " + answer
}

// checkWaiting returns a problem if a hostname that waits for its protection answers what it did
// not answer before.
func (w *accessWorld) checkWaiting(hostname, path, answer string, isForwarded bool) string {
	if before := w.open[hostname]; isForwarded && (before == nil || before.answers[path] != answer) {
		return fmt.Sprintf("%s answers while protection is outstanding, and %+v was open before", answer, before)
	}
	return ""
}

// isInEffect reports whether the leader knows that the desired configuration is in effect.
func (w *accessWorld) isInEffect() bool {
	return w.observed.Known && w.observed.Late == nil && w.observed.Last.Hash() == w.desired.Hash()
}

// checkServed returns a problem if a request with a canonical host is not forwarded as in
// the table.
func (w *accessWorld) checkServed(host, path string, isForwarded bool) string {
	if host != strings.ToLower(host) {
		return ""
	}
	if want, _ := w.table.Answer(routing.Request{Host: host, Path: path}); isForwarded != (want != nil) {
		return fmt.Sprintf("the request is forwarded: %t", isForwarded)
	}
	return ""
}

// Despite any failure, a request for a protected hostname is forwarded without its token
// only if it was answered in the same way before the hostname became protected, and for
// five minutes at most, and never for a closed hostname. An open hostname is never refused, and a protected one not once
// its rule is in effect.
func TestAccessHoldsWhileItChanges(t *testing.T) {
	var n counts
	for seed := range uint64(400) {
		w := &accessWorld{dice: rand.New(rand.NewPCG(seed, 1)), open: map[string]*openness{}, uptime: time.Hour} //nolint:gosec // the test must be reproducible
		w.changeTable()
		w.actual, w.observed.Last, w.observed.Known = *w.desired, w.desired, true
		w.recorded, w.observed.Applied = w.desired.Hash(), true
		w.publish()
		for step := range 12 {
			w.step()
			for _, problem := range w.check(&n) {
				t.Errorf("seed %d, step %d: %s", seed, step, problem)
			}
			if t.Failed() {
				t.Fatalf("the connectors have %q, the leader wants %q, the placements are %s", written(w.actual.Ingress), written(w.desired.Ingress), describePlacements(w.exposure))
			}
		}
	}
	t.Logf("%+v", n)
	if n.protected == 0 || n.kept == 0 || n.refused == 0 || n.closed == 0 || n.waiting == 0 || n.open == 0 {
		t.Errorf("the worlds do not have every case: %+v", n)
	}
}
