// Package envoy renders a routing table as Envoy configuration, and defines what Envoy
// can express. Besides package xds, which serves the configuration, it alone imports
// Envoy types.
//
// [Render] returns the virtual hosts and clusters for a table, [Assign] the endpoints for
// a cluster, and [Bootstrap] the configuration with which an Envoy starts.
//
// The package is pure: the same input gives the same bytes. Rendering cannot fail,
// because the table contains only what [Capabilities] allow.
package envoy
