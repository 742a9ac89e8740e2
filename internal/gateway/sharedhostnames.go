package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TypeHostnameShared is the type of a Gateway's condition that is there, and
// true, while another Gateway serves one of its hostnames: DNS can lead to one
// of the two tunnels only.
const TypeHostnameShared = "tunnelgateway.dev/HostnameShared"

// Hostnames are the hostnames that every Gateway serves. It is the one thing
// that is decided about several Gateways together.
type Hostnames struct {
	served   map[types.NamespacedName][]string
	gateways map[string]map[types.NamespacedName]bool
}

// NewHostnames returns an index without Gateways.
func NewHostnames() *Hostnames {
	return &Hostnames{served: map[types.NamespacedName][]string{}, gateways: map[string]map[types.NamespacedName]bool{}}
}

// Set says what the Gateway serves now, sorted, or nothing when it is gone. It
// returns the other Gateways whose [Hostnames.Shared] is another one now, sorted.
func (h *Hostnames) Set(gateway types.NamespacedName, hostnames []string) []types.NamespacedName {
	before := h.served[gateway]
	affected := map[types.NamespacedName]bool{}
	for _, hostname := range before {
		if _, still := slices.BinarySearch(hostnames, hostname); still {
			continue
		}
		delete(h.gateways[hostname], gateway)
		maps.Copy(affected, h.gateways[hostname])
		if len(h.gateways[hostname]) == 0 {
			delete(h.gateways, hostname)
		}
	}
	for _, hostname := range hostnames {
		if h.gateways[hostname] == nil {
			h.gateways[hostname] = map[types.NamespacedName]bool{}
		}
		if !h.gateways[hostname][gateway] {
			maps.Copy(affected, h.gateways[hostname])
			h.gateways[hostname][gateway] = true
		}
	}
	h.served[gateway] = hostnames
	if len(hostnames) == 0 {
		delete(h.served, gateway)
	}
	return slices.SortedFunc(maps.Keys(affected), compareByName)
}

// Shared returns the hostnames of the Gateway that others serve too, and by
// whom each is served.
func (h *Hostnames) Shared(gateway types.NamespacedName) Shared {
	s := Shared{Known: true}
	for _, hostname := range h.served[gateway] {
		if len(h.gateways[hostname]) < 2 {
			continue
		}
		others := maps.Clone(h.gateways[hostname])
		delete(others, gateway)
		if s.By == nil {
			s.By = map[string][]types.NamespacedName{}
		}
		s.By[hostname] = slices.SortedFunc(maps.Keys(others), compareByName)
	}
	return s
}

// Sharing returns the Gateways that share a hostname with another one, sorted.
func (h *Hostnames) Sharing() []types.NamespacedName {
	sharing := map[types.NamespacedName]bool{}
	for _, servers := range h.gateways {
		if len(servers) > 1 {
			maps.Copy(sharing, servers)
		}
	}
	return slices.SortedFunc(maps.Keys(sharing), compareByName)
}

func compareByName(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// Shared are the hostnames of one Gateway that other Gateways serve too.
type Shared struct {
	// Known is false while not every Gateway was looked at: then what was said
	// before stays.
	Known bool
	// By has the other Gateways by the hostname.
	By map[string][]types.NamespacedName
}

// Hostnames returns what the routes of the Gateway serve, sorted. Every
// hostname is left out that DNS cannot have a record for.
func (r *Result) Hostnames() []string {
	seen := map[string]bool{}
	for i := range r.Rules {
		if rule := &r.Rules[i]; rule.Route != nil && rule.Hostname != "" {
			seen[rule.Hostname] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// ServesGRPC reports whether a GRPCRoute has a rule in the document.
func (r *Result) ServesGRPC() bool {
	return slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.Route != nil && rule.Route.Kind == KindGRPCRoute })
}

// setHostnameShared adds the condition while there is something to say.
func (c *conditions) setHostnameShared(s Shared, current []metav1.Condition) {
	if !s.Known {
		for _, condition := range current {
			if condition.Type == TypeHostnameShared {
				condition.ObservedGeneration = c.generation
				c.list = append(c.list, condition)
			}
		}
		return
	}
	if len(s.By) == 0 {
		return
	}
	var parts []string
	for _, hostname := range slices.Sorted(maps.Keys(s.By)) {
		var names []string
		for _, other := range s.By[hostname] {
			names = append(names, other.String())
		}
		parts = append(parts, fmt.Sprintf("%s (Gateway %s)", hostname, strings.Join(names, ", ")))
	}
	c.set(TypeHostnameShared, true, "HostnameShared",
		"Other Gateways serve the same hostnames by tunnels of their own, and DNS leads to one of them only: "+strings.Join(parts, "; ")+".")
}
