package check

import (
	"context"
	"net/http"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// addAccess adds what the statuses say about the application that the host demands. The plan
// assumes that it exists, and closes the host only if the objects alone prevent it.
func (i *inspection) addAccess(ctx context.Context, r *plan.Receiver, s *ServingGateway) {
	if r.Access == nil || r.Access.Demand == nil {
		return
	}
	if r.Access.State == access.Closed {
		s.close(r.Access.Reason + ": " + r.Access.Message)
		return
	}
	list, ok := i.claimantConditions(ctx, r)
	c := conditions.TypeAccessReady.Find(list)
	hostname := r.Access.Hostname
	switch {
	case !ok || c == nil:
		s.AccessResult, s.AccessMessage = Unknown, "No status says whether an application of Cloudflare Access protects the hostname."
	case c.Status == metav1.ConditionTrue:
		s.AccessResult = OK
	case says(c.Message, hostname, access.Closed):
		s.close(describe(c))
	case says(c.Message, hostname, access.Open):
		s.Protected, s.AccessResult, s.AccessMessage = false, Warning, "Open until it is protected: "+describe(c)
	case names(c.Message, hostname):
		s.AccessResult, s.AccessMessage = Warning, describe(c)
	default: // a message names at most ten hostnames
		s.AccessResult, s.AccessMessage = Unknown, "Some hostnames are not protected as demanded, and whether this one is among them is not known: "+describe(c)
	}
}

// says reports whether a message about hostnames says that this one is open or closed.
func says(message, hostname string, status access.Status) bool {
	found, _ := regexp.MatchString(`(^|[ ,:;"])`+regexp.QuoteMeta(hostname)+`"? \(`+string(status)+`\)`, message) // the expression is valid
	return found
}

// close makes the host a closed one, which answers every request with 403.
func (s *ServingGateway) close(message string) {
	s.Closed, s.Protected, s.Status, s.AccessResult, s.AccessMessage = true, false, http.StatusForbidden, Failed, message
}

// claimantConditions returns the conditions of the Gateway or ListenerSet whose listener
// receives the request, and false if they cannot be read.
func (i *inspection) claimantConditions(ctx context.Context, r *plan.Receiver) ([]metav1.Condition, bool) {
	for n := range r.Listeners {
		l := &r.Listeners[n]
		if !l.ReceivesRequest || l.Owner.Kind != gateway.KindListenerSet {
			continue
		}
		set := &gatewayv1.ListenerSet{}
		err := i.Source.Get(ctx, types.NamespacedName{Namespace: l.Owner.Namespace, Name: l.Owner.Name}, set)
		return set.Status.Conditions, err == nil
	}
	g, err := i.gateway(ctx, r)
	return g.Status.Conditions, err == nil
}
