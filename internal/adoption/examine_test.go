package adoption

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// here is where the records of the Gateways in the tests lead.
var here = tunnelID.Hostname()

// record returns a record from "name type content [comment]".
func record(text string) provider.Record {
	parts := strings.SplitN(text, " ", 4)
	r := provider.Record{ID: provider.RecordID("id of " + text), Name: parts[0], Type: parts[1], Content: strings.Replace(parts[2], "HERE", here, 1), Proxied: true}
	if len(parts) == 4 {
		r.Comment = parts[3]
	}
	return r
}

func zoneWith(records ...string) *Zone {
	var all []provider.Record
	for _, text := range records {
		all = append(all, record(text))
	}
	return NewZone("example.com", all)
}

// examine returns what the zone contains for the only hostname of a Gateway.
func examine(t *testing.T, hostname string, records ...string) *Candidate {
	t.Helper()
	wanted, err := Select([]Gateway{gateway("one", hostname)}, []string{hostname})
	if err != nil {
		t.Fatal(err)
	}
	return Examine(zoneWith(records...), wanted[0])
}

const mark = "abcdefghijklmnopqrstuvwx"

func TestExamineTellsWhatTheControllerDoes(t *testing.T) {
	const name = "a.example.com"
	loop := []string{name + " CNAME b.example.com", "b.example.com CNAME " + name}
	for title, test := range map[string]struct {
		hostname string
		records  []string
		want     Action
		here     bool
		problem  string
	}{
		"made by hand":                        {name, []string{name + " CNAME HERE"}, Mark, true, ""},
		"with a comment":                      {name, []string{name + " CNAME HERE made by hand"}, Mark, true, ""},
		"through a chain":                     {name, []string{name + " CNAME b.example.com", "b.example.com CNAME HERE"}, Replace, true, ""},
		"through a wildcard":                  {name, []string{name + " CNAME b.example.com", "*.example.com CNAME HERE"}, Replace, true, ""},
		"through a wildcard that a TXT ends":  {name, []string{name + " CNAME b.example.com", "*.example.com CNAME HERE", "b.example.com TXT x"}, Replace, false, ""},
		"through a delegated name":            {name, []string{name + " CNAME b.y.example.com", "b.y.example.com CNAME HERE", "y.example.com NS ns.example.net"}, Replace, false, ""},
		"a wildcard that a wildcard TXT ends": {"x.y.example.com", []string{"*.example.com CNAME HERE", "*.y.example.com TXT x"}, "", false, "no A, AAAA or CNAME record has this name, so there is nothing to adopt: the controller creates the record"},
		"a loop":                              {name, loop, Replace, false, ""},
		"former load balancer":                {name, []string{name + " A 192.0.2.7"}, Replace, false, ""},
		"IPv6":                                {name, []string{name + " AAAA 2001:db8::1"}, Replace, false, ""},
		"another tunnel":                      {name, []string{name + " CNAME 00000000-0000-0000-0000-000000000000.cfargotunnel.com"}, Replace, false, ""},
		"outside the zone":                    {name, []string{name + " CNAME a.example.net"}, Replace, false, ""},
		"beside records of other types":       {name, []string{name + " CNAME HERE", name + " TXT x", name + " MX mail"}, Mark, true, ""},
		"apex":                                {"example.com", []string{"example.com A 192.0.2.7", "example.com NS ns.example.net"}, Replace, false, ""},
		"wildcard":                            {"*.example.com", []string{"*.example.com CNAME HERE", name + " A 192.0.2.7"}, Mark, true, ""},
		"none":                                {name, []string{"b.example.com CNAME HERE"}, "", false, "no A, AAAA or CNAME record has this name, so there is nothing to adopt: the controller creates the record"},
		"only a TXT":                          {name, []string{name + " TXT x", "*.example.com CNAME HERE"}, "", false, "no A, AAAA or CNAME record has this name, so there is nothing to adopt: the controller creates the record"},
		"a wildcard that leads here":          {name, []string{"*.example.com CNAME HERE"}, "", false, "no record has this name, so there is nothing to adopt: the wildcard *.example.com leads it to the Gateway"},
		"a wildcard that leads elsewhere":     {name, []string{"*.example.com A 192.0.2.7"}, "", false, "no record has this name. The wildcard *.example.com answers for it. Adopt the wildcard if a Gateway uses it, or create a record with this name"},
		"a wildcard above an empty name":      {"x.y.example.com", []string{"*.example.com CNAME HERE", "z.y.example.com A 192.0.2.7"}, "", false, "no record has this name, so there is nothing to adopt: the wildcard *.example.com leads it to the Gateway"},
		"a wildcard that a record above ends": {"x.y.example.com", []string{"*.example.com CNAME HERE", "y.example.com TXT x"}, "", false, "no A, AAAA or CNAME record has this name, so there is nothing to adopt: the controller creates the record"},
		"dual stack":                          {name, []string{name + " A 192.0.2.7", name + " AAAA 2001:db8::1"}, "", false, "2 records have this name (A, AAAA), but a CNAME record must be the only one. Delete all but one of them, and adopt it; or delete all of them, and the controller creates the record"},
		"round robin":                         {name, []string{name + " A 192.0.2.7", name + " A 192.0.2.8"}, "", false, "2 records have this name (A), but a CNAME record must be the only one. Delete all but one of them, and adopt it; or delete all of them, and the controller creates the record"},
		"below a delegation":                  {"x.y.example.com", []string{"y.example.com NS ns.example.net", "x.y.example.com CNAME HERE"}, "", false, "other nameservers answer for the name: zone example.com delegates y.example.com with NS records"},
		"at a delegation":                     {name, []string{name + " NS ns.example.net"}, "", false, "other nameservers answer for the name: zone example.com delegates a.example.com with NS records"},
		"a name that another one's name ends": {name, []string{"aa.example.com CNAME HERE", name + " CNAME xexample.com"}, Replace, false, ""},
	} {
		t.Run(title, func(t *testing.T) {
			got := examine(t, test.hostname, test.records...)
			if got.Action != test.want || got.Problem != test.problem || got.LeadsHere != test.here || (got.Record == nil) != (test.want == "") {
				t.Errorf("action %q, problem %q, leads here %t, record %v; want action %q, problem %q", got.Action, got.Problem, got.LeadsHere, got.Record, test.want, test.problem)
			}
		})
	}
}

func TestExamineKeepsRecordsOfHostnamesThatAreNotServed(t *testing.T) {
	g := gateway("one", "a.example.com", "b.example.com")
	for i := range g.Hostnames {
		g.Hostnames[i].Served = false
	}
	wanted, err := Select([]Gateway{g}, []string{"a.example.com", "b.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	z := zoneWith("a.example.com CNAME HERE", "b.example.com A 192.0.2.7")
	if c := Examine(z, wanted[0]); c.Action != Mark {
		t.Errorf("action %q for a record that leads here, want mark", c.Action)
	}
	if c := Examine(z, wanted[1]); c.Action != "" || c.Problem != "the record would be replaced, but the Gateway serves no route for the hostname yet" {
		t.Errorf("action %q, problem %q for a record that leads elsewhere", c.Action, c.Problem)
	}
}

func TestExamineNamesOtherOwners(t *testing.T) {
	const name = "a.example.com"
	const claims, handover = "external-dns claims the record with the TXT record ", ", and would remove the mark. Stop external-dns, adopt the record, delete the TXT record, and start external-dns again."
	for title, test := range map[string]struct {
		records []string
		want    string
	}{
		"no owner":                        {[]string{name + " CNAME HERE"}, ""},
		"this installation":               {[]string{name + " CNAME HERE tgw prod " + mark}, ""},
		"another installation":            {[]string{name + " CNAME HERE tgw staging " + mark}, "The comment names installation staging. If it still runs, it creates the record again when this one is removed. Stop it, or remove the hostname there."},
		"a comment that begins like one":  {[]string{name + " CNAME HERE tgw staging"}, ""},
		"a comment with another word":     {[]string{name + " CNAME HERE tgw staging x " + mark}, ""},
		"a comment without a signature":   {[]string{name + " CNAME HERE tgw staging " + strings.Repeat("1", len(mark))}, ""},
		"external-dns":                    {[]string{name + " CNAME HERE", "cname-" + name + ` TXT "heritage=external-dns,external-dns/owner=default"`}, claims + "cname-" + name + handover},
		"external-dns for an A":           {[]string{name + " A 192.0.2.7", "a-" + name + ` TXT "heritage=external-dns,external-dns/owner=default"`}, claims + "a-" + name + handover},
		"external-dns for another record": {[]string{name + " CNAME HERE", "cname-b.example.com" + ` TXT "heritage=external-dns,external-dns/owner=default"`}, ""},
		"another TXT record":              {[]string{name + " CNAME HERE", "cname-" + name + " TXT x"}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			if got := strings.Join(examine(t, name, test.records...).Notes, " "); got != test.want {
				t.Errorf("notes = %q, want %q", got, test.want)
			}
		})
	}
}

func TestLeadingHereOmitsValidMarks(t *testing.T) {
	for managed, want := range []string{
		"hand.example.com marked.example.com other.example.com", // no valid mark: the key was lost
		"hand.example.com other.example.com",
		"hand.example.com other.example.com", // the status can count a name with another mark
	} {
		t.Run(strconv.Itoa(managed), func(t *testing.T) {
			g := gateway("one", "hand.example.com", "marked.example.com", "other.example.com", "away.example.com", "none.example.com")
			g.Managed = managed
			gateways := []Gateway{g}
			wanted, err := SelectAll(gateways)
			if err != nil {
				t.Fatal(err)
			}
			z := zoneWith("hand.example.com CNAME HERE", "marked.example.com CNAME HERE tgw prod "+mark, "other.example.com CNAME HERE tgw old "+mark, "away.example.com A 192.0.2.7")
			var all []*Candidate
			for _, w := range wanted {
				all = append(all, Examine(z, w))
			}
			var names []string
			for _, c := range LeadingHere(all, gateways) {
				names = append(names, c.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("selected %s, want %s", got, want)
			}
		})
	}
}
