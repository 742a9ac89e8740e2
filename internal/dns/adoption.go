package dns

import (
	"fmt"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// maxAdoptionAge is how old a request to adopt a record can be. An older one is refused,
// because the administrator no longer expects it.
const maxAdoptionAge = time.Hour

// concludeAdoptions refuses the requests that cannot be fulfilled with any records.
func (d *decider) concludeAdoptions() (Step, bool) {
	var outcomes []AdoptionOutcome
	for _, request := range d.Adoptions {
		if request.Zone != d.Zone {
			continue
		}
		expires := maxAdoptionAge - d.Clock.Sub(request.Requested.Time)
		if expires < 0 {
			outcomes = append(outcomes, refuse(request, "The request is older than an hour. Repeat it."))
		} else if problem := d.adoptionProblem(request); problem != "" {
			outcomes = append(outcomes, refuse(request, problem))
		} else {
			d.wakeAt(d.Uptime + expires + time.Second)
		}
	}
	return Step{Action: ConcludeAdoptions, ID: d.id, Adoptions: outcomes}, len(outcomes) > 0
}

func refuse(request Adoption, message string) AdoptionOutcome {
	return AdoptionOutcome{Adoption: request, Result: v1alpha1.AdoptionRefused, Message: message}
}

// adoptionProblem returns why the request cannot be fulfilled, apart from the records, or
// "". It returns "" while a fact is not known yet.
func (s *situation) adoptionProblem(request Adoption) string {
	switch {
	case s.class == nil || s.class.Settings.Mode != v1alpha1.DNSManage:
		return "dns.mode for zone " + s.Zone + " is not Manage. Set it to Manage."
	case s.unusable != "":
		return capitalize(s.unusable)
	case !isAddress(request.Type):
		return "Only A, AAAA and CNAME records can be adopted."
	}
	return s.gatewayProblem(request)
}

// gatewayProblem returns why the Gateway cannot adopt the record, or "".
func (s *situation) gatewayProblem(request Adoption) string {
	p := s.partyOf(request)
	switch {
	case p == nil && s.GatewaysKnown:
		return "The Tunnel has no Gateway that uses zone " + s.Zone + "."
	case p == nil || p.State == ownership.Unknown:
		return ""
	case p.class == nil || p.class.rival != "":
		return "The GatewayClass of the Gateway does not list zone " + s.Zone + ", or its settings conflict with an older GatewayClass's settings."
	case p.class.excluded.Permits(request.Name):
		return "The hostname is excluded. Remove it from dns.exclude."
	case p.State != ownership.Accepted:
		return "The record cannot be adopted: " + stateObstacle(p.State) + "."
	}
	return s.claimProblem(request, p)
}

// claimProblem returns why the Gateway cannot have a record for the name, or "".
func (s *situation) claimProblem(request Adoption, p *party) string {
	i := slices.IndexFunc(s.claims[request.Name], func(c claim) bool { return c.party == p })
	if i < 0 {
		return "Gateway " + p.String() + " does not use the hostname: no listener claims it, or no route has it."
	}
	switch c := s.claims[request.Name][i]; {
	case c.elsewhere:
		return "The hostname belongs to another zone in dns.zones."
	case !c.permitted:
		return "The annotation " + hostnames.Annotation + " of namespace " + c.hostname.Namespace + " does not permit the hostname."
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

// collectAdoptions returns the changes that fulfill the requests, and adds the outcomes of
// requests that need no change. A request needs a read that has shown its record just now: the
// records may have changed since the last one.
func (a *agenda) collectAdoptions() []change {
	var changes []change
	seen := map[string]bool{}
	for _, request := range a.Adoptions {
		p := a.partyOf(request)
		if request.Zone != a.Zone || p == nil || p.State != ownership.Accepted || seen[request.Name] || a.adoptionProblem(request) != "" {
			continue
		}
		seen[request.Name] = true
		if !a.isFresh(request.Name) {
			a.unread = append(a.unread, request.Name)
			continue
		}
		c, outcome := a.adoption(request, p)
		if outcome != nil {
			a.outcomes = append(a.outcomes, *outcome)
		} else {
			changes = append(changes, c)
		}
	}
	return changes
}

// adoption returns the change that fulfills the request, or the outcome without one.
func (s *situation) adoption(request Adoption, p *party) (change, *AdoptionOutcome) {
	refused := func(message string) (change, *AdoptionOutcome) {
		outcome := refuse(request, message)
		return change{}, &outcome
	}
	if r, ok := s.refusal(request.Name); ok {
		return refused(capitalize(r.message))
	}
	set := s.view.set(request.Name)
	if set != nil && set.marked {
		if r, _ := set.address(); target(r) == p.target {
			return change{}, &AdoptionOutcome{Adoption: request, Result: v1alpha1.RecordAdopted, Message: s.undo(request, provider.Record{Proxied: true})}
		}
		return refused("The controller already manages the record, which leads to another Gateway.")
	}
	r, problem := set.adoptable(request)
	if problem != "" {
		return refused(problem)
	}
	c := s.changeOf(Adopt, request.Name, p, r)
	held, _ := s.claimOf(request.Name, p)
	c.namespace, c.created = held.hostname.Namespace, held.hostname.Created
	c.adoption = &AdoptionOutcome{Adoption: request, Result: v1alpha1.RecordAdopted, Message: s.undo(request, r)}
	switch {
	case c.replaces() && !held.mayHaveRecord():
		return refused("The record leads elsewhere, and the Gateway serves no route for the hostname yet, or no connector has connected to its tunnel.")
	case s.view.delegated(request.Name, s.Zone):
		return refused("NS records delegate the name to other nameservers.")
	}
	return c, nil
}

// adoptable returns the record that the request is about, or why it cannot be adopted. s
// can be nil.
func (s *recordSet) adoptable(request Adoption) (r provider.Record, problem string) {
	if s == nil {
		return r, "The record no longer exists. Read it again, and repeat the request."
	}
	addresses := 0
	for _, other := range s.records {
		addresses += count(isAddress(other.Type))
		if string(other.ID) == request.ID {
			r = other
		}
	}
	switch {
	case r.ID == "" || r.Type != request.Type || r.Content != request.Content:
		return r, "The record has changed since the request. Read it again, and repeat the request."
	case addresses > 1:
		return r, "The name has several A or AAAA records, and a CNAME record cannot exist beside them. Delete the others first."
	}
	return r, ""
}

// undo returns what the record was before its adoption, and the command that restores it.
func (s *situation) undo(request Adoption, before provider.Record) string {
	proxied := "not proxied"
	if before.Proxied {
		proxied = "proxied"
	}
	url := fmt.Sprintf("https://api.cloudflare.com/client/v4/zones/%s/dns_records", s.id)
	send := `curl -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" -H "Content-Type: application/json"`
	restored := restoredRecord(request, before)
	command := fmt.Sprintf("%s -X PUT %s/%s --data %s", send, url, request.ID, quote(restored))
	if s.Memory.recreate && request.Type != typeCNAME {
		// The record was deleted, and the new one has another ID.
		command = fmt.Sprintf(`ID=$(%s "%s?name=%s&type=CNAME" | jq -r ".result[0].id"); %s -X POST %s/batch --data '{"deletes":[{"id":"'$ID'"}],"posts":['%s']}'`,
			send, url, request.Name, send, url, quote(restored))
	}
	return fmt.Sprintf("The record was of type %s with the content %s, %s. To undo the adoption, add %s to dns.exclude, and then run: %s",
		request.Type, request.Content, proxied, request.Name, command)
}
