package v1alpha1

import (
	"slices"

	"k8s.io/utils/ptr"
)

// EveryPort is the protocolPort for an entry that selects listeners with any protocol
// and port.
const EveryPort = "*"

// ListenerConfiguration contains settings for routes that attach to certain listeners
// on a Gateway, including listeners from its ListenerSets.
type ListenerConfiguration struct {
	// ProtocolPort selects listeners by protocol and port, for example HTTPS:443. The
	// value "*" selects every listener. The originRequest fields in an entry for a
	// protocol and port override the same fields in an entry for "*" with the same
	// hostname. access always applies to every port, because a tunnel does not
	// distinguish ports. Therefore, use "*" for an entry with access.
	//
	// +required
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^(HTTP|HTTPS):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$')",message="must be HTTP or HTTPS, a colon, and a port from 1 to 65535, such as HTTPS:443, or * for every listener"
	ProtocolPort string `json:"protocolPort"`

	// Hostname restricts the entry to a hostname, which may be a wildcard such as
	// *.example.com. originRequest applies to listeners with exactly this hostname, and
	// overrides, field by field, an entry without a hostname. access applies to every
	// hostname that this hostname covers, even below a listener's wildcard; the entry
	// with the most specific hostname takes precedence. Default: the empty string,
	// which means every hostname.
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the hostname of a listener in lower case, such as www.example.com or *.example.com"
	Hostname string `json:"hostname,omitempty"`

	// OriginRequest overrides, field by field, how connectors connect to the routes'
	// backends. Default: spec.originRequest.
	//
	// +optional
	OriginRequest *OriginRequest `json:"originRequest,omitempty"`

	// Access makes the connectors require a valid Cloudflare Access token. If the
	// GatewayClass requires a token for a hostname, its access block applies as a
	// whole, in every mergingMode. Otherwise, the Gateway's access block applies.
	// Entries for the same hostname must have equal blocks. Default: no token is
	// required.
	//
	// +optional
	Access *Access `json:"access,omitempty"`
}

// Access makes the connectors reject requests without a valid Cloudflare Access token.
// It exists only for listeners, because cloudflared enforces it only as part of an
// ingress rule's settings.
//
// +kubebuilder:validation:XValidation:rule="!self.required || has(self.teamName)",message="access is required but has no teamName, so tokens cannot be validated: set teamName, or set required to false"
// +kubebuilder:validation:XValidation:rule="!self.required || (has(self.audTags) && size(self.audTags) > 0)",message="access is required but has no audTags, so tokens cannot be validated: set the AUD tag of the Access application, or set required to false"
type Access struct {
	// Required determines whether a request must have a valid token. It has no
	// default, so that teamName and audTags are never ignored by mistake.
	//
	// +required
	Required bool `json:"required"`

	// TeamName is the Zero Trust organization's name: <teamName> in
	// <teamName>.cloudflareaccess.com. Set it if required is true.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-z]([0-9a-z-]*[0-9a-z])?$')",message="must be the team name only, such as example for example.cloudflareaccess.com"
	TeamName *string `json:"teamName,omitempty"`

	// AUDTags are the Application Audience (AUD) tags of Access applications.
	// Connectors accept tokens for these applications. Set at least one if required is
	// true.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	AUDTags []AUDTag `json:"audTags,omitempty"`
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
	return a.Required == other.Required && ptr.Deref(a.TeamName, "") == ptr.Deref(other.TeamName, "") &&
		includes(a.AUDTags, other.AUDTags) && includes(other.AUDTags, a.AUDTags)
}

// AUDTag identifies a Cloudflare Access application.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_-]+$')",message="must be the AUD tag of an Access application, as the Cloudflare dashboard shows it: letters and digits only"
type AUDTag string
