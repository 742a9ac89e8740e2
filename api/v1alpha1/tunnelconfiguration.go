package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TunnelConfiguration contains settings for the infrastructure behind a Gateway's
// listeners: the tunnel, its connectors, and their connections to the backends. A
// TunnelConfiguration applies to all Gateways of the GatewayClass that refers to it in
// spec.parametersRef, or to the Gateway that refers to it in
// spec.infrastructure.parametersRef. If both exist, the controller merges them field by
// field.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=gateway-api
// +kubebuilder:metadata:annotations="tunnelgateway.dev/bundle-version=v0.1.0"
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.spec.account.accountID`,description="The Cloudflare account; empty means the default account of the controller"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.connector.replicas`,description="The number of connectors; empty means two, or autoscaling"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mergingMode`,description="The value that takes precedence where the GatewayClass and the Gateway both set one"
// +kubebuilder:printcolumn:name="Existing",type=string,priority=1,JSONPath=`.spec.tunnel.existing.id`,description="The ID of the adopted tunnel"
// +kubebuilder:printcolumn:name="On-Deletion",type=string,priority=1,JSONPath=`.spec.tunnel.deletionPolicy`,description="What happens to the tunnel when its Gateway is deleted"
// +kubebuilder:printcolumn:name="Autoscaled-To",type=integer,priority=1,JSONPath=`.spec.connector.autoscaling.maxReplicas`,description="The maximum number of connectors"
// +kubebuilder:printcolumn:name="Protocol",type=string,priority=1,JSONPath=`.spec.connector.protocol`,description="The transport between connectors and Cloudflare's edge"
// +kubebuilder:printcolumn:name="Token-Secret",type=string,priority=1,JSONPath=`.spec.account.apiTokenSecretRef.name`,description="The Secret with the API token"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TunnelConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec contains the settings. A TunnelConfiguration has no status: the
	// conditions of the GatewayClass or Gateway that refers to it report whether
	// the settings are valid.
	//
	// +optional
	Spec TunnelConfigurationSpec `json:"spec,omitzero"`
}

// TunnelConfigurationList is a list of TunnelConfigurations.
//
// +kubebuilder:object:root=true
type TunnelConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TunnelConfiguration `json:"items"`
}

// TunnelConfigurationSpec contains the settings. Every field is optional.
type TunnelConfigurationSpec struct {
	// MergingMode determines which value takes precedence where the GatewayClass's and
	// the Gateway's TunnelConfigurations both set a field. Default: PreferGatewayClass.
	// Only a GatewayClass's TunnelConfiguration may set it.
	//
	// +optional
	MergingMode *MergingMode `json:"mergingMode,omitempty"`

	// Account is the Cloudflare account that owns the tunnels, and its API token.
	// Default: the account and the token in the controller's configuration. Only a
	// GatewayClass's TunnelConfiguration may set it, and only in the controller's
	// namespace.
	//
	// +optional
	Account *Account `json:"account,omitempty"`

	// DataPlane determines which proxies route the Gateways' requests. With
	// IngressRules, the connectors route requests by the tunnel's ingress rules. With
	// Envoy, an Envoy proxy beside each connector routes requests, and supports more
	// Gateway API features. After a change, the previous data plane serves each Gateway
	// until the new data plane is ready. Default: the value of the GatewayClass's
	// annotation tunnelgateway.dev/data-plane, or IngressRules. Only a GatewayClass's
	// TunnelConfiguration may set it.
	//
	// +optional
	DataPlane *DataPlane `json:"dataPlane,omitempty"`

	// AllowedGatewayFields lists the fields that a Gateway's TunnelConfiguration may
	// set. Possible values are originRequest, listenerConfigurations,
	// tunnel.deletionPolicy, tunnel.existing, and connector.<field> for every connector
	// field except image, envoy, metrics, metricsFrom and allowedMetadataPrefixes.
	// Default: originRequest, listenerConfigurations, tunnel.deletionPolicy and
	// connector.replicas. Only a GatewayClass's TunnelConfiguration may set it.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AllowedGatewayFields []GatewayField `json:"allowedGatewayFields,omitzero"`

	// Limits restrict the resources that the Gateways of a GatewayClass may use. Only a
	// GatewayClass's TunnelConfiguration may set them.
	//
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// Pausing determines whether the annotation tunnelgateway.dev/paused on a Gateway
	// has an effect. While a Gateway is paused, its tunnel keeps what others revoke.
	// Default: Allowed. Only a GatewayClass's TunnelConfiguration may set it.
	//
	// +optional
	Pausing *Pausing `json:"pausing,omitempty"`

	// Hostnames determine which hostnames a namespace may use on the Gateways of a
	// GatewayClass. Only a GatewayClass's TunnelConfiguration may set them.
	//
	// +optional
	Hostnames *Hostnames `json:"hostnames,omitempty"`

	// DNS determines whether the controller reads or manages the DNS records of
	// hostnames. Only a GatewayClass's TunnelConfiguration may set it, and only in the
	// controller's namespace.
	//
	// +optional
	DNS *DNS `json:"dns,omitempty"`

	// Access determines whether the controller manages applications of Cloudflare Access.
	// Only a GatewayClass's TunnelConfiguration may set it, and only in the controller's
	// namespace.
	//
	// +optional
	Access *AccessApplications `json:"access,omitempty"`

	// Tunnel determines which tunnel serves a Gateway, and what happens to the
	// tunnel when the Gateway is deleted. A Gateway's TunnelConfiguration may set
	// the fields that allowedGatewayFields lists.
	//
	// +optional
	Tunnel *TunnelSettings `json:"tunnel,omitempty"`

	// Connector configures the connectors. A Gateway's TunnelConfiguration may set
	// the fields that allowedGatewayFields lists.
	//
	// +optional
	Connector *Connector `json:"connector,omitempty"`

	// OriginRequest configures how connectors connect to the backends, for all the
	// tunnel's rules. A Gateway's TunnelConfiguration may set it if
	// allowedGatewayFields lists it.
	//
	// +optional
	OriginRequest *OriginRequest `json:"originRequest,omitempty"`

	// ListenerConfigurations are settings for routes that attach to certain listeners,
	// keyed by protocolPort and hostname. A Gateway's TunnelConfiguration may set them
	// if allowedGatewayFields lists listenerConfigurations. For each listener, the
	// controller merges originRequest field by field from all entries that select it,
	// but never merges access.
	//
	// If listeners for one hostname on several ports have different values in
	// originRequest, HTTPS takes precedence over HTTP, then the lower port over the
	// higher one.
	//
	// +optional
	// +listType=map
	// +listMapKey=protocolPort
	// +listMapKey=hostname
	// +kubebuilder:validation:MaxItems=256
	ListenerConfigurations []ListenerConfiguration `json:"listenerConfigurations,omitempty"`
}

// GatewayField names a field in a TunnelConfiguration.
//
// +kubebuilder:validation:Enum=originRequest;listenerConfigurations;tunnel.deletionPolicy;tunnel.existing;connector.enabled;connector.replicas;connector.autoscaling;connector.protocol;connector.edgeIPVersion;connector.logLevel;connector.resources;connector.nodeSelector;connector.tolerations;connector.affinity;connector.topologySpreadConstraints;connector.podAnnotations;connector.podLabels;connector.readyDelay;connector.gracePeriod;connector.podDisruptionBudget;connector.tokenRotation
type GatewayField string

// Hostnames determine which hostnames a namespace may use.
type Hostnames struct {
	// From determines where a namespace's permitted hostnames come from: All permits
	// every hostname, and NamespaceAnnotation permits the hostnames in the Namespace's
	// annotation tunnelgateway.dev/hostnames. With NamespaceAnnotation, a ListenerSet
	// claims only hostnames that the annotation on its namespace permits. The
	// controller serves a route only under hostnames that the annotations on both
	// namespaces permit. The Gateway's own listeners, and the routes in its namespace
	// on them, need no permission. Default: All.
	//
	// +optional
	From *HostnamesFrom `json:"from,omitempty"`
}

// HostnamesFrom determines where a namespace's permitted hostnames come from.
//
// +kubebuilder:validation:Enum=All;NamespaceAnnotation
type HostnamesFrom string

const (
	// HostnamesFromAll permits every hostname. It is the default.
	HostnamesFromAll HostnamesFrom = "All"
	// HostnamesFromNamespaceAnnotation permits the hostnames in the Namespace's
	// annotation tunnelgateway.dev/hostnames.
	HostnamesFromNamespaceAnnotation HostnamesFrom = "NamespaceAnnotation"
)

// MergingMode determines which value takes precedence where the GatewayClass and
// the Gateway both set a field.
//
// +kubebuilder:validation:Enum=PreferGatewayClass;PreferGateway
type MergingMode string

const (
	// MergingModePreferGatewayClass prefers the GatewayClass's value, so that a Gateway
	// can set only fields that the GatewayClass does not set. It is the default.
	MergingModePreferGatewayClass MergingMode = "PreferGatewayClass"
	// MergingModePreferGateway prefers the Gateway's value, so that the GatewayClass's
	// values are defaults.
	MergingModePreferGateway MergingMode = "PreferGateway"
)

// Account is a Cloudflare account.
//
// +kubebuilder:validation:XValidation:rule="has(self.accountID) || has(self.apiTokenSecretRef)",message="account is empty: set accountID, apiTokenSecretRef or both, or remove account"
type Account struct {
	// AccountID is the account ID: the 32 hexadecimal digits that the Cloudflare
	// dashboard shows. Default: the account in the controller's configuration.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_-]+$')",message="must be the ID of an account, as the Cloudflare dashboard shows it: letters and digits only"
	AccountID *string `json:"accountID,omitempty"`

	// APITokenSecretRef refers to the Secret with the API token, in the
	// TunnelConfiguration's namespace. The token requires the permission Cloudflare
	// Tunnel: Edit. Default: the token in the controller's configuration.
	//
	// +optional
	APITokenSecretRef *SecretKeyReference `json:"apiTokenSecretRef,omitempty"`
}

// SecretKeyReference refers to one key of a Secret in the same namespace.
type SecretKeyReference struct {
	// Name is the Secret name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key is the key in the Secret data. Default: token.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="must be a key of a Secret: letters, digits, '-', '_' and '.' only"
	Key *string `json:"key,omitempty"`
}

// DefaultSecretKey is the default for [SecretKeyReference.Key].
const DefaultSecretKey = "token"

// TunnelSettings determine which tunnel serves a Gateway, and what happens to the
// tunnel when the Gateway is deleted.
type TunnelSettings struct {
	// Existing identifies an existing tunnel to adopt. The controller does not replace
	// the tunnel's existing configuration, unless takeover permits it. Default: the
	// controller creates a tunnel.
	//
	// +optional
	Existing *ExistingTunnel `json:"existing,omitempty"`

	// DeletionPolicy determines what happens to the tunnel when its Gateway is deleted:
	// Delete deletes it, Retain keeps it. A new Gateway with the same namespace and
	// name gets a retained tunnel with its address, even if another user creates it.
	// Default: Delete for a tunnel that the controller created, Retain for an adopted
	// tunnel. Only a GatewayClass's TunnelConfiguration may set Delete for an adopted
	// tunnel.
	//
	// +optional
	DeletionPolicy *DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ExistingTunnel identifies an existing tunnel to adopt.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) || has(self.takeover)",message="existing is empty: set id, or takeover in the TunnelConfiguration of a GatewayClass, or remove existing"
type ExistingTunnel struct {
	// ID is the tunnel ID: the UUID in lower case that the Cloudflare dashboard shows.
	// A Gateway's TunnelConfiguration must set it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="must be a tunnel ID: a UUID in lower case, such as 0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"
	ID string `json:"id,omitempty"`

	// Takeover permits the controller to replace the adopted tunnel's configuration
	// even if the controller did not write it. Without an id, it applies to all tunnels
	// that the Gateways of the GatewayClass adopt. Default: false. Only a
	// GatewayClass's TunnelConfiguration may set it.
	//
	// +optional
	Takeover *bool `json:"takeover,omitempty"`
}
