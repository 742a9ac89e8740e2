// Package externaldns runs the real external-dns on a real control plane
// beside the real controller, and looks at the records that come out. Its real
// Cloudflare provider talks to a small Cloudflare DNS API of the tests, not to
// Cloudflare.
//
// It is a module of its own, like all of test/interop, so that what it requires
// stays out of the product's go.mod. What the guides docs/guides/external-dns.md
// and docs/guides/migration-from-ingress.md say of records is tried here; what
// they say of Cloudflare itself is not.
package externaldns
