package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// HostnameAccess is what requests for a hostname require. Its JSON encoding is stable.
type HostnameAccess struct {
	Hostname string `json:"hostname"`
	// State is open, protected or closed; empty if it is not known.
	State access.Status `json:"state"`
	// Reason is Protected, or why the hostname is not protected as its demand wants; empty
	// for an entry with the AUD tag of an application that is not managed. Message explains
	// another reason than Protected.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// TeamName and AUDTags are the tokens that a protected hostname requires.
	TeamName string   `json:"teamName,omitempty"`
	AUDTags  []string `json:"audTags,omitempty"`
	// Demand is nil if nothing demands an application for the hostname.
	Demand *AccessDemand `json:"demand,omitempty"`
}

// AccessDemand is what demands an application of Cloudflare Access.
type AccessDemand struct {
	// Level is GatewayClass, Gateway or AccessPolicy, and Object is the object with the
	// entry, or the AccessPolicy.
	Level  string `json:"level"`
	Object string `json:"object"`
	// Entry is the hostname of the entry if it is another one: the hostname inherits its
	// demand. It is "*" for an entry for every hostname.
	Entry    string   `json:"entry,omitempty"`
	Policies []string `json:"policies"`
	// SessionDuration is, for example, "8h0m0s".
	SessionDuration string `json:"sessionDuration"`
	// Application is the hostname of the application: the hostname itself, or the wildcard
	// that covers it.
	Application string `json:"application"`
}

// levelNames are the levels that can demand protection.
var levelNames = map[access.Level]string{
	access.LevelClass: kindGatewayClass, access.LevelGateway: gateway.KindGateway, access.LevelPolicy: gateway.KindAccessPolicy,
}

// newAccess returns what the hostnames of the table require, without the open
// hostnames.
func newAccess(r *gateway.Result) []HostnameAccess {
	all := []HostnameAccess{}
	if r.Table == nil {
		return all
	}
	hostnames := maps.Clone(r.Demanded.Demands)
	if hostnames == nil {
		hostnames = map[string]access.Demand{}
	}
	for _, hostname := range r.Demanded.ByHand {
		hostnames[hostname] = access.Demand{}
	}
	for hostname := range r.AccessStates {
		hostnames[hostname] = r.Demanded.Demands[hostname]
	}
	for _, hostname := range slices.SortedFunc(maps.Keys(hostnames), routing.CompareGroups) {
		all = append(all, newHostnameAccess(r, hostname))
	}
	return all
}

func newHostnameAccess(r *gateway.Result, hostname string) HostnameAccess {
	h := HostnameAccess{Hostname: hostname, State: access.Open}
	switch required := r.Table.Access.Of(hostname); {
	case required.IsClosed():
		h.State = access.Closed
	case required != nil:
		h.State, h.TeamName, h.AUDTags = access.Protected, required.TeamName, required.AUDTags
	}
	if state, ok := r.AccessStates[hostname]; ok {
		h.Reason, h.Message = state.Reason.String(), state.Message
	}
	if slices.Equal(h.AUDTags, []string{assumedTag}) {
		h.AUDTags, h.Message = nil, messageAssumed
	}
	if r.Demanded.Unknown && h.State == access.Open {
		h.State = ""
	}
	if demand, ok := r.Demanded.Demands[hostname]; ok {
		h.Demand = newAccessDemand(r, hostname, &demand)
	}
	return h
}

func newAccessDemand(r *gateway.Result, hostname string, d *access.Demand) *AccessDemand {
	demand := &AccessDemand{
		Level: levelNames[d.Level], Object: d.Object, Policies: []string{}, SessionDuration: d.SessionDuration.String(), Application: d.Hostname,
	}
	for _, policy := range d.Policies {
		demand.Policies = append(demand.Policies, string(policy))
	}
	if entry, ok := r.AccessEntry(hostname); ok && entry != hostname {
		demand.Entry = orStar(entry)
	}
	return demand
}

// unreadPolicies says for which Gateways it is not known whether AccessPolicies protect
// hostnames, because the user may not list them.
func (p *Plan) unreadPolicies(includes func(namespace, name string) bool) []string {
	var gateways []string
	for i := range p.Gateways {
		g := &p.Gateways[i]
		if g.result.Settings != nil && g.result.Demanded.Unknown && includes(g.Namespace, g.Name) {
			gateways = append(gateways, g.Namespace+"/"+g.Name)
		}
	}
	if len(gateways) == 0 {
		return nil
	}
	return []string{"whether AccessPolicies protect hostnames of " + plural(gateway.KindGateway, len(gateways)) + " " + Style{}.abbreviate(gateways)}
}

// isPending reports whether the hostname only waits for the controller.
func (h *HostnameAccess) isPending() bool { return h.Reason == conditions.ReasonPending.String() }

// isProblem reports whether a user has to act before the hostname is protected as demanded.
func (h *HostnameAccess) isProblem() bool {
	return h.Reason != "" && h.Reason != conditions.ReasonProtected.String() && !h.isPending()
}

// text describes the state in one cell.
func (h *HostnameAccess) text() string {
	switch {
	case h.State == access.Closed:
		return string(access.Closed) + ": " + cmp.Or(h.Reason, "no application covers it")
	case h.State == access.Protected && h.isProblem():
		return string(access.Protected) + ": " + h.Reason
	case h.State == access.Protected:
		return string(access.Protected) + ": " + h.TeamName
	case h.State == "":
		return "not known"
	case h.Reason != "":
		return string(access.Open) + ": " + h.Reason
	}
	return string(access.Open)
}

// accessText describes what requests for the hostname of a rule require, in one cell. The
// last rule, for every hostname, is only about requests for hostnames without a listener
// unless a listener has no hostname.
func (g *Gateway) accessText(hostname string) string {
	i := slices.IndexFunc(g.Access, func(h HostnameAccess) bool { return h.Hostname == hostname })
	if i >= 0 {
		return g.Access[i].text()
	}
	return g.otherAccessText(hostname)
}

// otherAccessText is [Gateway.accessText] for a hostname that is not in the Gateway's Access.
func (g *Gateway) otherAccessText(hostname string) string {
	h := newHostnameAccess(g.result, hostname)
	switch {
	case h.State == access.Closed: // the hostname of an entry, or below one
		h.Reason = g.reasonOf(hostname)
	case hostname == "" && !slices.ContainsFunc(g.Listeners, func(l Listener) bool { return l.Hostname == "" }):
		return ""
	}
	return h.text()
}

// accessFor returns what a request's host requires, or nil if it is simply open. The most
// specific hostname that covers the host decides.
func (g *Gateway) accessFor(host string) *HostnameAccess {
	byHostname := map[string]*HostnameAccess{}
	for i := range g.Access {
		byHostname[g.Access[i].Hostname] = &g.Access[i]
	}
	if hostname, ok := routing.MostSpecific(byHostname, host); ok {
		return byHostname[hostname]
	}
	return nil
}

// reasonOf returns the reason of the narrowest hostname with a state that covers the hostname,
// or "".
func (g *Gateway) reasonOf(hostname string) string {
	for wide := range routing.WiderHostnames(hostname) {
		if state, ok := g.result.AccessStates[wide]; ok {
			return state.Reason.String()
		}
	}
	return ""
}

// requiresAccess reports whether a hostname of the Gateway requires something.
func (g *Gateway) requiresAccess() bool {
	return len(g.Access) > 0 || slices.ContainsFunc(slices.Collect(maps.Values(g.result.Table.Access)), func(r *routing.Requirement) bool { return r != nil })
}
