package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tunnel represents the Cloudflare tunnel of one Gateway. The controller
// creates it in its own namespace, records there what it owns at Cloudflare,
// and reports the state of the tunnel. Tunnels in other namespaces are ignored.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tun,categories=gateway-api
// +kubebuilder:metadata:annotations="tunnelgateway.dev/bundle-version=v0.1.0"
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.gateway`,description="The Gateway that the tunnel serves"
// +kubebuilder:printcolumn:name="Tunnel",type=string,JSONPath=`.status.tunnelID`,description="The ID of the tunnel at Cloudflare"
// +kubebuilder:printcolumn:name="Hostnames",type=integer,JSONPath=`.status.hostnames`,description="The number of hostnames that the tunnel serves"
// +kubebuilder:printcolumn:name="Connectors",type=string,JSONPath=`.status.connectors.summary`,description="Ready and desired connectors"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="The phase of the tunnel's life"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="The message of the condition Ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Tunnel struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the tunnel. The controller writes it. An
	// administrator can change deletionPolicy and paused of a Tunnel whose
	// Gateway is gone.
	//
	// +required
	Spec TunnelSpec `json:"spec,omitzero"`

	// Status is the observed state of the tunnel, and the record of what the
	// controller owns at Cloudflare.
	//
	// +optional
	Status TunnelStatus `json:"status,omitzero"`
}

// TunnelList is a list of Tunnels.
//
// +kubebuilder:object:root=true
type TunnelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tunnel `json:"items"`
}

// TunnelSpec is the desired state of a tunnel. The fields gateway,
// controllerName, clusterUID, accountID, name and existing identify the tunnel
// and cannot be changed; of existing only takeover can. To switch a Gateway to
// another tunnel, an administrator deletes the Tunnel object.
//
// +kubebuilder:validation:XValidation:rule="self.gateway == oldSelf.gateway && self.controllerName == oldSelf.controllerName && self.clusterUID == oldSelf.clusterUID && self.accountID == oldSelf.accountID && self.name == oldSelf.name",message="gateway, controllerName, clusterUID, accountID and name cannot be changed: delete the Tunnel to switch its Gateway to another tunnel"
// +kubebuilder:validation:XValidation:rule="has(self.existing) == has(oldSelf.existing) && (!has(self.existing) || self.existing.id == oldSelf.existing.id)",message="existing cannot be added, removed or given another id: delete the Tunnel to switch its Gateway to another tunnel"
type TunnelSpec struct {
	// Gateway is the Gateway that the tunnel serves.
	//
	// +required
	Gateway GatewayReference `json:"gateway,omitzero"`

	// ControllerName is the name of the controller that manages the tunnel.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ControllerName string `json:"controllerName"`

	// ClusterUID is the UID of the namespace kube-system of the cluster that
	// manages the tunnel. A Tunnel with the UID of another cluster, for instance
	// one that was restored from a backup, is blocked.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ClusterUID string `json:"clusterUID"`

	// AccountID is the Cloudflare account that has the tunnel.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	AccountID string `json:"accountID"`

	// Name is the name of the tunnel at Cloudflare. The controller finds the
	// tunnel by it. A tunnel that existing names keeps its own name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	Name string `json:"name"`

	// Existing adopts a tunnel instead of creating one.
	//
	// +optional
	Existing *AdoptedTunnel `json:"existing,omitempty"`

	// DeletionPolicy says what happens to the tunnel when its Gateway is deleted.
	//
	// +required
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// Credentials refers to the Secret with the API token, in the namespace of
	// the Tunnel. Default: the controller's own token, which is valid for the
	// controller's own account only.
	//
	// +optional
	Credentials *SecretKeyReference `json:"credentials,omitempty"`

	// Paused stops every change at Cloudflare.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// GatewayReference refers to a Gateway.
type GatewayReference struct {
	// Namespace is the namespace of the Gateway.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name is the name of the Gateway.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// AdoptedTunnel is a tunnel that exists already.
type AdoptedTunnel struct {
	// ID is the ID of the tunnel.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	ID string `json:"id"`

	// Takeover permits the controller to replace a configuration of the tunnel
	// that it did not write.
	//
	// +optional
	Takeover bool `json:"takeover,omitempty"`
}

// TunnelStatus is the observed state of a tunnel and the controller's record.
type TunnelStatus struct {
	// TunnelID is the ID of the tunnel at Cloudflare.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=36
	TunnelID string `json:"tunnelID,omitempty"`

	// GatewayUID is the UID of the Gateway that the tunnel served last.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	GatewayUID string `json:"gatewayUID,omitempty"`

	// MissingSince is when the controller first saw that the Gateway was gone. It
	// is for information: the controller measures the retirement delay itself.
	//
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`

	// Creating is true from before the controller creates the tunnel until it
	// knows whether the tunnel exists.
	//
	// +optional
	Creating bool `json:"creating,omitempty"`

	// Deleting is true from before the controller deletes the tunnel until the
	// tunnel is gone.
	//
	// +optional
	Deleting bool `json:"deleting,omitempty"`

	// Contested is true when somebody else kept changing the configuration, so
	// that the controller stopped writing it. Pausing the Gateway clears it.
	//
	// +optional
	Contested bool `json:"contested,omitempty"`

	// HTTP2 is true once the Gateway had a GRPCRoute: its connectors then use
	// HTTP/2, because QUIC loses the trailers of gRPC.
	//
	// +optional
	HTTP2 bool `json:"http2,omitempty"`

	// Configuration records which configurations the controller has written. It
	// is written before each of them is sent.
	//
	// +optional
	Configuration ConfigurationRecord `json:"configuration,omitzero"`

	// Token is the state of the token with which the connectors run.
	//
	// +optional
	Token TokenStatus `json:"token,omitzero"`

	// Connectors is the state of the connectors.
	//
	// +optional
	Connectors ConnectorsStatus `json:"connectors,omitzero"`

	// Hostnames is the number of hostnames that the tunnel serves.
	//
	// +optional
	Hostnames *int32 `json:"hostnames,omitempty"`

	// Phase summarizes the state of the tunnel in one word.
	//
	// +optional
	Phase TunnelPhase `json:"phase,omitempty"`

	// Gateway is the Gateway as namespace/name, for printing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Gateway string `json:"gateway,omitempty"`

	// Conditions are Ready, CredentialsValid, ConfigurationApplied and
	// ConnectorsReady.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConfigurationRecord holds hashes of configurations.
type ConfigurationRecord struct {
	// Hash is the hash of the configuration that was written last, or is being
	// written.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`

	// Previous is the hash of the configuration before it, which is in effect
	// until the write ends.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Previous string `json:"previous,omitempty"`

	// Late is the hash of a configuration whose write was not answered before the
	// last one was sent, and which may still arrive.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Late string `json:"late,omitempty"`
}

// TokenStatus is the state of the token with which the connectors run.
type TokenStatus struct {
	// Requested is the value of the annotation tunnelgateway.dev/rotate-token that
	// was carried out last, or is being carried out.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Requested string `json:"requested,omitempty"`

	// RotatedAt is when the token was last rotated, or when the controller first
	// saw it.
	//
	// +optional
	RotatedAt *metav1.Time `json:"rotatedAt,omitempty"`

	// Phase says how far a rotation is. It is empty when none is under way.
	//
	// +optional
	Phase TokenPhase `json:"phase,omitempty"`
}

// TokenPhase says how far a rotation of the token is.
//
// +kubebuilder:validation:Enum=Rotating;Rolling;Disconnecting
type TokenPhase string

const (
	// TokenRotating means that a new token is being requested from Cloudflare.
	TokenRotating TokenPhase = "Rotating"
	// TokenRolling means that the connectors are being replaced.
	TokenRolling TokenPhase = "Rolling"
	// TokenDisconnecting means that connectors with the old token are being
	// disconnected.
	TokenDisconnecting TokenPhase = "Disconnecting"
)

// ConnectorsStatus is the state of the connectors.
type ConnectorsStatus struct {
	// Desired is the number of connectors that the settings ask for.
	//
	// +optional
	Desired int32 `json:"desired,omitempty"`

	// Ready is the number of connectors that are connected to Cloudflare.
	//
	// +optional
	Ready int32 `json:"ready,omitempty"`

	// Summary is ready/desired, for printing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary,omitempty"`
}

// TunnelPhase summarizes the state of a tunnel.
//
// +kubebuilder:validation:Enum=Claiming;Locating;Configuring;Serving;Retiring;Deleting;Retained;Blocked
type TunnelPhase string

const (
	// TunnelClaiming means that the controller makes sure that the tunnel belongs
	// to this Gateway.
	TunnelClaiming TunnelPhase = "Claiming"
	// TunnelLocating means that the controller looks for the tunnel at Cloudflare
	// and creates it if needed.
	TunnelLocating TunnelPhase = "Locating"
	// TunnelConfiguring means that the first configuration is not in effect yet.
	TunnelConfiguring TunnelPhase = "Configuring"
	// TunnelServing means that the tunnel serves the Gateway.
	TunnelServing TunnelPhase = "Serving"
	// TunnelRetiring means that the Gateway is gone and the tunnel's end is being
	// prepared.
	TunnelRetiring TunnelPhase = "Retiring"
	// TunnelDeleting means that the tunnel is being deleted at Cloudflare.
	TunnelDeleting TunnelPhase = "Deleting"
	// TunnelRetained means that the Gateway is gone and the tunnel stays, without
	// connectors.
	TunnelRetained TunnelPhase = "Retained"
	// TunnelBlocked means that a person has to act; the condition Ready says how.
	TunnelBlocked TunnelPhase = "Blocked"
)

// The types of the conditions of a Tunnel.
const (
	// TunnelReady is True when the tunnel serves its Gateway as desired.
	TunnelReady = "Ready"
	// TunnelCredentialsValid is True when Cloudflare accepts the API token.
	TunnelCredentialsValid = "CredentialsValid"
	// TunnelConfigurationApplied is True when the desired configuration is in
	// effect.
	TunnelConfigurationApplied = "ConfigurationApplied"
	// TunnelConnectorsReady is True when the connectors are connected.
	TunnelConnectorsReady = "ConnectorsReady"
)

// RotateTokenAnnotation of a Tunnel asks for a rotation of its token, once for
// each new value.
const RotateTokenAnnotation = "tunnelgateway.dev/rotate-token"

// PausedAnnotation of a Gateway stops every change at Cloudflare when its value
// is "true". No other annotation on an object of a tenant has a meaning.
const PausedAnnotation = "tunnelgateway.dev/paused"
