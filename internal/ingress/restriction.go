package ingress

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// pairing is a rule in the last configuration, the desired one, or both. The pairings for
// a hostname keep the order of both configurations, so that the first pairing that
// matches a request is in both if and only if both configurations use it.
type pairing struct {
	last, desired *effectiveRule
	// repeats reports whether the last configuration has a status for the path of a
	// desired rule, without a backend rule between the two.
	repeats bool
}

// pairedRules are the pairings for a hostname, with the desired rules by path.
type pairedRules struct {
	pairings []pairing
	desired  map[string]*effectiveRule
}

// isCommon reports whether both configurations have the rule.
func (p pairing) isCommon() bool { return p.last != nil && p.desired != nil }

// restriction collects what [Restrict] finds, from the widest hostname to the narrowest.
type restriction struct {
	// defaults are the settings for all rules in the restricted configuration.
	defaults provider.OriginRequest
	// behind is what the requests for a hostname can reach.
	behind  map[string]behind
	revokes bool
}

// behind is what requests can reach behind a rule, in each configuration.
type behind struct{ last, desired, restricted reach }

// reach is what requests can reach in one configuration.
type reach struct {
	// effects are the effects that rules with a backend have. backends are the same
	// without Access.
	effects, backends distinct[effect]
	// access has the Access settings of these rules.
	access distinct[string]
	// status reports whether a rule with a status can be reached.
	status bool
}

// distinct is an empty set, a set with one value, or a larger set.
type distinct[T comparable] struct {
	value      T
	some, many bool
}

func (d distinct[T]) with(value T) distinct[T] {
	return distinct[T]{value: value, some: true, many: d.many || d.some && d.value != value}
}

// isOnly reports whether the set contains the value and no other one.
func (d distinct[T]) isOnly(value T) bool { return d.some && !d.many && d.value == value }

// with returns what requests can reach if the rule precedes the others.
func (r reach) with(path string, e effect) reach {
	if path == "" {
		r = reach{}
	}
	if !e.forwards() {
		r.status = true
		return r
	}
	r.effects, r.backends, r.access = r.effects.with(e), r.backends.with(e.backend()), r.access.with(e.access)
	return r
}

// alwaysAllows reports whether all requests reach the effect's backend, with its Access
// or without Access.
func (r reach) alwaysAllows(e effect) bool {
	return r.backends.isOnly(e.backend()) && !r.status && (r.access.isOnly("") || r.access.isOnly(e.access))
}

// restrict returns the restricted rules for a hostname, and what its requests can reach.
func (r *restriction) restrict(rules pairedRules, b behind) ([]provider.IngressRule, behind) {
	var reversed []provider.IngressRule
	for _, p := range slices.Backward(rules.pairings) {
		if rule, e, ok := r.rule(p, rules, b); ok {
			reversed = append(reversed, rule)
			b.restricted = b.restricted.with(rule.Path, e)
			b.restricted.effects.many = b.restricted.effects.many || p.isCommon() && p.last.effect != p.desired.effect
		}
		if p.last != nil {
			b.last = b.last.with(p.last.Path, p.last.effect)
		}
		if p.desired != nil {
			b.desired = b.desired.with(p.desired.Path, p.desired.effect)
		}
	}
	return reachable(reversed), b
}

// reachable returns the rules for a hostname in order, without the rules that no request
// can reach.
func reachable(reversed []provider.IngressRule) []provider.IngressRule {
	rules, paths := make([]provider.IngressRule, 0, len(reversed)), map[string]bool{}
	for _, rule := range slices.Backward(reversed) {
		if paths[""] || paths[rule.Path] {
			continue
		}
		paths[rule.Path] = true
		rules = append(rules, rule)
	}
	return rules
}

// rule returns the restricted rule for a pairing, and its effect. It returns false if the
// requests can be left to the rules behind it.
func (r *restriction) rule(p pairing, all pairedRules, b behind) (provider.IngressRule, effect, bool) {
	switch {
	case p.isCommon():
		rule := r.common(*p.last, *p.desired)
		return rule, p.last.effect, true
	case p.last != nil:
		return r.withoutLast(*p.last, all.desired[p.last.Path], b)
	default:
		return r.withoutDesired(p, b)
	}
}

// common returns a rule that both configurations have, with the stricter settings.
func (r *restriction) common(last, desired effectiveRule) provider.IngressRule {
	rule := last.IngressRule
	if !last.effect.forwards() {
		return rule
	}
	if merged, _ := meet(rule.OriginRequest.Access, desired.OriginRequest.Access); accessKey(merged) != last.effect.access {
		rule.OriginRequest.Access, r.revokes = merged, true
		if rule.Service == serviceOpen {
			rule.Service = serviceProtected
		}
	}
	if desired.effect.verifies && !last.effect.verifies {
		rule.OriginRequest.NoTLSVerify, r.revokes = ptr.To(false), true
	}
	return rule
}

// withoutLast returns what replaces a rule in the last configuration that the desired one
// does not have in this form. answer is the desired rule for the same path, or nil.
func (r *restriction) withoutLast(rule effectiveRule, answer *effectiveRule, b behind) (provider.IngressRule, effect, bool) {
	switch {
	case !rule.effect.forwards():
		return rule.IngressRule, rule.effect, true
	case answer != nil && !answer.effect.forwards():
		r.revokes = true
		return answer.IngressRule, answer.effect, true
	case answer == nil && b.desired.alwaysAllows(rule.effect):
		return rule.IngressRule, rule.effect, true
	case answer == nil && b.restricted.effects.isOnly(rule.effect):
		r.revokes = r.revokes || b.restricted.status
		return provider.IngressRule{}, effect{}, false
	}
	r.revokes = true
	rejected, e := rule.rejected()
	return rejected, e, b.restricted.effects.some
}

// withoutDesired returns the answer to the requests for a rule that the last
// configuration does not have in this form.
func (r *restriction) withoutDesired(p pairing, b behind) (provider.IngressRule, effect, bool) {
	rule := *p.desired
	isStricter := rule.effect.access != "" && !b.last.access.isOnly(rule.effect.access)
	takesRequests := b.last.effects.some && !p.repeats
	r.revokes = r.revokes || takesRequests && (isStricter || !rule.effect.forwards())
	if !b.restricted.effects.some || b.restricted.effects.isOnly(rule.effect) {
		return provider.IngressRule{}, effect{}, false
	}
	keepsEffect := newEffect(rule.IngressRule, r.defaults) == rule.effect
	if !rule.effect.forwards() || isStricter && keepsEffect && b.last.alwaysAllows(rule.effect) {
		return rule.IngressRule, rule.effect, true
	}
	rejected, e := rule.rejected()
	return rejected, e, true
}

// rejected returns a rule that answers the requests for the rule with a status.
func (r effectiveRule) rejected() (provider.IngressRule, effect) {
	return provider.IngressRule{Hostname: r.Hostname, Path: r.Path, Service: serviceRevoked}, effect{service: serviceRevoked}
}
