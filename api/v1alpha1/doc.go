// Package v1alpha1 contains the API types in the group tunnelgateway.dev, which
// describe the infrastructure behind a Gateway's listeners. Only types, their
// validation and their registration belong here. Package settings merges two
// TunnelConfigurations.
//
// Markers define the validation: the schema and the CEL rules in the
// CustomResourceDefinitions. Only list keys have defaults in the schema. Other fields
// must stay unset, because the controller merges the settings from the GatewayClass and
// the Gateway before it applies defaults. A default in a comment applies if a field is
// unset after merging.
//
// +kubebuilder:object:generate=true
// +groupName=tunnelgateway.dev
package v1alpha1

//go:generate go tool -modfile=../../test/tools/go.mod controller-gen object crd paths=. output:crd:dir=../../config/crd output:object:dir=.
//go:generate cp ../../config/crd/tunnelgateway.dev_accesspolicies.yaml ../../config/crd/tunnelgateway.dev_tunnelconfigurations.yaml ../../config/crd/tunnelgateway.dev_tunnels.yaml ../../charts/tunnel-gateway/files/
