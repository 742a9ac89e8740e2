package access

import (
	"cmp"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// situation is an index of the Facts. Decisions and reports begin with it.
type situation struct {
	Facts
	// class has the settings that count, nil if no GatewayClass manages applications.
	class *class
	// parties are the Gateways, the oldest first.
	parties []*party
	// byDigits are the Gateways by their digits in tags.
	byDigits map[string]*party
	// claims are the demands and the bypasses for each hostname, in their precedence.
	claims map[string][]*claim
	// byHand are the hostnames that an entry with audTags protects on a Gateway, and undecided
	// those of Gateways whose demands could not be read.
	byHand, undecided map[string]bool
	// remote are the applications. It is nil until they have been read.
	remote *remote
	// allows are the policies with which a change can be less strict; nil until they have
	// been read.
	allows map[provider.AccessPolicyID]bool
	// immediate ignores all delays.
	immediate bool
}

// class is a GatewayClass of the account.
type class struct {
	Class
	// rival is the older GatewayClass with other settings, whose settings count; "" if
	// there is none.
	rival string
}

// party is a Gateway, as far as the account's applications are concerned.
type party struct {
	Gateway
	// class is nil if the Gateway's GatewayClass is unknown or gone.
	class *class
	// exists is the Gateway's own state. State is Frozen where the GatewayClass manages no
	// applications.
	exists ownership.State
	// digits are those of the Gateway in tags.
	digits string
	// hostnames are the hostnames of the table.
	hostnames map[string]*Hostname
}

// newSituation returns the index of the Facts.
func newSituation(f Facts) *situation {
	return indexFacts(f, false)
}

func indexFacts(f Facts, immediate bool) *situation {
	s := &situation{
		Facts: f, byDigits: map[string]*party{}, claims: map[string][]*claim{}, immediate: immediate,
		byHand: map[string]bool{}, undecided: map[string]bool{},
	}
	classes := s.indexClasses()
	for _, g := range f.Gateways {
		p := s.newParty(g, classes[g.Class])
		s.byDigits[p.digits] = p
		s.parties = append(s.parties, p)
	}
	slices.SortFunc(s.parties, func(a, b *party) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	s.allows = f.Memory.policies.allows()
	for _, p := range s.parties {
		s.indexDemands(p)
	}
	s.remote = s.newRemote()
	s.indexBypasses()
	if s.remote != nil {
		s.remote.attribute(s)
		s.applyLimits()
	}
	return s
}

// newParty returns the Gateway. One that is gone demands nothing.
func (s *situation) newParty(g Gateway, c *class) *party {
	p := &party{Gateway: g, class: c, exists: g.State, digits: gatewayOf(s.Identity, g.Namespace, g.Name)}
	p.State = p.stateIn(s.class)
	if p.State == ownership.Departed || p.State == ownership.Retiring {
		p.Demands, p.Hostnames, p.DemandsUnknown = nil, nil, false
	}
	p.hostnames = make(map[string]*Hostname, len(p.Hostnames))
	for i := range p.Hostnames {
		h := &p.Hostnames[i]
		p.hostnames[h.Name] = h
		if h.ByHand {
			s.byHand[h.Name] = true
		}
		if p.DemandsUnknown {
			s.undecided[h.Name] = true
		}
	}
	return p
}

// indexClasses returns the classes by name, and sets the one whose settings count: the
// oldest one that manages applications.
func (s *situation) indexClasses() map[string]*class {
	classes := map[string]*class{}
	sorted := slices.SortedFunc(slices.Values(s.Classes), func(a, b Class) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range sorted {
		indexed := &class{Class: c}
		classes[c.Name] = indexed
		switch {
		case !c.Settings.AreManaged():
		case s.class == nil:
			s.class = indexed
		case !agree(s.class.Settings, c.Settings):
			indexed.rival = s.class.Name
		}
	}
	return classes
}

// agree reports whether two GatewayClasses can share the account.
func agree(a, b settings.Applications) bool {
	return a.TeamName == b.TeamName && a.MaxApplications == b.MaxApplications && equalReference(a.APIToken, b.APIToken)
}

func equalReference(a, b *v1alpha1.SecretKeyReference) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// stateIn returns what may happen to the Gateway's applications. Where the Gateway's
// GatewayClass manages none, nothing changes.
func (p *party) stateIn(counts *class) ownership.State {
	gone := p.Class == "" && (p.State == ownership.Departed || p.State == ownership.Retiring)
	switch {
	case p.State == ownership.Unknown:
		return ownership.Unknown
	case counts == nil, !gone && !p.isManaged():
		return ownership.Frozen
	}
	return p.State
}

// isManaged reports whether the Gateway's GatewayClass manages applications, with the
// settings that count.
func (p *party) isManaged() bool {
	return p.class != nil && p.class.Settings.AreManaged() && p.class.rival == ""
}

// isIdentified reports whether tags can be verified.
func (s *situation) isIdentified() bool { return len(s.Identity.Key) > 0 }

// mayManage reports whether the controller may change applications when it has read them.
func (s *situation) mayManage() bool { return s.class != nil && s.isIdentified() }

// manages reports whether the controller changes applications now.
func (s *situation) manages() bool { return s.mayManage() && s.remote != nil }

// delay is how long an application remains after its demand has gone.
func (s *situation) delay() time.Duration { return s.class.Settings.OpeningDelay }

// allows returns the policies that let requests pass with a token; nil before they were
// read.
func (m policiesMemory) allows() map[provider.AccessPolicyID]bool {
	if !m.read.IsSet() {
		return nil
	}
	allows := make(map[provider.AccessPolicyID]bool, len(m.decisions))
	for id, decision := range m.decisions {
		if decision == "allow" || decision == "non_identity" {
			allows[id] = true
		}
	}
	return allows
}
