// Package authority issues the certificates by which the controller and the Envoys
// beside connectors identify each other.
//
// # Identity
//
// An Envoy's client certificate has exactly one name, the URI
//
//	spiffe://<cluster ID>/gateway/<namespace>/<name>/tunnel/<UID of the Tunnel>
//
// and nothing else identifies an Envoy. The controller's certificate is for
// [envoy.ServerName]. Its private key exists only in the leader's memory.
//
// # Lifetimes
//
//   - A certificate is valid for 90 days. It is renewed after 60.
//   - A certificate authority is valid for 3 years. Its successor is created one year before
//     the end, and added to the bundle in every Tunnel's Secret. The successor signs
//     nothing until all bundles have contained it for 24 hours.
//   - If a bundle cannot be written, the successor takes over 90 days before the end.
//   - A replaced authority stays in the bundles for 91 days, until no certificate from it
//     is valid. Its private key is deleted at once.
//
// Every certificate begins one hour before its creation, for nodes whose clocks are
// slow.
//
// # The Secrets
//
// The authorities' Secret is created when the first Tunnel needs a certificate. It
// contains the active authority, its successor and the replaced ones. When another
// process has changed the Secret, this process adopts the change. If the Secret is
// deleted or damaged, the leader restores it from memory within a minute. If the leader
// restarts before that, and the active authority is lost, the new leader creates
// another authority and writes the Secrets of all Tunnels. Envoys that are connected
// stay connected. The others keep their configuration, and cannot connect until the
// kubelet has updated their files.
//
// The authority is replaced at once, without the 24 hours, if it is not valid at the
// current time. This happens only after the clock has jumped by more than an hour to
// before its creation, or to after its end, when no Envoy could connect anyway.
//
// The leader writes a Tunnel's Secret again after another client has edited or deleted
// it. It keeps a certificate that is still valid if only another part of the Secret was
// changed.
package authority
