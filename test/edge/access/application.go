package access

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Application is an application as the edge sees it. Marshalling to JSON returns it as the
// API does.
type Application struct {
	Account, ID, AUD string
	Name, Type       string
	// Domains are the domain, the self_hosted_domains and the public destinations, each
	// once: hostnames in lower case, with a path if they have one.
	Domains []string
	// Policies are in the order in which the edge evaluates them.
	Policies        []Policy
	SessionDuration time.Duration
	// CORS is nil if preflight requests are refused.
	CORS          *CORS
	BindingCookie bool
	Tags          []string
	// Revocations is how often the tokens were revoked, and RevokedAt when that was last.
	Revocations int
	RevokedAt   time.Time

	fields map[string]any // as the API returns them
}

// MarshalJSON returns the application as the API returns it.
func (a Application) MarshalJSON() ([]byte, error) { return json.Marshal(a.fields) }

// Protects reports whether the application has hostnames.
func (a Application) Protects() bool { return slices.Contains(protecting, a.Type) }

// OtherFields returns the fields that neither a request of the controller nor the API sets.
func (a Application) OtherFields() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for name, value := range a.fields {
		if slices.Contains(described, name) {
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			panic("access: " + err.Error())
		}
		all[name] = encoded
	}
	return all
}

// described are the fields that an [Application] has fields for, and the fields of the API.
var described = slices.Concat(readOnly, []string{
	"name", "type", "domain", "self_hosted_domains", "destinations", "session_duration", "cors_headers",
	"enable_binding_cookie", "tags",
})

// CORS are the settings with which the edge answers preflight requests.
type CORS struct {
	AllowAllHeaders  bool     `json:"allow_all_headers,omitempty"`
	AllowAllMethods  bool     `json:"allow_all_methods,omitempty"`
	AllowAllOrigins  bool     `json:"allow_all_origins,omitempty"`
	AllowCredentials bool     `json:"allow_credentials,omitempty"`
	AllowedHeaders   []string `json:"allowed_headers,omitempty"`
	AllowedMethods   []string `json:"allowed_methods,omitempty"`
	AllowedOrigins   []string `json:"allowed_origins,omitempty"`
	MaxAge           *int     `json:"max_age,omitempty"`
}

// application is a stored application.
type application struct {
	account, id, aud     string
	createdAt, updatedAt time.Time
	revocations          int
	revokedAt            time.Time

	parsed   parsed
	policies []policyLink
	// fields are all fields of the last request, but policies and the fields that the API sets.
	fields map[string]json.RawMessage
}

// parsed are the fields of a request that matter to the simulation.
type parsed struct {
	Name              string        `json:"name"`
	Type              string        `json:"type"`
	Domain            string        `json:"domain"`
	SelfHostedDomains []string      `json:"self_hosted_domains"`
	Destinations      []destination `json:"destinations"`
	SessionDuration   string        `json:"session_duration"`
	CORS              *CORS         `json:"cors_headers"`
	BindingCookie     bool          `json:"enable_binding_cookie"`
	PreflightBypass   bool          `json:"options_preflight_bypass"`
	Tags              []string      `json:"tags"`
}

type destination struct {
	Type string `json:"type"`
	URI  string `json:"uri"`
}

// protecting are the types of applications that have hostnames.
var protecting = []string{"self_hosted", "ssh", "vnc", "rdp"}

// domains returns what the application covers. "If destinations are provided,
// self_hosted_domains will be ignored."
func (p parsed) domains() []string {
	var all []string
	add := func(domain string) {
		if domain = normalize(domain); domain != "" && !slices.Contains(all, domain) {
			all = append(all, domain)
		}
	}
	add(p.Domain)
	for _, d := range p.Destinations {
		if d.Type == "" || d.Type == "public" {
			add(d.URI)
		}
	}
	if len(p.Destinations) == 0 {
		for _, domain := range p.SelfHostedDomains {
			add(domain)
		}
	}
	return all
}

// normalize returns a hostname in lower case, with its path if that selects anything.
func normalize(domain string) string {
	host, path, _ := strings.Cut(domain, "/")
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if path == "" || path == "*" {
		return host
	}
	return host + "/" + path
}

// set by the API, and ignored in requests.
var readOnly = []string{"id", "uid", "aud", "created_at", "updated_at", "policies"}

// write stores the fields in the body of a request, or returns why they are invalid.
func (d *Database) write(a *account, target *application, body json.RawMessage) error {
	var fields map[string]json.RawMessage
	var p parsed
	var request struct {
		Policies []json.RawMessage `json:"policies"`
	}
	for _, part := range []any{&fields, &p, &request} {
		if err := json.Unmarshal(body, part); err != nil {
			return invalid("%s", err)
		}
	}
	if err := d.check(a, target, p); err != nil {
		return err
	}
	links, err := a.readPolicies(request.Policies)
	if err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
		return slices.Contains(readOnly, name) || string(value) == "null"
	})
	target.fields, target.parsed, target.policies = fields, p, links
	return nil
}

// view returns the application for the edge and for the API.
func (s *application) view(a *account) Application {
	view := Application{
		Account: s.account, ID: s.id, AUD: s.aud, Name: s.parsed.Name, Type: s.parsed.Type,
		Domains: s.parsed.domains(), CORS: s.parsed.CORS, BindingCookie: s.parsed.BindingCookie,
		Tags: slices.Clone(s.parsed.Tags), Revocations: s.revocations, RevokedAt: s.revokedAt,
		SessionDuration: s.parsed.duration(),
	}
	for _, link := range s.policies {
		view.Policies = append(view.Policies, link.resolve(a))
	}
	view.fields = map[string]any{}
	for name, value := range s.fields {
		view.fields[name] = value
	}
	view.addDefaults(s)
	return view
}

// addDefaults adds the fields that the API sets.
func (a Application) addDefaults(s *application) {
	a.fields["id"], a.fields["uid"], a.fields["aud"] = s.id, s.id, s.aud
	a.fields["created_at"], a.fields["updated_at"] = s.createdAt, s.updatedAt
	policies := make([]any, len(a.Policies))
	for i, p := range a.Policies {
		policies[i] = linkedPolicy{Policy: p, Precedence: i + 1}
	}
	a.fields["policies"] = policies
	a.fields["tags"] = append([]string{}, a.Tags...)
	a.fields["session_duration"] = s.parsed.SessionDuration
	if s.parsed.SessionDuration == "" {
		a.fields["session_duration"] = "24h"
	}
	a.fields["enable_binding_cookie"] = a.BindingCookie
	if !a.Protects() || len(a.Domains) == 0 {
		return
	}
	a.fields["self_hosted_domains"] = a.Domains
	if _, ok := a.fields["destinations"]; !ok {
		destinations := make([]destination, len(a.Domains))
		for i, domain := range a.Domains {
			destinations[i] = destination{Type: "public", URI: domain}
		}
		a.fields["destinations"] = destinations
	}
	for name, value := range map[string]any{
		"app_launcher_visible": true, "auto_redirect_to_identity": false, "allowed_idps": []string{},
		"http_only_cookie_attribute": false, "options_preflight_bypass": false, "eager_redirect_cookie_setting": true,
	} {
		if _, ok := a.fields[name]; !ok {
			a.fields[name] = value
		}
	}
}

// duration returns how long a session lasts; by default 24 hours. write has checked it.
func (p parsed) duration() time.Duration {
	d, err := time.ParseDuration(p.SessionDuration)
	if err != nil {
		return 24 * time.Hour
	}
	return d
}

// newAUD returns an audience: 64 hexadecimal digits.
func newAUD() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
