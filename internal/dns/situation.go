package dns

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// situation is an index of the Facts. Decisions and reports begin with it.
type situation struct {
	Facts
	// class has the settings that count, nil if no GatewayClass lists the zone, and id the
	// zone's ID, empty if the zone cannot be used.
	class *class
	id    provider.ZoneID
	// unusable is why the zone cannot be used, as a message, or "".
	unusable string
	// parties are the Gateways, the oldest first.
	parties  []*party
	byTarget map[string]*party
	// claims has the claims of each hostname that is within the zone, the oldest Gateway's
	// first.
	claims map[string][]claim
	view   *view
	// immediate ignores all delays.
	immediate bool
}

// class is a GatewayClass that lists the zone.
type class struct {
	Class
	excluded hostnames.Permission
	// rival is the older GatewayClass with other settings, whose settings count; "" if
	// there is none.
	rival string
}

// party is a Gateway, as far as the zone is concerned.
type party struct {
	Gateway
	// class is nil if the Gateway's GatewayClass does not list the zone, or is unknown.
	class *class
	// target is what its records contain; empty without a tunnel.
	target string
}

// claim is a Gateway that publishes or keeps a hostname.
type claim struct {
	*party
	hostname Hostname
	// permitted reports whether the hostname may have a record.
	permitted bool
	// elsewhere reports whether the hostname belongs to a longer zone that the
	// GatewayClass lists.
	elsewhere bool
}

// newSituation returns the index of the Facts.
func newSituation(f Facts) *situation {
	s := &situation{Facts: f, byTarget: map[string]*party{}, claims: map[string][]claim{}, view: f.Memory.records.view}
	classes := s.indexClasses()
	for _, g := range f.Gateways {
		p := &party{Gateway: g, class: classes[g.Class]}
		if g.Tunnel != "" {
			p.target = g.Tunnel.Hostname()
			s.byTarget[p.target] = p
		}
		p.State = p.stateIn(s.class)
		s.parties = append(s.parties, p)
	}
	slices.SortFunc(s.parties, func(a, b *party) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range s.parties {
		s.indexHostnames(p)
	}
	s.id, s.unusable = s.usableZone()
	return s
}

// indexClasses returns the classes by name, and sets the one whose settings count: the
// oldest.
func (s *situation) indexClasses() map[string]*class {
	classes := map[string]*class{}
	sorted := slices.SortedFunc(slices.Values(s.Classes), func(a, b Class) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range sorted {
		indexed := &class{Class: c, excluded: newExclusion(c.Settings)}
		if s.class == nil {
			s.class = indexed
		} else if !agree(s.class.Settings, c.Settings, s.Zone) {
			indexed.rival = s.class.Name
		}
		classes[c.Name] = indexed
	}
	return classes
}

// agree reports whether two GatewayClasses can share the zone: their settings differ only
// in what they exclude, and in other zones.
func agree(a, b settings.DNS, zone string) bool {
	return zoneID(a, zone) == zoneID(b, zone) && a.Mode == b.Mode && a.DeletionDelay == b.DeletionDelay &&
		a.MaxRecordsPerNamespace == b.MaxRecordsPerNamespace && a.RequiresPermission == b.RequiresPermission &&
		equalReference(a.APIToken, b.APIToken)
}

func equalReference(a, b *v1alpha1.SecretKeyReference) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// zoneID returns the zone's ID in the settings, or "".
func zoneID(s settings.DNS, zone string) provider.ZoneID {
	for _, z := range s.Zones {
		if z.Name == zone {
			return provider.ZoneID(z.ID)
		}
	}
	return ""
}

// stateIn returns what may happen to the Gateway's records in the zone. Where the
// Gateway's GatewayClass does not manage the zone, nothing changes.
func (p *party) stateIn(counts *class) ownership.State {
	gone := p.Class == "" && (p.State == ownership.Departed || p.State == ownership.Retiring)
	switch {
	case p.State == ownership.Unknown || counts == nil:
		return ownership.Unknown
	case !gone && (p.class == nil || p.class.rival != ""), counts.Settings.Mode != v1alpha1.DNSManage:
		return ownership.Frozen
	}
	return p.State
}

// indexHostnames adds the claims of the Gateway.
func (s *situation) indexHostnames(p *party) {
	if p.class == nil || p.class.Settings.Mode == v1alpha1.DNSOff {
		return
	}
	for _, h := range p.Hostnames {
		zone, ok := ZoneOf(p.class.Settings, h.Name)
		if !ok || !InZone(zone, s.Zone) || p.class.excluded.Permits(h.Name) {
			continue
		}
		s.claims[h.Name] = append(s.claims[h.Name], claim{
			party: p, hostname: h, permitted: h.Permitted || !p.class.Settings.RequiresPermission, elsewhere: zone != s.Zone,
		})
	}
}

// usableZone returns the zone's ID, or why the zone cannot be used. Both are empty before
// the zone has been read.
func (s *situation) usableZone() (provider.ZoneID, string) {
	if !s.Memory.zone.read.IsSet() {
		return "", ""
	}
	found := s.Memory.zone.found
	switch {
	case len(found) == 0:
		return "", "the API token for DNS cannot read zone " + s.Zone + ". Add the zone to the Cloudflare account, or give the token access to it."
	case len(found) > 1:
		return "", "the API token for DNS can read several zones named " + s.Zone + ". Set the zone's id in dns.zones."
	case found[0].AccountID != s.Account:
		return "", "zone " + s.Zone + " and the tunnel belong to different Cloudflare accounts. Use a hostname in a zone of the tunnel's account."
	case found[0].Status != "active":
		return "", "zone " + s.Zone + " is not active. Complete its setup in the Cloudflare dashboard."
	}
	return found[0].ID, ""
}

// manages reports whether the controller changes records in the zone now.
func (s *situation) manages() bool { return s.mayManage() && s.id != "" && s.view != nil }

// mayManage reports whether the controller changes records in the zone when it has read it.
func (s *situation) mayManage() bool {
	return s.class != nil && s.class.Settings.Mode == v1alpha1.DNSManage && len(s.Options.Key) > 0 && s.unusable == ""
}

// claimOf returns the Gateway's claim of the hostname, if a record may exist for it.
func (s *situation) claimOf(name string, p *party) (claim, bool) {
	for _, c := range s.claims[name] {
		if c.party == p && c.permitted {
			return c, true
		}
	}
	return claim{}, false
}

// wanted reports whether a Gateway wants the hostname, in this zone or in one below it.
func (s *situation) wanted(name string) bool {
	return slices.ContainsFunc(s.claims[name], func(c claim) bool { return c.permitted })
}

// names returns the names about which there is something to decide: those with claims and
// those with a valid mark, sorted.
func (s *situation) names() []string {
	names := make([]string, 0, len(s.claims)+s.view.marked)
	names = slices.AppendSeq(names, maps.Keys(s.claims))
	for name, set := range s.view.sets {
		if set.marked && len(s.claims[name]) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// delay is how long a record remains after its hostname is no longer used.
func (s *situation) delay() time.Duration { return s.class.Settings.DeletionDelay }
