package gateway

import (
	"fmt"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// resolveConflicts decides which listeners hold their place. Owners are taken
// in order of precedence, and each in two steps: what an earlier owner holds
// is lost; among the rest of the owner's own, nobody wins.
//
// Sets that are not allowed take part in nothing.
func resolveConflicts(own []*Listener, sets []*Set) {
	held := newClaimIndex()
	held.addOwner(own)
	for _, set := range sets {
		if set.NotAllowed == nil {
			held.addOwner(set.Listeners)
		}
	}
}

// claimIndex is what listeners hold so far, for looking up who is in the way.
type claimIndex struct {
	byPort     map[gatewayv1.PortNumber][]*Listener // one for each protocol in use
	byHostname map[string][]*Listener               // one for each port in use; all of one owner
}

func newClaimIndex() *claimIndex {
	return &claimIndex{byPort: map[gatewayv1.PortNumber][]*Listener{}, byHostname: map[string][]*Listener{}}
}

// addOwner decides about the listeners of one owner and adds those that hold
// their place.
func (p *claimIndex) addOwner(listeners []*Listener) {
	rejectAcrossOwners(listeners, p)
	rejectWithinOwner(listeners)
	for _, l := range listeners {
		if l.claims {
			p.add(l)
		}
	}
	for _, l := range listeners {
		l.sharedPorts = p.otherPorts(l)
	}
}

func (p *claimIndex) add(l *Listener) {
	sameProtocol := func(other *Listener) bool { return other.Spec.Protocol == l.Spec.Protocol }
	if !slices.ContainsFunc(p.byPort[l.Spec.Port], sameProtocol) {
		p.byPort[l.Spec.Port] = append(p.byPort[l.Spec.Port], l)
	}
	p.byHostname[l.Hostname()] = append(p.byHostname[l.Hostname()], l)
}

// rejectAcrossOwners rejects the listeners of one owner that an earlier owner
// is in the way of. In the order of [mergeListeners], the earlier owner wins,
// so that a new ListenerSet never takes over what is served (GEP-1713). What is
// rejected here holds nothing and cannot make a third listener lose.
func rejectAcrossOwners(listeners []*Listener, held *claimIndex) {
	for _, l := range listeners {
		l.Rejected = conflictWithEarlierOwner(l, held)
		l.claims = l.Rejected == nil
	}
}

// conflictWithEarlierOwner looks at the protocol before the hostname, and at the
// listener's own port before the others.
func conflictWithEarlierOwner(l *Listener, held *claimIndex) *Problem {
	for _, other := range held.byPort[l.Spec.Port] {
		if other.Spec.Protocol != l.Spec.Protocol {
			return &Problem{Reason: string(gatewayv1.ListenerReasonProtocolConflict), Message: fmt.Sprintf(
				"Port %d is used with protocol %s by %s, which takes precedence; one port has one protocol.",
				l.Spec.Port, other.Spec.Protocol, describeClaimant(other))}
		}
	}
	if !supportedProtocol(l.Spec.Protocol) {
		return &Problem{Reason: string(gatewayv1.ListenerReasonUnsupportedProtocol), Message: fmt.Sprintf(
			"Protocol %s cannot be served through a tunnel's ingress rules; use HTTP or HTTPS.", l.Spec.Protocol)}
	}
	holders := held.byHostname[l.Hostname()]
	for _, other := range holders {
		if other.Spec.Port == l.Spec.Port {
			return &Problem{Reason: string(gatewayv1.ListenerReasonHostnameConflict), Message: fmt.Sprintf(
				"%s on port %d is claimed by %s, which takes precedence.",
				describeHostname(l.Hostname()), l.Spec.Port, describeClaimant(other))}
		}
	}
	if len(holders) > 0 {
		return &Problem{Reason: string(gatewayv1.ListenerReasonPortUnavailable), Message: fmt.Sprintf(
			"%s is claimed on port %d by %s, which takes precedence; a tunnel serves a hostname on every port at once, so one hostname has one owner.",
			describeHostname(l.Hostname()), holders[0].Spec.Port, describeClaimant(holders[0]))}
	}
	return nil
}

// rejectWithinOwner rejects the listeners of one owner that are not distinct
// from each other: "MUST NOT pick one conflicting Listener as the winner"
// (GatewaySpec.Listeners). They hold their port and hostname against later
// owners all the same: a mistake must not hand a hostname to a tenant.
func rejectWithinOwner(listeners []*Listener) {
	for _, l := range listeners {
		if l.claims {
			l.Rejected = conflictWithSibling(l, listeners)
		}
	}
}

// conflictWithSibling looks at the protocol of every sibling before the
// hostname of any.
func conflictWithSibling(l *Listener, siblings []*Listener) *Problem {
	for _, sibling := range siblings {
		if l.sharesPort(sibling) && sibling.Spec.Protocol != l.Spec.Protocol {
			return &Problem{Reason: string(gatewayv1.ListenerReasonProtocolConflict), Message: fmt.Sprintf(
				"Port %d is used with protocol %s by listener %q of the same object, and with %s by this one; one port has one protocol.",
				l.Spec.Port, sibling.Spec.Protocol, sibling.Spec.Name, l.Spec.Protocol)}
		}
	}
	for _, sibling := range siblings {
		if l.sharesPort(sibling) && sibling.Hostname() == l.Hostname() {
			return &Problem{Reason: string(gatewayv1.ListenerReasonHostnameConflict), Message: fmt.Sprintf(
				"%s on port %d is claimed by listener %q of the same object too; neither is served until one of them goes.",
				describeHostname(l.Hostname()), l.Spec.Port, sibling.Spec.Name)}
		}
	}
	return nil
}

// sharesPort reports whether the sibling holds a place on the same port.
func (l *Listener) sharesPort(sibling *Listener) bool {
	return sibling != l && sibling.claims && sibling.Spec.Port == l.Spec.Port
}

// supportedProtocol reports whether ingress rules can serve the protocol.
func supportedProtocol(p gatewayv1.ProtocolType) bool {
	return p == gatewayv1.HTTPProtocolType || p == gatewayv1.HTTPSProtocolType
}

// describeClaimant names the Gateway, which everybody attached to it knows, but
// never another tenant: "Implementations SHOULD be cautious about what
// information from the parent or siblings are reported" (ListenerSetSpec).
func describeClaimant(l *Listener) string {
	if l.Owner.Kind == KindGateway {
		return fmt.Sprintf("listener %q of Gateway %s", l.Spec.Name, l.Owner.NamespacedName)
	}
	return "another ListenerSet"
}

func describeHostname(hostname string) string {
	if hostname == "" {
		return "Every hostname"
	}
	return fmt.Sprintf("Hostname %q", hostname)
}

// otherPorts lists the other ports on which the listener's owner uses the
// hostname, for its message: they share their routes' traffic.
func (p *claimIndex) otherPorts(l *Listener) string {
	holders := p.byHostname[l.Hostname()]
	if !l.claims || len(holders) < 2 {
		return ""
	}
	var ports []string
	for _, other := range holders {
		if other.Rejected == nil && other.Spec.Port != l.Spec.Port {
			ports = append(ports, fmt.Sprint(other.Spec.Port))
		}
	}
	return strings.Join(ports, ", ")
}
