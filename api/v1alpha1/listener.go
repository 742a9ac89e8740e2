package v1alpha1

// ListenerConfiguration holds settings for the ingress rules of the routes that
// are attached to some of a Gateway's listeners, those of its ListenerSets
// included.
type ListenerConfiguration struct {
	// ProtocolPort is the protocol and the port of the listeners, as in HTTPS:443.
	//
	// +required
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule="self.matches('^(HTTP|HTTPS):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$')",message="must be HTTP or HTTPS, a colon, and a port from 1 to 65535, as in HTTPS:443"
	ProtocolPort string `json:"protocolPort"`

	// Hostname narrows the entry to the listeners with exactly this hostname, which
	// may be a wildcard such as *.example.com. Default, also when it is the empty
	// string: all listeners of the protocol and port. Where an entry with a
	// hostname and one without both set a field, the one with the hostname counts.
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the hostname of a listener in lower case, as in www.example.com or *.example.com"
	Hostname string `json:"hostname,omitempty"`

	// OriginRequest overrides, field by field, how the connectors talk to the
	// backends of these routes. Default: the tunnel's.
	//
	// +optional
	OriginRequest *OriginRequest `json:"originRequest,omitempty"`

	// Access makes the connectors demand a valid token of Cloudflare Access.
	// Default: none is demanded.
	//
	// +optional
	Access *Access `json:"access,omitempty"`
}

// Access makes the connectors refuse what does not come with a valid token of
// Cloudflare Access. It stands with listeners only, because cloudflared
// enforces it in the block of a rule only. An incomplete one is refused.
//
// +kubebuilder:validation:XValidation:rule="!self.required || has(self.teamName)",message="access is required but has no teamName, without which no token can be checked: set teamName, or set required to false"
// +kubebuilder:validation:XValidation:rule="!self.required || (has(self.audTags) && size(self.audTags) > 0)",message="access is required but has no audTags, without which no token can be checked: set the AUD tag of the Access application, or set required to false"
type Access struct {
	// Required says whether a token is demanded. It must be said, so that the rest
	// of the block is never ignored by mistake.
	//
	// +required
	Required bool `json:"required"`

	// TeamName is the name of the Zero Trust organisation: <teamName> in
	// <teamName>.cloudflareaccess.com. Needed when required is true.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-z]([0-9a-z-]*[0-9a-z])?$')",message="must be the team name alone, as in example for example.cloudflareaccess.com"
	TeamName *string `json:"teamName,omitempty"`

	// AUDTags are the Application Audience (AUD) tags of the Access applications
	// whose tokens are accepted. At least one is needed when required is true.
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
