package cloudflare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// applicationView is an application in the API's response. The client's types are not used,
// because they drop unknown fields.
type applicationView struct {
	ID              string       `json:"id"`
	AUD             string       `json:"aud"`
	Name            string       `json:"name"`
	Type            string       `json:"type"`
	Policies        []policyView `json:"policies"`
	SessionDuration string       `json:"session_duration"`
	CORS            *corsView    `json:"cors_headers"`
	BindingCookie   bool         `json:"enable_binding_cookie"`
	Tags            []string     `json:"tags"`
	domainsView

	fields map[string]json.RawMessage // all fields
}

// domainsView is what an application covers.
type domainsView struct {
	Domain            string            `json:"domain"`
	SelfHostedDomains []string          `json:"self_hosted_domains"`
	Destinations      []destinationView `json:"destinations"`
}

// destinationView is a part of destinations. Only public ones have a URI.
type destinationView struct {
	Type string `json:"type"`
	URI  string `json:"uri"`
}

// policyView is a policy in the API's response.
type policyView struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Decision   string            `json:"decision"`
	Precedence int               `json:"precedence"`
	Reusable   *bool             `json:"reusable"` // the client does not know it
	Include    []json.RawMessage `json:"include"`
	Exclude    []json.RawMessage `json:"exclude"`
	Require    []json.RawMessage `json:"require"`
}

// corsView is cors_headers.
type corsView struct {
	AllowAllHeaders  bool     `json:"allow_all_headers,omitempty"`
	AllowAllMethods  bool     `json:"allow_all_methods,omitempty"`
	AllowAllOrigins  bool     `json:"allow_all_origins,omitempty"`
	AllowCredentials bool     `json:"allow_credentials,omitempty"`
	AllowedHeaders   []string `json:"allowed_headers,omitempty"`
	AllowedMethods   []string `json:"allowed_methods,omitempty"`
	AllowedOrigins   []string `json:"allowed_origins,omitempty"`
	MaxAge           *float64 `json:"max_age,omitempty"`
}

// identified are the fields of an application of which other fields have an unknown form.
type identified struct {
	ID   string   `json:"id"`
	AUD  string   `json:"aud"`
	Name string   `json:"name"`
	Type string   `json:"type"`
	Tags []string `json:"tags"`
}

// UnmarshalJSON parses an application. Of one that protects no hostname, it ignores fields
// with an unexpected form, so that such an application does not make the list unreadable.
func (v *applicationView) UnmarshalJSON(data []byte) error {
	type plain applicationView // without this method
	var id identified
	if err := json.Unmarshal(data, &id); err != nil {
		return fmt.Errorf("parse an application: %w", err)
	}
	var parsed plain
	if err := json.Unmarshal(data, &parsed); err != nil {
		if protectsHostnames(id.Type) {
			return fmt.Errorf("parse application %q: %w", id.ID, err)
		}
		parsed = plain{ID: id.ID, AUD: id.AUD, Name: id.Name, Type: id.Type, Tags: id.Tags}
	}
	if err := json.Unmarshal(data, &parsed.fields); err != nil {
		return fmt.Errorf("parse application %q: %w", id.ID, err)
	}
	*v = applicationView(parsed)
	return nil
}

// protectsHostnames reports whether applications of the type protect hostnames. A type that
// this package does not know does.
func protectsHostnames(kind string) bool {
	switch zero_trust.ApplicationType(kind) {
	case zero_trust.ApplicationTypeSaaS, zero_trust.ApplicationTypeAppLauncher, zero_trust.ApplicationTypeWARP,
		zero_trust.ApplicationTypeBISO, zero_trust.ApplicationTypeBookmark, zero_trust.ApplicationTypeDashSSO,
		zero_trust.ApplicationTypeInfrastructure:
		return false
	default:
		return true
	}
}

// application converts the view, or returns an error if the response is unexpected.
func (v *applicationView) application() (provider.Application, error) {
	if v.ID == "" || v.Type == "" {
		return provider.Application{}, unexpected("an application without an ID or type")
	}
	a := provider.Application{
		ID: provider.ApplicationID(v.ID), AUDTag: v.AUD, Name: v.Name, Type: v.Type,
		SessionDuration: parseSession(v.SessionDuration), CORS: v.CORS.settings(), BindingCookie: v.BindingCookie,
		Tags: v.Tags, UnknownFields: unknownFields(v.fields),
	}
	if protectsHostnames(v.Type) {
		a.Domains = v.domains()
	}
	policies := slices.Clone(v.Policies)
	slices.SortStableFunc(policies, func(x, y policyView) int { return cmp.Compare(x.Precedence, y.Precedence) })
	for _, p := range policies {
		if p.isReusable() {
			a.Policies = append(a.Policies, provider.AccessPolicyID(p.ID))
		} else {
			a.OtherPolicies++
		}
	}
	a.Bypass = len(policies) == 1 && !policies[0].isReusable() && policies[0].bypassesEveryone()
	return a, nil
}

// domains returns everything that the application covers, each once.
func (v domainsView) domains() []string {
	var all []string
	add := func(domain string) {
		if domain = normalizeDomain(domain); domain != "" && !slices.Contains(all, domain) {
			all = append(all, domain)
		}
	}
	add(v.Domain)
	for _, domain := range v.SelfHostedDomains {
		add(domain)
	}
	for _, d := range v.Destinations {
		if d.Type == "" || d.Type == "public" {
			add(d.URI)
		}
	}
	return all
}

// normalizeDomain returns a hostname in lower case, with its path unless that is the whole
// hostname's.
func normalizeDomain(domain string) string {
	if _, rest, found := strings.Cut(domain, "://"); found {
		domain = rest
	}
	host, path, _ := strings.Cut(domain, "/")
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if path == "" || path == "*" {
		return host
	}
	return host + "/" + path
}

// isReusable reports whether other applications can use the policy. A policy whose response
// does not say so is, unless it is like the one that bypasses Access.
func (p policyView) isReusable() bool {
	if p.Reusable == nil {
		return !p.bypassesEveryone()
	}
	return *p.Reusable
}

// bypassesEveryone reports whether the policy lets every request pass.
func (p policyView) bypassesEveryone() bool {
	if p.Decision != decisionBypass || len(p.Include) != 1 || len(p.Exclude)+len(p.Require) != 0 {
		return false
	}
	var rule map[string]json.RawMessage
	err := json.Unmarshal(p.Include[0], &rule)
	_, everyone := rule["everyone"]
	return err == nil && everyone && len(rule) == 1
}

const decisionBypass = string(zero_trust.DecisionBypass)

// parseSession returns the duration of a session, which is 24 hours by default, or zero if it
// is not a duration.
func parseSession(text string) time.Duration {
	d, _ := time.ParseDuration(cmp.Or(text, "24h")) // zero on an error
	return d
}

// formatSession writes a duration in hours and minutes, such as "8h" or "30m".
func formatSession(d time.Duration) string {
	hours, minutes := d/time.Hour, d%time.Hour/time.Minute
	switch {
	case d%time.Minute != 0 || d == 0:
		return d.String()
	case minutes == 0:
		return fmt.Sprintf("%dh", hours)
	case hours == 0:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%dh%dm", hours, minutes)
}

// settings returns the settings, or nil if there are none.
func (v *corsView) settings() *provider.CORS {
	if v == nil {
		return nil
	}
	c := &provider.CORS{
		AllowedOrigins: v.AllowedOrigins, AllowedMethods: v.AllowedMethods, AllowedHeaders: v.AllowedHeaders,
		AllowAllOrigins: v.AllowAllOrigins, AllowAllHeaders: v.AllowAllHeaders, AllowCredentials: v.AllowCredentials,
	}
	if v.AllowAllMethods {
		c.AllowedMethods = []string{"*"}
	}
	if v.MaxAge != nil {
		c.MaxAge = new(int(*v.MaxAge))
	}
	if c.IsEmpty() {
		return nil
	}
	return c
}

// knownApplicationFields are the fields that [provider.Application] has, and the fields
// that only the API sets. self_hosted_domains is deprecated: the API ignores it beside
// destinations.
var knownApplicationFields = []string{
	"id", "uid", "aud", "created_at", "updated_at",
	"name", "type", "domain", "self_hosted_domains", "destinations", "policies", "session_duration",
	"cors_headers", "enable_binding_cookie", "tags",
}

// unknownFields returns the other fields that have a value.
func unknownFields(fields map[string]json.RawMessage) map[string][]byte {
	unknown := map[string][]byte{}
	for name, value := range fields {
		if !slices.Contains(knownApplicationFields, name) && !bytes.Equal(value, []byte("null")) {
			unknown[name] = value
		}
	}
	return unknown
}
