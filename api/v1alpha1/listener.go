package v1alpha1

// ListenerConfiguration contains settings for routes that attach to certain
// listeners of a Gateway, including the listeners of its ListenerSets.
type ListenerConfiguration struct {
	// ProtocolPort selects listeners by protocol and port, for example HTTPS:443.
	//
	// +required
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule="self.matches('^(HTTP|HTTPS):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$')",message="must be HTTP or HTTPS, a colon, and a port from 1 to 65535, such as HTTPS:443"
	ProtocolPort string `json:"protocolPort"`

	// Hostname restricts the entry to listeners with exactly this hostname, which
	// may be a wildcard such as *.example.com. A field of an entry with a hostname
	// overrides the same field of an entry without one. Default: the empty string,
	// which selects all listeners with the protocol and port.
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the hostname of a listener in lower case, such as www.example.com or *.example.com"
	Hostname string `json:"hostname,omitempty"`

	// OriginRequest overrides, field by field, how connectors connect to the
	// backends of these routes. Default: spec.originRequest.
	//
	// +optional
	OriginRequest *OriginRequest `json:"originRequest,omitempty"`

	// Access makes the connectors require a valid token of Cloudflare Access.
	// Default: no token is required.
	//
	// +optional
	Access *Access `json:"access,omitempty"`
}

// Access makes the connectors reject requests without a valid token of Cloudflare
// Access. It exists only for listeners, because cloudflared enforces it only in
// the settings of an ingress rule.
//
// +kubebuilder:validation:XValidation:rule="!self.required || has(self.teamName)",message="access is required but has no teamName, so tokens cannot be validated: set teamName, or set required to false"
// +kubebuilder:validation:XValidation:rule="!self.required || (has(self.audTags) && size(self.audTags) > 0)",message="access is required but has no audTags, so tokens cannot be validated: set the AUD tag of the Access application, or set required to false"
type Access struct {
	// Required determines whether a request must have a valid token. It has no
	// default, so that teamName and audTags are never ignored by mistake.
	//
	// +required
	Required bool `json:"required"`

	// TeamName is the name of the Zero Trust organization: <teamName> in
	// <teamName>.cloudflareaccess.com. It must be set when required is true.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-z]([0-9a-z-]*[0-9a-z])?$')",message="must be the team name only, such as example for example.cloudflareaccess.com"
	TeamName *string `json:"teamName,omitempty"`

	// AUDTags are the Application Audience (AUD) tags of the Access applications
	// whose tokens are accepted. At least one must be set when required is true.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	AUDTags []AUDTag `json:"audTags,omitempty"`
}

// AUDTag identifies an application of Cloudflare Access.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_-]+$')",message="must be the AUD tag of an Access application, as the Cloudflare dashboard shows it: letters and digits only"
type AUDTag string
