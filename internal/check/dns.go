package check

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// dnsStep checks what the host resolves to, and its record. It returns the expectation with
// only the Gateway that the record leads to, if that is known.
func dnsStep(ctx context.Context, n probe.Network, z zoneView, r Request, e Expectation) (Step, Expectation) {
	var f findings
	host := r.URL.Hostname()
	resolves := f.resolve(ctx, n, r, e)
	verdicts := f.verdicts(e)
	switch {
	case z.api != nil && z.err != nil:
		message, advice := unread(z.err, "Zone: Read")
		f.add(Unknown, "The record of %s is not checked: %s", host, message)
		f.adviseIf(advice)
	case z.api != nil:
		e = f.record(ctx, z, r, resolves, e)
	case !verdicts:
		f.add(Unknown, "The record of %s is not checked, because no API token is set.", host)
		f.advise("Set CLOUDFLARE_API_TOKEN to your own token with the permissions %s. The controller's token is never used.", Permissions)
	}
	return newStep(StepDNS, f), e
}

// resolve reports what the host resolves to. It returns whether the host is known to have an
// address.
func (f *findings) resolve(ctx context.Context, n probe.Network, r Request, e Expectation) bool {
	if r.ConnectTo != "" {
		f.add(OK, "The check connects to %s instead of the addresses of %s in DNS.", r.ConnectTo, r.URL.Hostname())
		return false
	}
	names := probe.Resolve(ctx, n, r.URL.Hostname())
	f.resolution(r.URL.Hostname(), names, e)
	return len(names.Addresses) > 0
}

// resolution reports what the system's resolver answers. For a proxied record these are
// Cloudflare's addresses, for any target.
func (f *findings) resolution(host string, names probe.Names, e Expectation) {
	switch names.Failure {
	case probe.NoFailure:
		f.addresses(host, names, e)
	case probe.NoSuchHost:
		f.add(Failed, "%s does not resolve: DNS has no address for it.", host)
		f.advise("%s Resolvers can cache for a few minutes that a name does not exist.", e.createRecord(host))
	case probe.Timeout, probe.Refused, probe.Handshake, probe.Untrusted, probe.Other:
		f.add(Unknown, "%s cannot be resolved here: %s.", host, names.Err)
		f.advise("Check the resolver of this machine.")
	}
}

// addresses reports the addresses.
func (f *findings) addresses(host string, names probe.Names, e Expectation) {
	outside := names.Outside()
	switch {
	case slices.ContainsFunc(names.Addresses, probe.IsTunnel), isTunnelName(names.Canonical):
		f.add(Failed, "%s resolves to the tunnel's own address, which clients cannot reach: the record is not proxied.", host)
		f.adviseIf(switchProxyOn)
	case len(outside) == 0:
		f.add(OK, "%s resolves to addresses of Cloudflare: %s.", host, abbreviate(names.Addresses))
	case slices.ContainsFunc(outside, isPrivate):
		f.add(Warning, "%s resolves to a private address here: %s. This machine's resolver differs from public DNS, or the record has this address.", host, abbreviate(outside))
		f.advise("%s", e.needsRecord(host))
	default:
		f.add(Warning, "%s resolves to %s, which is not in Cloudflare's published ranges.", host, abbreviate(outside))
		f.advise("%s Ignore this if the zone has its own IP addresses.", e.needsRecord(host))
	}
}

// verdicts reports what the controller says about the record, and whether it says something.
func (f *findings) verdicts(e Expectation) bool {
	found := false
	for _, g := range e.Gateways {
		if g.DNSMessage == "" {
			continue
		}
		found = true
		result := g.DNSResult
		if result == "" {
			result = Unknown
		}
		f.add(result, "Gateway %s/%s: %s", g.Namespace, g.Name, g.DNSMessage)
	}
	return found
}

// createRecord says how the host gets a record.
func (e Expectation) createRecord(host string) string {
	if e.managesDNS() {
		return "The controller creates the record. If the Gateway's condition DNSReady does not say why it waits, it reads the zone again within ten minutes."
	}
	return e.needsRecord(host)
}

// replaceRecord says how the host gets another record. The controller changes no record with
// another target.
func (e Expectation) replaceRecord(host string) string {
	if e.managesDNS() {
		return "The controller does not change this record. Delete it, or run: kubectl tunnel-gateway dns adopt " + host
	}
	return e.needsRecord(host)
}

// managesDNS reports whether the controller manages the record of the host.
func (e Expectation) managesDNS() bool { return len(e.Gateways) == 1 && e.Gateways[0].ManagesDNS }

// needsRecord says which record the host needs.
func (e Expectation) needsRecord(host string) string {
	target := "<tunnel ID>.cfargotunnel.com"
	if len(e.Gateways) == 1 && e.Gateways[0].Address != "" {
		target = e.Gateways[0].Address
	}
	return fmt.Sprintf("%s needs a proxied CNAME record with the target %s, in a zone of the tunnel's account.", host, target)
}

const switchProxyOn = "Enable the proxy for the record."

// tunnelDomain is the domain of the tunnels' names.
const tunnelDomain = ".cfargotunnel.com"

func isTunnelName(name string) bool { return strings.HasSuffix(name, tunnelDomain) }

// isPrivate reports whether an address is not reachable from the internet.
func isPrivate(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified()
}
