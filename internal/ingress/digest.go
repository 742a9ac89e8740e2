package ingress

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
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

// Digest returns the digest of the configuration for a Gateway in the namespace. It returns nil
// for a nil Rendering.
func (r *Rendering) Digest(namespace string) *Digest {
	switch {
	case r == nil:
		return nil
	case r.plane == v1alpha1.DataPlaneEnvoy:
		return newEnvoyDigest(r.table, namespace)
	}
	return newDigest(r.table, r.rules, namespace)
}

// newEnvoyDigest returns the digest for a table that Envoy serves. Only hostnames about which the
// Access settings decide can change the configuration.
func newEnvoyDigest(t *routing.Table, namespace string) *Digest {
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

// newDigest returns the digest for a table with these ingress rules.
func newDigest(t *routing.Table, rules []Rule, namespace string) *Digest {
	d := &Digest{rules: make([]part, 0, len(rules)+1), objects: make([]part, 0, len(rules)+len(t.Groups)+1)}
	hashes := make(map[*routing.Entry]uint64, len(rules))
	for i := range rules {
		rule := &rules[i]
		hash := hashOfRule(rule)
		d.rules = append(d.rules, part{cmp.Or(rule.Namespace, namespace), hash})
		if rule.isOwn() {
			hashes[rule.Entry] = hash
		}
	}
	tunnel := append(accessParts(t.Access, namespace), part{namespace, hashOf(t.OriginRequest)})
	d.rules, d.objects = append(d.rules, tunnel...), append(d.objects, tunnel...)
	withoutAccess := newBuilder(&routing.Table{ClusterDomain: t.ClusterDomain, OriginRequest: t.OriginRequest}, 0, 0)
	for i := range t.Groups {
		g := &t.Groups[i]
		d.objects = append(d.objects, part{g.Namespace, hashOfTexts(g.Hostname)})
		for _, e := range g.Entries {
			hash, ok := hashes[e]
			if !ok {
				hash = hashOfRule(new(withoutAccess.entryRule(e, e.Hostname)))
			}
			d.objects = append(d.objects, part{e.Source.Route.Namespace, hashOfObject(e.Source.Route, hash)})
		}
	}
	return d
}

// isOwn reports whether the rule contains nothing but its entry: Access does not come from routes.
func (r *Rule) isOwn() bool {
	return r.Entry != nil && r.Hostname == r.Entry.Hostname && (r.OriginRequest == nil || r.OriginRequest.Access == nil)
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

// seed is for all hashes, which never leave the process.
var seed = maphash.MakeSeed()

// hashOfRule returns the hash of a rule. Encoding thousands of rules as JSON would take longer
// than the decision about them.
func hashOfRule(r *Rule) uint64 {
	if r.OriginRequest == nil {
		return hashOfTexts(r.Hostname, r.Path, r.Service)
	}
	encoded, _ := json.Marshal(r.OriginRequest) // strings, integers and booleans always marshal
	return hashOfTexts(r.Hostname, r.Path, r.Service, string(encoded))
}

// hashOfObject returns the hash of a route with one of its rules.
func hashOfObject(r *routing.Route, rule uint64) uint64 {
	return maphash.Comparable(seed, struct {
		kind, name string
		created    int64
		rule       uint64
	}{r.Kind, r.Name, r.Created, rule})
}

func hashOfTexts(texts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range texts {
		_, _ = h.WriteString(text) // never fails
		_ = h.WriteByte(0)         // no text contains it
	}
	return h.Sum64()
}

func hashOf(value any) uint64 {
	encoded, _ := json.Marshal(value) // strings, integers and booleans always marshal
	return maphash.Bytes(seed, encoded)
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
	before, after = withoutSame(before, after)
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

// withoutSame returns the parts without those at both ends that are the same.
func withoutSame(a, b []part) (restOfA, restOfB []part) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// byNamespace returns the hashes for each namespace.
func byNamespace(parts []part) map[string][]uint64 {
	hashes := map[string][]uint64{}
	for _, p := range parts {
		hashes[p.namespace] = append(hashes[p.namespace], p.hash)
	}
	return hashes
}
