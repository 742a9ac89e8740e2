package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tunnel represents one Gateway's Cloudflare tunnel. The controller creates it in the
// controller's namespace, to record the resources that it manages at Cloudflare and to
// report the tunnel's state. The controller ignores Tunnels in other namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tun,categories=gateway-api
// +kubebuilder:metadata:annotations="tunnelgateway.dev/bundle-version=v0.1.0"
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.gateway`,description="The Gateway that the tunnel serves"
// +kubebuilder:printcolumn:name="Tunnel",type=string,JSONPath=`.status.tunnelID`,description="The ID of the tunnel at Cloudflare"
// +kubebuilder:printcolumn:name="Hostnames",type=integer,JSONPath=`.status.hostnames`,description="The number of hostnames that the tunnel serves"
// +kubebuilder:printcolumn:name="Connectors",type=string,JSONPath=`.status.connectors.summary`,description="Ready and desired connectors"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="The phase of the tunnel's lifecycle"
// +kubebuilder:printcolumn:name="Paused",type=date,JSONPath=`.status.pausedSince`,description="How long the Gateway has been paused; empty if it is not paused"
// +kubebuilder:printcolumn:name="Data Plane",type=string,priority=1,JSONPath=`.status.dataPlane`,description="The data plane that serves the Gateway"
// +kubebuilder:printcolumn:name="Change",type=string,priority=1,JSONPath=`.status.dataPlaneChange.phase`,description="Data plane change phase"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the Ready condition"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="The message of the Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Tunnel struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state. The controller writes it. Once the Gateway is gone, an
	// administrator can change deletionPolicy and paused.
	//
	// +required
	Spec TunnelSpec `json:"spec,omitzero"`

	// Status is the observed state, and records the resources that the controller
	// manages at Cloudflare. The API server keeps fields that it does not know, which a
	// newer controller version has written.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
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

// TunnelSpec is a tunnel's desired state. The fields gateway, controllerName,
// clusterUID, accountID, name and existing identify the tunnel and are immutable,
// except existing.takeover. To switch a Gateway to another tunnel, an administrator
// deletes the Tunnel object.
//
// +kubebuilder:validation:XValidation:rule="self.gateway == oldSelf.gateway && self.controllerName == oldSelf.controllerName && self.clusterUID == oldSelf.clusterUID && self.accountID == oldSelf.accountID && self.name == oldSelf.name",message="gateway, controllerName, clusterUID, accountID and name cannot be changed: delete the Tunnel to switch its Gateway to another tunnel"
// +kubebuilder:validation:XValidation:rule="has(self.existing) == has(oldSelf.existing) && (!has(self.existing) || self.existing.id == oldSelf.existing.id)",message="existing cannot be added, removed or given another id: delete the Tunnel to switch its Gateway to another tunnel"
type TunnelSpec struct {
	// Gateway is the Gateway that the tunnel serves.
	//
	// +required
	Gateway GatewayReference `json:"gateway,omitzero"`

	// ControllerName names the controller that manages the tunnel.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ControllerName string `json:"controllerName"`

	// ClusterUID identifies the cluster that manages the tunnel: it is the UID of the
	// namespace kube-system. The controller does not manage a Tunnel with another
	// cluster's UID, for example after a backup was restored. Such a Tunnel is in the
	// phase Blocked.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ClusterUID string `json:"clusterUID"`

	// AccountID identifies the Cloudflare account that owns the tunnel.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	AccountID string `json:"accountID"`

	// Name is the tunnel name at Cloudflare. The controller uses it to find the tunnel.
	// An adopted tunnel keeps its own name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	Name string `json:"name"`

	// Existing identifies a tunnel to adopt. Default: the controller creates a
	// tunnel.
	//
	// +optional
	Existing *AdoptedTunnel `json:"existing,omitempty"`

	// DeletionPolicy determines what happens to the tunnel when its Gateway is
	// deleted: Delete deletes it, Retain keeps it. A new Gateway with the same
	// namespace and name gets a retained tunnel with its address.
	//
	// +required
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// Credentials refers to the Secret with the API token, in the Tunnel's namespace.
	// Default: the token in the controller's configuration, which is valid only for the
	// controller's own account.
	//
	// +optional
	Credentials *SecretKeyReference `json:"credentials,omitempty"`

	// Paused stops all changes at Cloudflare. Default: false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// GatewayReference refers to a Gateway.
type GatewayReference struct {
	// Namespace is the Gateway namespace.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name is the Gateway name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// AdoptedTunnel identifies a tunnel that the controller did not create.
type AdoptedTunnel struct {
	// ID is the tunnel ID.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	ID string `json:"id"`

	// Takeover permits the controller to replace a tunnel configuration that it did not
	// write. Default: false.
	//
	// +optional
	Takeover bool `json:"takeover,omitempty"`
}

// TunnelStatus is a tunnel's observed state, and records the resources that the
// controller manages at Cloudflare.
type TunnelStatus struct {
	// SchemaVersion is the schema version by which the controller records and serves
	// the tunnel. A controller that does not support the version changes neither the
	// tunnel nor its connectors. See docs/upgrade.md, "Roll back".
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	SchemaVersion int32 `json:"schemaVersion,omitempty"`

	// TunnelID is the tunnel ID at Cloudflare.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=36
	TunnelID string `json:"tunnelID,omitempty"`

	// GatewayUID identifies the Gateway that the tunnel served last.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	GatewayUID string `json:"gatewayUID,omitempty"`

	// PausedSince is the time when the controller first observed that the Gateway is
	// paused.
	//
	// +optional
	PausedSince *metav1.Time `json:"pausedSince,omitempty"`

	// MissingSince is the time when the controller first observed that the Gateway
	// is gone. It is informational: the controller measures the retirement delay
	// independently of it.
	//
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`

	// Creating is true while the controller creates the tunnel. The controller sets
	// it before the request, and clears it when the result is known.
	//
	// +optional
	Creating bool `json:"creating,omitempty"`

	// Deleting is true while the controller deletes the tunnel. The controller sets
	// it before the request, and clears it when the tunnel is gone.
	//
	// +optional
	Deleting bool `json:"deleting,omitempty"`

	// Contested is true when the controller has stopped writing the configuration,
	// because external changes keep replacing it. Pausing the Gateway clears it.
	//
	// +optional
	Contested bool `json:"contested,omitempty"`

	// HTTP2 is true once the Gateway has served a GRPCRoute with ingress rules and the
	// protocol auto. Its connectors then use HTTP/2, because QUIC drops the trailers
	// that gRPC requires.
	//
	// +optional
	HTTP2 bool `json:"http2,omitempty"`

	// DataPlane is the data plane that serves the Gateway. The controller records the
	// data plane in the settings before it uses the tunnel. A Tunnel with a tunnelID
	// and without a dataPlane has ingress rules.
	//
	// +optional
	DataPlane DataPlane `json:"dataPlane,omitempty"`

	// DataPlaneChange is the data plane change in progress. The DataPlaneApplied
	// condition describes what the change waits for.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	DataPlaneChange *DataPlaneChange `json:"dataPlaneChange,omitempty"`

	// Configuration records which configurations the controller has written. The
	// controller updates it before each request that replaces the configuration.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Configuration ConfigurationRecord `json:"configuration,omitzero"`

	// Token reports on the token that the connectors use.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Token TokenStatus `json:"token,omitzero"`

	// Reconciled is the last value that the controller has handled for the annotation
	// tunnelgateway.dev/reconcile. After a new value, the controller ends its backoffs
	// and reads the configuration, the token and the connections again. It sets
	// reconciled, together with the conditions, when the desired configuration is in
	// effect, or when the conditions report that a user must act.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reconciled string `json:"reconciled,omitempty"`

	// Connectors reports how many connectors are desired and ready.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Connectors ConnectorsStatus `json:"connectors,omitzero"`

	// Hostnames is the number of hostnames that the tunnel serves.
	//
	// +optional
	Hostnames *int32 `json:"hostnames,omitempty"`

	// DNS reports on the DNS records of the Gateway's hostnames. It is empty if the
	// GatewayClass's dns.mode is Off.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	DNS *TunnelDNSStatus `json:"dns,omitempty"`

	// Access reports on the applications of Cloudflare Access for the Gateway's hostnames.
	// It is empty if nothing demands an application.
	//
	// +optional
	Access *TunnelAccessStatus `json:"access,omitempty"`

	// Phase summarizes the tunnel's state.
	//
	// +optional
	Phase TunnelPhase `json:"phase,omitempty"`

	// Gateway is the Gateway's namespace/name, for kubectl get.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Gateway string `json:"gateway,omitempty"`

	// Conditions describe the tunnel's state. Their types are Ready, CredentialsValid,
	// ConfigurationApplied, ConnectorsReady and DataPlaneApplied.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
