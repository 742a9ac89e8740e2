// Package xds configures the Envoys beside the connectors: it serves clusters,
// endpoints, listeners, routes and the scopes that select them over one aggregated stream per
// Envoy, with the incremental xDS protocol. Publishing and sending a change costs what it
// changes.
//
// [Server.Publish] keeps a Gateway's resources and returns. Each stream follows the
// newest publication in its own goroutine, so a slow Envoy does not delay the others.
// The package makes no decision about routes. Only the certificate of an Envoy
// determines for which Gateway it gets resources.
//
// Without a publication, the server sends nothing but the endpoints of clusters that an
// Envoy has from an earlier leader: see [Server.PublishByName].
//
// The server has a gateway for each Gateway: the last published snapshot, what the
// Envoys have acknowledged and rejected, and the target that follows from both. An
// Envoy has a connection, which contains its identity, and a stream, whose goroutine
// sends and receives. The stream's session decides what to send next, without I/O. It
// has a subscription for each resource type. The type stream shows an example.
//
// The package implements the protocol on the generated gRPC service, because
// go-control-plane's server does not fit:
//
//   - It evaluates neither acknowledgements nor rejections. After a rejection, it assumes
//     that Envoy has the rejected version.
//   - It cannot end a stream whose Tunnel is gone.
//   - Its caches either send resource types in no order, or count versions, so that a new
//     leader can give an old version to other content.
package xds
