package gateway

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// resolveByDefinition returns what resolveConflicts must find for each listener. It
// compares every listener with every other.
func resolveByDefinition(owners [][]*Listener) []string {
	var results []string
	var claimed []*Listener
	for _, owner := range owners {
		var claims []*Listener
		lost := map[*Listener]string{}
		for _, l := range owner {
			if problem := lossByDefinition(l, claimed); problem != "" {
				lost[l] = problem
			} else {
				claims = append(claims, l)
			}
		}
		accepted := map[*Listener]bool{}
		for _, l := range claims {
			lost[l] = siblingByDefinition(l, claims)
			accepted[l] = lost[l] == ""
		}
		for _, l := range owner {
			var ports []string
			for _, other := range claims {
				if accepted[l] && accepted[other] && other.Hostname() == l.Hostname() && other != l {
					ports = append(ports, fmt.Sprint(other.Spec.Port))
				}
			}
			results = append(results, lost[l]+strings.Join(ports, ", "))
		}
		claimed = append(claimed, claims...)
	}
	return results
}

// lossByDefinition returns why the listener loses against claims of earlier owners, as a
// condition reason.
func lossByDefinition(l *Listener, claimed []*Listener) string {
	for _, other := range claimed {
		if other.Spec.Port == l.Spec.Port && other.Spec.Protocol != l.Spec.Protocol {
			return string(gatewayv1.ListenerReasonProtocolConflict)
		}
	}
	if !supportedProtocol(l.Spec.Protocol) {
		return string(gatewayv1.ListenerReasonUnsupportedProtocol)
	}
	reason := ""
	for _, other := range claimed {
		switch {
		case other.Hostname() == l.Hostname() && other.Spec.Port == l.Spec.Port:
			return string(gatewayv1.ListenerReasonHostnameConflict)
		case other.Hostname() == l.Hostname():
			reason = string(gatewayv1.ListenerReasonPortUnavailable)
		}
	}
	return reason
}

// siblingByDefinition returns why the listener conflicts with other listeners of its
// owner, as a condition reason, and the first such listener.
func siblingByDefinition(l *Listener, siblings []*Listener) string {
	for _, sibling := range siblings {
		if sibling.Spec.Port == l.Spec.Port && sibling.Spec.Protocol != l.Spec.Protocol {
			return fmt.Sprintf("%s %q", gatewayv1.ListenerReasonProtocolConflict, sibling.Spec.Name)
		}
	}
	for _, sibling := range siblings {
		if sibling != l && sibling.Spec.Port == l.Spec.Port && sibling.Hostname() == l.Hostname() {
			return fmt.Sprintf("%s %q", gatewayv1.ListenerReasonHostnameConflict, sibling.Spec.Name)
		}
	}
	return ""
}

func TestConflictsAreThoseOfTheDefinition(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test must be reproducible
		var owners [][]*Listener
		for range 1 + r.IntN(4) {
			owners = append(owners, randomListeners(r))
		}
		want := resolveByDefinition(owners)
		claims := newClaimIndex()
		var all []*Listener
		for _, owner := range owners {
			claims.addOwner(owner)
			all = append(all, owner...)
		}
		for i, l := range all {
			got := l.sharedPorts
			if problem := l.Rejected; problem != nil {
				got = problem.Reason.String()
				if _, rest, ok := strings.Cut(problem.Message, " listener "); ok && strings.Contains(rest, "of the same object") {
					name, _, _ := strings.Cut(rest, " ")
					got += " " + name
				}
			}
			if got != want[i] {
				t.Fatalf("seed %d: listener %s %q port %d %s: got %q, want %q", seed, l.Spec.Name, l.Hostname(), l.Spec.Port, l.Spec.Protocol, got, want[i])
			}
		}
	}
}

// randomListeners returns the listeners of one ListenerSet. Their ports, hostnames and
// protocols are few, so that most listeners conflict.
func randomListeners(r *rand.Rand) []*Listener {
	listeners := make([]*Listener, r.IntN(6))
	for i := range listeners {
		l := &Listener{Owner: Owner{Kind: KindListenerSet}}
		l.Spec.Name = gatewayv1.SectionName(fmt.Sprint(i))
		l.Spec.Port = []gatewayv1.PortNumber{80, 81, 82, 83, 84}[r.IntN(5)]
		l.Spec.Protocol = []gatewayv1.ProtocolType{"HTTP", "HTTP", "HTTP", "HTTP", "HTTP", "HTTPS", "TCP"}[r.IntN(7)]
		if hostname := randomHostname(r)[:1]; hostname != "*" {
			l.Spec.Hostname = &hostname
		}
		listeners[i] = l
	}
	return listeners
}

func TestMessageListsFivePorts(t *testing.T) {
	for count, want := range map[int]string{0: "", 5: "1, 2, 3, 4, 5", 7: "1, 2, 3, 4, 5, and 2 more"} {
		var listeners []*Listener
		for i := range count {
			l := &Listener{}
			l.Spec.Port = gatewayv1.PortNumber(1 + i)
			listeners = append(listeners, l)
		}
		if got := describePorts(listeners); got != want {
			t.Errorf("%d ports: %s, want %s", count, got, want)
		}
	}
}
