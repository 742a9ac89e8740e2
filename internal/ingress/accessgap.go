package ingress

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// AccessGaps returns the protected hostnames whose requests can reach a backend through a
// rule that requires no token. A connector compares hostnames case-sensitively, so a host
// in upper case, or with a dot at the end, can miss its hostname's rules and meet a rule
// for a wider hostname. A wider rule that requires a token closes the gap, as do wider
// rules without a backend.
func AccessGaps(t *routing.Table) []routing.AccessGap {
	if t == nil || len(t.Access) == 0 {
		return nil
	}
	var gaps []routing.AccessGap
	rules := summarize(Rules(t))
	for _, hostname := range slices.Sorted(maps.Keys(t.Access)) {
		if t.Access[hostname].IsOpen() {
			continue
		}
		for _, through := range rules.openTo(hostname) {
			gaps = append(gaps, routing.AccessGap{Hostname: hostname, Through: through})
		}
	}
	slices.SortFunc(gaps, func(a, b routing.AccessGap) int {
		return cmp.Or(routing.CompareGroups(a.Hostname, b.Hostname), routing.CompareGroups(a.Through, b.Through))
	})
	return gaps
}

// rulesByHostname summarizes rules by their hostname.
type rulesByHostname map[string]*ruleSummary

type ruleSummary struct {
	open bool // whether a rule leads to a backend and requires no token
	ends bool // whether a rule matches every path
}

func summarize(rules []Rule) rulesByHostname {
	summaries := rulesByHostname{}
	for i := range rules {
		summary := summaries[rules[i].Hostname]
		if summary == nil {
			summary = &ruleSummary{}
			summaries[rules[i].Hostname] = summary
		}
		origin := rules[i].OriginRequest
		isProtected := origin != nil && origin.Access != nil
		hasBackend := rules[i].Entry != nil && rules[i].Entry.Action.Forward != nil
		summary.open = summary.open || hasBackend && !isProtected
		summary.ends = summary.ends || rules[i].Path == ""
	}
	return summaries
}

// openTo returns the hostnames of the rules that require no token and that a request for
// the hostname, in another form, reaches.
func (r rulesByHostname) openTo(hostname string) []string {
	var through []string
	for _, host := range otherForms(hostname) {
		for wide := range routing.WiderHostnames(host) {
			summary := r[wide]
			if summary == nil {
				continue
			}
			if summary.open && !slices.Contains(through, wide) {
				through = append(through, wide)
			}
			if summary.ends {
				break
			}
		}
	}
	return through
}

// otherForms returns, for each wider hostname, a host that DNS does not distinguish from
// a host that the hostname covers: the labels that the wider hostname does not name are in
// upper case. The last form ends with a dot. Any other form of the hostname meets the
// rules that one of these forms meets.
func otherForms(hostname string) []string {
	host := hostname
	if suffix, wildcard := strings.CutPrefix(hostname, "*"); wildcard {
		host = "x" + suffix
	}
	var forms []string
	for wide := range routing.WiderHostnames(host) {
		suffix := strings.TrimPrefix(wide, "*")
		form := strings.ToUpper(strings.TrimSuffix(host, suffix)) + suffix
		if form != host {
			forms = append(forms, form)
		}
	}
	return append(forms, host+".")
}
