package zones

import (
	"slices"
	"time"
)

// Outcome is what a lookup found.
type Outcome string

// Values of [Outcome].
const (
	Found        Outcome = "found"
	NoZone       Outcome = "no zone contains the name"
	NotActive    Outcome = "the zone is not active"
	NotForwarded Outcome = "the other nameservers of the partial zone do not lead to Cloudflare"
	Delegated    Outcome = "NS records delegate the name"
	NoName       Outcome = "no record has the name"
	NoAddress    Outcome = "the name has no A, AAAA or CNAME record"
	Loop         Outcome = "the CNAME records form a loop"
)

// Answer is the answer to a lookup of a hostname.
type Answer struct {
	Outcome Outcome
	// Steps are the names that the lookup followed through CNAME records, beginning with
	// the hostname. A name without an answer is not included.
	Steps []Step
	// Target is the target of the last CNAME record if no zone contains it, for example
	// the name of a tunnel.
	Target string
}

// Step is one name in a lookup.
type Step struct {
	Name    string
	Zone    Zone
	Records []Record // the A, AAAA or CNAME records that answer for the name
}

// Proxied reports whether the nameservers answer with addresses of Cloudflare: "If at least
// one of them is proxied, Cloudflare will treat all A or AAAA records on this name as being
// proxied."
func (s Step) Proxied() bool {
	return slices.ContainsFunc(s.Records, func(r Record) bool { return r.Proxied })
}

// alias returns the target of the name's CNAME record, and whether it has one. The
// nameservers can see a CNAME beside other records while a batch propagates.
func (s Step) alias() (target string, ok bool) {
	i := slices.IndexFunc(s.Records, func(r Record) bool { return r.Type == "CNAME" })
	if i < 0 {
		return "", false
	}
	return s.Records[i].Content, true
}

// maxSteps is the longest chain of CNAME records. Resolvers have similar limits.
const maxSteps = 16

// Lookup looks a hostname up, as a resolver without a cache does. It follows CNAME records,
// also those at an apex, which Cloudflare flattens, and proxied ones, of which only
// Cloudflare sees the target.
func (d *Database) Lookup(name string) Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := Answer{}
	for name = normalize(name); len(answer.Steps) < maxSteps; {
		step, outcome := d.lookup(name)
		if outcome == NoZone && len(answer.Steps) > 0 {
			answer.Outcome, answer.Target = Found, name
			return answer
		}
		if outcome != Found {
			answer.Outcome = outcome
			return answer
		}
		answer.Steps = append(answer.Steps, step)
		target, ok := step.alias()
		if !ok {
			answer.Outcome = Found
			return answer
		}
		name = target
	}
	answer.Outcome = Loop
	return answer
}

// lookup looks one name up.
func (d *Database) lookup(name string) (Step, Outcome) {
	z := d.zoneOf(name)
	switch {
	case z == nil:
		return Step{}, NoZone
	case z.Status != Active:
		return Step{}, NotActive
	case z.Type == Partial && !slices.Contains(z.Forwarded, name):
		return Step{}, NotForwarded
	}
	z.settle(time.Now())
	if z.isDelegated(name) {
		return Step{}, Delegated
	}
	all := z.answer(name)
	if len(all) == 0 {
		return Step{}, NoName
	}
	step := Step{Name: name, Zone: z.Zone}
	for _, r := range all {
		if r.IsAddress() {
			step.Records = append(step.Records, r)
		}
	}
	if len(step.Records) == 0 {
		return Step{}, NoAddress
	}
	return step, Found
}

// zoneOf returns the zone whose nameservers the public DNS asks for the name: the active one
// with the longest name. An active child zone takes its names from its parent, even without
// NS records in the parent: Cloudflare activates a child zone only once they exist. Without
// an active zone, zoneOf returns any zone that contains the name, or nil.
func (d *Database) zoneOf(name string) *zone {
	var best *zone
	for _, z := range d.zones {
		if !z.contains(name) {
			continue
		}
		better := best == nil || z.Status == Active && best.Status != Active ||
			z.Status == best.Status && len(z.Name) > len(best.Name)
		if better {
			best = z
		}
	}
	return best
}

// isDelegated reports whether the name, or a name between it and the apex, has NS records.
// NS records at the apex are the zone's own. A resolver that knows the delegation asks the
// other nameservers. What Cloudflare's standard nameservers answer if they are asked for a
// record at or below the delegation is uncertain.
func (z *zone) isDelegated(name string) bool {
	for n := name; n != z.Name; n = parent(n) {
		if slices.ContainsFunc(z.served[n], func(r Record) bool { return r.Type == "NS" }) {
			return true
		}
	}
	return false
}

// answer returns the records of every type that answer for the name: its own, or those of
// the closest wildcard. "Wildcards will be applied for multiple levels, but a specific record
// on any equal or lower level will terminate anything on or below this specific record."
//
// Unlike in RFC 4592, a name that only has records below it, an empty non-terminal, does not
// end a wildcard. The documentation names this as a difference between Cloudflare's standard
// nameservers and the advanced ones, which follow the RFC.
func (z *zone) answer(name string) []Record {
	if own := z.served[name]; len(own) > 0 {
		return own
	}
	for n := name; n != z.Name; n = parent(n) {
		if len(z.served[n]) > 0 {
			return nil // this record ends all wildcards above it
		}
		if wildcard := z.served["*."+parent(n)]; len(wildcard) > 0 {
			return wildcard
		}
	}
	return nil
}
