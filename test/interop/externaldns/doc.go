// Package externaldns runs the real external-dns on a real control plane
// beside the real controller, and looks at the records that come out. What it
// talks to is a small Cloudflare DNS API in the tests.
//
// It is a module of its own, like all of test/interop, so that what it requires
// stays out of the product's go.mod. The guide docs/guides/external-dns.md says
// nothing that is not proven here.
package externaldns
