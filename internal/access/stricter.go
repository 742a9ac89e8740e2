package access

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// DeciderKey returns what the last digits of the application's tag stand for: the level and
// the owner that decide. When it changes, the application is made again.
func (d *Demand) DeciderKey() string { return d.Level.String() + "/" + d.Owner }

// String returns the name of the level.
func (l Level) String() string {
	switch l {
	case LevelClass:
		return "class"
	case LevelGateway:
		return "gateway"
	default:
		return "policy"
	}
}

// specOf returns the fields of the application that the demand wants, without a name and
// without tags. Policies that are not in the catalogue are missing.
func specOf(d *Demand, s settings.Applications) provider.ApplicationSpec {
	spec := provider.ApplicationSpec{
		Hostname: d.Hostname, SessionDuration: d.SessionDuration, CORS: newCORS(d.CORS),
		BindingCookie: strings.HasPrefix(d.Hostname, "*"),
	}
	for _, name := range d.Policies {
		if id, ok := s.Catalogue[name]; ok && !slices.Contains(spec.Policies, provider.AccessPolicyID(id)) {
			spec.Policies = append(spec.Policies, provider.AccessPolicyID(id))
		}
	}
	return spec
}

// newCORS returns the settings as the API has them.
func newCORS(c *v1alpha1.AccessCORS) *provider.CORS {
	if c == nil {
		return nil
	}
	settings := &provider.CORS{AllowedMethods: c.AllowMethods, AllowCredentials: ptr.Deref(c.AllowCredentials, false)}
	if settings.AllowAllOrigins = slices.Contains(c.AllowOrigins, "*"); !settings.AllowAllOrigins {
		settings.AllowedOrigins = c.AllowOrigins
	}
	if settings.AllowAllHeaders = slices.Contains(c.AllowHeaders, "*"); !settings.AllowAllHeaders {
		settings.AllowedHeaders = c.AllowHeaders
	}
	if c.MaxAge != nil {
		settings.MaxAge = ptr.To(int(*c.MaxAge))
	}
	return settings
}

// stricter reports whether tokens of the last application may admit requests that the wanted
// one refuses. Every change counts, unless it only adds policies that allow, or makes the
// session longer. allows are the policies with the decision "allow" or "non_identity"; any
// other policy may deny.
func stricter(last *provider.Application, want *provider.ApplicationSpec, allows map[provider.AccessPolicyID]bool) bool {
	switch {
	case !slices.Equal(last.Domains, []string{want.Hostname}):
		return true
	case last.Bypass != want.Bypass || last.OtherPolicies > 0 && !want.Bypass:
		return true
	case last.SessionDuration > want.SessionDuration && !want.Bypass:
		return true
	case last.BindingCookie != want.BindingCookie || !equalCORS(last.CORS, want.CORS):
		return true
	}
	return stricterPolicies(last.Policies, want.Policies, allows)
}

// stricterPolicies reports whether the wanted policies lack one, add one that may deny, or
// have another order. The order matters unless all policies allow.
func stricterPolicies(last, want []provider.AccessPolicyID, allows map[provider.AccessPolicyID]bool) bool {
	isNew := func(id provider.AccessPolicyID) bool { return !slices.Contains(last, id) }
	for _, id := range want {
		if isNew(id) && !allows[id] {
			return true
		}
	}
	kept := slices.DeleteFunc(slices.Clone(want), isNew)
	if slices.ContainsFunc(last, func(id provider.AccessPolicyID) bool { return !allows[id] }) {
		return !slices.Equal(last, kept)
	}
	return slices.ContainsFunc(last, func(id provider.AccessPolicyID) bool { return !slices.Contains(want, id) })
}

// equalCORS reports whether both have the same meaning. Each can be nil. The order in the
// lists is irrelevant.
func equalCORS(a, b *provider.CORS) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.DeepEqual(canonicalCORS(*a), canonicalCORS(*b))
}

// canonicalCORS returns the settings in one order.
func canonicalCORS(c provider.CORS) provider.CORS {
	for _, list := range []*[]string{&c.AllowedOrigins, &c.AllowedMethods, &c.AllowedHeaders} {
		*list = slices.Sorted(slices.Values(*list))
	}
	return c
}
