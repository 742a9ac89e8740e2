package v1alpha1

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
	// whole, in every mergingMode. Otherwise, the Gateway's access block applies, then
	// the AccessPolicies for the listener. Entries for the same hostname must have equal
	// blocks. Default: no token is required.
	//
	// +optional
	Access *Access `json:"access,omitempty"`
}
