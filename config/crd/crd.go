// Package crd holds the CustomResourceDefinitions of this project, generated
// from the types in api. Only the files belong here; what they mean is read by
// internal/manifest.
package crd

import "embed"

//go:generate go run ../../test/docgen fields

// Files are the definitions, one to a file, named <group>_<plural>.yaml as
// those of the Gateway API are.
//
//go:embed tunnelgateway.dev_*.yaml
var Files embed.FS
