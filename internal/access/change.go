package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// matches reports whether the application has the fields that the claim wants. Its tags and
// its name do not count.
func (c *claim) matches(o *owned) bool {
	if !slices.Equal(o.Domains, []string{c.spec.Hostname}) || o.Bypass != c.bypass {
		return false
	}
	if c.bypass {
		return true
	}
	return o.OtherPolicies == 0 && slices.Equal(o.Policies, c.spec.Policies) && o.SessionDuration == c.spec.SessionDuration &&
		o.BindingCookie == c.spec.BindingCookie && equalCORS(o.CORS, c.spec.CORS)
}

// isStricter reports whether tokens of the application may admit requests that the claim
// refuses.
func (s *situation) isStricter(o *owned, c *claim) bool {
	return !c.bypass && stricter(o.Application, &c.spec, s.allows)
}

// asApplication returns the application that the claim wants.
func (c *claim) asApplication() provider.Application {
	return provider.Application{
		Domains: []string{c.spec.Hostname}, Policies: c.spec.Policies, Bypass: c.bypass, SessionDuration: c.spec.SessionDuration,
		CORS: c.spec.CORS, BindingCookie: c.spec.BindingCookie,
	}
}

// specOfApplication returns the fields of an application as a demand would want them. Only the
// first of several hostnames counts.
func specOfApplication(a *provider.Application) provider.ApplicationSpec {
	spec := provider.ApplicationSpec{
		Policies: a.Policies, Bypass: a.Bypass, SessionDuration: a.SessionDuration, CORS: a.CORS, BindingCookie: a.BindingCookie,
	}
	if len(a.Domains) > 0 {
		spec.Hostname = a.Domains[0]
	}
	return spec
}

// isUrgent reports whether the change removes a policy or shortens the session. Such a change
// waits for no other one.
func (c *claim) isUrgent(o *owned) bool {
	if c.bypass {
		return false
	}
	removes := slices.ContainsFunc(o.Policies, func(id provider.AccessPolicyID) bool { return !slices.Contains(c.spec.Policies, id) })
	return removes || o.OtherPolicies > 0 || o.Bypass || o.SessionDuration > c.spec.SessionDuration
}

// content identifies the fields of the application that the controller writes.
func (o *owned) content() string {
	encoded, err := json.Marshal([]any{
		o.Domains, o.Policies, o.OtherPolicies, o.Bypass, o.SessionDuration, o.BindingCookie, o.CORS,
	})
	if err != nil {
		return "" // strings, numbers and booleans can be encoded
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// containsSorted reports whether the sorted list contains the text.
func containsSorted(list []string, text string) bool {
	_, found := slices.BinarySearch(list, text)
	return found
}
