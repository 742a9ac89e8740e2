package convert

import (
	"net"
	"regexp"
	"strings"
)

// Matcher finds the rule that answers a request as cloudflared does: the first rule whose
// hostname and path match. (Source: FindMatchingRule and Rule.Matches in cloudflared's
// package ingress.)
type Matcher struct {
	rules []matcherRule
}

type matcherRule struct {
	hostname, punycode string
	path               *regexp.Regexp // nil: every path
}

// NewMatcher returns the matcher for rules that [Parse] has accepted, or for the rules of a
// valid remote configuration.
func NewMatcher(rules []Rule) (*Matcher, error) {
	m := &Matcher{rules: make([]matcherRule, len(rules))}
	for i, r := range rules {
		m.rules[i] = matcherRule{hostname: r.Hostname, punycode: punycode(r.Hostname)}
		if r.Path == "" {
			continue
		}
		path, err := regexp.Compile(r.Path)
		if err != nil {
			return nil, err
		}
		m.rules[i].path = path
	}
	return m, nil
}

// Match returns the index of the rule that answers a request. host can have a port. path is
// the decoded path without the query. The last rule answers what no other rule matches.
func (m *Matcher) Match(host, path string) int {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	for i := range m.rules {
		if m.rules[i].matches(host, path) {
			return i
		}
	}
	return len(m.rules) - 1
}

func (r *matcherRule) matches(host, path string) bool {
	hostMatches := isEveryHost(r.hostname) || matchesHost(r.hostname, host) || r.punycode != "" && matchesHost(r.punycode, host)
	return hostMatches && (r.path == nil || r.path.MatchString(path))
}

// matchesHost compares letters with their case. A wildcard matches any number of labels.
func matchesHost(pattern, host string) bool {
	suffix, isWildcard := strings.CutPrefix(pattern, "*")
	return pattern == host || isWildcard && strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix)
}
