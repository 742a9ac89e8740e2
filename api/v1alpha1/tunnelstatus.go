package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConfigurationRecord contains hashes of configurations.
type ConfigurationRecord struct {
	// Hash is the hash of the configuration that the controller wrote last, or is
	// writing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`

	// Previous is the hash of the previous configuration, which is in effect until
	// the write succeeds.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Previous string `json:"previous,omitempty"`

	// Late is the hash of an earlier configuration that may still take effect, because
	// Cloudflare had not responded to its write request when the controller sent the
	// last request.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Late string `json:"late,omitempty"`
}

// TokenStatus reports on the token that the connectors use.
type TokenStatus struct {
	// Requested is the value that the annotation tunnelgateway.dev/rotate-token had for
	// the last rotation, or for the rotation in progress.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Requested string `json:"requested,omitempty"`

	// RotatedAt is when the last rotation happened, or when the controller first read
	// the token.
	//
	// +optional
	RotatedAt *metav1.Time `json:"rotatedAt,omitempty"`

	// Phase is the phase of a token rotation. It is empty when no rotation is in
	// progress.
	//
	// +optional
	Phase TokenPhase `json:"phase,omitempty"`
}

// TokenPhase is a phase in a token rotation.
//
// +kubebuilder:validation:Enum=Rotating;Rolling;Disconnecting
type TokenPhase string

const (
	// TokenRotating means that the controller requests a new token from Cloudflare.
	TokenRotating TokenPhase = "Rotating"
	// TokenRolling means that the controller restarts the connectors with the new token.
	TokenRolling TokenPhase = "Rolling"
	// TokenDisconnecting means that the controller disconnects the connectors that
	// use the old token.
	TokenDisconnecting TokenPhase = "Disconnecting"
)

// ConnectorsStatus counts a tunnel's connectors.
type ConnectorsStatus struct {
	// Desired is the desired number of connectors.
	//
	// +optional
	Desired int32 `json:"desired,omitempty"`

	// Ready counts the connectors that are connected to Cloudflare.
	//
	// +optional
	Ready int32 `json:"ready,omitempty"`

	// Summary is ready/desired, for kubectl get.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary,omitempty"`
}

// TunnelPhase summarizes a tunnel's state.
//
// +kubebuilder:validation:Enum=Claiming;Locating;Configuring;Serving;Retiring;Deleting;Retained;Blocked
type TunnelPhase string

const (
	// TunnelClaiming means that the controller checks that no other Gateway uses
	// the tunnel.
	TunnelClaiming TunnelPhase = "Claiming"
	// TunnelLocating means that the controller searches for the tunnel at
	// Cloudflare, and creates it if necessary.
	TunnelLocating TunnelPhase = "Locating"
	// TunnelConfiguring means that the first configuration is not in effect yet.
	TunnelConfiguring TunnelPhase = "Configuring"
	// TunnelServing means that the tunnel serves the Gateway.
	TunnelServing TunnelPhase = "Serving"
	// TunnelRetiring means that the Gateway is gone and the controller prepares to
	// delete the tunnel.
	TunnelRetiring TunnelPhase = "Retiring"
	// TunnelDeleting means that the controller deletes the tunnel at Cloudflare.
	TunnelDeleting TunnelPhase = "Deleting"
	// TunnelRetained means that the Gateway is gone and the tunnel remains, without
	// connectors.
	TunnelRetained TunnelPhase = "Retained"
	// TunnelBlocked means that an administrator must act. The Ready condition
	// describes the required action.
	TunnelBlocked TunnelPhase = "Blocked"
)
