package access

import (
	"cmp"
	"crypto/hmac"
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// remote are the account's applications, as last read and written.
type remote struct {
	// owned are the installation's applications, sorted by ID.
	owned []*owned
	// byDomain are the same by what they cover, and byName by the hostname to which they
	// are attributed: at most one for each.
	byDomain map[string][]*owned
	byName   map[string]*owned
	// external are the other applications.
	external *coverage
	byID     map[provider.ApplicationID]*provider.Application
}

// owned is an application of the installation.
type owned struct {
	*provider.Application
	// name is the hostname to which the application is attributed, or "" if another one is.
	name string
	// gateway and decider are the digits of its tag, and holder is the Gateway with these
	// digits; nil if it is gone with its Tunnel.
	gateway, decider string
	holder           *party
	// revoke and contested report whether the application has these marks.
	revoke, contested bool
}

// newRemote returns the applications, or nil if they have not been read or if tags cannot be
// verified.
func (s *situation) newRemote() *remote {
	all := s.Memory.applications.all
	if all == nil || !s.isIdentified() {
		return nil
	}
	r := &remote{byDomain: map[string][]*owned{}, byName: map[string]*owned{}, byID: all}
	prefix := tagPrefix + installationOf(s.Identity)
	var external []*provider.Application
	for _, id := range slices.Sorted(maps.Keys(all)) {
		a := all[id]
		tag := ownTag(a.Tags, prefix)
		if tag == "" {
			external = append(external, a)
			continue
		}
		code := tag[len(prefix):]
		o := &owned{
			Application: a, gateway: code[:gatewayDigits], decider: code[gatewayDigits:],
			revoke: slices.Contains(a.Tags, revokeTag), contested: slices.Contains(a.Tags, contestedTag),
		}
		o.holder = s.byDigits[o.gateway]
		r.owned = append(r.owned, o)
		for _, domain := range a.Domains {
			r.byDomain[domain] = append(r.byDomain[domain], o)
		}
	}
	r.external = newCoverage(external)
	return r
}

// strange returns the applications that issue tokens and have the tag of an installation with
// another key: of this one before its key was lost, or of another one.
func (r *remote) strange() []*provider.Application {
	var strange []*provider.Application
	for _, a := range r.byID {
		isOwned := slices.ContainsFunc(r.owned, func(o *owned) bool { return o.ID == a.ID })
		if !isOwned && !a.Bypass && slices.ContainsFunc(a.Tags, isOwnershipTag) {
			strange = append(strange, a)
		}
	}
	return strange
}

// ownTag returns the tag that makes the application this installation's, or "". The prefix
// has the digits of the installation. With several such tags, the first one by name counts.
func ownTag(tags []string, prefix string) string {
	found := ""
	for _, tag := range tags {
		if isOwnershipTag(tag) && hmac.Equal([]byte(tag[:len(prefix)]), []byte(prefix)) && (found == "" || tag < found) {
			found = tag
		}
	}
	return found
}

// attribute finds the hostname of each application of the installation. An external change can
// have edited what an application covers; its name then tells for which hostname it was made.
func (r *remote) attribute(s *situation) {
	for _, o := range r.owned {
		o.name = o.bestName(s)
		if o.name == "" {
			continue
		}
		if other := r.byName[o.name]; other != nil {
			if !o.isBetter(other, s) {
				o.name = ""
				continue
			}
			other.name = ""
		}
		r.byName[o.name] = o
	}
}

// bestName returns the hostname that the Gateway in the tag wants, that another one wants,
// or the first one that the application covers.
func (o *owned) bestName(s *situation) string {
	names := append(slices.Sorted(slices.Values(o.Domains)), o.Name)
	for _, name := range names {
		if o.holder != nil && s.claimOf(name, o.holder) != nil {
			return name
		}
	}
	for _, name := range names {
		if len(s.claims[name]) > 0 {
			return name
		}
	}
	return o.covers()
}

// covers returns the first hostname that the application covers.
func (o *owned) covers() string {
	if len(o.Domains) == 0 {
		return o.Name
	}
	return hostOf(slices.Min(o.Domains))
}

// isBetter reports whether the application should have the hostname instead of the other one.
func (o *owned) isBetter(other *owned, s *situation) bool {
	rank := func(a *owned) int {
		covers, held := slices.Contains(a.Domains, o.name), a.holder != nil && s.claimOf(o.name, a.holder) != nil
		return 2*count(covers) + count(held)
	}
	return cmp.Or(cmp.Compare(rank(o), rank(other)), -cmp.Compare(o.ID, other.ID)) > 0
}

// hasBypass reports whether the installation has an application for the hostname that lets
// every request pass.
func (r *remote) hasBypass(name string) bool {
	return slices.ContainsFunc(r.byDomain[name], func(o *owned) bool { return o.Bypass })
}

// key identifies the application in traces.
func (o *owned) key() string {
	if o.name == "" {
		return "#" + string(o.ID)
	}
	return o.name
}

// names returns the hostnames about which there is something to decide: those with claims
// and those with an application of the installation, sorted.
func (s *situation) names() []string {
	names := slices.Collect(maps.Keys(s.claims))
	for name := range s.remote.byName {
		if len(s.claims[name]) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hasExternal reports whether an external application is for exactly this hostname.
func (s *situation) hasExternal(name string) bool {
	return s.remote != nil && s.remote.external.exact(name) != nil
}

// covering returns the external application that leaves no room for one of the claim, or nil. Where an entry of the GatewayClass names exactly this hostname, only an
// application for the same hostname does.
func (s *situation) covering(c *claim) *provider.Application {
	switch {
	case s.remote == nil:
		return nil
	case c.demand.NamedByClass:
		return s.remote.external.exact(c.demand.Hostname)
	}
	return s.remote.external.covering(c.demand.Hostname)
}

// externalMessage explains that an external application covers the hostname.
func externalMessage(a *provider.Application, name string) string {
	if slices.Contains(a.Domains, name) {
		return "an application of Cloudflare Access that this controller does not manage protects the hostname. " +
			"Use its AUD tag in an entry, adopt it with `kubectl tunnel-gateway access adopt " + name + "`, or remove it."
	}
	return "an application of Cloudflare Access for " + strings.Join(matching(a, name), ", ") + ", which this controller does not manage, covers the hostname. " +
		"Use its AUD tag in an entry, remove it, or ask the platform team to name the hostname in an entry of the GatewayClass."
}

// matching returns what of the application covers the hostname.
func matching(a *provider.Application, name string) []string {
	var all []string
	labels := strings.Split(name, ".")
	for _, domain := range a.Domains {
		if host := hostOf(domain); host == name || (pattern{host, strings.Split(host, ".")}).covers(labels) {
			all = append(all, domain)
		}
	}
	return all
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
