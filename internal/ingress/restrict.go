package ingress

import (
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	statusPrefix = "http_status:"
	// serviceRevoked answers requests for which only one of two configurations has a backend, or
	// for which they have different ones. Caches do not keep this status, unlike 404.
	serviceRevoked = statusPrefix + "503"
)

// Restrict returns the last configuration without the rules that the desired one revokes,
// and whether there are any that the last configuration still serves. Both must come from
// this package.
//
// The restricted configuration forwards a request only if both configurations forward it
// to the same backend, with the same backend verification, and only with an Access token
// that both accept. All other requests get a status, because removing a rule would leave
// its requests to a wider rule: the desired configuration's status where it has one for
// the same hostname and path, otherwise the last configuration's status or 503. Changes
// that restrict nothing, such as a new hostname, a timeout or the end of protection, are
// not part of it.
//
// A rule is revoked if it is removed, if its backend changes, if the backend verification
// or its Access becomes stricter, or if a new status or a new rule with other Access
// takes requests from it. A new rule that only leads to another backend does not revoke
// anything.
//
// Restrict returns false if one configuration leads to Envoy and the other one does not:
// changing the data plane revokes nothing.
func Restrict(last, desired provider.Configuration) (restricted provider.Configuration, revokes bool) {
	restricted, revokes = restrictOnce(last, desired)
	// Rules in another order can leave a rule that the result alone reveals.
	const attempts = 3
	for range attempts {
		next, again := restrictOnce(restricted, desired)
		if !revokes || !again {
			break
		}
		restricted = next
	}
	return restricted, revokes
}

// restrictOnce is Restrict without the rules that only the result reveals.
func restrictOnce(last, desired provider.Configuration) (provider.Configuration, bool) {
	if leadsToEnvoy(last) != leadsToEnvoy(desired) {
		return last, false
	}
	before, ok := newRuleLists(last)
	after, canonical := newRuleLists(desired)
	if !ok || !canonical {
		return last, false
	}
	r := restriction{defaults: last.OriginRequest, behind: map[string]behind{}}
	hostnames := maps.Clone(before)
	maps.Copy(hostnames, after)
	ordered := slices.SortedFunc(maps.Keys(hostnames), routing.CompareGroups)
	lists := make([][]provider.IngressRule, len(ordered))
	for i, hostname := range slices.Backward(ordered) {
		lists[i], r.behind[hostname] = r.restrict(align(before[hostname], after[hostname]), r.wider(hostname))
	}
	restricted := provider.Configuration{Ingress: slices.Concat(lists...), OriginRequest: last.OriginRequest, UnknownFields: last.UnknownFields}
	if n := len(restricted.Ingress); n == 0 || !matchesAll(restricted.Ingress[n-1]) {
		restricted.Ingress = append(restricted.Ingress, provider.IngressRule{Service: serviceRevoked})
	}
	return restricted, r.revokes && restricted.Hash() != last.Hash()
}

func leadsToEnvoy(c provider.Configuration) bool {
	return slices.ContainsFunc(c.Ingress, func(r provider.IngressRule) bool { return r.Service == serviceOpen || r.Service == serviceProtected })
}

func matchesAll(r provider.IngressRule) bool { return ruleHostname(r) == "" && r.Path == "" }

// wider returns what the requests for a hostname can reach behind its rules.
func (r *restriction) wider(hostname string) behind {
	for wide := range routing.WiderHostnames(hostname) {
		if b, ok := r.behind[wide]; ok {
			return b
		}
	}
	return behind{}
}

// effectiveRule is a rule with its effect, which includes the defaults of its configuration.
type effectiveRule struct {
	provider.IngressRule
	effect effect
}

// effect is what a rule does with a request. It omits settings that change neither the
// backend nor its verification, such as timeouts.
type effect struct {
	service                                   string
	hostHeader, proxyType, serverName, caPool string
	matchSNI, verifies                        bool
	// access is the Access that the rule requires; empty for none.
	access string
}

func newEffect(r provider.IngressRule, defaults provider.OriginRequest) effect {
	if strings.HasPrefix(r.Service, statusPrefix) {
		return effect{service: r.Service}
	}
	e := effect{
		service: r.Service, access: accessKey(r.OriginRequest.Access), verifies: true,
		hostHeader: either(r.OriginRequest.HTTPHostHeader, defaults.HTTPHostHeader),
		proxyType:  either(r.OriginRequest.ProxyType, defaults.ProxyType),
	}
	if r.Service == serviceProtected {
		e.service = serviceOpen // the same backends
	}
	if strings.HasPrefix(r.Service, "http:") {
		return e // there is no certificate to verify
	}
	e.serverName = either(r.OriginRequest.OriginServerName, defaults.OriginServerName)
	e.caPool = either(r.OriginRequest.CAPool, defaults.CAPool)
	e.matchSNI = isTrue(eitherBool(r.OriginRequest.MatchSNIToHost, defaults.MatchSNIToHost))
	e.verifies = !isTrue(eitherBool(r.OriginRequest.NoTLSVerify, defaults.NoTLSVerify))
	return e
}

func either(rule, defaults string) string {
	if rule != "" {
		return rule
	}
	return defaults
}

func eitherBool(rule, defaults *bool) *bool {
	if rule != nil {
		return rule
	}
	return defaults
}

// backend returns the effect without Access.
func (e effect) backend() effect {
	e.access = ""
	return e
}

func (e effect) forwards() bool { return !strings.HasPrefix(e.service, statusPrefix) }

// ruleLists are the rules in a configuration by hostname, in order, without rules that no
// request can reach.
type ruleLists map[string][]effectiveRule

// newRuleLists returns the rules in a configuration by hostname. It returns false if a
// rule for a narrower hostname follows a rule for a wider hostname that it depends on:
// the hostname order then has a meaning, which no configuration from this package has.
func newRuleLists(c provider.Configuration) (ruleLists, bool) {
	lists, ended, paths := ruleLists{}, map[string]bool{}, map[hostnamePath]bool{}
	for _, rule := range c.Ingress {
		hostname := ruleHostname(rule)
		if _, answered := routing.MostSpecific(ended, hostname); answered || paths[hostnamePath{hostname, rule.Path}] {
			continue
		}
		if routing.HasWider(lists, hostname) {
			return nil, false
		}
		paths[hostnamePath{hostname, rule.Path}] = true
		if rule.Path == "" {
			ended[hostname] = true
		}
		lists[hostname] = append(lists[hostname], effectiveRule{rule, newEffect(rule, c.OriginRequest)})
	}
	return lists, ended[""]
}
