package check

import (
	"context"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// record reports the record that answers for the host in its zone. resolves is whether the
// host has an address. It returns the expectation with only the Gateway that the record leads
// to, if that is known.
func (f *findings) record(ctx context.Context, z zoneView, r Request, resolves bool, e Expectation) Expectation {
	host := r.URL.Hostname()
	if z.zone.Status != zoneActive {
		f.add(Failed, "Zone %s is %s at Cloudflare, so its records have no effect.", z.zone.Name, z.zone.Status)
		f.advise("Set the zone's nameservers at the domain's registrar.")
		return e
	}
	chain, err := z.lookup(ctx, host)
	if err != nil {
		message, advice := unread(err, "DNS: Read")
		f.add(Unknown, "The record of %s in zone %s is not checked: %s", host, z.zone.Name, message)
		f.adviseIf(advice)
		return e
	}
	if len(chain) == 0 {
		f.noRecord(r, z, resolves, e)
		return e
	}
	return f.leads(host, z, chain, e)
}

// noRecord reports that no record of the zone answers. Cloudflare's load balancers and
// Workers can serve a name without a record.
func (f *findings) noRecord(r Request, z zoneView, resolves bool, e Expectation) {
	host := r.URL.Hostname()
	switch {
	case r.ConnectTo != "":
		f.add(Warning, "No record in zone %s answers for %s, so visitors cannot reach it.", z.zone.Name, host)
	case resolves:
		f.add(Warning, "No record in zone %s answers for %s, although it resolves: a load balancer or a Worker may serve it, or the resolver cached an earlier record.", z.zone.Name, host)
	default:
		f.add(Failed, "No record in zone %s answers for %s.", z.zone.Name, host)
	}
	f.adviseIf(e.createRecord(host))
}

// lookup returns the records that answer for the host: its own or those of a wildcard, and
// then those of each CNAME target within the zone. Each element has the records of one name.
func (z zoneView) lookup(ctx context.Context, host string) ([][]provider.Record, error) {
	var chain [][]provider.Record
	for name := host; len(chain) <= maxAliases && z.contains(name); {
		records, err := z.answer(ctx, name)
		if err != nil || len(records) == 0 {
			return chain, err
		}
		chain = append(chain, records)
		if records[0].Type != typeCNAME {
			break
		}
		name = strings.ToLower(records[0].Content)
	}
	return chain, nil
}

const typeCNAME = "CNAME"

func (z zoneView) contains(name string) bool {
	return name == z.zone.Name || strings.HasSuffix(name, "."+z.zone.Name)
}

// answer returns the A, AAAA and CNAME records that answer for a name: its own, or those of
// the closest wildcard. A record of any type at the name, or at a name between it and the
// wildcard, ends wildcards. (Source: Cloudflare's documentation of wildcard records.)
func (z zoneView) answer(ctx context.Context, name string) ([]provider.Record, error) {
	var names []string
	for n := name; z.contains(n) && len(names)+2 <= provider.MaxNames; _, n, _ = strings.Cut(n, ".") {
		names = append(names, n)
		if n != z.zone.Name {
			_, parent, _ := strings.Cut(n, ".")
			names = append(names, "*."+parent)
		}
	}
	all, err := z.api.Records(ctx, z.zone.ID, names...)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		isZone := n == z.zone.Name && n != name // records of the apex do not end wildcards
		if own := recordsOf(all, n); len(own) > 0 && !isZone {
			isParent := n != name && !strings.HasPrefix(n, "*.")
			if isParent {
				return nil, nil
			}
			return slices.DeleteFunc(own, func(r provider.Record) bool { return !isAddress(r) }), nil
		}
	}
	return nil, nil
}

func recordsOf(all []provider.Record, name string) []provider.Record {
	var own []provider.Record
	for _, r := range all {
		if r.Name == name {
			own = append(own, r)
		}
	}
	return own
}

func isAddress(r provider.Record) bool {
	return slices.Contains([]string{"A", "AAAA", typeCNAME}, r.Type)
}

// leads reports where the records lead.
func (f *findings) leads(host string, z zoneView, chain [][]provider.Record, e Expectation) Expectation {
	last := chain[len(chain)-1][0]
	proxied := slices.ContainsFunc(chain, func(records []provider.Record) bool {
		return slices.ContainsFunc(records, func(r provider.Record) bool { return r.Proxied })
	})
	what := described(host, chain[0][0])
	target := strings.ToLower(last.Content)
	switch {
	case last.Type != typeCNAME:
		f.add(Failed, "%s leads to the address %s, not to a tunnel.", what, last.Content)
		f.adviseIf(e.replaceRecord(host))
	case z.contains(target):
		f.add(Failed, "%s leads to %s, for which zone %s has no address.", what, target, z.zone.Name)
		f.adviseIf(e.replaceRecord(host))
	case !isTunnelName(target):
		f.add(Warning, "%s leads to %s, which is outside the zone and is not checked.", what, target)
		f.adviseIf(e.replaceRecord(host))
	case !proxied:
		f.add(Failed, "%s leads to a tunnel, but is not proxied, so clients cannot reach it.", what)
		f.adviseIf(switchProxyOn)
		return e.leadingTo(target)
	default:
		return f.tunnel(host, what, target, z, e)
	}
	return e
}

// described names the record that answers for the host.
func described(host string, r provider.Record) string {
	what := "The " + r.Type + " record of " + r.Name
	if r.Name != host {
		what += ", which answers for " + host + ","
	}
	return what
}

// tunnel reports whether the tunnel belongs to a Gateway that serves the host.
func (f *findings) tunnel(host, what, target string, z zoneView, e Expectation) Expectation {
	selected := e.leadingTo(target)
	i := slices.IndexFunc(e.Gateways, func(g ServingGateway) bool { return g.Address == target })
	switch {
	case i < 0 && (e.Incomplete || e.hasUnknownAddress()):
		f.add(Unknown, "%s leads to the tunnel %s. Whether this is the Gateway's tunnel is not known.", what, target)
	case i < 0 && len(e.Gateways) == 0:
		f.add(Warning, "%s leads to the tunnel %s, but no Gateway serves the hostname.", what, target)
	case i < 0:
		f.add(Failed, "%s leads to another tunnel, %s.", what, target)
		f.adviseIf(e.replaceRecord(host))
	case e.Gateways[i].AccountID != "" && e.Gateways[i].AccountID != z.zone.AccountID:
		f.add(Failed, "Zone %s belongs to account %s, and the tunnel of Gateway %s/%s to account %s. Cloudflare serves a tunnel only in zones of its account.",
			z.zone.Name, z.zone.AccountID, e.Gateways[i].Namespace, e.Gateways[i].Name, e.Gateways[i].AccountID)
		f.advise("Serve the hostname with a GatewayClass that uses the zone's account.")
	default:
		f.add(OK, "%s leads to Gateway %s/%s, through Cloudflare's proxy.", what, e.Gateways[i].Namespace, e.Gateways[i].Name)
	}
	return selected
}

// leadingTo returns the expectation with only the Gateways that have the address, or all of
// them if none has.
func (e Expectation) leadingTo(address string) Expectation {
	var selected []ServingGateway
	for _, g := range e.Gateways {
		if g.Address == address {
			selected = append(selected, g)
		}
	}
	if len(selected) > 0 {
		e.Gateways = selected
	}
	return e
}

func (e Expectation) hasUnknownAddress() bool {
	return slices.ContainsFunc(e.Gateways, func(g ServingGateway) bool { return g.Address == "" })
}
