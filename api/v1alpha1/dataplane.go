package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataPlane determines which proxies route a Gateway's requests.
//
// +kubebuilder:validation:Enum=IngressRules;Envoy
type DataPlane string

const (
	// DataPlaneIngressRules means that the connectors route requests by the ingress
	// rules in the tunnel's remote configuration.
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

// DataPlaneChange records a data plane change in progress on a Gateway.
type DataPlaneChange struct {
	// To is the data plane that will serve the Gateway.
	//
	// +required
	To DataPlane `json:"to,omitempty"`

	// Phase is the current phase.
	//
	// +required
	Phase DataPlaneChangePhase `json:"phase,omitempty"`

	// StartedAt is the time when the change began. Reversing the change before it ends
	// begins a new change.
	//
	// +required
	StartedAt metav1.Time `json:"startedAt,omitzero"`
}

// DataPlaneChangePhase is a phase in a data plane change. A change to Envoy has the
// phases AddingEnvoy and Switching, and a change to ingress rules has the phases
// Switching and RemovingEnvoy.
//
// +kubebuilder:validation:Enum=AddingEnvoy;Switching;RemovingEnvoy
type DataPlaneChangePhase string

const (
	// DataPlaneAddingEnvoy means that the controller replaces the connectors with
	// connectors with Envoy, while the ingress rules serve the Gateway.
	DataPlaneAddingEnvoy DataPlaneChangePhase = "AddingEnvoy"
	// DataPlaneSwitching means that every connector has Envoy, and the controller
	// replaces the tunnel configuration.
	DataPlaneSwitching DataPlaneChangePhase = "Switching"
	// DataPlaneRemovingEnvoy means that the ingress rules serve the Gateway, and the
	// controller replaces the connectors with connectors without Envoy.
	DataPlaneRemovingEnvoy DataPlaneChangePhase = "RemovingEnvoy"
)
