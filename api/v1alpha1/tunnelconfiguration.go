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
// +kubebuilder:printcolumn:name="Tunnel",type=string,JSONPath=`.spec.tunnel.name`,description="The name of the tunnel; empty means that of the Gateway"
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

	// Account is the Cloudflare account that has the tunnels, and the token that
	// opens it. Default: the account and the token that the controller was
	// started with. Counts in the GatewayClass's object only: a Gateway's owner
	// must not be able to choose another account.
	//
	// +optional
	Account *Account `json:"account,omitempty"`

	// Tunnel says which tunnel serves a Gateway and what becomes of it. Counts
	// at both levels.
	//
	// +optional
	Tunnel *TunnelSettings `json:"tunnel,omitempty"`

	// Connector says how cloudflared is run. Counts at both levels, but for
	// image.
	//
	// +optional
	Connector *Connector `json:"connector,omitempty"`

	// OriginRequest says how the connectors talk to the backends, for all rules
	// of the tunnel. Counts at both levels.
	//
	// +optional
	OriginRequest *OriginRequest `json:"originRequest,omitempty"`

	// ListenerConfigurations are settings for the routes that are attached to
	// some of the listeners, keyed by protocolPort and hostname. Counts at both
	// levels: entries of the same key are merged field by field.
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
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.existing))",message="tunnel has both name and existing: set name for a tunnel that the controller makes, or existing for one made elsewhere, not both"
type TunnelSettings struct {
	// Name is the name of the tunnel that the controller makes, as the Cloudflare
	// dashboard shows it: 1 to 96 characters. Default: <cluster ID>-<namespace of
	// the Gateway>-<name of the Gateway>, shortened with a hash where it is too
	// long. A tunnel that has the name already is taken for the Gateway's own. A
	// tunnel serves one Gateway, so that a name in a GatewayClass's object suits a
	// class with a single Gateway.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s\\\\p{C}]([^\\\\p{C}]*[^\\\\s\\\\p{C}])?$')",message="must be the name of a tunnel: 1 to 96 characters that neither begin nor end with white space, and no control characters"
	Name *string `json:"name,omitempty"`

	// Existing adopts a tunnel that was made elsewhere instead of making one. The
	// configuration that it has is left alone until the Gateway's annotation
	// tunnelgateway.dev/takeover: "true" permits to replace it.
	//
	// +optional
	Existing *ExistingTunnel `json:"existing,omitempty"`

	// DeletionPolicy says what becomes of the tunnel when its Gateway is deleted.
	// Default: Delete for a tunnel that the controller made, Retain for an
	// adopted one.
	//
	// +optional
	DeletionPolicy *DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ExistingTunnel names a tunnel that was made elsewhere.
type ExistingTunnel struct {
	// ID is the tunnel's ID, a UUID in lower case, as the Cloudflare dashboard
	// shows it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="must be the ID of a tunnel: a UUID in lower case, as in 0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"
	ID string `json:"id"`
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
