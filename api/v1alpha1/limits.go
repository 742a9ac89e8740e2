package v1alpha1

// Limits restrict the resources that the Gateways of a GatewayClass may use.
type Limits struct {
	// TunnelsPerNamespace is the maximum number of Tunnels for the Gateways in one
	// namespace, including Tunnels that are retiring, retained or blocked. The
	// controller does not accept the youngest Gateways above the limit. Default: 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	TunnelsPerNamespace *int32 `json:"tunnelsPerNamespace,omitempty"`

	// ConnectorReplicas restricts how many connectors a Gateway's TunnelConfiguration
	// may set. It does not restrict the number in the GatewayClass's
	// TunnelConfiguration. Default: 1 to 4.
	//
	// +optional
	ConnectorReplicas *ReplicaBounds `json:"connectorReplicas,omitempty"`

	// TenantLabel is the key of a Namespace label. Namespaces with the same label value
	// count as one tenant for rulesPerTunnel, rulesPerNamespace, routesPerHostname,
	// listenersPerNamespace and the limits on the size of regular expressions. A
	// namespace without the label is a separate tenant. Use a label only if tenants
	// cannot change it, for example because they cannot edit Namespaces. Default: each
	// namespace is a separate tenant.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be the key of a label, such as example.com/tenant"
	TenantLabel *string `json:"tenantLabel,omitempty"`

	// RulesPerTunnel is the maximum number of ingress rules for one Gateway, not
	// counting the last rule in the configuration. With dataPlane Envoy, it limits the
	// number of Envoy routes. The controller does not accept routes above the limit: it
	// first serves the Gateway's namespace, and then divides the remaining rules fairly
	// among the tenants. Default: 1000, and 20000 with dataPlane Envoy.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RulesPerTunnel *int32 `json:"rulesPerTunnel,omitempty"`

	// RulesPerNamespace is the maximum number of ingress rules that one tenant may have
	// on one Gateway. The controller does not accept the youngest routes above the
	// limit. Default: no limit except rulesPerTunnel.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RulesPerNamespace *int32 `json:"rulesPerNamespace,omitempty"`

	// RoutesPerHostname is the maximum number of Envoy routes for one hostname,
	// including routes that are repeated from wider hostnames. It applies only with
	// dataPlane Envoy. The controller does not accept routes above the limit, and
	// divides the hostname's routes among the tenants in the same way as for
	// rulesPerTunnel. Default: 1000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RoutesPerHostname *int32 `json:"routesPerHostname,omitempty"`

	// ListenersPerNamespace is the maximum number of listeners that one tenant's
	// ListenerSets may have on one Gateway. Above the limit, the controller does not
	// accept the last listeners in the youngest ListenerSets. Default: 64.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	ListenersPerNamespace *int32 `json:"listenersPerNamespace,omitempty"`

	// RegularExpressions determines whether routes may use regular expressions. With
	// Refused, the controller omits every match with a regular expression. Default:
	// Allowed.
	//
	// +optional
	RegularExpressions *RegularExpressions `json:"regularExpressions,omitempty"`

	// ConfigurationUpdates restricts how often the controller writes a tunnel's
	// configuration. Each write interrupts the idle connections between connectors and
	// backends.
	//
	// +optional
	ConfigurationUpdates *ConfigurationUpdates `json:"configurationUpdates,omitempty"`
}

// RegularExpressions determines whether routes may use regular expressions.
//
// +kubebuilder:validation:Enum=Allowed;Refused
type RegularExpressions string

const (
	// RegularExpressionsAllowed permits regular expressions up to the limits on
	// their size. It is the default.
	RegularExpressionsAllowed RegularExpressions = "Allowed"
	// RegularExpressionsRefused omits every match that has a regular expression.
	RegularExpressionsRefused RegularExpressions = "Refused"
)

// ConfigurationUpdates restricts how often the controller writes a tunnel's
// configuration. It is a token bucket: a write takes one token.
type ConfigurationUpdates struct {
	// Burst is the maximum number of writes in quick succession. Default: 20.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Burst *int32 `json:"burst,omitempty"`

	// Interval is the time after which one more write is permitted. A change never
	// waits longer, and revoking a rule does not wait. Default: 5s.
	//
	// +optional
	Interval *Duration `json:"interval,omitempty"`
}

// ReplicaBounds is a range for the connector count.
//
// +kubebuilder:validation:XValidation:rule="(has(self.min) ? self.min : 1) <= (has(self.max) ? self.max : 4)",message="min is greater than max: lower min (default 1) or raise max (default 4)"
type ReplicaBounds struct {
	// Min is the minimum number of connectors. Default: 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=25
	Min *int32 `json:"min,omitempty"`

	// Max is the maximum number of connectors. Default: 4.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=25
	Max *int32 `json:"max,omitempty"`
}
