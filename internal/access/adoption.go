package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// maxAdoptionAge is how old a request to adopt an application can be. An older one is
// refused, because the administrator no longer expects it.
const maxAdoptionAge = time.Hour

// concludeAdoptions refuses the requests that cannot be fulfilled with any applications.
func (d *decider) concludeAdoptions() (Step, bool) {
	var outcomes []AdoptionOutcome
	for _, request := range d.Adoptions {
		expires := maxAdoptionAge - d.Clock.Sub(request.Requested.Time)
		if expires < 0 {
			outcomes = append(outcomes, refuse(request, "The request is older than an hour. Repeat it."))
		} else if problem := d.adoptionProblem(request); problem != "" {
			outcomes = append(outcomes, refuse(request, problem))
		} else {
			d.wakeAt(d.Uptime + expires + time.Second)
		}
	}
	return Step{Action: ConcludeAdoptions, Adoptions: outcomes}, len(outcomes) > 0
}

func refuse(request Adoption, message string) AdoptionOutcome {
	return AdoptionOutcome{Adoption: request, Result: v1alpha1.AdoptionRefused, Message: message}
}

// adoptionProblem returns why the request cannot be fulfilled, apart from the applications,
// or "". It returns "" while a fact is not known yet.
func (s *situation) adoptionProblem(request Adoption) string {
	p := s.partyOf(request)
	switch {
	case s.class == nil:
		return "No GatewayClass of the account manages applications. Set spec.access.applications to Managed."
	case p == nil && s.GatewaysKnown:
		return "The Tunnel has no Gateway."
	case p == nil || p.State == ownership.Unknown:
		return ""
	case !p.isManaged():
		return "The GatewayClass of the Gateway does not manage applications, or its settings conflict with an older GatewayClass's settings."
	case p.State != ownership.Accepted:
		return "The application cannot be adopted while the Gateway is not accepted or paused, or its Tunnel is blocked."
	}
	c := s.claimOf(request.Hostname, p)
	switch {
	case c == nil || c.bypass:
		return "Gateway " + p.String() + " does not demand an application for the hostname. Demand protection first."
	case c.problem != nil:
		return capitalize(c.problem.Message)
	case s.winner(request.Hostname) != c:
		return capitalize(overridden)
	}
	return ""
}

func (s *situation) partyOf(request Adoption) *party {
	i := slices.IndexFunc(s.parties, func(p *party) bool { return p.NamespacedName == request.Gateway })
	if i < 0 {
		return nil
	}
	return s.parties[i]
}

// collectAdoptions returns the updates that fulfill the requests, and adds the outcomes of
// requests that need none. A request needs a list that was sent within a minute.
func (a *agenda) collectAdoptions() []*change {
	var changes []*change
	seen := map[string]bool{}
	for _, request := range a.Adoptions {
		p := a.partyOf(request)
		if !a.GatewaysKnown || p == nil || p.State != ownership.Accepted || seen[request.Hostname] || a.adoptionProblem(request) != "" {
			continue
		}
		seen[request.Hostname] = true
		if a.Uptime-a.Memory.applications.read.at > creationReadAge {
			a.unread = true
			continue
		}
		c, outcome := a.adoption(request, a.claimOf(request.Hostname, p))
		switch {
		case outcome != nil:
			a.outcomes = append(a.outcomes, *outcome)
		case a.isDue(c, decision{name: request.Hostname}):
			changes = append(changes, c)
		}
	}
	return changes
}

// adoption returns the update that fulfills the request, or the outcome without one.
func (s *situation) adoption(request Adoption, wants *claim) (*change, *AdoptionOutcome) {
	last := s.remote.byID[provider.ApplicationID(request.ID)]
	if problem := s.adoptable(request, last); problem != "" {
		outcome := refuse(request, problem)
		return nil, &outcome
	}
	if o := s.remote.byName[request.Hostname]; o != nil && o.ID == last.ID {
		return nil, &AdoptionOutcome{Adoption: request, Result: v1alpha1.RecordAdopted, Message: s.undo(request, o)}
	}
	o := &owned{Application: last}
	c := s.newChange(Update, decision{name: request.Hostname, target: wants})
	c.Last, c.rank, c.adopts = *last, rankFirst, true
	c.Spec = wants.spec
	c.Spec.Name = last.Name
	c.revokes = s.isStricter(o, wants)
	marks := marked(nil, c.revokes || slices.Contains(last.Tags, revokeTag), revokeTag)
	c.Spec.Tags = withTags(last.Tags, s.tag(wants), marks...)
	return c, nil
}

// adoptable returns why the application cannot be adopted, or "".
func (s *situation) adoptable(request Adoption, last *provider.Application) string {
	switch {
	case last == nil:
		return "The application no longer exists. Read it again, and repeat the request."
	case slices.Equal(last.Domains, []string{request.Hostname}):
	case !slices.Contains(last.Domains, request.Hostname):
		return "The application does not cover the hostname. It covers " + strings.Join(last.Domains, ", ") + "."
	default:
		others := slices.DeleteFunc(slices.Clone(last.Domains), func(domain string) bool { return domain == request.Hostname })
		return "The application also protects " + strings.Join(others, ", ") + ". Give these an application of their own, remove them from this one, and repeat the request."
	}
	o := s.remote.byName[request.Hostname]
	switch {
	case last.Type != "self_hosted":
		return "The application has the type " + last.Type + ". Only self-hosted applications can be adopted."
	case o != nil && o.ID != last.ID:
		return "The controller already manages another application for the hostname."
	case s.Memory.refused[request.Hostname].final:
		return capitalize(s.Memory.refused[request.Hostname].message)
	}
	return ""
}

// undo returns what the application was before its adoption, and how to undo it.
func (s *situation) undo(request Adoption, o *owned) string {
	message := "The controller manages the application. To undo the adoption, remove the tag " + ownTag(o.Tags, tagPrefix) + " from the application in the Cloudflare dashboard."
	before, ok := s.Memory.adopted[provider.ApplicationID(request.ID)]
	if !ok {
		return message
	}
	return message + " Before, it had " + describePolicies(&before) + " and the session duration " + shortDuration(before.SessionDuration) + "."
}

// describePolicies returns the policies of an application: the IDs of the reusable policies, and
// how many policies exist only in the application.
func describePolicies(a *provider.Application) string {
	var parts []string
	if len(a.Policies) > 0 {
		ids := make([]string, len(a.Policies))
		for i, id := range a.Policies {
			ids[i] = string(id)
		}
		parts = append(parts, "the policies "+strings.Join(ids, ", "))
	}
	if a.OtherPolicies > 0 {
		parts = append(parts, fmt.Sprintf("policies of its own (%d), which no longer exist,", a.OtherPolicies))
	}
	if len(parts) == 0 {
		return "no policies"
	}
	return strings.Join(parts, ", and ")
}

// shortDuration returns the duration in hours and minutes, as Cloudflare shows it.
func shortDuration(d time.Duration) string {
	text := d.Round(time.Minute).String()
	if hours, ok := strings.CutSuffix(text, "h0m0s"); ok {
		return hours + "h"
	}
	return strings.TrimSuffix(text, "0s")
}

// capitalize returns the text with an initial capital.
func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
