package conditions_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

func TestTypesAreThoseOfTheGatewayAPI(t *testing.T) {
	for _, test := range []struct {
		got  conditions.Type
		want []string
	}{
		{conditions.TypeAccepted, []string{
			string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.ListenerConditionAccepted), string(gatewayv1.ListenerSetConditionAccepted),
			string(gatewayv1.RouteConditionAccepted), string(gatewayv1.GatewayClassConditionStatusAccepted),
		}},
		{conditions.TypeProgrammed, []string{
			string(gatewayv1.GatewayConditionProgrammed), string(gatewayv1.ListenerConditionProgrammed), string(gatewayv1.ListenerSetConditionProgrammed),
		}},
		{conditions.TypeConflicted, []string{string(gatewayv1.ListenerConditionConflicted)}},
		{conditions.TypeResolvedRefs, []string{string(gatewayv1.ListenerConditionResolvedRefs), string(gatewayv1.RouteConditionResolvedRefs)}},
		{conditions.TypePartiallyInvalid, []string{string(gatewayv1.RouteConditionPartiallyInvalid)}},
		{conditions.TypeSupportedVersion, []string{string(gatewayv1.GatewayClassConditionStatusSupportedVersion)}},
	} {
		for _, want := range test.want {
			if test.got.String() != want {
				t.Errorf("the type is %s, want %s", test.got, want)
			}
		}
	}
}

func TestReasonsAreThoseOfTheGatewayAPI(t *testing.T) {
	for got, want := range map[conditions.Reason][]string{
		conditions.ReasonAccepted: {
			string(gatewayv1.GatewayReasonAccepted), string(gatewayv1.ListenerReasonAccepted), string(gatewayv1.ListenerSetReasonAccepted),
			string(gatewayv1.RouteReasonAccepted), string(gatewayv1.GatewayClassReasonAccepted),
		},
		conditions.ReasonProgrammed:                 {string(gatewayv1.GatewayReasonProgrammed), string(gatewayv1.ListenerReasonProgrammed), string(gatewayv1.ListenerSetReasonProgrammed)},
		conditions.ReasonPending:                    {string(gatewayv1.GatewayReasonPending), string(gatewayv1.ListenerReasonPending), string(gatewayv1.ListenerSetReasonPending)},
		conditions.ReasonInvalid:                    {string(gatewayv1.GatewayReasonInvalid), string(gatewayv1.ListenerReasonInvalid)},
		conditions.ReasonListenersNotValid:          {string(gatewayv1.GatewayReasonListenersNotValid), string(gatewayv1.ListenerSetReasonListenersNotValid)},
		conditions.ReasonInvalidParameters:          {string(gatewayv1.GatewayReasonInvalidParameters), string(gatewayv1.GatewayClassReasonInvalidParameters)},
		conditions.ReasonUnsupportedAddress:         {string(gatewayv1.GatewayReasonUnsupportedAddress)},
		conditions.ReasonNoConflicts:                {string(gatewayv1.ListenerReasonNoConflicts)},
		conditions.ReasonHostnameConflict:           {string(gatewayv1.ListenerReasonHostnameConflict)},
		conditions.ReasonProtocolConflict:           {string(gatewayv1.ListenerReasonProtocolConflict)},
		conditions.ReasonPortUnavailable:            {string(gatewayv1.ListenerReasonPortUnavailable)},
		conditions.ReasonUnsupportedProtocol:        {string(gatewayv1.ListenerReasonUnsupportedProtocol), string(gatewayv1.RouteReasonUnsupportedProtocol)},
		conditions.ReasonUnsupportedValue:           {string(gatewayv1.ListenerReasonUnsupportedValue), string(gatewayv1.RouteReasonUnsupportedValue)},
		conditions.ReasonInvalidRouteKinds:          {string(gatewayv1.ListenerReasonInvalidRouteKinds)},
		conditions.ReasonInvalidCertificateRef:      {string(gatewayv1.ListenerReasonInvalidCertificateRef)},
		conditions.ReasonRefNotPermitted:            {string(gatewayv1.ListenerReasonRefNotPermitted), string(gatewayv1.RouteReasonRefNotPermitted)},
		conditions.ReasonResolvedRefs:               {string(gatewayv1.ListenerReasonResolvedRefs), string(gatewayv1.RouteReasonResolvedRefs)},
		conditions.ReasonNotAllowed:                 {string(gatewayv1.ListenerSetReasonNotAllowed)},
		conditions.ReasonParentNotAccepted:          {string(gatewayv1.ListenerSetReasonParentNotAccepted)},
		conditions.ReasonBackendNotFound:            {string(gatewayv1.RouteReasonBackendNotFound)},
		conditions.ReasonInvalidKind:                {string(gatewayv1.RouteReasonInvalidKind)},
		conditions.ReasonIncompatibleFilters:        {string(gatewayv1.RouteReasonIncompatibleFilters)},
		conditions.ReasonNoMatchingParent:           {string(gatewayv1.RouteReasonNoMatchingParent)},
		conditions.ReasonNoMatchingListenerHostname: {string(gatewayv1.RouteReasonNoMatchingListenerHostname)},
		conditions.ReasonNotAllowedByListeners:      {string(gatewayv1.RouteReasonNotAllowedByListeners)},
		conditions.ReasonSupportedVersion:           {string(gatewayv1.GatewayClassReasonSupportedVersion)},
		conditions.ReasonUnsupportedVersion:         {string(gatewayv1.GatewayClassReasonUnsupportedVersion)},
	} {
		for _, want := range want {
			if got.String() != want {
				t.Errorf("the reason is %s, want %s", got, want)
			}
		}
	}
}

func TestOnlyProblemsRequireAction(t *testing.T) {
	for _, test := range []struct {
		reason conditions.Reason
		want   bool
	}{{conditions.ReasonPaused, true}, {conditions.ReasonRateLimited, false}, {conditions.ReasonServing, false}, {conditions.Reason{}, false}} {
		c := conditions.TypeTunnelReady.New(metav1.ConditionFalse, test.reason, "")
		if test.reason.RequiresAction() != test.want || conditions.RequiresAction(&c) != test.want {
			t.Errorf("%q: whether a user must act is not %t", test.reason, test.want)
		}
	}
	if conditions.RequiresAction(nil) {
		t.Error("a condition that does not exist requires an action")
	}
}
