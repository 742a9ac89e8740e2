// Package externaldns tests external-dns and this controller together, on a real control
// plane. external-dns' Cloudflare provider sends its requests to the simulator, and the specs
// check the resulting records.
//
// A second installation of the controller manages records itself. The specs verify that it
// and external-dns respect each other's records, and how records are handed over.
//
// The specs verify what docs/guides/dns.md, docs/guides/external-dns.md and
// docs/guides/migration-from-ingress.md say about records. They cannot verify what the
// guides say about Cloudflare.
//
// The package is a separate module, which keeps its dependencies out of the product's
// go.mod.
package externaldns
