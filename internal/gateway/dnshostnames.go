package gateway

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// DNSHostname is a hostname for which a DNS record is created or kept.
type DNSHostname struct {
	dns.Hostname
	// Owner is the Gateway or the ListenerSet that declares the claiming listener.
	Owner Owner
	// LacksPermission reports whether a route would have the hostname, but lacks a permission
	// for it, and no other route has it. An accepted Gateway does not keep the hostname.
	// While the Gateway is not accepted, its records remain, except for a record without a
	// permission.
	LacksPermission bool
}

// DNSHostnames returns the hostnames for which DNS records are created or kept, sorted by
// name: the effective hostnames of routes on listeners that claim a hostname, with one
// entry for each hostname. It omits the empty hostname, which has no record.
//
// A listener that is not served keeps its hostnames, for example if a Secret is missing,
// and so does a route above a limit: neither deletes a record.
func (r *Result) DNSHostnames() []DNSHostname {
	return keep(r.kept, func(k *kept) *[]DNSHostname { return &k.dnsHostnames }, r.newDNSHostnames)
}

// RecordHostnames returns the hostnames for which the Gateway has records, sorted by name.
// isAccepted reports whether records may change: none is kept for a hostname that lacks a
// permission. Unless the configuration is in effect, no hostname is served.
func (r *Result) RecordHostnames(isAccepted, inEffect bool) []dns.Hostname {
	list := func() []dns.Hostname { return r.newRecordHostnames(isAccepted, inEffect) }
	if !isAccepted || !inEffect {
		return list()
	}
	return keep(r.kept, func(k *kept) *[]dns.Hostname { return &k.recordHostnames }, list)
}

func (r *Result) newRecordHostnames(isAccepted, inEffect bool) []dns.Hostname {
	var hostnames []dns.Hostname
	for _, h := range r.DNSHostnames() {
		if h.LacksPermission && isAccepted {
			continue
		}
		h.Served = h.Served && inEffect
		hostnames = append(hostnames, h.Hostname)
	}
	return hostnames
}

func (r *Result) newDNSHostnames() []DNSHostname {
	c := r.newDNSCollection()
	for _, route := range r.Routes {
		for i := range route.Parents {
			for _, l := range route.Parents[i].Listeners {
				c.addClaimed(route, l)
			}
		}
	}
	for _, route := range r.Routes {
		for i := range route.Parents {
			c.addNotPermitted(&route.Parents[i])
		}
	}
	for e := range r.entries() {
		if h := c.found[e.Hostname]; h != nil && !h.LacksPermission {
			h.Served = true
		}
	}
	all := make([]DNSHostname, 0, len(c.found))
	for _, name := range sortedNames(c.found) {
		all = append(all, *c.found[name])
	}
	return all
}

// dnsCollection collects hostnames with a DNS record.
type dnsCollection struct {
	found     map[string]*DNSHostname
	permitted *permittedHostnames
	// claims are the listeners that claim their hostname, by hostname. All claimants of
	// one hostname have the same owner.
	claims map[string]*Listener
	// created is when the Gateway and its ListenerSets were created.
	created map[Owner]time.Time
}

func (r *Result) newDNSCollection() dnsCollection {
	c := dnsCollection{found: map[string]*DNSHostname{}, permitted: r.permitted, claims: map[string]*Listener{}, created: r.createdByOwner()}
	for _, l := range r.Listeners {
		if l.claims {
			c.claims[l.Hostname()] = l
		}
	}
	return c
}

// createdByOwner returns when the Gateway and its ListenerSets were created.
func (r *Result) createdByOwner() map[Owner]time.Time {
	created := make(map[Owner]time.Time, 1+len(r.Sets))
	created[gatewayOwner(r.gateway)] = createdOr(r.gateway.CreationTimestamp, r.now)
	for _, set := range r.Sets {
		created[set.Owner] = createdOr(set.object.CreationTimestamp, r.now)
	}
	return created
}

// createdOr returns when an object was created. An object without a timestamp, as in a
// file, is created now.
func createdOr(created metav1.Time, now time.Time) time.Time {
	if created.IsZero() {
		return now
	}
	return created.Time
}

// addClaimed adds the route's hostnames on a listener that admits the route, as far as
// their requests belong to the listener.
func (c dnsCollection) addClaimed(route *Route, l *Listener) {
	if !l.claims {
		return
	}
	for hostname := range route.hostnamesOnListener(l.Owner, l.Hostname()) {
		if owner, _ := routing.MostSpecific(c.claims, hostname.served); owner != l.Hostname() {
			continue
		}
		if h := c.add(hostname.served, l.Owner); h != nil {
			h.Permitted = c.permitted == nil || c.permitted.byNamespace[l.Owner.Namespace].Permits(h.Name)
		}
	}
}

// addNotPermitted adds the hostnames for which a route lacks a permission on the parent.
func (c dnsCollection) addNotPermitted(parent *Parent) {
	for _, name := range parent.notPermitted {
		if h := c.add(name, parent.Owner); h != nil {
			h.LacksPermission = true
		}
	}
}

// add adds a hostname. It returns nil if the hostname was added before, or is empty.
func (c dnsCollection) add(name string, owner Owner) *DNSHostname {
	if name == "" || c.found[name] != nil {
		return nil
	}
	c.found[name] = &DNSHostname{Hostname: dns.Hostname{Name: name, Namespace: owner.Namespace, Created: c.created[owner]}, Owner: owner}
	return c.found[name]
}
