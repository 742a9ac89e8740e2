package gateway

import (
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// AccessExplanation says what decides about the access to a hostname of the routing table.
type AccessExplanation struct {
	// Hostname is the hostname of the table that decides about the host.
	Hostname string
	// Decider describes the entry or the AccessPolicy that requires Access, or the entry that
	// requires none. It is empty if nothing decides.
	Decider string
	// Inherited reports whether an owner of a ListenerSet gets the demand of a wider entry.
	Inherited bool
	// Application is the hostname of the application that the controller manages for it, or
	// empty.
	Application string
	// State is the state of the hostname. Its status is empty if applications do not decide
	// about it: an entry with an AUD tag made by hand does, or nothing.
	State access.State
}

// ExplainAccess returns what decides about the access to a host, and false if no listener
// claims it or the settings are not valid.
func (r *Result) ExplainAccess(host string) (AccessExplanation, bool) {
	t := r.accessible
	if t == nil {
		return AccessExplanation{}, false
	}
	hostname, ok := routing.MostSpecific(t.decided, host)
	if !ok {
		return AccessExplanation{}, false
	}
	decided := t.decided[hostname]
	return AccessExplanation{
		Hostname: hostname, Decider: t.describe(hostname, decided), Application: r.Demanded.Demands[hostname].Hostname, State: r.AccessStates[hostname],
		Inherited: decided.block != nil && decided.entry != hostname && t.claimant(hostname).owner.Kind == KindListenerSet,
	}, true
}

// describe describes what decides about a hostname, or returns "".
func (t *accessTable) describe(hostname string, decided accessDecision) string {
	if p := decided.policy; p != nil {
		return KindAccessPolicy + " " + p.name.String()
	}
	if decided.block != nil {
		return t.describeEntry(decided.level, decided.entry)
	}
	if entry, ok := routing.MostSpecific(t.levels.gateway, hostname); ok {
		return t.describeEntry(access.LevelGateway, entry)
	}
	if entry, ok := routing.MostSpecific(t.levels.class, hostname); ok {
		return t.describeEntry(access.LevelClass, entry)
	}
	return ""
}

func (t *accessTable) describeEntry(level access.Level, entry string) string {
	owner := "GatewayClass"
	if level == access.LevelGateway {
		owner = KindGateway
	}
	object, _ := t.entryObject(level)
	return fmt.Sprintf("the entry of the %s for %s (%s)", owner, quoteEvery(entry), object)
}

// addProtectedCalls tells the GRPCRoutes on which hostnames their calls get 403, because
// Cloudflare Access does not protect gRPC.
func (d *decision) addProtectedCalls() {
	if len(d.Table.Access) == 0 {
		return // most Gateways
	}
	for e := range d.entries() {
		if e.Source.Route.Kind != KindGRPCRoute || d.Table.Access.Of(e.Hostname) == nil {
			continue
		}
		route := d.Routes[e.Source.Route.Rank]
		if !slices.Contains(route.protected, e.Hostname) {
			route.protected = append(route.protected, e.Hostname)
		}
	}
}

// DescribeProtectedCalls says on which hostnames the calls of an accepted GRPCRoute get 403,
// or returns "".
func (r *Route) DescribeProtectedCalls() string {
	if len(r.protected) == 0 {
		return ""
	}
	list := message.List{MaxItems: 5, More: "and %d more hostnames", MaxSize: r.messageSize / 3}
	for _, hostname := range r.protected {
		list.Add("%s", quoteEvery(hostname))
	}
	return fmt.Sprintf("Calls to %s get 403, because Cloudflare Access does not protect gRPC calls. Use a hostname without Access.", list.String())
}
