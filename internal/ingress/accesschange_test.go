package ingress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// tableOf returns a table with the hostnames. The protected ones are written as
// hostname/audience.
func tableOf(hostnames, protected string) *routing.Table {
	t := &routing.Table{Access: routing.Access{}, ClusterDomain: "cluster.local"}
	for _, hostname := range strings.Fields(hostnames) {
		t.Groups = append(t.Groups, groupOf(hostname))
	}
	for _, entry := range strings.Fields(protected) {
		hostname, audience, _ := strings.Cut(entry, "/")
		t.Access[hostname] = accessTo(audience)
	}
	return t
}

// describePlacements lists where the hostnames are that no listener serves alone.
func describePlacements(x ingress.Exposure) string {
	names := map[envoy.Serving]string{envoy.NotServed: "404", envoy.Served: "serves", envoy.Kept: "keeps", envoy.Closed: "403"}
	var lines []string
	for hostname, p := range x.Placements {
		lines = append(lines, fmt.Sprintf("%s: open %s, protected %s", hostname, names[p.Open], names[p.Protected]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

func TestAccessChanges(t *testing.T) {
	const both = "a.example.com b.example.com"
	known := func(protected string) ingress.Observed {
		return ingress.Observed{Last: ingress.EnvoyConfiguration(tableOf(both, protected)), Known: true}
	}
	rules := &provider.Configuration{Ingress: []provider.IngressRule{{Hostname: "a.example.com", Service: pages}, {Service: "http_status:404"}}}
	for name, c := range map[string]struct {
		served   string // the protected hostnames when this process last published, or "-" if it did not
		table    *routing.Table
		observed ingress.Observed
		want     string
	}{
		"nothing changes":                             {"a.example.com", tableOf(both, "a.example.com"), known("a.example.com"), ""},
		"a served hostname gets Access":               {"", tableOf(both, "a.example.com"), known(""), "a.example.com: open keeps, protected serves"},
		"a new leader does not know that it was open": {"-", tableOf(both, "a.example.com"), known(""), "a.example.com: open 403, protected serves"},
		"a hostname loses Access":                     {"a.example.com", tableOf(both, ""), known("a.example.com"), "a.example.com: open serves, protected serves"},
		"a new hostname has Access":                   {"", tableOf(both+" c.example.com", "c.example.com"), known(""), "c.example.com: open 403, protected serves"},
		"a hostname below an open wildcard gets Access": {
			"", tableOf(both+" *.example.com", "c.example.com"), known(""), "c.example.com: open 403, protected serves",
		},
		"a hostname gets another audience": {"a.example.com/1", tableOf(both, "a.example.com/2"), known("a.example.com/1"), "a.example.com: open 403, protected 403"},
		"a new hostname below a wildcard of another audience": {
			"*.example.com/1", tableOf("a.example.com *.example.com", "*.example.com/1 a.example.com/2"), known("*.example.com/1"), "a.example.com: open 403, protected 403",
		},
		"an entry below a wildcard of another audience is removed": {
			"a.example.com/2", tableOf("*.example.com", "*.example.com/1"), known("*.example.com/1 a.example.com/2"), "a.example.com: open 403, protected 403",
		},
		"an entry below an open wildcard is removed": {"", tableOf("*.example.com", ""), known("a.example.com/2"), "a.example.com: open serves, protected serves"},
		"the configuration is unknown, and this process knows nothing": {
			"-", tableOf(both, "a.example.com"), ingress.Observed{}, "a.example.com: open 403, protected 403; b.example.com: open serves, protected serves",
		},
		"the configuration is unknown, and was reported as applied": {"-", tableOf(both, "a.example.com"), ingress.Observed{Applied: true}, ""},
		"a write has failed": {"a.example.com", tableOf(both, "a.example.com"), ingress.Observed{Last: ingress.EnvoyConfiguration(tableOf(both, "a.example.com"))}, ""},
		"a write that protects has failed": {
			"", tableOf(both, "a.example.com"), ingress.Observed{Last: ingress.EnvoyConfiguration(tableOf(both, ""))}, "a.example.com: open keeps, protected serves",
		},
		"a late write of an earlier process is unknown": {
			"-", tableOf(both, "a.example.com"), ingress.Observed{Last: ingress.EnvoyConfiguration(tableOf(both, "a.example.com")), Known: true, Late: []string{"unknown"}},
			"a.example.com: open 403, protected 403; b.example.com: open serves, protected serves",
		},
		"the tunnel has ingress rules":              {"", tableOf(both, "a.example.com"), ingress.Observed{Last: rules, Known: true}, ""},
		"no configuration leads to Envoy yet":       {"-", tableOf(both, "a.example.com"), ingress.Observed{Elsewhere: true}, ""},
		"an external change opens a protected host": {"a.example.com", tableOf(both, "a.example.com"), known("b.example.com"), "a.example.com: open 403, protected serves; b.example.com: open serves, protected serves"},
	} {
		t.Run(name, func(t *testing.T) {
			var last *envoy.Resources
			if c.served != "-" {
				last = envoy.Render(tableOf(both, c.served))
			}
			_, got := ingress.AccessChanges{}.Next(c.table, *ingress.EnvoyConfiguration(c.table), c.observed, last, time.Hour)
			if got := describePlacements(got); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A hostname that becomes protected closes before five minutes have passed, with any
// observation.
func TestHostnameThatGetsAccessClosesInTime(t *testing.T) {
	open, protected := tableOf("a.example.com", ""), tableOf("a.example.com", "a.example.com")
	desired, observed := *ingress.EnvoyConfiguration(protected), ingress.Observed{Last: ingress.EnvoyConfiguration(open), Known: true}
	var changes ingress.AccessChanges
	last := envoy.Render(open)
	publish := func(uptime time.Duration) ingress.Exposure {
		next, x := changes.Next(protected, desired, observed, last, uptime)
		changes, last = next, envoy.RenderTransition(protected, x.Transition, last)
		return x
	}
	if x := publish(time.Hour); len(x.Kept) != 1 || x.Until <= time.Hour || x.Until > time.Hour+5*time.Minute {
		t.Fatalf("at first, the hostnames %q are kept until %s", x.Kept, x.Until)
	}
	observed.Known = false
	x := publish(time.Hour + time.Minute)
	if len(x.Kept) != 1 {
		t.Errorf("after a minute, the hostnames %q are kept", x.Kept)
	}
	if x = publish(x.Until); len(x.Kept) != 0 || len(x.Closed) != 1 || x.Until != 0 {
		t.Errorf("in the end, the hostnames %q are kept, and %q closed", x.Kept, x.Closed)
	}
}

// While too many different writes have failed, the configuration counts as unknown until
// it is read.
func TestTooManyFailedWritesCountAsUnknown(t *testing.T) {
	var changes ingress.AccessChanges
	observed := ingress.Observed{Last: ingress.EnvoyConfiguration(tableOf("a.example.com", "a.example.com/same")), Known: true}
	var x ingress.Exposure
	for i := range 80 {
		table := tableOf("a.example.com b.example.com", fmt.Sprintf("a.example.com/same b.example.com/%d", i))
		changes, x = changes.Next(table, *ingress.EnvoyConfiguration(table), observed, nil, time.Hour)
		observed.Known = false
		if isClosed := slices.Contains(x.Closed, "a.example.com"); isClosed != (i > 63) {
			t.Errorf("after %d writes, a.example.com is closed: %t", i, isClosed)
		}
	}
	table := tableOf("a.example.com", "a.example.com/same")
	observed.Known = true
	if _, x = changes.Next(table, *ingress.EnvoyConfiguration(table), observed, nil, time.Hour); !x.IsSettled() {
		t.Errorf("after a read, the placements are %v", x.Placements)
	}
}

// A hostname that waits for its application closes in time, even if no more decision is made.
// The time before its rule was written counts.
func TestWaitingHostnameClosesInTime(t *testing.T) {
	waits := routing.Access{"a.example.com": {Waiting: true}}
	open, waiting, protected := tableOf("a.example.com", ""), tableOf("a.example.com", ""), tableOf("a.example.com", "a.example.com")
	waiting.Access = waits
	since := time.Hour
	observed := ingress.Observed{
		Last: ingress.EnvoyConfiguration(open), Known: true, OpenSince: map[string]time.Duration{"a.example.com": since},
	}
	changes, x := ingress.AccessChanges{}.Next(waiting, *ingress.EnvoyConfiguration(waiting), observed, envoy.Render(open), since+time.Minute)
	if want := since + access.MaxOpen; len(x.Waiting) != 1 || !x.IsSettled() || x.Until != want {
		t.Fatalf("%+v wait until %s, want a.example.com until %s", x.Waiting, x.Until, want)
	}
	resources := envoy.RenderTransition(waiting, x.Transition, envoy.Render(open))
	if _, closed := changes.Close(x, x.Until); len(closed.Waiting) != 0 || len(closed.Closed) != 1 || resources.Close(closed.Closed).IsOpen("a.example.com") {
		t.Errorf("after the time, %q wait, and %q are closed", closed.Waiting, closed.Closed)
	}
	for uptime, want := range map[time.Duration]string{
		x.Until - time.Second: "a.example.com: open keeps, protected serves",
		x.Until:               "a.example.com: open 403, protected serves",
	} {
		_, x := changes.Next(protected, *ingress.EnvoyConfiguration(protected), observed, resources, uptime)
		if got := describePlacements(x); got != want {
			t.Errorf("with its rule outstanding at %s: %s, want %s", uptime, got, want)
		}
	}
	if _, x := changes.Next(waiting, *ingress.EnvoyConfiguration(waiting), observed, nil, since+time.Minute); len(x.Waiting) != 0 || len(x.Closed) != 1 {
		t.Errorf("a new leader keeps %q open", x.Waiting)
	}
}
