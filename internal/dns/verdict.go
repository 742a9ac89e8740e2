package dns

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// verdict returns what the zone's records mean for a hostname that the Gateway wants. The
// first rule that applies counts. docs/guides/dns.md lists them.
func (s *situation) verdict(name string, p *party) Verdict {
	if s.unusable != "" || s.view.delegated(name, s.Zone) {
		return VerdictNoZone
	}
	own := s.view.set(name)
	r, ok := own.address()
	switch {
	case ok && own.marked && target(r) == p.target:
		return VerdictManaged
	case ok && own.marked:
		return VerdictStale
	case ok:
		return s.verdictWithoutMark(own, p)
	case own != nil: // its records of other types end every wildcard
		return VerdictMissing
	}
	return s.underWildcard(name, p)
}

// underWildcard returns the verdict for a hostname without records.
func (s *situation) underWildcard(name string, p *party) Verdict {
	wildcard := s.view.set(s.view.wildcard(name, s.Zone))
	if _, ok := wildcard.address(); !ok {
		return VerdictMissing
	}
	v := s.verdictWithoutMark(wildcard, p)
	if v != VerdictRecordConflict || !wildcard.marked && !p.class.Settings.RequiresPermission {
		return v
	}
	leads, _ := s.view.leads(wildcard, s.Zone)
	if holder := s.byTarget[leads]; holder != nil {
		if _, holds := s.claimOf(name, holder); holds {
			return VerdictHeldByAnotherGateway
		}
	}
	return VerdictMissing
}

// verdictWithoutMark returns the verdict about records with an address, whether or not
// they have a mark: whether they lead to the Gateway's tunnel, directly or through a chain.
func (s *situation) verdictWithoutMark(set *recordSet, p *party) Verdict {
	leads, proxied := s.view.leads(set, s.Zone)
	switch {
	case p.target == "" || leads != p.target:
		return VerdictRecordConflict
	case !proxied:
		return VerdictNotProxied
	}
	return VerdictExternal
}

// leadsTo reports whether the records lead to the Gateway's tunnel, directly or through a
// chain.
func (s *situation) leadsTo(set *recordSet, p *party) bool {
	leads, _ := s.view.leads(set, s.Zone)
	return p.target != "" && leads == p.target
}

// needsRepair reports whether a record is not as the controller writes it.
func needsRepair(r provider.Record) bool { return !r.Proxied || r.TTL != provider.AutomaticTTL }

// unusedVerdict returns the verdict about a record with a valid mark that no Gateway
// wants. It returns false while it is unknown which Gateways exist.
func (s *situation) unusedVerdict(name string) (Verdict, bool) {
	r, _ := s.view.set(name).address()
	holder := s.byTarget[target(r)]
	switch {
	case holder == nil && s.GatewaysKnown:
		return VerdictOrphan, true
	case holder == nil || holder.State == ownership.Unknown:
		return "", false
	}
	return VerdictUnwanted, true
}

// observes reports whether the settings permit reading the zone, but no changes.
func observes(d settings.DNS) bool { return d.Mode == v1alpha1.DNSObserve }
