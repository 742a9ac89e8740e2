// Package v1alpha1 holds the types of API group tunnelgateway.dev: what the
// infrastructure behind a Gateway's listeners is like. Only types, their
// validation and their registration belong here; what two objects give when
// they are merged is decided elsewhere.
//
// The validation is written as markers, which become the schema and the CEL
// rules of the CustomResourceDefinition. No marker sets a default but that of a
// list's key: a default would make "unset" and "set to the default" the same,
// and settings of two levels are merged before the defaults are applied. Where
// a comment names a default, it is what an unset field means after merging.
//
// +kubebuilder:object:generate=true
// +groupName=tunnelgateway.dev
package v1alpha1

//go:generate go tool -modfile=../../test/tools/go.mod controller-gen object crd paths=. output:crd:dir=../../config/crd output:object:dir=.
//go:generate cp ../../config/crd/tunnelgateway.dev_tunnelconfigurations.yaml ../../config/crd/tunnelgateway.dev_tunnels.yaml ../../charts/tunnel-gateway/files/
