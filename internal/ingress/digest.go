package ingress

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Digest identifies a configuration and the objects that it comes from, by namespace. It
// is much smaller than the configuration.
type Digest struct {
	// rules are the rules in the configuration in order, and the tunnel settings.
	rules []part
	// objects are the table entries, even if no request can reach them, with their
	// routes, and the groups.
	objects []part
}

// part is one hash with the namespace that accounts for it.
type part struct {
	// namespace contains the route behind a rule, the listener behind a 404 rule, or the
	// Gateway.
	namespace string
	hash      uint64
}

// NewEnvoyDigest returns the digest for the configuration with which Envoy serves the
// table of a Gateway in the namespace. It returns nil for a nil table. Only hostnames
// about which the Access settings decide can change the configuration.
func NewEnvoyDigest(t *routing.Table, namespace string) *Digest {
	if t == nil {
		return nil
	}
	d := &Digest{objects: accessParts(t.Access, namespace)}
	for _, rule := range envoyRules(t) {
		account := namespace
		if access := t.Access[rule.Hostname]; access != nil && access.Namespace != "" {
			account = access.Namespace
		}
		d.rules = append(d.rules, part{account, hashOf(rule)})
	}
	add := func(namespace, hostname string) {
		if _, decided := routing.MostSpecific(t.Access, hostname); decided {
			d.objects = append(d.objects, part{namespace, hashOf(hostname)})
		}
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		add(g.Namespace, g.Hostname)
		for _, e := range g.Entries {
			add(e.Source.Route.Namespace, e.Hostname)
		}
	}
	return d
}

// NewDigest returns the digest for the ingress rules that serve the table of a Gateway in
// the namespace. It returns nil for a nil table.
func NewDigest(t *routing.Table, namespace string) *Digest {
	if t == nil {
		return nil
	}
	d := &Digest{}
	for _, rule := range Rules(t) {
		if rule.Namespace == "" {
			rule.Namespace = namespace
		}
		d.rules = append(d.rules, part{rule.Namespace, hashOfRule(&rule)})
	}
	tunnel := append(accessParts(t.Access, namespace), part{namespace, hashOf(t.OriginRequest)})
	d.rules, d.objects = append(d.rules, tunnel...), append(d.objects, tunnel...)
	// Access does not come from the routes, so it is no part of the entries.
	b := newBuilder(&routing.Table{ClusterDomain: t.ClusterDomain, OriginRequest: t.OriginRequest}, 0, 0)
	for i := range t.Groups {
		g := &t.Groups[i]
		d.objects = append(d.objects, part{g.Namespace, hashOf(g.Hostname)})
		for _, e := range g.Entries {
			rule, route := b.entryRule(e, e.Hostname), e.Source.Route
			d.objects = append(d.objects, part{rule.Namespace, hashOfRule(&rule, route.Kind, route.Name, strconv.FormatInt(route.Created, 10))})
		}
	}
	return d
}

// accessParts returns one part for the requirements of each namespace that accounts for
// them: the given one for those of the settings.
func accessParts(access routing.Access, namespace string) []part {
	accounts := map[string]routing.Access{namespace: {}}
	for hostname, requirement := range access {
		account := namespace
		if requirement != nil {
			account = cmp.Or(requirement.Namespace, namespace)
		}
		if accounts[account] == nil {
			accounts[account] = routing.Access{}
		}
		accounts[account][hostname] = requirement
	}
	var parts []part
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		parts = append(parts, part{account, hashOf(accounts[account])})
	}
	return parts
}

// hashOfRule returns the hash of a rule and the texts. Encoding thousands of rules as JSON
// would take longer than the decision about them.
func hashOfRule(r *Rule, texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range append(texts, r.Hostname, r.Path, r.Service) {
		_, _ = io.WriteString(h, text) // never fails
		_, _ = h.Write([]byte{0})      // no text contains it
	}
	if r.OriginRequest != nil {
		encoded, _ := json.Marshal(r.OriginRequest) // strings, integers and booleans always marshal
		_, _ = h.Write(encoded)
	}
	return h.Sum64()
}

func hashOf(value any) uint64 {
	encoded, _ := json.Marshal(value) // strings, integers and booleans always marshal
	h := fnv.New64a()
	_, _ = h.Write(encoded) // never fails
	return h.Sum64()
}

// ChangedNamespaces returns the namespaces whose objects account for the differences
// between the rules in d and next, in order. A namespace is not listed if its rules
// differ only because an object elsewhere took or released a hostname or path.
func (d *Digest) ChangedNamespaces(next *Digest) []string {
	objects := changedParts(d.objects, next.objects)
	rules := changedParts(d.rules, next.rules)
	isExplained := func(namespace string) bool { return slices.Contains(objects, namespace) }
	explained := slices.DeleteFunc(slices.Clone(rules), func(namespace string) bool { return !isExplained(namespace) })
	switch {
	case len(objects) == 0:
		return rules
	case len(explained) == 0 || len(explained) < len(rules):
		return objects // an object in one namespace has changed another namespace's rules
	default:
		return explained
	}
}

// changedParts returns the namespaces whose parts differ, in order.
func changedParts(before, after []part) []string {
	old, current := byNamespace(before), byNamespace(after)
	var changed []string
	for namespace, hashes := range old {
		if !slices.Equal(hashes, current[namespace]) {
			changed = append(changed, namespace)
		}
	}
	for namespace := range current {
		if _, existed := old[namespace]; !existed {
			changed = append(changed, namespace)
		}
	}
	slices.Sort(changed)
	return changed
}

// byNamespace returns the hashes for each namespace.
func byNamespace(parts []part) map[string][]uint64 {
	hashes := map[string][]uint64{}
	for _, p := range parts {
		hashes[p.namespace] = append(hashes[p.namespace], p.hash)
	}
	return hashes
}
