package gateway

import (
	"fmt"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// claimIndex finds the listeners that claim a port or a hostname.
type claimIndex struct {
	byPort     map[gatewayv1.PortNumber][]*Listener // the first listener with each protocol on the port
	byHostname map[string]claimedHostname
	// byAddress are the first two claimants for each hostname and port. It omits the
	// hostnames with one claimant, which are the most.
	byAddress map[address][2]*Listener
	limiter   *limiter
	// knowsScheme reports whether the data plane knows the scheme of each request.
	knowsScheme bool
}

// claimedHostname are the listeners that claim one hostname. All have the same owner.
type claimedHostname struct {
	first *Listener
	// accepted are the accepted listeners. It is empty when first is the only claimant.
	accepted []*Listener
}

type address struct {
	hostname string
	port     gatewayv1.PortNumber
}

func (l *Listener) address() address { return address{l.Hostname(), l.Spec.Port} }

func newClaimIndex() *claimIndex {
	return &claimIndex{
		byPort:     map[gatewayv1.PortNumber][]*Listener{},
		byHostname: map[string]claimedHostname{},
		byAddress:  map[address][2]*Listener{},
	}
}

func (c *claimIndex) add(l *Listener) {
	sameProtocol := func(other *Listener) bool { return other.Spec.Protocol == l.Spec.Protocol }
	if !slices.ContainsFunc(c.byPort[l.Spec.Port], sameProtocol) {
		c.byPort[l.Spec.Port] = append(c.byPort[l.Spec.Port], l)
	}
	first := c.byHostname[l.Hostname()].first
	if first == nil {
		c.byHostname[l.Hostname()] = claimedHostname{first: l}
		return
	}
	c.addAddress(first)
	c.addAddress(l)
}

func (c *claimIndex) addAddress(l *Listener) {
	switch found := c.byAddress[l.address()]; {
	case found[0] == nil:
		c.byAddress[l.address()] = [2]*Listener{l}
	case found[0] != l && found[1] == nil:
		c.byAddress[l.address()] = [2]*Listener{found[0], l}
	}
}

// claimantOf returns the first other listener that claims the listener hostname and port,
// or nil.
func (c *claimIndex) claimantOf(l *Listener) *Listener {
	for _, other := range c.byAddress[l.address()] {
		if other != nil && other != l {
			return other
		}
	}
	first := c.byHostname[l.Hostname()].first
	if first != nil && first != l && first.Spec.Port == l.Spec.Port {
		return first
	}
	return nil
}

// setSharedPorts sets, for the accepted listeners of one owner, the other ports on which
// the owner uses the hostname. The listeners on these ports share their routes, if they
// have the same protocol or the data plane does not know the request scheme.
func (c *claimIndex) setSharedPorts(listeners []*Listener) {
	for _, l := range listeners {
		if claimed := c.byHostname[l.Hostname()]; l.Rejected == nil && c.isShared(claimed) {
			claimed.accepted = append(claimed.accepted, l)
			c.byHostname[l.Hostname()] = claimed
		}
	}
	for _, l := range listeners {
		if l.Rejected == nil {
			l.sharedPorts = describePorts(slices.DeleteFunc(slices.Clone(c.byHostname[l.Hostname()].accepted), func(other *Listener) bool {
				return other == l || c.knowsScheme && other.Spec.Protocol != l.Spec.Protocol
			}))
		}
	}
}

// isShared reports whether the hostname has several claimants.
func (c *claimIndex) isShared(claimed claimedHostname) bool {
	_, ok := c.byAddress[claimed.first.address()]
	return ok
}

// describePorts lists at most five different ports.
func describePorts(listeners []*Listener) string {
	const limit = 5
	var parts []string
	for _, l := range listeners {
		if len(parts) == limit {
			return fmt.Sprintf("%s, and %d more", strings.Join(parts, ", "), len(listeners)-limit)
		}
		parts = append(parts, fmt.Sprint(l.Spec.Port))
	}
	return strings.Join(parts, ", ")
}
