package zones

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newZone returns a database with the active zone example.com of the account "a", and its ID.
func newZone(o Options) (*Database, string) {
	d := New(o)
	return d, d.Add(Zone{Name: "example.com", Account: "a", Plan: Pro})
}

// fields parses "name type content", with "proxied" at the end for a proxied record.
func fields(text string) Fields {
	words := strings.Fields(text)
	proxied := len(words) == 4 && words[3] == "proxied"
	return Fields{Name: &words[0], Type: &words[1], Content: &words[2], Proxied: &proxied}
}

// create creates records in the zone.
func (d *Database) create(t *testing.T, zone string, records ...string) {
	t.Helper()
	for _, r := range records {
		if _, err := d.Create(zone, fields(r)); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
	}
}

// summary describes an answer: the outcome, unless it is Found, the content of each step's
// records, and the target.
func (a Answer) summary() string {
	parts := []string{}
	for _, step := range a.Steps {
		contents := []string{}
		for _, r := range step.Records {
			contents = append(contents, r.Content)
		}
		parts = append(parts, strings.Join(contents, "+"))
	}
	if a.Outcome != Found {
		parts = append(parts, string(a.Outcome))
	}
	if a.Target != "" {
		parts = append(parts, "outside: "+a.Target)
	}
	return strings.Join(parts, " > ")
}

func TestLookup(t *testing.T) {
	d, zone := newZone(Options{})
	d.create(t, zone,
		"@ CNAME www.example.com", "www A 192.0.2.1", "www A 192.0.2.2", "WWW MX mail.example.net",
		"*.apps CNAME apps.example.net", "text.apps TXT words", "deep.ent.apps A 192.0.2.3", "*.text TXT words",
		"*.one.apps CNAME one.example.net", "sub NS ns1.example.net", "www.sub A 192.0.2.4",
		"a CNAME b.example.com", "b CNAME a.example.com", "missing CNAME none.example.com",
		"literal.*.apps A 192.0.2.5",
	)
	other := d.Add(Zone{Name: "example.net", Account: "a"})
	d.create(t, other, "apps CNAME tunnel.cfargotunnel.com proxied")
	for name, want := range map[string]string{
		"example.com":                 "www.example.com > 192.0.2.1+192.0.2.2",
		"WWW.Example.com.":            "192.0.2.1+192.0.2.2",
		"none.example.com":            "no record has the name",
		"x.apps.example.com":          "apps.example.net > tunnel.cfargotunnel.com > outside: tunnel.cfargotunnel.com",
		"y.x.apps.example.com":        "apps.example.net > tunnel.cfargotunnel.com > outside: tunnel.cfargotunnel.com",
		"apps.example.com":            "no record has the name",
		"text.apps.example.com":       "the name has no A, AAAA or CNAME record",
		"x.text.apps.example.com":     "no record has the name",
		"x.text.example.com":          "the name has no A, AAAA or CNAME record",
		"ent.apps.example.com":        "apps.example.net > tunnel.cfargotunnel.com > outside: tunnel.cfargotunnel.com",
		"x.ent.apps.example.com":      "apps.example.net > tunnel.cfargotunnel.com > outside: tunnel.cfargotunnel.com",
		"x.deep.ent.apps.example.com": "no record has the name",
		"one.apps.example.com":        "apps.example.net > tunnel.cfargotunnel.com > outside: tunnel.cfargotunnel.com",
		"x.one.apps.example.com":      "one.example.net > no record has the name",
		"*.apps.example.com":          "apps.example.net > tunnel.cfargotunnel.com > outside: tunnel.cfargotunnel.com",
		"literal.*.apps.example.com":  "192.0.2.5",
		"literal.x.apps.example.com":  "apps.example.net > tunnel.cfargotunnel.com > outside: tunnel.cfargotunnel.com",
		"sub.example.com":             "NS records delegate the name",
		"www.sub.example.com":         "NS records delegate the name",
		"a.example.com":               strings.Repeat("b.example.com > a.example.com > ", maxSteps/2) + "the CNAME records form a loop",
		"missing.example.com":         "none.example.com > no record has the name",
		"example.org":                 "no zone contains the name",
		"notexample.com":              "no zone contains the name",
	} {
		if got := d.Lookup(name).summary(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestLookupAsksTheZoneThatThePublicDNSLeadsTo(t *testing.T) {
	d, parent := newZone(Options{})
	child := d.Add(Zone{Name: "child.example.com", Account: "b", Status: Pending})
	copied := d.Add(Zone{Name: "example.com", Account: "b", Status: Pending})
	d.create(t, parent, "www.child A 192.0.2.1", "www A 192.0.2.3")
	d.create(t, child, "www A 192.0.2.2")
	d.create(t, copied, "www A 192.0.2.4")
	partial := d.Add(Zone{Name: "example.net", Type: Partial, Forwarded: []string{"www.example.net"}})
	d.create(t, partial, "www A 192.0.2.5", "other A 192.0.2.6")

	want := func(name, want string) {
		t.Helper()
		if got := d.Lookup(name).summary(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	want("www.child.example.com", "192.0.2.1")
	want("www.example.com", "192.0.2.3")
	want("www.example.net", "192.0.2.5")
	want("other.example.net", string(NotForwarded))
	d.Add(Zone{Name: "example.org", Status: Pending})
	activated := d.Add(Zone{Name: "example.org"})
	d.create(t, activated, "www A 192.0.2.7")
	want("www.example.org", "192.0.2.7")
	d.Update(child, func(z *Zone) { z.Status = Active })
	want("www.child.example.com", "192.0.2.2")
	d.Update(parent, func(z *Zone) { z.Status = Pending })
	want("www.example.com", string(NotActive))
}

// answerByDefinition is an oracle for zone.answer. A name's own records answer for it.
// Otherwise, a wildcard answers if the name is below its parent, and no record and no other
// wildcard exists between them: at a name that is the name or above it, and below the
// wildcard's parent.
func answerByDefinition(records []Record, name string) []string {
	has := func(matches func(owner string) bool) bool {
		return slices.ContainsFunc(records, func(r Record) bool { return matches(r.Name) })
	}
	atOrAbove := func(owner string) bool { return owner == name || strings.HasSuffix(name, "."+owner) }
	answers := []string{}
	for _, r := range records {
		base, isWildcard := strings.CutPrefix(r.Name, "*.")
		belowBase := func(owner string) bool { return strings.HasSuffix(owner, "."+base) }
		ended := func() bool {
			return has(func(owner string) bool { return atOrAbove(owner) && belowBase(owner) }) ||
				has(func(owner string) bool {
					closer, ok := strings.CutPrefix(owner, "*.")
					return ok && belowBase(closer) && strings.HasSuffix(name, "."+closer)
				})
		}
		if r.Name == name || isWildcard && strings.HasSuffix(name, "."+base) && !ended() {
			answers = append(answers, r.ID)
		}
	}
	return answers
}

func TestLookupFollowsTheDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- not a secret
	labels := []string{"a", "b", "*"}
	randomName := func() string {
		name := "example.com"
		for range random.IntN(4) {
			name = labels[random.IntN(len(labels))] + "." + name
		}
		return name
	}
	answered, wildcards := 0, 0
	for range 2000 {
		d, id := newZone(Options{})
		for i := range random.IntN(8) {
			recordType := []string{"TXT", "CNAME", "A"}[random.IntN(3)]
			content := map[string]string{"TXT": fmt.Sprint(i), "CNAME": "example.net", "A": "192.0.2.1"}[recordType]
			_, _ = d.Create(id, fields(randomName()+" "+recordType+" "+content)) // conflicts are refused
		}
		z := d.find(id)
		d.Settle()
		for range 20 {
			name := randomName()
			got := []string{}
			for _, r := range z.answer(name) {
				got = append(got, r.ID)
				answered++
				if r.Name != name {
					wildcards++
				}
			}
			if diff := cmp.Diff(answerByDefinition(z.records, name), got); diff != "" {
				t.Fatalf("%s in %v (-definition +answer):\n%s", name, z.records, diff)
			}
		}
	}
	if answered < 1000 || wildcards < 1000 || wildcards == answered {
		t.Errorf("%d answers, %d of them by wildcards: the zones are too empty", answered, wildcards)
	}
}
