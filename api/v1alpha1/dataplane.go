package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataPlane determines which proxies route the requests of a Gateway.
//
// +kubebuilder:validation:Enum=IngressRules;Envoy
type DataPlane string

const (
	// DataPlaneIngressRules means that the connectors route requests by the ingress
	// rules of the tunnel's remote configuration.
	DataPlaneIngressRules DataPlane = "IngressRules"
	// DataPlaneEnvoy means that an Envoy proxy beside each connector routes requests.
	DataPlaneEnvoy DataPlane = "Envoy"
)

// Other returns the data plane that d is not.
func (d DataPlane) Other() DataPlane {
	if d == DataPlaneEnvoy {
		return DataPlaneIngressRules
	}
	return DataPlaneEnvoy
}

// DataPlaneChange is a change of the data plane of a Gateway.
type DataPlaneChange struct {
	// To is the data plane that will serve the Gateway.
	//
	// +required
	To DataPlane `json:"to,omitempty"`

	// Phase is the phase of the change.
	//
	// +required
	Phase DataPlaneChangePhase `json:"phase,omitempty"`

	// StartedAt is the time when the change began. Reversing the change before its end
	// begins a new change.
	//
	// +required
	StartedAt metav1.Time `json:"startedAt,omitzero"`
}

// DataPlaneChangePhase is a phase of a change of the data plane. A change to Envoy has
// the phases AddingEnvoy and Switching, and a change to ingress rules has the phases
// Switching and RemovingEnvoy.
//
// +kubebuilder:validation:Enum=AddingEnvoy;Switching;RemovingEnvoy
type DataPlaneChangePhase string

const (
	// DataPlaneAddingEnvoy means that the controller replaces the connectors by connectors
	// with Envoy, while the ingress rules serve the Gateway.
	DataPlaneAddingEnvoy DataPlaneChangePhase = "AddingEnvoy"
	// DataPlaneSwitching means that every connector has Envoy, and the controller
	// replaces the configuration of the tunnel.
	DataPlaneSwitching DataPlaneChangePhase = "Switching"
	// DataPlaneRemovingEnvoy means that the ingress rules serve the Gateway, and the
	// controller replaces the connectors by connectors without Envoy.
	DataPlaneRemovingEnvoy DataPlaneChangePhase = "RemovingEnvoy"
)
