package gateway

import (
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// DroppedRule lists the parts of a rule that the data plane cannot express.
type DroppedRule struct {
	// Rule is the index of the rule, from 0.
	Rule int
	// Actions are the unsupported actions, each once. A rule with an unsupported action
	// returns the Status.
	Actions []string
	// EnvoySupportsActions reports whether the data plane has ingress rules, and Envoy would
	// support all actions.
	EnvoySupportsActions bool
	// SplitsRequests reports whether the rule has several backends with a weight above 0, as a
	// canary controller writes it during a release.
	SplitsRequests bool
	// Status is the status that replaces the action, for example 500.
	Status int
	// Matches are the omitted matches. Their requests go to the next matching rule.
	Matches []OmittedMatch
	// LeftOut reports whether all the rule's matches are in Matches, so that the rule
	// answers no request.
	LeftOut bool
	// Redirect is why a rule that only redirects to https answers no request, or empty.
	Redirect string
	// AfterHTTPS reports whether the rule answers no request, and does not return the
	// Status, because the hostname also has HTTPS listeners.
	AfterHTTPS bool
}

// Why a redirect to https never applies.
const (
	redirectSchemeUnknown = "ingress rules do not know a request's scheme"
	redirectOfHTTPS       = "only HTTPS listeners admit the route here"
)

// OmittedMatch is a match that the data plane cannot express.
type OmittedMatch struct {
	// Match is the index of the match in its rule, from 0.
	Match int
	// Fields are the unsupported fields.
	Fields []string
	// EnvoySupports reports whether the data plane has ingress rules, and Envoy would support
	// the match.
	EnvoySupports bool
}

// How a rule that the data plane cannot express turns out, in words. The conditions, plan
// and the documentation use the same words.
const (
	wordingMatchOmitted   = "%s is omitted, and its requests go to the next matching rule"
	wordingMatchesOmitted = "%s are omitted, and their requests go to the next matching rule"
	wordingRuleFails      = "the rule returns %d (%s)"
	wordingRuleLeftOut    = "the rule is left out because of %s, and its requests go to the next matching rule"
	// The next two concern request schemes.
	wordingRedirectLeftOut = "the redirect to https is left out, because %s"
	wordingRuleAfterHTTPS  = "the rule is left out in favor of the HTTPS listener (%s)"
)

// describe returns the rule and its outcome: "the message for this condition MUST start
// with the prefix "Dropped Rule"". (RouteConditionPartiallyInvalid) Its lists take at
// most about half the size.
func (d DroppedRule) describe(size int) string {
	return fmt.Sprintf("Dropped Rule %d: %s", d.Rule, d.outcome(size))
}

func (d DroppedRule) outcome(size int) string {
	matches := message.List{MaxSize: size / 2}
	for _, m := range d.Matches {
		matches.Add("match %d (%s)", m.Match, describeUnsupportedParts(m.Fields, m.EnvoySupports, size/4))
	}
	omitted, fails := matches.String(), d.describeFailure(size/4)
	switch {
	case d.Redirect != "":
		return fmt.Sprintf(wordingRedirectLeftOut, d.Redirect)
	case matches.Len() == 0:
		return fails
	case d.LeftOut && len(d.Actions) > 0:
		return fmt.Sprintf(wordingRuleLeftOut, omitted) + "; if you fix the match, " + fails
	case d.LeftOut:
		return fmt.Sprintf(wordingRuleLeftOut, omitted)
	}
	outcome := fmt.Sprintf(wordingMatchOmitted, omitted)
	if matches.Len() > 1 {
		outcome = fmt.Sprintf(wordingMatchesOmitted, omitted)
	}
	if len(d.Actions) > 0 {
		outcome += "; for the other matches, " + fails
	}
	return outcome
}

// describeFailure describes what a rule does whose action is not supported.
func (d DroppedRule) describeFailure(size int) string {
	parts := describeUnsupportedParts(d.Actions, d.EnvoySupportsActions, size)
	if d.AfterHTTPS {
		return fmt.Sprintf(wordingRuleAfterHTTPS, parts)
	}
	return fmt.Sprintf(wordingRuleFails, d.Status, parts)
}

// describeUnsupportedParts lists the unsupported parts. A part that Envoy would support is
// not supported by ingress rules.
func describeUnsupportedParts(parts []string, envoySupports bool, size int) string {
	list := message.List{Before: "not supported: ", MaxSize: size}
	if envoySupports {
		list.Before = "not supported by ingress rules: "
	}
	return describeItems(list, parts)
}

// The remedies for features that the data plane cannot express.
const (
	remedyEnvoy         = "The platform team can set dataPlane: Envoy"
	remedyEnvoyCanaries = remedyEnvoy + ", which canary controllers need"
	remedyAlwaysHTTPS   = "Use the zone's Always Use HTTPS setting at Cloudflare instead"
	remedyListener      = "Attach the route to an HTTP listener, or use the zone's Always Use HTTPS setting at Cloudflare"
)

// remedy returns the sentence that follows the description of the rules, or an empty
// string.
func remedy(rules []DroppedRule) string {
	has := func(redirect string) bool {
		return slices.ContainsFunc(rules, func(d DroppedRule) bool { return d.Redirect == redirect })
	}
	envoy := slices.ContainsFunc(rules, DroppedRule.envoySupportsMore)
	switch {
	case has(redirectOfHTTPS):
		return " " + remedyListener + "."
	case has(redirectSchemeUnknown) && envoy:
		return " " + remedyAlwaysHTTPS + ", or ask the platform team to set dataPlane: Envoy."
	case has(redirectSchemeUnknown):
		return " " + remedyAlwaysHTTPS + "."
	case slices.ContainsFunc(rules, DroppedRule.needsEnvoyToSplit):
		return " " + remedyEnvoyCanaries + "."
	case envoy:
		return " " + remedyEnvoy + "."
	default:
		return ""
	}
}

// envoySupportsMore reports whether Envoy would support a part in the rule that ingress
// rules do not.
func (d DroppedRule) envoySupportsMore() bool {
	return d.EnvoySupportsActions || slices.ContainsFunc(d.Matches, func(m OmittedMatch) bool { return m.EnvoySupports })
}

// needsEnvoyToSplit reports whether only Envoy would split the rule's requests.
func (d DroppedRule) needsEnvoyToSplit() bool { return d.EnvoySupportsActions && d.SplitsRequests }

// hasIncompatibleFilters reports whether the rule is not served only because its filters
// exclude each other.
func (d DroppedRule) hasIncompatibleFilters() bool {
	return len(d.Matches) == 0 && len(d.Actions) == 1 && d.Actions[0] == routing.IncompatibleFilters
}

// DescribeDropped describes the rules in one sentence. A second sentence names a remedy
// outside the route.
func DescribeDropped(rules ...DroppedRule) string {
	return describeDropped(message.MaxSize, rules...)
}

func describeDropped(size int, rules ...DroppedRule) string {
	list := message.List{Separator: "; ", After: "." + remedy(rules), MaxSize: size}
	for _, d := range rules {
		if list.Full() {
			list.Count(1)
			continue
		}
		list.Add("%s", d.describe(size))
	}
	return list.String()
}

// droppedAt returns the rules that are not served as written through the listeners.
func (r *Route) droppedAt(listeners []*Listener) []DroppedRule {
	if len(listeners) == 0 || len(r.Dropped) == 0 && !slices.ContainsFunc(r.matches, isToHTTPS) {
		return r.Dropped // most routes
	}
	onlyHTTPS := !slices.ContainsFunc(listeners, (*Listener).servesHTTP)
	afterHTTPS := !slices.ContainsFunc(listeners, func(l *Listener) bool { return !l.afterHTTPS })
	dropped := slices.Clone(r.Dropped)
	for i := range dropped {
		d := &dropped[i]
		d.AfterHTTPS = afterHTTPS && len(d.Actions) > 0
		d.EnvoySupportsActions = d.EnvoySupportsActions && (d.Redirect == "" || !onlyHTTPS)
	}
	for i := range r.matches {
		rule := r.matches[i].rule
		if r.matches[i].toHTTPS && onlyHTTPS && !slices.ContainsFunc(dropped, func(d DroppedRule) bool { return d.Rule == rule }) {
			dropped = append(dropped, DroppedRule{Rule: rule, LeftOut: true, Redirect: redirectOfHTTPS})
		}
	}
	slices.SortStableFunc(dropped, func(a, b DroppedRule) int { return a.Rule - b.Rule })
	return dropped
}

// isFullyDropped reports whether the dropped rules are all the route's rules, so that
// none is served as written.
func (r *Route) isFullyDropped(dropped []DroppedRule) bool {
	return len(dropped) > 0 && len(dropped) == len(r.Rules)
}
