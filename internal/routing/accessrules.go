package routing

import (
	"maps"
	"slices"
)

// MaxAccessRules is the most rules that a tunnel has for Access if Envoy serves it: the last
// rule, each rule that demands a token, and each open rule before one.
const MaxAccessRules = 1000

// AccessRule is a rule that only distinguishes what requests require. Requirement is nil for
// nothing, and never closed.
type AccessRule struct {
	Hostname    string
	Requirement *Requirement
}

// Rules returns the rules that hostnames of a table need, in the order of [CompareGroups].
// The last one is for the empty hostname. The hostname of each other rule decides about one
// of the given hostnames, and requires something else than the next wider rule. A closed
// hostname needs no rule, because the data plane refuses its requests wherever they arrive.
func (a Access) Rules(hostnames []string) []AccessRule {
	decisive := a.decisive(hostnames)
	last := AccessRule{}
	if n := len(decisive); n > 0 && decisive[n-1] == "" {
		decisive = decisive[:n-1]
		last.Requirement = a.token("")
	}
	required, rules := map[string]*Requirement{"": last.Requirement}, []AccessRule{last}
	for _, hostname := range slices.Backward(decisive) {
		requirement := a.token(hostname)
		wider, _ := MostSpecific(required, hostname)
		if a[hostname].IsClosed() || requirement.Equal(required[wider]) {
			continue
		}
		required[hostname] = requirement
		rules = append(rules, AccessRule{hostname, requirement})
	}
	slices.Reverse(rules)
	return rules
}

// token returns what the hostname requires if it demands a token, or nil.
func (a Access) token(hostname string) *Requirement {
	if !a[hostname].DemandsToken() {
		return nil
	}
	return a[hostname]
}

// decisive returns the hostnames that decide about one of the hostnames of the table, in the
// order of [CompareGroups]. With decisions for *.example.com and *.test.example.com, and a
// table with only shop.example.com, it returns *.example.com.
func (a Access) decisive(hostnames []string) []string {
	decisive := map[string]struct{}{}
	for _, hostname := range hostnames {
		if decides, ok := MostSpecific(a, hostname); ok {
			decisive[decides] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(decisive), CompareGroups)
}
