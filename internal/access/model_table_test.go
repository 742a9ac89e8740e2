package access

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// modelKind is what a rule does.
type modelKind uint8

const (
	ruleNone modelKind = iota // the wildcard's rule counts, or nothing is served
	ruleOpen
	ruleClosed
	ruleProtected
)

var modelKindNames = [...]string{"-", "open", "closed", "protected"}

// modelRule is the rule for a hostname.
type modelRule struct {
	kind modelKind
	tag  string // the AUD tag
}

func (r modelRule) String() string {
	if r.kind == ruleProtected {
		return r.tag
	}
	return modelKindNames[r.kind]
}

// modelTable has a rule for each hostname.
type modelTable [modelNameCount]modelRule

// of returns the rule that counts for a hostname.
func (t *modelTable) of(name int) modelRule {
	if t[name].kind == ruleNone && below(name, modelW) {
		return t[modelW]
	}
	return t[name]
}

// tags returns the AUD tags that the rules demand, sorted.
func (t *modelTable) tags() []string {
	var tags []string
	for _, r := range t {
		if r.kind == ruleProtected {
			tags = append(tags, r.tag)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// access returns what the rules require.
func (t *modelTable) access() routing.Access {
	access := routing.Access{}
	for name, r := range t {
		switch r.kind {
		case ruleNone:
		case ruleOpen:
			access[modelNames[name]] = nil
		case ruleClosed:
			access[modelNames[name]] = &routing.Requirement{Closed: true}
		case ruleProtected:
			access[modelNames[name]] = &routing.Requirement{TeamName: modelTeam, AUDTags: []string{r.tag}}
		}
	}
	return access
}

// atCloudflare returns the rules of the tunnel's configuration. With Envoy, it has none for
// a hostname that is closed.
func (t modelTable) atCloudflare(envoy bool) modelTable {
	for name := range t {
		if envoy && t[name].kind == ruleClosed {
			t[name] = modelRule{}
		}
	}
	return t
}

// effective returns what becomes of requests for the hostname. Envoy serves a protected
// hostname only behind a rule that demands a token.
func (g *modelGateway) effective(name int) modelRule {
	rule := g.configuration.of(name)
	if !g.envoy {
		return rule
	}
	published := g.published.of(name)
	switch {
	case published.kind == ruleOpen && rule.kind != ruleProtected:
		return published
	case published.kind == ruleOpen || published.kind == ruleProtected && rule.kind == ruleProtected:
		return rule
	case published.kind == ruleProtected:
		return modelRule{kind: ruleClosed}
	}
	return published
}

func (t *modelTable) String() string {
	parts := make([]string, 0, len(t))
	for name, r := range t {
		if r.kind != ruleNone {
			parts = append(parts, strings.TrimSuffix(modelNames[name], ".example.com")+"="+r.String())
		}
	}
	return strings.Join(parts, " ")
}
