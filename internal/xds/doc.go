// Package xds serves the configuration of the Envoys beside the connectors: clusters,
// endpoints, listeners and routes, over one aggregated stream of the incremental xDS protocol.
//
// [Server.Publish] keeps the resources of a Gateway and returns. Each stream follows the newest
// publication of its Gateway in its own goroutine, so that a slow Envoy does not delay the
// others. The package makes no decision about routes. Only the certificate of an Envoy
// determines which Gateway's resources it gets.
//
// For each Gateway, the server keeps a gateway: the snapshot of the last publication, what the
// Envoys have acknowledged and rejected, and the target that follows from both. An Envoy has a
// connection, which contains its identity, and a stream, whose goroutine sends and receives. The
// session of the stream decides what to send next, and does no I/O. It has a subscription for
// each type of resources.
//
// The package implements the protocol on the generated gRPC service, because the server of
// go-control-plane does not fit:
//
//   - It evaluates neither acknowledgements nor rejections. After a rejection, it assumes
//     that Envoy has the rejected version.
//   - It cannot end a stream whose Tunnel is gone.
//   - Its caches either keep no order between the types of resources, or count versions, so
//     that a new leader can give an old version to other content.
package xds
