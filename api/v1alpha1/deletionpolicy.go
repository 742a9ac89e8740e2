package v1alpha1

// DeletionPolicy determines what happens to a tunnel when its Gateway is deleted.
//
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes the tunnel with its Gateway.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain keeps the tunnel and its configuration, for the next Gateway
	// with the same namespace and name.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)
