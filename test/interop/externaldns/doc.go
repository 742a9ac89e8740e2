// Package externaldns tests external-dns and this controller together, on a real control
// plane. external-dns' Cloudflare provider sends its requests to the simulator, and the specs
// check the resulting records.
//
// The specs verify what docs/guides/external-dns.md and
// docs/guides/migration-from-ingress.md say about records. They cannot verify what the
// guides say about Cloudflare.
//
// The package is a separate module, which keeps its dependencies out of the product's
// go.mod.
package externaldns
