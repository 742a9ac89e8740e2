package simulator

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// visitor is who asks to be admitted: a user with an address, or a service token.
type visitor struct{ email, serviceToken string }

// admitsUser reports whether a user can log in: the first policy about the user decides.
func admitsUser(app access.Application, email string) bool {
	v := visitor{email: email}
	i := slices.IndexFunc(app.Policies, func(p access.Policy) bool {
		return (p.Decision == "allow" || p.Decision == "deny") && includes(p, v)
	})
	return i >= 0 && app.Policies[i].Decision == "allow"
}

// admitsService reports whether a policy admits the service token.
func admitsService(app access.Application, id string) bool {
	return slices.ContainsFunc(app.Policies, func(p access.Policy) bool {
		return p.Decision == "non_identity" && includes(p, visitor{serviceToken: id})
	})
}

// includes reports whether the policy is about the visitor.
func includes(p access.Policy, v visitor) bool {
	return slices.ContainsFunc(p.Include, v.matches) && !slices.ContainsFunc(p.Exclude, v.matches) &&
		!slices.ContainsFunc(p.Require, func(rule json.RawMessage) bool { return !v.matches(rule) })
}

// policyRule is a rule of a policy.
type policyRule struct {
	Everyone *struct{} `json:"everyone"`
	Email    *struct {
		Email string `json:"email"`
	} `json:"email"`
	EmailDomain *struct {
		Domain string `json:"domain"`
	} `json:"email_domain"`
	ServiceToken *struct {
		TokenID string `json:"token_id"`
	} `json:"service_token"`
	AnyServiceToken *struct{} `json:"any_valid_service_token"`
}

// matches reports whether a policy's rule selects the visitor. A rule that the simulator
// does not know selects no one.
func (v visitor) matches(rule json.RawMessage) bool {
	var r policyRule
	if json.Unmarshal(rule, &r) != nil {
		return false
	}
	return r.Everyone != nil || v.email != "" && r.selectsUser(v.email) || v.serviceToken != "" && r.selectsService(v.serviceToken)
}

// selectsUser reports whether the rule names the user's address or its domain.
func (r policyRule) selectsUser(email string) bool {
	_, domain, _ := strings.Cut(email, "@")
	return r.Email != nil && strings.EqualFold(r.Email.Email, email) ||
		r.EmailDomain != nil && domain != "" && strings.EqualFold(r.EmailDomain.Domain, domain)
}

// selectsService reports whether the rule names the service token or selects all.
func (r policyRule) selectsService(id string) bool {
	return r.ServiceToken != nil && r.ServiceToken.TokenID == id || r.AnyServiceToken != nil
}
