package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// readyEnvoys returns two connected Envoys with the configuration.
func readyEnvoys(changes ...func(*gateway.Envoys)) *gateway.Envoys {
	e := &gateway.Envoys{Connected: 2, Wanted: 2, Known: true, Published: true, Acknowledged: true}
	for _, change := range changes {
		change(e)
	}
	return e
}

func unacknowledged(e *gateway.Envoys) { e.Acknowledged = false }
func late(e *gateway.Envoys)           { e.Late = true }
func unpublished(e *gateway.Envoys)    { e.Published, e.Acknowledged = false, false }
func unknown(e *gateway.Envoys)        { e.Known = false }
func disconnected(e *gateway.Envoys)   { e.Connected, e.Acknowledged = 0, false }
func scaledToZero(e *gateway.Envoys)   { e.Wanted = 0 }
func rejected(e *gateway.Envoys)       { e.Rejected = "route secret/other is not valid" }

func starting(e *gateway.Envoys)  { e.Starting, e.Progress = true, "Pod a is not ready." }
func excessive(e *gateway.Envoys) { e.Excess = "The Gateway needs 3 ingress rules." }

func accessPending(count int) func(*gateway.Envoys) {
	return func(e *gateway.Envoys) {
		for i := range count {
			e.Access.Hostnames = append(e.Access.Hostnames, fmt.Sprintf("%d.example.com", i))
		}
	}
}

// dataPlaneReady returns a current condition DataPlaneReady.
func dataPlaneReady(generation int64) metav1.Condition {
	return metav1.Condition{
		Type: conditions.TypeDataPlaneReady.String(), Status: metav1.ConditionTrue, Reason: "Ready", Message: "Current.",
		ObservedGeneration: generation, LastTransitionTime: metav1.Now(),
	}
}

// rejectGateway makes the Gateway invalid.
func rejectGateway(s *gateway.Snapshot) {
	s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
}

func TestDataPlaneReadyFollowsTheStateOfEnvoy(t *testing.T) {
	type state = *gateway.Envoys
	kept := metav1.Condition{Type: conditions.TypeDataPlaneReady.String(), Status: metav1.ConditionTrue, Reason: "Ready", Message: "Current.", ObservedGeneration: gatewayGeneration - 1}
	for name, test := range map[string]struct {
		envoys  state
		invalid bool
		// want is the status and the reason, and message a part of the message.
		want, message string
		// keeps means that the current condition remains.
		keeps bool
	}{
		"ready":                       {envoys: readyEnvoys(), want: "True Ready", message: "Every connected Envoy has acknowledged the configuration."},
		"ready, with a missing Envoy": {envoys: readyEnvoys(func(e state) { e.Wanted = 3 }), want: "True Ready", message: "2 of 3 Envoys are connected."},
		"ready, while scaling down":   {envoys: readyEnvoys(func(e state) { e.Wanted = 1 }), want: "True Ready", message: "configuration."},
		"not published":               {envoys: readyEnvoys(unpublished), want: "False Pending", message: "has not published", keeps: true},
		"not published, and disconnected": {
			envoys: readyEnvoys(unpublished, disconnected), want: "False Pending", message: "has not published", keeps: true,
		},
		"unknown":                      {envoys: readyEnvoys(disconnected, unknown), want: "False Pending", message: "waits until Envoy connects", keeps: true},
		"unknown, and scaled to zero":  {envoys: readyEnvoys(disconnected, unknown, scaledToZero), want: "False Pending", message: "waits until Envoy connects", keeps: true},
		"disconnected":                 {envoys: readyEnvoys(disconnected), want: "False Disconnected", message: "keep serving their last configuration"},
		"disconnected, after a change": {envoys: readyEnvoys(disconnected, accessPending(1)), want: "False Disconnected", message: "Check that the connector pods"},
		"disconnected, with an earlier acknowledgement": {
			envoys: readyEnvoys(func(e state) { e.Connected = 0 }), want: "False Disconnected", message: "changes do not take effect",
		},
		"scaled to zero":                     {envoys: readyEnvoys(disconnected, scaledToZero), want: "True Ready", message: "No connector is desired"},
		"scaled to zero, with a change":      {envoys: readyEnvoys(disconnected, scaledToZero, accessPending(1)), want: "False Pending", message: "0.example.com"},
		"scaled to zero, with a last Envoy":  {envoys: readyEnvoys(scaledToZero), want: "True Ready", message: "has acknowledged"},
		"rejected":                           {envoys: readyEnvoys(unacknowledged, rejected), want: "False EnvoyRejected", message: ": route secret/other is not valid"},
		"rejected after an acknowledgement":  {envoys: readyEnvoys(rejected), want: "False EnvoyRejected", message: "Report the error as a bug"},
		"rejected, and disconnected":         {envoys: readyEnvoys(disconnected, rejected), want: "False EnvoyRejected", message: "Envoy rejected"},
		"not acknowledged":                   {envoys: readyEnvoys(unacknowledged), want: "False Pending", message: "acknowledged the configuration for this generation", keeps: true},
		"late":                               {envoys: readyEnvoys(late), want: "False Pending", message: "within five seconds"},
		"late, and not acknowledged":         {envoys: readyEnvoys(unacknowledged, late), want: "False Pending", message: "within five seconds"},
		"not acknowledged, with a change":    {envoys: readyEnvoys(unacknowledged, accessPending(1)), want: "False Pending", message: "every connected Envoy"},
		"Access waits":                       {envoys: readyEnvoys(accessPending(2)), want: "False Pending", message: "for 0.example.com, 1.example.com is not in effect yet, because Cloudflare has not acknowledged it. The previous Access settings stay in effect until then."},
		"Access of the listed hostnames":     {envoys: readyEnvoys(accessPending(5)), want: "False Pending", message: "3.example.com, 4.example.com is not in effect yet"},
		"Access of many hostnames waits":     {envoys: readyEnvoys(accessPending(9)), want: "False Pending", message: "4.example.com, and 4 more is not in effect yet"},
		"changing to Envoy":                  {envoys: readyEnvoys(starting), want: "False Pending", message: "Pod a is not ready."},
		"changing to Envoy, none connected":  {envoys: readyEnvoys(starting, disconnected), want: "False Pending", message: "Pod a is not ready."},
		"changing to Envoy, rejected":        {envoys: readyEnvoys(starting, rejected), want: "False EnvoyRejected", message: "so the ingress rules keep serving the Gateway. Report"},
		"changing to Envoy, not published":   {envoys: readyEnvoys(starting, unpublished), want: "False Pending", message: "has not published", keeps: true},
		"changing to Envoy, state unknown":   {envoys: &gateway.Envoys{Published: true, Starting: true}, want: "False Pending", message: "The change to Envoy has begun", keeps: true},
		"above the limits":                   {envoys: readyEnvoys(excessive), want: "False LimitExceeded", message: "needs 3 ingress rules"},
		"above the limits, scaled to zero":   {envoys: readyEnvoys(excessive, scaledToZero), want: "False LimitExceeded", message: "needs 3 ingress rules"},
		"above the limits, none connected":   {envoys: readyEnvoys(excessive, disconnected), want: "False Disconnected", message: "No Envoy is connected"},
		"above the limits, rejected":         {envoys: readyEnvoys(excessive, rejected), want: "False EnvoyRejected", message: "Envoy rejected"},
		"not accepted":                       {envoys: readyEnvoys(), invalid: true, want: "False Pending", message: "The Gateway is not accepted", keeps: true},
		"not accepted, after a rejection":    {envoys: readyEnvoys(rejected), invalid: true, want: "False Pending", message: "The Gateway is not accepted", keeps: true},
		"not accepted, without a connection": {envoys: readyEnvoys(disconnected), invalid: true, want: "False Pending", message: "The Gateway is not accepted", keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			report := func(current ...metav1.Condition) *metav1.Condition {
				s := reportSnapshot()
				s.Gateway.Status.Conditions = current
				if test.invalid {
					rejectGateway(s)
				}
				r := gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}, Envoys: test.envoys})
				return meta.FindStatusCondition(r.Gateway.Conditions, conditions.TypeDataPlaneReady.String())
			}
			got := report()
			if got == nil || string(got.Status)+" "+got.Reason != test.want || !strings.Contains(got.Message, test.message) ||
				got.ObservedGeneration != gatewayGeneration || !got.LastTransitionTime.IsZero() {
				t.Errorf("the condition is %+v, want %s with %q", got, test.want, test.message)
			}
			want := got
			if test.keeps {
				want = &kept
			}
			if diff := cmp.Diff(want, report(dataPlaneReady(gatewayGeneration-1))); diff != "" {
				t.Errorf("with a current condition, the condition differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIngressRulesHaveNoConditionDataPlaneReady(t *testing.T) {
	s := reportSnapshot()
	s.Gateway.Status.Conditions = []metav1.Condition{dataPlaneReady(gatewayGeneration)}
	r := gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}})
	if c := meta.FindStatusCondition(r.Gateway.Conditions, conditions.TypeDataPlaneReady.String()); c != nil {
		t.Errorf("the report has the condition %+v", c)
	}
}

const (
	isProgrammed = "True Programmed"
	isPending    = "False Pending"
)

// rejectedOnGateway is what a rejected first configuration leads to: EnvoyRejected on the
// Gateway, and Pending on every listener and ListenerSet.
func rejectedOnGateway() map[string]string {
	want := programmedEverywhere(isPending)
	want["Gateway"] = "False EnvoyRejected"
	return want
}

func TestProgrammedFollowsTheFirstConfigurationOfEnvoy(t *testing.T) {
	succeeded := gateway.Push{State: gateway.PushSucceeded}
	everywhere := programmedEverywhere
	for name, test := range map[string]struct {
		push   gateway.Push
		envoys *gateway.Envoys
		// first is the result without current conditions, and for an older generation's
		// conditions. before and failed are the results when Programmed is True or False
		// for this generation.
		first, before, failed map[string]string
	}{
		"acknowledged":     {succeeded, readyEnvoys(), everywhere(isProgrammed), everywhere(isProgrammed), everywhere(isProgrammed)},
		"not acknowledged": {succeeded, readyEnvoys(unacknowledged), everywhere(isPending), everywhere(isProgrammed), everywhere(isPending)},
		"not published":    {succeeded, readyEnvoys(unpublished), everywhere(isPending), everywhere(isProgrammed), everywhere(isPending)},
		"unknown":          {succeeded, readyEnvoys(disconnected, unknown), everywhere(isPending), everywhere(isProgrammed), everywhere(isPending)},
		"none connected":   {succeeded, readyEnvoys(disconnected), everywhere(isProgrammed), everywhere(isProgrammed), everywhere(isProgrammed)},
		"scaled to zero":   {succeeded, readyEnvoys(disconnected, scaledToZero), everywhere(isProgrammed), everywhere(isProgrammed), everywhere(isProgrammed)},
		"none connected, not published": {
			succeeded, readyEnvoys(disconnected, unpublished), everywhere(isPending), everywhere(isProgrammed), everywhere(isPending),
		},
		"rejected":                 {succeeded, readyEnvoys(unacknowledged, rejected), rejectedOnGateway(), everywhere(isProgrammed), rejectedOnGateway()},
		"rejected, none connected": {succeeded, readyEnvoys(disconnected, rejected), rejectedOnGateway(), everywhere(isProgrammed), rejectedOnGateway()},
		"a later rejection": {
			succeeded, readyEnvoys(rejected), programmedOnGateway(), everywhere(isProgrammed), programmedOnGateway(),
		},
		"Access waits": {succeeded, readyEnvoys(accessPending(1)), everywhere(isProgrammed), everywhere(isProgrammed), everywhere(isProgrammed)},
		"changing to Envoy": {
			succeeded, readyEnvoys(starting, unacknowledged, rejected), everywhere(isProgrammed), everywhere(isProgrammed), everywhere(isProgrammed),
		},
		"above the limits": {succeeded, readyEnvoys(excessive), everywhere(isProgrammed), everywhere(isProgrammed), everywhere(isProgrammed)},
		"no configuration": {gateway.Push{}, readyEnvoys(), everywhere(isPending), everywhere(isProgrammed), everywhere(isPending)},
		"a configuration that failed": {
			gateway.Push{State: gateway.PushFailed, Message: "It failed."}, readyEnvoys(), everywhere(isPending), everywhere(isPending), everywhere(isPending),
		},
		"a delayed configuration": {
			gateway.Push{State: gateway.PushDelayed, Message: "It waits."}, readyEnvoys(rejected), everywhere(isPending), everywhere(isProgrammed), everywhere(isPending),
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := func(s *gateway.Snapshot) gateway.Report {
				return gateway.Build(s, options).Report(gateway.Outcome{Push: test.push, Envoys: test.envoys})
			}
			wantProgrammed(t, report(reportSnapshot()), test.first)
			wantProgrammed(t, report(withCurrent(reportSnapshot(), metav1.ConditionTrue, -1)), test.first)
			wantProgrammed(t, report(withCurrent(reportSnapshot(), metav1.ConditionTrue, 0)), test.before)
			wantProgrammed(t, report(withCurrent(reportSnapshot(), metav1.ConditionFalse, 0)), test.failed)
		})
	}
}

// programmedOnGateway is what a rejected later configuration leads to, which can be the
// first one with a ListenerSet.
func programmedOnGateway() map[string]string {
	want := programmedEverywhere(isProgrammed)
	want["ListenerSet"], want["entry good"] = isPending, isPending
	return want
}

// While Envoy's state is not known, a rejection remains reported. Another message in a
// pending condition is replaced, because it can describe a problem that no longer exists.
func TestUnknownStateOfEnvoyKeepsTheResult(t *testing.T) {
	s := reportSnapshot()
	build := func(e *gateway.Envoys) gateway.Report {
		r := gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}, Envoys: e})
		s.Gateway.Status, s.ListenerSets[0].Status = r.Gateway, r.ListenerSets[0].Status
		return r
	}
	first := build(readyEnvoys(unacknowledged, rejected))
	for name, e := range map[string]*gateway.Envoys{
		"a new leader": readyEnvoys(unpublished), "unknown": readyEnvoys(disconnected, unknown), "not acknowledged": readyEnvoys(unacknowledged),
	} {
		r := build(e)
		wantProgrammed(t, r, rejectedOnGateway())
		if diff := cmp.Diff(messageOf(first.Gateway.Conditions, "Programmed"), messageOf(r.Gateway.Conditions, "Programmed")); diff != "" {
			t.Errorf("%s: the message differs (-want +got):\n%s", name, diff)
		}
	}
	wantProgrammed(t, build(readyEnvoys()), programmedEverywhere(isProgrammed))

	withCurrent(s, metav1.ConditionFalse, 0)
	r := build(readyEnvoys(unacknowledged))
	if got := messageOf(r.Gateway.Conditions, "Programmed"); !strings.Contains(got, "waits until every connected Envoy has acknowledged") {
		t.Errorf("the message of the Gateway is %q", got)
	}
}

// The error of a rejection can name objects of other tenants.
func TestErrorOfEnvoyIsOnlyInOneCondition(t *testing.T) {
	for name, e := range map[string]*gateway.Envoys{
		"the first configuration": readyEnvoys(unacknowledged, rejected), "a later configuration": readyEnvoys(rejected),
	} {
		r := gateway.Build(reportSnapshot(), options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}, Envoys: e})
		count := 0
		for place, conditions := range conditionsByPlace(r) {
			tenant := place == "route" || place == "ListenerSet" || strings.HasPrefix(place, "entry ")
			if text := messagesOf(conditions); tenant && strings.Contains(text, "Envoy") {
				t.Errorf("%s: the conditions of %s name Envoy: %s", name, place, text)
			}
			count += strings.Count(messagesOf(conditions), e.Rejected)
		}
		if !strings.Contains(messageOf(r.Gateway.Conditions, conditions.TypeDataPlaneReady.String()), e.Rejected) {
			t.Errorf("%s: DataPlaneReady does not contain the error", name)
		}
		if count != 1 {
			t.Errorf("%s: %d conditions contain the error, want 1", name, count)
		}
	}
}
