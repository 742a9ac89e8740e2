package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TunnelConfiguration holds settings of the infrastructure behind a Gateway's
// listeners: the tunnel, its connectors, and how they talk to the backends. It
// takes effect where it is referred to: spec.parametersRef of a GatewayClass
// for all Gateways of the class, spec.infrastructure.parametersRef for one
// Gateway. Where both exist they are merged, field by field.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=gateway-api
// +kubebuilder:metadata:annotations="tunnelgateway.dev/bundle-version=v0.1.0"
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.spec.account.accountID`,description="The Cloudflare account; empty means the controller's"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.connector.replicas`,description="How many connectors run; empty means two, or that they are autoscaled"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mergingMode`,description="Whose value stands where the GatewayClass and the Gateway set one"
// +kubebuilder:printcolumn:name="Existing",type=string,priority=1,JSONPath=`.spec.tunnel.existing.id`,description="The tunnel that is adopted"
// +kubebuilder:printcolumn:name="On-Deletion",type=string,priority=1,JSONPath=`.spec.tunnel.deletionPolicy`,description="What becomes of the tunnel when its Gateway is deleted"
// +kubebuilder:printcolumn:name="Autoscaled-To",type=integer,priority=1,JSONPath=`.spec.connector.autoscaling.maxReplicas`,description="How many connectors there may be at most"
// +kubebuilder:printcolumn:name="Protocol",type=string,priority=1,JSONPath=`.spec.connector.protocol`,description="How connectors connect to Cloudflare"
// +kubebuilder:printcolumn:name="Token-Secret",type=string,priority=1,JSONPath=`.spec.account.apiTokenSecretRef.name`,description="The Secret with the API token"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TunnelConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the settings. It has no status: what came of them stands in the
	// conditions of the GatewayClass and the Gateways that refer to the object.
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

// TunnelConfigurationSpec holds the settings. Every field is optional.
type TunnelConfigurationSpec struct {
	// MergingMode says whose value stands where the object of the GatewayClass
	// and the object of the Gateway both set a field. Default:
	// PreferGatewayClass. Counts in the GatewayClass's object only, because the
	// class's owner decides what a Gateway's owner may change.
	//
	// +optional
	MergingMode *MergingMode `json:"mergingMode,omitempty"`

	// Account is the Cloudflare account that has the tunnels, and the API token
	// for it. Default: the account and the token that the controller was started
	// with. Counts in the GatewayClass's object only, and only when that is in the
	// controller's namespace.
	//
	// +optional
	Account *Account `json:"account,omitempty"`

	// AllowedGatewayFields lists the fields that a Gateway's own
	// TunnelConfiguration may set: originRequest, listenerConfigurations,
	// tunnel.deletionPolicy, tunnel.existing, and connector.<field> for every field
	// of connector but image and allowedMetadataPrefixes. Default: originRequest,
	// listenerConfigurations, tunnel.deletionPolicy and connector.replicas. Counts
	// in the GatewayClass's object only.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AllowedGatewayFields []GatewayField `json:"allowedGatewayFields,omitzero"`

	// Limits bound what the Gateways of a class may use. Counts in the
	// GatewayClass's object only.
	//
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// Tunnel says which tunnel serves a Gateway and what happens to it. Counts at
	// both levels; at the Gateway's as far as allowedGatewayFields permits.
	//
	// +optional
	Tunnel *TunnelSettings `json:"tunnel,omitempty"`

	// Connector says how cloudflared is run. Counts at both levels; at the
	// Gateway's as far as allowedGatewayFields permits.
	//
	// +optional
	Connector *Connector `json:"connector,omitempty"`

	// OriginRequest says how the connectors talk to the backends, for all rules
	// of the tunnel. Counts at both levels; at the Gateway's as far as
	// allowedGatewayFields permits.
	//
	// +optional
	OriginRequest *OriginRequest `json:"originRequest,omitempty"`

	// ListenerConfigurations are settings for the routes that are attached to
	// some of the listeners, keyed by protocolPort and hostname. Counts at both
	// levels, at the Gateway's as far as allowedGatewayFields permits: entries of
	// the same key are merged field by field.
	//
	// Where the listeners of one hostname on several ports disagree, the
	// strictest access counts; else HTTPS comes before HTTP, then the lower port.
	//
	// +optional
	// +listType=map
	// +listMapKey=protocolPort
	// +listMapKey=hostname
	// +kubebuilder:validation:MaxItems=256
	ListenerConfigurations []ListenerConfiguration `json:"listenerConfigurations,omitempty"`
}

// GatewayField is the name of a field of a TunnelConfiguration.
//
// +kubebuilder:validation:Enum=originRequest;listenerConfigurations;tunnel.deletionPolicy;tunnel.existing;connector.enabled;connector.replicas;connector.autoscaling;connector.protocol;connector.logLevel;connector.resources;connector.nodeSelector;connector.tolerations;connector.affinity;connector.topologySpreadConstraints;connector.podAnnotations;connector.podLabels;connector.gracePeriod;connector.podDisruptionBudget;connector.tokenRotation
type GatewayField string

// Limits bound what the Gateways of a class may use.
type Limits struct {
	// TunnelsPerNamespace is the number of Tunnels that the Gateways of one
	// namespace may have. Tunnels that retire, are retained or are blocked count.
	// The youngest Gateways above it are not accepted. Default: 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	TunnelsPerNamespace *int32 `json:"tunnelsPerNamespace,omitempty"`

	// ConnectorReplicas bounds the number of connectors that a Gateway's own
	// TunnelConfiguration may ask for. It does not bound the class's own values.
	//
	// +optional
	ConnectorReplicas *ReplicaBounds `json:"connectorReplicas,omitempty"`
}

// ReplicaBounds bounds a number of connectors.
//
// +kubebuilder:validation:XValidation:rule="(has(self.min) ? self.min : 1) <= (has(self.max) ? self.max : 4)",message="min is greater than max: lower min, which is 1 by default, or raise max, which is 4 by default"
type ReplicaBounds struct {
	// Min is the smallest number of connectors. Default: 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=25
	Min *int32 `json:"min,omitempty"`

	// Max is the greatest number of connectors. Default: 4.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=25
	Max *int32 `json:"max,omitempty"`
}

// MergingMode says whose value stands where both levels set a field.
//
// +kubebuilder:validation:Enum=PreferGatewayClass;PreferGateway
type MergingMode string

const (
	// MergingModePreferGatewayClass lets the GatewayClass's value stand, so that
	// a Gateway's owner can only add what the class leaves open. It is the
	// default.
	MergingModePreferGatewayClass MergingMode = "PreferGatewayClass"
	// MergingModePreferGateway lets the Gateway's value stand, so that the
	// class's are defaults.
	MergingModePreferGateway MergingMode = "PreferGateway"
)

// Account is a Cloudflare account.
//
// +kubebuilder:validation:XValidation:rule="has(self.accountID) || has(self.apiTokenSecretRef)",message="account is empty: set accountID, apiTokenSecretRef or both, or leave account out"
type Account struct {
	// AccountID is the ID of the account, as the Cloudflare dashboard shows it: 32
	// hexadecimal digits. Default: the account that the controller was started
	// with.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_-]+$')",message="must be the ID of an account, as the Cloudflare dashboard shows it: letters and digits only"
	AccountID *string `json:"accountID,omitempty"`

	// APITokenSecretRef refers to the Secret with the API token. It lies in the
	// namespace of the TunnelConfiguration. The token needs the permission
	// Cloudflare Tunnel: Edit. Default: the token that the controller was
	// started with.
	//
	// +optional
	APITokenSecretRef *SecretKeyReference `json:"apiTokenSecretRef,omitempty"`
}

// SecretKeyReference refers to one key of a Secret in the same namespace.
type SecretKeyReference struct {
	// Name is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key is the key of the Secret's data under which the value stands. Default:
	// token.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="must be a key of a Secret: letters, digits, '-', '_' and '.' only"
	Key *string `json:"key,omitempty"`
}

// DefaultSecretKey is what an unset [SecretKeyReference.Key] means.
const DefaultSecretKey = "token"

// TunnelSettings say which tunnel serves a Gateway.
type TunnelSettings struct {
	// Existing adopts a tunnel that exists already instead of creating one. The
	// controller does not replace the configuration that the tunnel has until
	// takeover permits it.
	//
	// +optional
	Existing *ExistingTunnel `json:"existing,omitempty"`

	// DeletionPolicy says what happens to the tunnel when its Gateway is deleted.
	// Default: Delete for a tunnel that the controller created, Retain for an
	// adopted one. For an adopted tunnel, Delete counts in the GatewayClass's
	// object only.
	//
	// +optional
	DeletionPolicy *DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ExistingTunnel names a tunnel that exists already.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) || has(self.takeover)",message="existing is empty: set id, or takeover in the TunnelConfiguration of a GatewayClass, or leave existing out"
type ExistingTunnel struct {
	// ID is the tunnel's ID, a UUID in lower case, as the Cloudflare dashboard
	// shows it. A Gateway's own TunnelConfiguration needs it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="must be the ID of a tunnel: a UUID in lower case, as in 0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"
	ID string `json:"id,omitempty"`

	// Takeover permits the controller to replace a configuration of an adopted
	// tunnel that the controller did not write. Without an id, it does so for the
	// tunnels that the Gateways of the class name. Counts in the GatewayClass's
	// object only. Default: false.
	//
	// +optional
	Takeover *bool `json:"takeover,omitempty"`
}

// DeletionPolicy says what becomes of a tunnel when its Gateway is deleted.
//
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes the tunnel with its Gateway.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain leaves the tunnel and its configuration as they are.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)
