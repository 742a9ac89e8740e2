package v1alpha1

// DataPlane is what routes the requests of a Gateway.
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
