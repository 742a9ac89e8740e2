// Package externaldns tests external-dns and this controller together, on a real
// control plane. The Cloudflare provider of external-dns sends its requests to a
// simulated DNS API, and the specs check the resulting records.
//
// The specs verify the statements about records in docs/guides/external-dns.md and
// docs/guides/migration-from-ingress.md. They cannot verify the statements about
// Cloudflare.
//
// The package is a separate module, which keeps its dependencies out of the
// product's go.mod.
package externaldns
