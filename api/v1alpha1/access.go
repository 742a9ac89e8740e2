package v1alpha1

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// AccessApplications determines whether the controller manages applications of Cloudflare
// Access, and which policies they can have.
//
// +kubebuilder:validation:XValidation:rule="(has(self.applications) ? self.applications : 'Disabled') == 'Disabled' || has(self.teamName)",message="access.teamName is not set: set the name of the Zero Trust organization, or set applications to Disabled"
type AccessApplications struct {
	// Applications determines whether the controller manages applications. With
	// Disabled, it does not call the Access API. With Managed, it creates, changes and
	// deletes an application for each hostname that an entry with policies or an
	// AccessPolicy protects. It changes no other application. Default: Disabled.
	//
	// +optional
	Applications *ApplicationsMode `json:"applications,omitempty"`

	// TeamName is the Zero Trust organization's name: <teamName> in
	// <teamName>.cloudflareaccess.com. Set it if applications is Managed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-z]([0-9a-z-]*[0-9a-z])?$')",message="must be the team name only, such as example for example.cloudflareaccess.com"
	TeamName *string `json:"teamName,omitempty"`

	// APIToken refers to the Secret with the API token for Access, in the controller's
	// namespace. The token requires the permission Access: Apps and Policies: Edit.
	// Default: the account's API token.
	//
	// +optional
	APIToken *SecretKeyReference `json:"apiToken,omitempty"`

	// Policies is the catalogue of reusable policies in the account. Entries of
	// listenerConfigurations and AccessPolicies name them. Who is allowed is configured at
	// Cloudflare only.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Policies []CataloguePolicy `json:"policies,omitempty"`

	// MaxApplications is the maximum number of applications of this installation in the
	// account. Cloudflare allows 500 for an account. Above the limit, hostnames that must
	// be protected are closed. Default: 400.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxApplications *int32 `json:"maxApplications,omitempty"`

	// OpeningDelay is how long a hostname remains protected after its protection is no
	// longer required. Default: 30s.
	//
	// +optional
	OpeningDelay *Duration `json:"openingDelay,omitempty"`
}

// ApplicationsMode determines whether the controller manages applications of Cloudflare
// Access.
//
// +kubebuilder:validation:Enum=Disabled;Managed
type ApplicationsMode string

const (
	// ApplicationsDisabled does not call the Access API. It is the default.
	ApplicationsDisabled ApplicationsMode = "Disabled"
	// ApplicationsManaged creates, changes and deletes applications.
	ApplicationsManaged ApplicationsMode = "Managed"
)

// CataloguePolicy is a reusable policy of Cloudflare Access.
type CataloguePolicy struct {
	// Name is how entries and AccessPolicies refer to the policy.
	//
	// +required
	Name PolicyName `json:"name"`

	// ID is the policy's ID in the account, as the Cloudflare dashboard shows it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_-]+$')",message="must be the ID of a reusable policy, as the Cloudflare dashboard shows it: letters, digits and hyphens only"
	ID string `json:"id"`
}

// PolicyName is the name of a policy in the catalogue of a GatewayClass.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a name in lower case, such as employees"
type PolicyName string

// AdoptApplicationsAnnotation on a Tunnel contains the applications of Cloudflare Access
// that the controller adopts at an administrator's request: a JSON list of
// [ApplicationAdoption], with at most [MaxAdoptions] entries. The controller removes each
// entry when it has adopted or refused the application.
const AdoptApplicationsAnnotation = "tunnelgateway.dev/adopt-applications"

// ApplicationAdoption is the request to adopt one application.
//
// +kubebuilder:object:generate=true
type ApplicationAdoption struct {
	// Hostname is the hostname or the wildcard that the application covers.
	Hostname string `json:"hostname"`
	// ID is the application's ID in the Cloudflare API.
	ID string `json:"id"`
	// Requested is when the administrator requested the adoption.
	Requested metav1.Time `json:"requested"`
}

// RequestedApplicationAdoptions returns the entries in the Tunnel's annotation, or an error
// that says why the annotation is not valid.
func (t *Tunnel) RequestedApplicationAdoptions() ([]ApplicationAdoption, error) {
	return parseAdoptions(t.Annotations[AdoptApplicationsAnnotation], "applications", "hostname or ID", func(a ApplicationAdoption) bool {
		return a.Requested.IsZero() || !fitsResult(a.Hostname) || a.ID == ""
	})
}

// TunnelAccessStatus reports on the applications of a Gateway's hostnames.
type TunnelAccessStatus struct {
	// Hostnames counts the demanded hostnames by the reason of their state, such as
	// Protected or Pending. See docs/conditions.md, "AccessReady".
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Hostnames map[string]int32 `json:"hostnames,omitempty"`

	// Adoptions are the results of the last requests to adopt applications.
	//
	// +optional
	// +listType=map
	// +listMapKey=hostname
	// +kubebuilder:validation:MaxItems=500
	Adoptions []ApplicationAdoptionResult `json:"adoptions,omitempty"`
}

// ApplicationAdoptionResult is the result of a request to adopt an application.
type ApplicationAdoptionResult struct {
	// Hostname is the hostname or the wildcard that the application covers.
	//
	// +required
	// +kubebuilder:validation:MaxLength=253
	Hostname string `json:"hostname"`

	// Requested is when the administrator requested the adoption.
	//
	// +required
	Requested metav1.Time `json:"requested"`

	// Result is Adopted or Refused.
	//
	// +required
	Result AdoptionResult `json:"result"`

	// Message explains the result.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// Access makes the connectors reject requests without a valid Cloudflare Access token.
// It exists only for listeners, because cloudflared enforces it only as part of an
// ingress rule's settings.
//
// +kubebuilder:validation:XValidation:rule="!self.required || has(self.teamName) || has(self.policies)",message="access is required but has neither policies nor teamName, so tokens cannot be validated: set policies, set teamName and audTags, or set required to false"
// +kubebuilder:validation:XValidation:rule="!self.required || (has(self.audTags) && size(self.audTags) > 0) || has(self.policies)",message="access is required but has neither policies nor audTags, so tokens cannot be validated: set policies, set the AUD tag of the Access application, or set required to false"
// +kubebuilder:validation:XValidation:rule="!has(self.policies) || (!has(self.teamName) && !has(self.audTags))",message="access has both policies and teamName or audTags: set policies for an application that the controller manages, or the other two for one that you manage"
// +kubebuilder:validation:XValidation:rule="has(self.policies) || (!has(self.sessionDuration) && !has(self.cors))",message="access has sessionDuration or cors without policies: they are settings of an application that the controller manages"
type Access struct {
	// Required determines whether a request must have a valid token. It has no
	// default, so that the other fields are never ignored by mistake.
	//
	// +required
	Required bool `json:"required"`

	// TeamName is the Zero Trust organization's name: <teamName> in
	// <teamName>.cloudflareaccess.com. Set it if required is true and policies is empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-z]([0-9a-z-]*[0-9a-z])?$')",message="must be the team name only, such as example for example.cloudflareaccess.com"
	TeamName *string `json:"teamName,omitempty"`

	// AUDTags are the Application Audience (AUD) tags of Access applications.
	// Connectors accept tokens for these applications. Set at least one if required is
	// true and policies is empty.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	AUDTags []AUDTag `json:"audTags,omitempty"`

	// Policies are the names of policies in the catalogue of the GatewayClass, in
	// spec.access.policies. The controller creates an application with these policies for
	// each hostname that the entry protects.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Policies []PolicyName `json:"policies,omitempty"`

	// SessionDuration is how long a visitor's session lasts before a new login. Default:
	// 24h.
	//
	// +optional
	SessionDuration *SessionDuration `json:"sessionDuration,omitempty"`

	// CORS makes Cloudflare answer CORS preflight requests, which have no token. Without
	// it, Cloudflare refuses them.
	//
	// +optional
	CORS *AccessCORS `json:"cors,omitempty"`
}

// SessionDuration is a number of whole minutes.
//
// +kubebuilder:validation:MaxLength=12
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}[hm]){1,2}$') && duration(self) > duration('0m') && duration(self) <= duration('730h')",message="must be a positive number of whole minutes, written in hours and minutes, of at most 730h, such as 8h or 30m"
type SessionDuration string

// AccessCORS are the CORS settings of an application. Cloudflare's edge answers preflight
// requests according to them.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.allowCredentials) && self.allowCredentials && has(self.allowOrigins) && self.allowOrigins.exists(o, o == '*'))",message="cors has allowCredentials with the origin *, which browsers refuse: list the origins, or remove allowCredentials"
type AccessCORS struct {
	// AllowOrigins are the origins that may read responses, such as
	// https://app.example.com. The value "*" allows every origin.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=269
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^https?://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$')",message="must be * or an origin without a path, such as https://app.example.com"
	AllowOrigins []string `json:"allowOrigins"`

	// AllowMethods are the methods of the requests that may be sent, in upper case.
	// Default: none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:Enum=GET;HEAD;POST;PUT;DELETE;CONNECT;OPTIONS;TRACE;PATCH
	AllowMethods []string `json:"allowMethods,omitempty"`

	// AllowHeaders are the names of the request headers that may be sent. Default: none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[0-9A-Za-z-]+$')",message="must be * or the name of a header, such as authorization"
	AllowHeaders []string `json:"allowHeaders,omitempty"`

	// AllowCredentials determines whether browsers send cookies. Access identifies a
	// visitor by a cookie. Default: false.
	//
	// +optional
	AllowCredentials *bool `json:"allowCredentials,omitempty"`

	// MaxAge is how many seconds a browser can keep the answer to a preflight request.
	// Default: the browser's.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MaxAge *int32 `json:"maxAge,omitempty"`
}

// Equal reports whether both blocks have the same meaning. Each can be nil. The order
// of the tags is irrelevant.
func (a *Access) Equal(other *Access) bool {
	if a == nil || other == nil {
		return a == other
	}
	includes := func(all, tags []AUDTag) bool {
		return !slices.ContainsFunc(tags, func(tag AUDTag) bool { return !slices.Contains(all, tag) })
	}
	samePolicies := slices.Equal(slices.Sorted(slices.Values(a.Policies)), slices.Sorted(slices.Values(other.Policies)))
	return a.Required == other.Required && ptr.Deref(a.TeamName, "") == ptr.Deref(other.TeamName, "") &&
		includes(a.AUDTags, other.AUDTags) && includes(other.AUDTags, a.AUDTags) &&
		samePolicies && ptr.Deref(a.SessionDuration, "") == ptr.Deref(other.SessionDuration, "") && reflect.DeepEqual(a.CORS, other.CORS)
}

// AUDTag identifies a Cloudflare Access application.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_-]+$')",message="must be the AUD tag of an Access application, as the Cloudflare dashboard shows it: letters and digits only"
type AUDTag string
