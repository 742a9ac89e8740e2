package adoption

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

var errNoGateway = errors.New("no Gateway uses this controller; set --controller-name if it has another name")

// Select returns the hostnames with the names, each with the only Gateway that wants it. The
// error explains for each other name why its record cannot be adopted.
func Select(gateways []Gateway, names []string) ([]Wanted, error) {
	if len(gateways) == 0 {
		return nil, errNoGateway
	}
	var found []Wanted
	var errs []error
	for _, name := range canonical(names) {
		w, err := selectOne(gateways, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		found = append(found, w)
	}
	return found, errors.Join(errs...)
}

// SelectAll returns all hostnames whose records can be adopted, sorted. A hostname that
// several Gateways want appears for each of them: its record leads to at most one. The error
// explains why there is none.
func SelectAll(gateways []Gateway) ([]Wanted, error) {
	if len(gateways) == 0 {
		return nil, errNoGateway
	}
	var found []Wanted
	var problems []error
	for i := range gateways {
		g := &gateways[i]
		if problem := gatewayProblem(g); problem != "" {
			problems = append(problems, fmt.Errorf("Gateway %s: %s", g, problem))
			continue
		}
		for _, h := range g.Hostnames {
			if hostnameProblem(g, h) == "" {
				found = append(found, newWanted(g, h))
			}
		}
	}
	switch {
	case len(found) > 0:
		slices.SortStableFunc(found, func(a, b Wanted) int { return cmp.Compare(a.Name, b.Name) })
		return found, nil
	case len(problems) > 0:
		return nil, errors.Join(problems...)
	default:
		return nil, errors.New("no Gateway uses a hostname in a zone of its GatewayClass")
	}
}

// canonical returns the names as the API stores them, without duplicates.
func canonical(names []string) []string {
	var found []string
	for _, name := range names {
		if name = strings.ToLower(strings.TrimSuffix(name, ".")); !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// selectOne returns the only Gateway that wants the name.
func selectOne(gateways []Gateway, name string) (Wanted, error) {
	var wanting []*Gateway
	var names, all []string
	var hostname dns.Hostname
	for i := range gateways {
		g := &gateways[i]
		for _, h := range g.Hostnames {
			if h.Name == name {
				wanting, hostname, names = append(wanting, g), h, append(names, g.String())
			}
			all = append(all, h.Name)
		}
	}
	switch len(wanting) {
	case 0:
		return Wanted{}, notWanted(gateways, name, all)
	case 1:
	default:
		return Wanted{}, fmt.Errorf("several Gateways use the hostname: %s; select one with --gateway", listNames(names))
	}
	g := wanting[0]
	if problem := cmp.Or(gatewayProblem(g), hostnameProblem(g, hostname)); problem != "" {
		return Wanted{}, fmt.Errorf("Gateway %s: %s", g, problem)
	}
	return newWanted(g, hostname), nil
}

// notWanted returns the error about a name that no Gateway uses. all are the names that the
// Gateways use.
func notWanted(gateways []Gateway, name string, all []string) error {
	who := "no Gateway uses the hostname"
	if len(gateways) == 1 {
		who = fmt.Sprintf("Gateway %s does not use the hostname", gateways[0])
	}
	for _, other := range all {
		if domain, ok := strings.CutPrefix(other, "*."); ok && strings.HasSuffix(name, "."+domain) {
			return fmt.Errorf("%s by name, only through the wildcard %s, so no record of its own is managed for it", who, other)
		}
	}
	return errors.New(suggest.DidYouMean(who+" in a listener and a route", suggest.Closest(name, all)))
}

// gatewayProblem returns why the controller adopts no record for the Gateway, or "".
func gatewayProblem(g *Gateway) string {
	switch {
	case g.Settings.Mode == v1alpha1.DNSObserve:
		return fmt.Sprintf("dns.mode of GatewayClass %s is Observe, which changes no record; set it to Manage", g.Class)
	case g.Settings.Mode != v1alpha1.DNSManage:
		return fmt.Sprintf("dns.mode of GatewayClass %s is Off; set it to Manage", g.Class)
	case g.State == ownership.Frozen:
		return "it is paused, or its Tunnel is Blocked, so the controller changes no record for it"
	case g.State != ownership.Accepted:
		return "it is not accepted, so the controller changes no record for it; see its conditions"
	case g.Tunnel == "":
		return "it has no tunnel yet; see its Programmed condition"
	}
	return ""
}

// hostnameProblem returns why the controller does not manage the hostname's record, or "".
func hostnameProblem(g *Gateway, h dns.Hostname) string {
	_, listed := dns.ZoneOf(g.Settings, h.Name)
	switch {
	case !listed:
		return fmt.Sprintf("the hostname is in none of the zones in dns.zones of GatewayClass %s lists", g.Class)
	case dns.Excludes(g.Settings, h.Name):
		return fmt.Sprintf("dns.exclude of GatewayClass %s excludes the hostname", g.Class)
	case g.Settings.RequiresPermission && !h.Permitted:
		return fmt.Sprintf("the annotation %s of namespace %s does not permit the hostname", hostnames.Annotation, h.Namespace)
	}
	return ""
}

// newWanted returns the hostname, which is in a listed zone.
func newWanted(g *Gateway, h dns.Hostname) Wanted {
	zone, _ := dns.ZoneOf(g.Settings, h.Name)
	w := Wanted{Name: h.Name, Gateway: g, Served: h.Served, Zone: v1alpha1.DNSZone{Name: zone}}
	if i := slices.IndexFunc(g.Settings.Zones, func(z v1alpha1.DNSZone) bool { return z.Name == zone }); i >= 0 {
		w.Zone = g.Settings.Zones[i]
	}
	return w
}

// maxNames is how many names an error lists.
const maxNames = 10

// listNames returns the first names, and how many more there are.
func listNames(names []string) string {
	if len(names) > maxNames {
		names = append(slices.Clone(names[:maxNames]), fmt.Sprintf("and %d more", len(names)-maxNames))
	}
	return strings.Join(names, ", ")
}
