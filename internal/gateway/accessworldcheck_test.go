package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// followedHostname is what an observer, who knows all objects, knows about a hostname of a
// Gateway's table.
type followedHostname struct {
	// demand is the present demand, or nil. since is when the present state began: of a
	// demand, or of none.
	demand  *access.Demand
	since   time.Duration
	inTable bool
	byHand  bool
	// protected reports whether the protection was in effect for a demand that is still there
	// or went less than openingDelay ago, and byLeader which leader has seen it first.
	protected bool
	byLeader  int
	// open reports whether that leader has served the hostname open.
	open       bool
	openLeader int
	// sessions are those of visitors.
	sessions []visitorSession
}

// visitorSession is a visitor's token: the application that issued it, how often its tokens
// were revoked before, and the demand at that time.
type visitorSession struct {
	aud         string
	revocations int
	demand      *access.Demand
}

// worldCounts counts what the worlds had.
type worldCounts struct {
	writes, puts                                             int
	exposed, closed, protected, waiting, ending, stale, open int
	settled, pending, forwarded, afterRestartEdge            int
}

const worldDelay = 30 * time.Second

// follow compares the demands with the last ones.
func (g *protectedGateway) follow() {
	r := gateway.Build(g.snapshot(g, true), worldOptions())
	if r.Table == nil {
		g.Fatalf("the Gateway is rejected: %+v", r.Rejected)
	}
	for hostname := range r.Demanded.Demands {
		d := r.Demanded.Demands[hostname]
		g.followed(hostname).demanded(&d, g.wall, g.unknown)
	}
	for _, hostname := range r.Demanded.ByHand {
		f := g.followed(hostname)
		f.undemanded(g.wall)
		f.byHand, f.protected = true, false
	}
	for _, hostname := range r.Demanded.Hostnames {
		f := g.followed(hostname)
		f.undemanded(g.wall)
		f.byHand = false
	}
	for hostname, f := range g.known {
		_, isDemanded := r.Demanded.Demands[hostname]
		f.inTable = isDemanded || slices.Contains(r.Demanded.ByHand, hostname) || slices.Contains(r.Demanded.Hostnames, hostname)
		if !f.inTable {
			f.undemanded(g.wall)
			f.open = false
		}
		if f.demand == nil && g.wall-f.since >= worldDelay {
			f.protected = false
		}
	}
}

func (g *protectedGateway) followed(hostname string) *followedHostname {
	if g.known[hostname] == nil {
		g.known[hostname] = &followedHostname{since: g.wall}
	}
	return g.known[hostname]
}

func (f *followedHostname) demanded(d *access.Demand, now time.Duration, unknown bool) {
	if f.demand == nil || unknown && !f.protected { // the leader may not know the demand yet
		f.since = now
	}
	f.demand, f.byHand = d, false
}

func (f *followedHostname) undemanded(now time.Duration) {
	if f.demand != nil {
		f.demand, f.since = nil, now
	}
}

// isStricterDemand reports whether tokens that were issued under the last demand may not be
// used under the next one.
func isStricterDemand(last, next *access.Demand) bool {
	lost := slices.ContainsFunc(last.Policies, func(p v1alpha1.PolicyName) bool { return !slices.Contains(next.Policies, p) })
	return last.DeciderKey() != next.DeciderKey() || last.Hostname != next.Hostname || lost || next.SessionDuration < last.SessionDuration
}

// check checks requests for all hosts.
func (g *protectedGateway) check() {
	g.follow()
	table := map[string]bool{}
	for hostname, f := range g.known {
		if f.inTable {
			table[hostname] = true
		}
	}
	for _, host := range worldHosts {
		hostname, ok := routing.MostSpecific(table, host)
		if !ok {
			continue
		}
		forms := []string{host}
		if g.plane == v1alpha1.DataPlaneEnvoy {
			forms = append(forms, strings.ToUpper(host[:1])+host[1:])
		}
		for _, form := range forms {
			for _, path := range worldPaths {
				if problem := g.checkRequest(g.known[hostname], hostname, form, path); problem != "" {
					g.Errorf("%s: %s%s (%s, %s): %s", g.wall, form, path, hostname, g.plane, problem)
				}
			}
		}
	}
	for hostname := range table {
		g.observe(hostname, g.known[hostname])
	}
}

// checkRequest returns a problem with the answer to a request, or "".
func (g *protectedGateway) checkRequest(f *followedHostname, hostname, host, path string) string {
	needs, forwarded := g.visit(host, path)
	if g.isOutstanding() && g.ruleFor(host, path) != hostname {
		return "" // the rules for a hostname that has left the table, or is new
	}
	isExposed := forwarded && needs == nil
	switch {
	case f.byHand, !g.readsOnce: // a leader that has not read the rules changes nothing
		return ""
	case isExposed && (f.demand != nil || f.protected):
		return g.checkExposed(f, hostname, host)
	case !forwarded || f.demand == nil:
		g.seen.closed++
		return ""
	}
	g.seen.protected++
	if i := slices.IndexFunc(needs, func(tag string) bool { return !g.isFor(tag, hostname) }); i >= 0 && !g.unknown {
		return fmt.Sprintf("a token for %v is enough; %+v", g.domains[needs[i]], g.stateOf(hostname))
	}
	return g.checkSessions(f, hostname, host, needs)
}

// isFor reports whether the AUD tag is that of an application for the hostname, or one that was
// made by hand.
func (g *protectedGateway) isFor(tag, hostname string) bool {
	return tag == "hand" || slices.ContainsFunc(g.domains[tag], func(domain string) bool { return routing.Covers(domain, hostname) })
}

// isOutstanding reports whether ingress rules do not have the last decision yet.
func (g *protectedGateway) isOutstanding() bool {
	return g.plane != v1alpha1.DataPlaneEnvoy && !g.inEffect
}

// checkExposed returns a problem with a request that reaches a backend without a token
// although protection is demanded, or has been until just now.
func (g *protectedGateway) checkExposed(f *followedHostname, hostname, host string) string {
	g.seen.exposed++
	switch {
	case f.protected && f.byLeader != g.leader && g.isBehindLogin(host):
		g.seen.afterRestartEdge++
		return "" // this leader cannot know that it was protected, and visitors must log in
	case f.protected && f.demand == nil:
		return fmt.Sprintf("no token is needed %s after the demand has gone", g.wall-f.since)
	case f.protected:
		return "no token is needed, although the protection was in effect"
	case f.open && f.openLeader == g.leader && g.wall-f.since <= 5*time.Minute:
		g.seen.waiting++
		return ""
	case g.unknown, g.isOutstanding():
		return "" // the leader knows nothing, or its rules are not in effect yet
	}
	return fmt.Sprintf("no token is needed %s after the demand; it was open: %t; state %+v", g.wall-f.since, f.open, g.stateOf(hostname))
}

// isBehindLogin reports whether Cloudflare's edge asks visitors of the host to log in.
func (g *protectedGateway) isBehindLogin(host string) bool {
	app, covers := g.database.Covering(worldAccount, strings.ToLower(host), "/")
	return covers && len(app.Policies) > 0 && app.Policies[0].Decision != "bypass"
}

// checkSessions returns a problem with the tokens of visitors who logged in before.
func (g *protectedGateway) checkSessions(f *followedHostname, hostname, host string, needs []string) string {
	app, covers := g.database.Covering(worldAccount, strings.ToLower(host), "/")
	if g.plane != v1alpha1.DataPlaneEnvoy && !covers {
		return "" // ingress rules do not tell how deep a host is below a wildcard
	}
	for _, s := range f.sessions {
		isRefused := covers && (app.AUD != s.aud || app.Revocations != s.revocations)
		if isRefused || !isStricterDemand(s.demand, f.demand) || !slices.Contains(needs, s.aud) {
			continue
		}
		if g.mayKeepTokens(hostname, s.demand, f.demand) {
			g.seen.stale++
			continue
		}
		return fmt.Sprintf("a token that was issued under an earlier demand is enough; %+v; %+v; covered: %t; %+v", g.stateOf(hostname), f.demand, covers, s.demand)
	}
	return ""
}

// mayKeepTokens reports whether the leader cannot know that tokens were issued under an earlier
// demand. With no application read, rules stay, and an application that lost its tag does not
// tell for whom it was made.
func (g *protectedGateway) mayKeepTokens(hostname string, last, next *access.Demand) bool {
	state := g.stateOf(hostname)
	if state.Application == nil || g.unknown || g.isOutstanding() {
		return true
	}
	return state.Reason == conditions.ReasonApplicationExists && last.DeciderKey() != next.DeciderKey()
}

// observe follows what becomes of a hostname, and logs a visitor in.
func (g *protectedGateway) observe(hostname string, f *followedHostname) {
	state := g.stateOf(hostname)
	switch {
	case !g.readsOnce:
	case f.demand == nil:
		g.seen.ending++
	case state.Status == access.Closed:
		f.open = false
	case state.Status == access.Protected && g.inEffect && !g.unknown:
		f.open = false
		if !f.protected {
			f.protected, f.byLeader = true, g.leader
		}
		host := strings.Replace(hostname, "*", "visitor", 1)
		if app, covers := g.database.Covering(worldAccount, host, "/"); covers && slices.Contains(state.AUDTags, app.AUD) && state.Reason == conditions.ReasonProtected {
			f.sessions = append(f.sessions[max(0, len(f.sessions)-3):], visitorSession{app.AUD, app.Revocations, f.demand})
		}
	}
}

// stateOf returns the state of a hostname in the last decision.
func (g *protectedGateway) stateOf(hostname string) access.State {
	if g.result == nil {
		return access.State{}
	}
	return g.result.AccessStates[hostname]
}

// checkSettled checks that the faults have left nothing behind.
func (g *protectedGateway) checkSettled() {
	if !g.inEffect {
		g.Errorf("the configuration of %s is not in effect", g.name)
	}
	for hostname, f := range g.known {
		state := g.stateOf(hostname)
		switch {
		case !f.inTable || f.byHand:
		case f.demand == nil:
			if state.Status == access.Protected || state.Status == access.Closed {
				g.Errorf("nothing demands protection for %s, and it is %+v", hostname, state)
			}
		case state.Reason == conditions.ReasonPending || state.Reason == conditions.ReasonForbidden:
			g.seen.pending++
			g.Errorf("%s is still %+v for %+v", hostname, state, f.demand)
		default:
			g.seen.settled++
		}
	}
	for _, host := range worldHosts {
		g.checkServed(host)
	}
}

// checkServed checks that a request with the right token, or without one if none is needed,
// gets the answer of the routing table.
func (g *protectedGateway) checkServed(host string) {
	for _, path := range worldPaths {
		answer, _ := g.result.Table.Answer(routing.Request{Host: host, Path: path})
		want := g.result.Table.Access.Of(host)
		needs, forwarded := g.visit(host, path)
		if forwarded != (answer != nil) || forwarded && !slices.Equal(needs, tagsOf(want)) {
			g.Errorf("%s%s is forwarded: %t, with a token of %q; want %t with %+v", host, path, forwarded, needs, answer != nil, want)
		}
		if forwarded {
			g.seen.forwarded++
		}
	}
}

func tagsOf(r *routing.Requirement) []string {
	if !r.DemandsToken() {
		return nil
	}
	return r.AUDTags
}

// Once the protection of a hostname is in effect, and until its demand has been gone for
// openingDelay, no request reaches a backend without a token of its application that was issued
// under the present demand. A hostname that is demanded and not ready is closed, except for
// five minutes if this leader served it open. When faults stop, everything is as demanded.
func TestProtectionHoldsInAllWorlds(t *testing.T) {
	var total worldCounts
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newProtectedWorld(t, seed)
			w.seen = total
			w.run()
			total = w.seen
		})
	}
	t.Logf("%+v", total)
	cases := []int{total.protected, total.waiting, total.ending, total.settled, total.forwarded, total.closed, total.stale}
	if slices.Contains(cases, 0) {
		t.Errorf("the worlds do not have every case: %+v", total)
	}
}

// run makes the steps of a world, ends its faults, and checks it.
func (w *protectedWorld) run() {
	w.reconcile()
	for _, g := range w.gateways {
		g.check()
	}
	for range 25 {
		w.step()
		w.stopIfFailed()
	}
	w.heal()
	for _, g := range w.gateways {
		g.check()
		g.checkSettled()
	}
	w.stopIfFailed()
}

func (w *protectedWorld) stopIfFailed() {
	if w.Failed() {
		w.Fatalf("%s", strings.Join(w.log[max(0, len(w.log)-40):], "\n"))
	}
}

// step changes something, and checks all requests at several times.
func (w *protectedWorld) step() {
	for range 1 + w.IntN(2) {
		w.change()
	}
	for _, g := range w.gateways {
		g.follow()
	}
	for _, d := range []time.Duration{0, time.Duration(w.IntN(40)) * time.Second, time.Duration(w.IntN(7)) * time.Minute} {
		w.pass(d)
		for _, g := range w.gateways {
			g.check()
		}
		if w.chance(50) {
			return
		}
	}
}
