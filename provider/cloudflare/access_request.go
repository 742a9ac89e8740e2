package cloudflare

import (
	"encoding/json"
	"strings"

	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// applicationFields returns the body of a request that makes an application of the spec, with the
// unknown fields of the current application: a PUT replaces all fields. current is zero for a
// new one.
func applicationFields(current provider.Application, spec provider.ApplicationSpec) map[string]any {
	fields := map[string]any{}
	for name, value := range current.UnknownFields {
		fields[name] = json.RawMessage(value)
	}
	if current.ID == "" {
		// The app launcher lists what a visitor can open. A wildcard cannot be opened, and
		// what bypasses Access needs no login.
		fields["app_launcher_visible"] = !spec.Bypass && !strings.HasPrefix(spec.Hostname, "*.")
	}
	fields["type"] = string(zero_trust.ApplicationTypeSelfHosted)
	if current.Type != "" {
		fields["type"] = current.Type
	}
	fields["name"] = spec.Name
	fields["domain"] = spec.Hostname
	fields["destinations"] = []destinationView{{Type: "public", URI: spec.Hostname}}
	fields["policies"] = policiesOf(spec)
	fields["session_duration"] = formatSession(spec.SessionDuration)
	fields["enable_binding_cookie"] = spec.BindingCookie
	fields["tags"] = append([]string{}, spec.Tags...)
	addCORS(fields, current, spec)
	return fields
}

// addCORS adds the settings. The API accepts none beside options_preflight_bypass, which lets
// preflight requests pass to the origin.
func addCORS(fields map[string]any, current provider.Application, spec provider.ApplicationSpec) {
	switch {
	case spec.CORS != nil:
		fields["cors_headers"] = newCORSView(*spec.CORS)
		if _, ok := fields["options_preflight_bypass"]; ok {
			fields["options_preflight_bypass"] = false
		}
	case current.CORS != nil:
		fields["cors_headers"] = nil
	}
}

// linkView links a reusable policy to an application.
type linkView struct {
	ID         provider.AccessPolicyID `json:"id"`
	Precedence int                     `json:"precedence"`
}

// policiesOf returns the policies of the spec. A bypass is a policy of the application alone:
// the API accepts such policies or reusable ones, but not both.
func policiesOf(spec provider.ApplicationSpec) any {
	if spec.Bypass {
		return []map[string]any{{
			"name": "Bypass", "decision": decisionBypass, "precedence": 1,
			"include": []map[string]any{{"everyone": map[string]any{}}},
		}}
	}
	links := make([]linkView, len(spec.Policies))
	for i, id := range spec.Policies {
		links[i] = linkView{ID: id, Precedence: i + 1}
	}
	return links
}

func newCORSView(c provider.CORS) corsView {
	view := corsView{
		AllowAllHeaders: c.AllowAllHeaders, AllowAllOrigins: c.AllowAllOrigins, AllowCredentials: c.AllowCredentials,
		AllowedHeaders: c.AllowedHeaders, AllowedMethods: c.AllowedMethods, AllowedOrigins: c.AllowedOrigins,
	}
	if c.AllowAllHeaders {
		view.AllowedHeaders = nil
	}
	if c.AllowAllOrigins {
		view.AllowedOrigins = nil
	}
	if c.MaxAge != nil {
		view.MaxAge = new(float64(*c.MaxAge))
	}
	return view
}
