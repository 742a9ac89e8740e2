package gateway

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Hostnames indexes the hostnames that each Gateway serves. All other decisions are made
// for each Gateway separately.
type Hostnames struct {
	served map[types.NamespacedName][]string
	// gateways are sorted, and are never changed: most hostnames share a list with others.
	gateways map[string][]types.NamespacedName
	// alone has, for each Gateway, the list of a hostname that no other Gateway serves.
	alone map[types.NamespacedName][]types.NamespacedName
	// shared are the results of [Hostnames.Shared] that have not changed since.
	shared map[types.NamespacedName]Shared
}

// NewHostnames returns an empty index.
func NewHostnames() *Hostnames {
	return &Hostnames{
		served: map[types.NamespacedName][]string{}, gateways: map[string][]types.NamespacedName{},
		alone: map[types.NamespacedName][]types.NamespacedName{}, shared: map[types.NamespacedName]Shared{},
	}
}

// Set replaces the hostnames that the Gateway serves. hostnames must be sorted,
// and empty for a deleted Gateway. Set returns, sorted, the other Gateways for
// which the result of [Hostnames.Shared] has changed.
func (h *Hostnames) Set(gateway types.NamespacedName, hostnames []string) []types.NamespacedName {
	previous := h.served[gateway]
	if slices.Equal(previous, hostnames) {
		return nil // most changes
	}
	affected := map[types.NamespacedName]bool{}
	for _, hostname := range previous {
		if _, found := slices.BinarySearch(hostnames, hostname); !found {
			addAll(affected, h.remove(hostname, gateway))
		}
	}
	for _, hostname := range hostnames {
		if _, found := slices.BinarySearch(previous, hostname); !found {
			addAll(affected, h.add(hostname, gateway))
		}
	}
	h.served[gateway] = hostnames
	if len(hostnames) == 0 {
		delete(h.served, gateway)
		delete(h.alone, gateway)
	}
	delete(h.shared, gateway)
	for other := range affected {
		delete(h.shared, other)
	}
	return slices.SortedFunc(maps.Keys(affected), compareByName)
}

// add adds a Gateway that serves the hostname, and returns the other ones.
func (h *Hostnames) add(hostname string, gateway types.NamespacedName) (others []types.NamespacedName) {
	others = h.gateways[hostname]
	if len(others) == 0 {
		h.gateways[hostname] = h.onlyOf(gateway)
		return nil
	}
	i, _ := slices.BinarySearchFunc(others, gateway, compareByName)
	h.gateways[hostname] = slices.Insert(slices.Clone(others), i, gateway)
	return others
}

// remove removes a Gateway that serves the hostname, and returns the other ones.
func (h *Hostnames) remove(hostname string, gateway types.NamespacedName) (others []types.NamespacedName) {
	others = without(h.gateways[hostname], gateway)
	switch len(others) {
	case 0:
		delete(h.gateways, hostname)
	case 1:
		h.gateways[hostname] = h.onlyOf(others[0])
	default:
		h.gateways[hostname] = others
	}
	return others
}

// onlyOf returns the list with only the Gateway.
func (h *Hostnames) onlyOf(gateway types.NamespacedName) []types.NamespacedName {
	if h.alone[gateway] == nil {
		h.alone[gateway] = []types.NamespacedName{gateway}
	}
	return h.alone[gateway]
}

func without(gateways []types.NamespacedName, gateway types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(slices.Clone(gateways), func(other types.NamespacedName) bool { return other == gateway })
}

func addAll(all map[types.NamespacedName]bool, gateways []types.NamespacedName) {
	for _, gateway := range gateways {
		all[gateway] = true
	}
}

// Shared returns the Gateway's hostnames that other Gateways also serve, and these
// Gateways. Callers do not change it.
func (h *Hostnames) Shared(gateway types.NamespacedName) Shared {
	if known, ok := h.shared[gateway]; ok {
		return known
	}
	s := Shared{Known: true}
	for _, hostname := range h.served[gateway] {
		if len(h.gateways[hostname]) < 2 {
			continue
		}
		if s.By == nil {
			s.By = map[string][]types.NamespacedName{}
		}
		s.By[hostname] = without(h.gateways[hostname], gateway)
	}
	if len(h.served[gateway]) > 0 {
		h.shared[gateway] = s
	}
	return s
}

// Sharing returns, sorted, the Gateways that share a hostname with another
// Gateway.
func (h *Hostnames) Sharing() []types.NamespacedName {
	sharing := map[types.NamespacedName]bool{}
	for _, servers := range h.gateways {
		if len(servers) > 1 {
			addAll(sharing, servers)
		}
	}
	return slices.SortedFunc(maps.Keys(sharing), compareByName)
}

func compareByName(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// Shared are one Gateway's hostnames that other Gateways also serve.
type Shared struct {
	// Known is false until the controller has decided about every Gateway. The
	// condition in the status then remains unchanged.
	Known bool
	// By has the other Gateways by hostname.
	By map[string][]types.NamespacedName
}

// Hostnames returns, sorted, the hostnames that the Gateway's routes serve. It omits the
// empty hostname, which has no DNS record.
func (r *Result) Hostnames() []string {
	return keep(r.kept, func(k *kept) *[]string { return &k.hostnames }, r.servedHostnames)
}

func (r *Result) servedHostnames() []string {
	seen := map[string]bool{}
	for e := range r.entries() {
		if e.Hostname != "" {
			seen[e.Hostname] = true
		}
	}
	return sortedNames(seen)
}

// entries returns the entries in the routing table.
func (r *Result) entries() iter.Seq[*routing.Entry] {
	return func(yield func(*routing.Entry) bool) {
		if r.Table == nil {
			return
		}
		for i := range r.Table.Groups {
			for _, e := range r.Table.Groups[i].Entries {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// ServesGRPC reports whether a GRPCRoute is served.
func (r *Result) ServesGRPC() bool {
	for e := range r.entries() {
		if e.Source.Route.Kind == KindGRPCRoute {
			return true
		}
	}
	return false
}

// setHostnameShared adds the HostnameShared condition if the Gateway shares
// hostnames.
func (c *conditionList) setHostnameShared(s Shared, g *gatewayv1.Gateway) {
	if !s.Known {
		if current := conditions.TypeHostnameShared.Find(g.Status.Conditions); current != nil {
			kept := *current
			kept.ObservedGeneration = c.generation
			c.list = append(c.list, kept)
		}
		return
	}
	if len(s.By) == 0 {
		return
	}
	var parts []string
	for _, hostname := range slices.Sorted(maps.Keys(s.By)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", hostname, describeSharers(s.By[hostname], g.Namespace)))
	}
	c.set(conditions.TypeHostnameShared, true, conditions.ReasonHostnameShared,
		"Other Gateways serve the same hostnames with separate tunnels, but a DNS record can point to only one tunnel: "+strings.Join(parts, "; ")+
			". Remove each hostname from all Gateways but one.")
}

// describeSharers names the Gateways in the namespace and counts the others, because the
// readers of the condition may not know the Gateways of other teams.
func describeSharers(gateways []types.NamespacedName, namespace string) string {
	var own []string
	for _, gateway := range gateways {
		if gateway.Namespace == namespace {
			own = append(own, "Gateway "+gateway.String())
		}
	}
	switch others := len(gateways) - len(own); others {
	case 0:
	case 1:
		own = append(own, "1 Gateway in another namespace")
	default:
		own = append(own, fmt.Sprintf("%d Gateways in other namespaces", others))
	}
	return strings.Join(own, ", ")
}
