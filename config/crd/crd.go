// Package crd embeds the CustomResourceDefinitions of this project, which are
// generated from the types in api. Package manifest interprets them.
package crd

import "embed"

//go:generate go run ../../test/docgen fields

// Files contains one file per definition, named <group>_<plural>.yaml like the files
// of the Gateway API.
//
//go:embed tunnelgateway.dev_*.yaml
var Files embed.FS
