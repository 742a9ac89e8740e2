package gateway

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
)

// resolveConflicts decides which listeners claim their port and hostname. It processes
// the owners in order of precedence, each in two steps: a listener loses against claims
// of earlier owners; if listeners of one owner conflict with each other, all lose.
func resolveConflicts(gatewayListeners []*Listener, sets []*Set, l *limiter) {
	claims := newClaimIndex()
	claims.limiter, claims.knowsScheme = l, l.knowsScheme
	claims.addOwner(gatewayListeners)
	for _, set := range sets {
		claims.addOwner(set.Listeners)
	}
}

// rejectConflicts rejects the listeners with known conflicts.
func rejectConflicts(sets []*Set, known map[Owner]map[gatewayv1.SectionName]*Problem) {
	for _, set := range sets {
		for _, l := range set.Listeners {
			if l.Rejected == nil {
				l.Rejected = known[l.Owner][l.Spec.Name]
			}
		}
	}
}

// addOwner resolves the conflicts between the listeners of one owner, and adds the
// listeners that claim their port and hostname.
func (c *claimIndex) addOwner(listeners []*Listener) {
	rejectAcrossOwners(listeners, c)
	for _, l := range listeners {
		if l.claims {
			c.add(l)
		}
	}
	rejectWithinOwner(listeners, c)
	c.setSharedPorts(listeners)
}

// rejectAcrossOwners rejects the listeners of one owner that conflict with a claim of an
// earlier owner. The earlier owner in the order of [mergeListeners] wins, so that a new
// ListenerSet never takes over a hostname that is already served (GEP-1713). A rejected
// listener claims nothing, so it cannot conflict with a third listener.
func rejectAcrossOwners(listeners []*Listener, claims *claimIndex) {
	for _, l := range listeners {
		if l.Rejected == nil { // otherwise its hostname is not permitted, or it exceeds a limit
			l.Rejected = conflictWithEarlierOwner(l, claims)
		}
		if l.Rejected == nil {
			l.Rejected = claims.limiter.hostnameProblem(l)
		}
		l.claims = l.Rejected == nil
	}
}

// conflictWithEarlierOwner returns why the listener loses against claims of earlier
// owners, or nil. It compares the protocol before the hostname, and the listener's own
// port before the other ports.
func conflictWithEarlierOwner(l *Listener, claims *claimIndex) *Problem {
	for _, other := range claims.byPort[l.Spec.Port] {
		if other.Spec.Protocol != l.Spec.Protocol {
			return &Problem{Reason: conditions.ReasonProtocolConflict, Message: fmt.Sprintf(
				"Port %d already has protocol %s, claimed by %s, which takes precedence. Use that protocol, or another port.",
				l.Spec.Port, other.Spec.Protocol, describeClaimant(other))}
		}
	}
	if !supportedProtocol(l.Spec.Protocol) {
		return &Problem{Reason: conditions.ReasonUnsupportedProtocol, Message: fmt.Sprintf(
			"Protocol %s is not supported. Use HTTP or HTTPS.", l.Spec.Protocol)}
	}
	if problem := hostnames.Problem(l.Hostname()); problem != "" {
		return &Problem{Reason: conditions.ReasonUnsupportedValue, Message: fmt.Sprintf(
			"%s %s. Use a DNS name in canonical form.", describeHostname(l.Hostname()), problem)}
	}
	if other := claims.claimantOf(l); other != nil {
		return &Problem{Reason: conditions.ReasonHostnameConflict, Message: fmt.Sprintf(
			"%s on port %d is already claimed by %s, which takes precedence. Use another hostname.",
			describeHostname(l.Hostname()), l.Spec.Port, describeClaimant(other))}
	}
	if first := claims.byHostname[l.Hostname()].first; first != nil {
		return &Problem{Reason: conditions.ReasonPortUnavailable, Message: fmt.Sprintf(
			"%s is already claimed on port %d by %s, which takes precedence. A tunnel serves a hostname on all ports, so one Gateway or ListenerSet must declare all listeners for the hostname.",
			describeHostname(l.Hostname()), first.Spec.Port, describeClaimant(first))}
	}
	return nil
}

// rejectWithinOwner rejects the listeners of one owner that conflict with each other:
// "MUST NOT pick one conflicting Listener as the winner" (GatewaySpec.Listeners). These
// listeners still claim their port and hostname against later owners: a mistake must not
// give a hostname to a tenant.
func rejectWithinOwner(listeners []*Listener, claims *claimIndex) {
	for _, l := range listeners {
		if l.claims {
			l.Rejected = conflictWithSibling(l, claims)
		}
	}
}

// conflictWithSibling returns why the listener conflicts with other listeners of the same
// owner, or nil. It compares all protocols before any hostname. The listener does not
// conflict with claims of earlier owners.
func conflictWithSibling(l *Listener, claims *claimIndex) *Problem {
	for _, sibling := range claims.byPort[l.Spec.Port] {
		if sibling.Spec.Protocol != l.Spec.Protocol {
			return &Problem{Reason: conditions.ReasonProtocolConflict, Message: fmt.Sprintf(
				"Port %d has protocol %s here, and protocol %s in listener %q of the same object, so neither listener is served. Use one protocol for the port.",
				l.Spec.Port, l.Spec.Protocol, sibling.Spec.Protocol, sibling.Spec.Name)}
		}
	}
	if sibling := claims.claimantOf(l); sibling != nil {
		return &Problem{Reason: conditions.ReasonHostnameConflict, Message: fmt.Sprintf(
			"%s on port %d is also claimed by listener %q of the same object, so neither listener is served. Remove one of them.",
			describeHostname(l.Hostname()), l.Spec.Port, sibling.Spec.Name)}
	}
	return nil
}

// supportedProtocol reports whether ingress rules can serve the protocol.
func supportedProtocol(p gatewayv1.ProtocolType) bool {
	return p == gatewayv1.HTTPProtocolType || p == gatewayv1.HTTPSProtocolType
}

// describeClaimant describes a claim's owner for another owner's message. It names the
// Gateway, but never another tenant: "Implementations SHOULD be cautious about what
// information from the parent or siblings are reported" (ListenerSetSpec).
func describeClaimant(l *Listener) string {
	if l.Owner.Kind == KindGateway {
		return fmt.Sprintf("listener %q of Gateway %s", l.Spec.Name, l.Owner.NamespacedName)
	}
	return "another ListenerSet"
}

func describeHostname(hostname string) string {
	if hostname == "" {
		return "The empty hostname (every hostname)"
	}
	return fmt.Sprintf("Hostname %q", hostname)
}
