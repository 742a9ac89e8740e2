// Package v1alpha1 contains the types of the API group tunnelgateway.dev, which
// describe the infrastructure behind a Gateway's listeners. Only types, their
// validation and their registration belong here. Package settings merges two
// TunnelConfigurations.
//
// Markers define the validation: the schema and the CEL rules of the
// CustomResourceDefinitions. Only the key of a list has a default in the schema.
// Other fields must stay unset, because the settings of the GatewayClass and the
// Gateway are merged before defaults are applied. A default in a comment is the
// value of a field that is unset after merging.
//
// +kubebuilder:object:generate=true
// +groupName=tunnelgateway.dev
package v1alpha1

//go:generate go tool -modfile=../../test/tools/go.mod controller-gen object crd paths=. output:crd:dir=../../config/crd output:object:dir=.
//go:generate cp ../../config/crd/tunnelgateway.dev_tunnelconfigurations.yaml ../../config/crd/tunnelgateway.dev_tunnels.yaml ../../charts/tunnel-gateway/files/
