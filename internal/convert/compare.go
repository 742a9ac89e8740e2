package convert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Comparison compares a configuration with the objects that it became.
type Comparison struct {
	// Requests is how many requests were compared.
	Requests int
	// Differences are the requests with another answer.
	Differences []Difference
	// Problems are conditions in which the controller does not accept the objects.
	Problems []plan.Problem

	input  *Configuration
	result *Result
}

// Difference is a request with another answer.
type Difference struct {
	Request Request
	// Rule is the index of the rule that answers before.
	Rule          int
	Before, After string
	// Noted reports whether a note says that the rule's requests get another answer.
	Noted bool
}

// Compare returns the requests that the converted objects answer differently than
// cloudflared with the configuration. It makes the controller's decisions, and assumes that
// the Services exist.
func Compare(ctx context.Context, input *Configuration, result *Result, o Options, requests []Request) (*Comparison, error) {
	matcher, err := NewMatcher(input.Rules)
	if err != nil {
		return nil, err
	}
	after, err := newAnswers(ctx, result, o)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Requests: len(requests), Problems: after.problems, input: input, result: result}
	for _, request := range requests {
		rule := matcher.Match(request.Host, request.Path)
		before, now := input.answer(&input.Rules[rule], o), after.answer(request)
		if before != now {
			c.Differences = append(c.Differences, Difference{request, rule, before, now, result.Rules[rule].Changed})
		}
	}
	return c, nil
}

// answer describes how cloudflared answers for a rule: the status, or the backend with its
// settings.
func (c *Configuration) answer(r *Rule, o Options) string {
	b, problem, _ := o.backendOf(c, r)
	if strings.HasPrefix(r.Service, "http_status:") || problem != "" {
		return redacted(r.Service)
	}
	var access *provider.AccessSettings
	if a := r.Access; a != nil && a.Required {
		access = &provider.AccessSettings{Required: true, TeamName: a.TeamName, AUDTag: slices.Compact(slices.Sorted(slices.Values(a.AUDTag)))}
	}
	settings := c.effective(r)
	if o.DataPlane == v1alpha1.DataPlaneEnvoy {
		return describeBackend(b.tls, o.fullName(&b), fmt.Sprint(b.port)) + describeAccess(access)
	}
	return describeBackend(b.tls, o.fullName(&b), fmt.Sprint(b.port)) + describeSettings(b.tls, b.host, settings) + describeAccess(access)
}

func describeBackend(tls bool, name, port string) string {
	if tls {
		return "https://" + name + ":" + port
	}
	return "http://" + name + ":" + port
}

func describeAccess(access *provider.AccessSettings) string {
	if access == nil || !access.Required {
		return ""
	}
	return fmt.Sprintf(" access=%s/%s", access.TeamName, strings.Join(access.AUDTag, ","))
}

// describeSettings returns a text for the settings that matter for a backend. Equal texts
// mean that cloudflared does the same. host is the name in the URL.
func describeSettings(tls bool, host string, s Settings) string {
	s = maps.Clone(s)
	delete(s, "bastionMode")
	if s.isTrue("matchSNItoHost") {
		delete(s, "http2Origin")
	}
	if !tls || s.isTrue("noTLSVerify") {
		delete(s, "caPool")
	}
	serverName := s.text("originServerName")
	delete(s, "originServerName")
	if tls && serverName == "" && !s.isTrue("matchSNItoHost") && !s.isTrue("noTLSVerify") {
		serverName = host
	}
	text := ""
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if value := s.value(key); value != (Settings{}).value(key) {
			text += fmt.Sprintf(" %s=%v", key, value)
		}
	}
	if serverName != "" {
		text += " originServerName=" + serverName
	}
	return text
}
