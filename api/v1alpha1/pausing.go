package v1alpha1

// Pausing determines whether Gateways can be paused.
//
// +kubebuilder:validation:Enum=Allowed;Forbidden
type Pausing string

const (
	// PausingAllowed permits the annotation [PausedAnnotation]. It is the default.
	PausingAllowed Pausing = "Allowed"
	// PausingForbidden makes the annotation have no effect.
	PausingForbidden Pausing = "Forbidden"
)
