package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A rule that begins to redirect to itself causes one event, and another when the loop
// ends.
func TestARedirectLoopCausesOneEvent(t *testing.T) {
	h := newEnvoyHarness(t)
	h.drainEvents()
	served := newRoute().Spec.Rules
	want := func(situation string, rules []gatewayv1.HTTPRouteRule, want ...string) {
		t.Helper()
		route := newRoute()
		h.change("infra", "web", route, func() {
			route.Spec.Rules = rules
			route.Generation++
		})
		h.reconcileFor(time.Second)
		events := slices.DeleteFunc(h.drainEvents(), func(e string) bool { return !strings.Contains(e, "their own URL") })
		if diff := cmp.Diff(want, events); diff != "" && len(want)+len(events) > 0 {
			t.Errorf("%s: the events differ (-want +got):\n%s", situation, diff)
		}
	}
	const message = `The route redirects requests to their own URL, so visitors get too many redirects: rule 0 match 0 ("a.example.com"). Change the redirect or the match.`
	loop := func(status int) []gatewayv1.HTTPRouteRule {
		return []gatewayv1.HTTPRouteRule{{Filters: []gatewayv1.HTTPRouteFilter{{
			Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{StatusCode: &status},
		}}}}
	}
	want("the loop begins", loop(301), "Warning RedirectLoop Parent shared: "+message)
	want("the loop stays", loop(302))
	want("the loop ends", served, "Normal Resolved Parent shared: No longer: "+message)
}
