package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Listener is a row in the hostname table. Listeners from ListenerSets that are not
// allowed come last.
type Listener struct {
	Owner          Owner  `json:"owner"`
	Name           string `json:"name"`
	Hostname       string `json:"hostname"`
	Port           int32  `json:"port"`
	Protocol       string `json:"protocol"`
	Accepted       bool   `json:"accepted"`
	Conflicted     bool   `json:"conflicted"`
	ResolvedRefs   bool   `json:"resolvedRefs"`
	Programmed     bool   `json:"programmed"`
	Reason         string `json:"reason"`
	AttachedRoutes int32  `json:"attachedRoutes"`
}

// listenerConditions returns the conditions for all listeners in the report by their
// owners.
func listenerConditions(key gateway.Owner, report gateway.Report) map[gateway.Owner]map[gatewayv1.SectionName][]metav1.Condition {
	byListener := map[gateway.Owner]map[gatewayv1.SectionName][]metav1.Condition{key: {}}
	for _, l := range report.Gateway.Listeners {
		byListener[key][l.Name] = l.Conditions
	}
	for _, set := range report.ListenerSets {
		owner := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: set.NamespacedName}
		byListener[owner] = map[gatewayv1.SectionName][]metav1.Condition{}
		for _, entry := range set.Status.Listeners {
			byListener[owner][entry.Name] = entry.Conditions
		}
	}
	return byListener
}

// resultListeners returns the listeners in the order in which the hostname table shows
// them.
func (g *Gateway) resultListeners() []*gateway.Listener {
	return slices.Concat(g.result.Listeners, g.result.NotAllowedListeners())
}

// newListener returns a row for the hostname table.
func newListener(l *gateway.Listener, list []metav1.Condition) Listener {
	listener := Listener{
		Owner:    newOwner(l.Owner),
		Name:     string(l.Spec.Name),
		Hostname: l.Hostname(),
		Port:     l.Spec.Port,
		Protocol: string(l.Spec.Protocol),

		Accepted:       conditions.TypeAccepted.IsTrue(list),
		Conflicted:     conditions.TypeConflicted.IsTrue(list),
		ResolvedRefs:   conditions.TypeResolvedRefs.IsTrue(list),
		Programmed:     conditions.TypeProgrammed.IsTrue(list),
		AttachedRoutes: l.AttachedRoutes,
	}
	if c := firstUnexpected(list); c != nil {
		listener.Reason = c.Reason
	} else if l.Rejected != nil {
		listener.Reason = l.Rejected.Reason.String() // its ListenerSet is not allowed, so it has no conditions
	}
	return listener
}
