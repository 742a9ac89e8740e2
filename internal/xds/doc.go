// Package xds serves the configuration of the Envoys beside the connectors: clusters,
// endpoints and routes, over one aggregated stream of the incremental xDS protocol.
//
// [Server.Publish] keeps the resources of a Gateway and returns. Each stream follows the
// newest publication of its Gateway in its own goroutine, so that a slow Envoy holds up no
// other one. The package decides nothing about routes. What an Envoy gets depends on
// the Gateway in its certificate only.
//
// The package implements the protocol on the generated gRPC service. The server of
// go-control-plane sees neither acknowledgements nor rejections: after a rejection it
// assumes that Envoy has the rejected version, it cannot end a stream whose Tunnel is gone,
// and its caches either replace a resource without an order between the types or count
// versions, so that a new leader can repeat the version of another content. With a cache of
// its own, only its loop that receives requests would remain.
package xds
