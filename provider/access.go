package provider

import (
	"context"
	"slices"
	"time"
)

// ApplicationID is the ID of an application of Cloudflare Access in the Cloudflare API.
type ApplicationID string

// AccessPolicyID is the ID of a reusable policy of Cloudflare Access.
type AccessPolicyID string

// Application is an application of Cloudflare Access of any type, as Cloudflare stores it.
type Application struct {
	ID ApplicationID
	// AUDTag is the audience in the tokens of the application.
	AUDTag string
	Name   string
	// Type is, for example, "self_hosted".
	Type string
	// Domains are everything that the application covers, each once: its domain,
	// self_hosted_domains and public destinations. Each is a hostname or a wildcard in
	// lower case, with a path if it covers only a part of the hostname:
	// "www.example.com", "*.example.com", "www.example.com/admin/*". A wildcard can also be
	// a part of one label: "*test.example.com". Applications of types that protect no
	// hostname, such as "saas" and "bookmark", have none. (Source: the API's domain,
	// self_hosted_domains and destinations.)
	Domains []string
	// Policies are the reusable policies, in their order. OtherPolicies counts policies that
	// belong to the application alone.
	Policies      []AccessPolicyID
	OtherPolicies int
	// Bypass reports whether the only policy of the application is the one that
	// [ApplicationSpec.Bypass] writes.
	Bypass bool
	// SessionDuration is zero if the API returns no duration.
	SessionDuration time.Duration
	// CORS is nil if the application refuses preflight requests.
	CORS *CORS
	// BindingCookie reports whether the application demands a second cookie, which the
	// edge removes from requests to the origin. (Source: the API's enable_binding_cookie.)
	BindingCookie bool
	Tags          []string
	// UnknownFields are the fields of the application that this package does not know.
	// [Access.Update] writes them unchanged.
	UnknownFields map[string][]byte
}

// CORS are the settings with which the edge answers preflight requests.
type CORS struct {
	AllowedOrigins, AllowedHeaders []string
	// AllowedMethods is "*" alone if all methods are allowed, which no spec asks for.
	AllowedMethods []string
	// AllowAllOrigins and AllowAllHeaders replace the lists.
	AllowAllOrigins, AllowAllHeaders bool
	AllowCredentials                 bool
	// MaxAge is in seconds; nil leaves it to the browser.
	MaxAge *int
}

// IsEmpty reports whether the settings allow nothing and say nothing.
func (c *CORS) IsEmpty() bool {
	return len(c.AllowedOrigins)+len(c.AllowedMethods)+len(c.AllowedHeaders) == 0 &&
		!c.AllowAllOrigins && !c.AllowAllHeaders && !c.AllowCredentials && c.MaxAge == nil
}

// HasChanged reports whether the application differs from current in a field of
// [ApplicationSpec] other than its name: it has another owner, covers something else, or admits
// other visitors. The order of the domains and of the tags is irrelevant.
func (a Application) HasChanged(current Application) bool {
	switch {
	case differ(a.Tags, current.Tags), differ(a.Domains, current.Domains), !a.CORS.equal(current.CORS):
		return true
	case !slices.Equal(a.Policies, current.Policies), a.OtherPolicies != current.OtherPolicies, a.Bypass != current.Bypass:
		return true
	}
	return a.SessionDuration != current.SessionDuration || a.BindingCookie != current.BindingCookie
}

// differ reports whether the lists differ in more than their order.
func differ(x, y []string) bool {
	return !slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)))
}

// equal reports whether both settings have the same meaning. Each can be nil.
func (c *CORS) equal(other *CORS) bool {
	if c == nil || other == nil {
		return c == other
	}
	if differ(c.AllowedOrigins, other.AllowedOrigins) || differ(c.AllowedMethods, other.AllowedMethods) || differ(c.AllowedHeaders, other.AllowedHeaders) {
		return false
	}
	sameAge := c.MaxAge == other.MaxAge || c.MaxAge != nil && other.MaxAge != nil && *c.MaxAge == *other.MaxAge
	return sameAge && c.AllowAllOrigins == other.AllowAllOrigins && c.AllowAllHeaders == other.AllowAllHeaders && c.AllowCredentials == other.AllowCredentials
}

// ApplicationSpec are the fields of an application that the controller writes.
type ApplicationSpec struct {
	// Hostname is the only hostname or wildcard that the application covers.
	Hostname string
	// Name is what the dashboard and the login page show.
	Name     string
	Policies []AccessPolicyID
	// Bypass gives the application one policy, which lets every request pass without a
	// token. Policies is then empty.
	Bypass          bool
	SessionDuration time.Duration
	CORS            *CORS
	BindingCookie   bool
	Tags            []string
}

// AccessPolicy is a reusable policy.
type AccessPolicy struct {
	ID   AccessPolicyID
	Name string
	// Decision is "allow", "deny", "non_identity" (for service tokens) or "bypass".
	Decision string
}

// Access calls the Cloudflare API for the applications of one account. Each method sends
// one request, or one per page when it lists objects, within [CallTimeout]. Update and Delete
// read the application first, and EnsureTag can read the tag.
//
// Every method can return [ErrUnauthorized], [ErrForbidden], a [*RateLimitedError], an
// [*UnavailableError] or the context's error. What [Provider] says about lost answers
// applies to the writes: after an [*UnavailableError] or the context's error, Cloudflare may
// have applied the write, or may apply it up to CallTimeout later. After any other error,
// nothing was changed. No write is retried. The permission is Access: Apps and Policies
// Edit.
//
// An Access is safe for concurrent use.
type Access interface {
	// Applications returns all applications in the account, in no particular order and
	// without duplicates. When the list changes while it reads several pages, an
	// application can be missing; it returns an [*UnavailableError] if it notices that.
	Applications(ctx context.Context) ([]Application, error)

	// Create creates a self-hosted application, and returns it with its AUD tag. It
	// returns [ErrApplicationExists] if another application covers exactly this hostname
	// (the API's code 11010), [ErrPolicyNotFound] if a policy does not exist,
	// [ErrQuotaExceeded] if the account has too many applications, and [ErrNoZone] if the
	// account has no active zone for the hostname. Every tag must exist, see EnsureTag;
	// otherwise it returns [ErrTagNotFound].
	Create(ctx context.Context, spec ApplicationSpec) (Application, error)

	// Update replaces the fields of ApplicationSpec, and keeps the others. It reads the
	// application first, and returns [ErrApplicationChanged] if it differs from last, see
	// [Application.HasChanged]. It returns [ErrNotFound] if the application does not exist, and the
	// errors of Create.
	Update(ctx context.Context, last Application, spec ApplicationSpec) (Application, error)

	// Delete deletes the application. It reads it first, and returns
	// [ErrApplicationChanged] like Update. It returns nil if
	// the application does not exist.
	Delete(ctx context.Context, last Application) error

	// RevokeTokens revokes all tokens of the application: every visitor logs in again. It
	// returns [ErrNotFound] if the application does not exist.
	RevokeTokens(ctx context.Context, id ApplicationID) error

	// Policies returns the account's reusable policies.
	Policies(ctx context.Context) ([]AccessPolicy, error)

	// EnsureTag creates the tag with which applications can be labeled, unless it exists.
	EnsureTag(ctx context.Context, name string) error
}
