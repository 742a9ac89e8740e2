package gateway_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// accessReady returns the status and the reason of AccessReady, or "" without the condition.
func accessReady(list []metav1.Condition) string {
	if c := conditions.TypeAccessReady.Find(list); c != nil {
		return string(c.Status) + " " + c.Reason
	}
	return ""
}

// protectOwn returns the Result for a Gateway whose hostname own.example.com has the verdict
// about its application, while inEffect are the rules in effect.
func protectOwn(reason conditions.Reason, inEffect routing.Access, plane v1alpha1.DataPlane) *gateway.Result {
	s := accessSnapshot(accessPolicy("infra", "web", accessTarget(gateway.KindGateway, "shared", "")))
	s.DataPlane = plane
	demand := gateway.Build(s, options).Demanded.Demands["own.example.com"]
	verdict := access.Verdict{Reason: reason, Message: "a message."}
	if reason == conditions.ReasonProtected {
		verdict.Application = wantedApplication(gateway.Build(s, options), &demand)
	}
	s.Access = access.Known{Read: true, Verdicts: access.Verdicts{"own.example.com": verdict}, InEffect: inEffect, InEffectKnown: inEffect != nil}
	return gateway.Build(s, options)
}

// With ingress rules, a hostname is closed or protected with the next successful write. Until
// then, the condition says that it is open.
func TestAccessReadyNamesHostnamesThatAreStillOpen(t *testing.T) {
	const (
		stillOpen  = " Until the controller has written the tunnel's configuration, requests without a token reach the backends."
		notWritten = "the controller has not written the tunnel's configuration yet."
	)
	protected := &routing.Requirement{TeamName: "acme", AUDTags: []string{"aud-of-own.example.com"}}
	open := ingress.InEffect(provider.Configuration{Ingress: []provider.IngressRule{
		{Hostname: "own.example.com", Service: "http://web.infra.svc.cluster.local:80"}, {Service: "http_status:404"},
	}})
	closed := routing.Access{"own.example.com": {Closed: true}, "": nil}
	for name, test := range map[string]struct {
		reason   conditions.Reason
		inEffect routing.Access
		plane    v1alpha1.DataPlane
		push     gateway.PushState
		want     string
	}{
		"protected, not written":        {conditions.ReasonProtected, open, v1alpha1.DataPlaneIngressRules, gateway.PushOutstanding, "False Pending own.example.com (open): " + notWritten + stillOpen},
		"protected, failed":             {conditions.ReasonProtected, open, v1alpha1.DataPlaneIngressRules, gateway.PushFailed, "False Pending own.example.com (open): " + notWritten + stillOpen},
		"protected, closed until then":  {conditions.ReasonProtected, closed, v1alpha1.DataPlaneIngressRules, gateway.PushOutstanding, "False Pending own.example.com: " + notWritten},
		"protected, written":            {conditions.ReasonProtected, open, v1alpha1.DataPlaneIngressRules, gateway.PushSucceeded, "True Protected An application of Cloudflare Access protects each hostname."},
		"protected, written before":     {conditions.ReasonProtected, routing.Access{"own.example.com": protected}, v1alpha1.DataPlaneIngressRules, gateway.PushOutstanding, "True Protected An application of Cloudflare Access protects each hostname."},
		"protected, rules unknown":      {conditions.ReasonProtected, nil, v1alpha1.DataPlaneIngressRules, gateway.PushOutstanding, "True Protected An application of Cloudflare Access protects each hostname."},
		"closed, not written":           {conditions.ReasonApplicationExists, open, v1alpha1.DataPlaneIngressRules, gateway.PushOutstanding, "False ApplicationExists own.example.com (open): a message." + stillOpen},
		"closed, written":               {conditions.ReasonApplicationExists, open, v1alpha1.DataPlaneIngressRules, gateway.PushSucceeded, "False ApplicationExists own.example.com (closed): a message."},
		"closed, never served":          {conditions.ReasonApplicationExists, routing.Access{"": nil}, v1alpha1.DataPlaneIngressRules, gateway.PushOutstanding, "False ApplicationExists own.example.com (closed): a message."},
		"closed by Envoy, not written":  {conditions.ReasonApplicationExists, open, v1alpha1.DataPlaneEnvoy, gateway.PushOutstanding, "False ApplicationExists own.example.com (closed): a message."},
		"protected, not written, Envoy": {conditions.ReasonProtected, open, v1alpha1.DataPlaneEnvoy, gateway.PushOutstanding, "False Pending own.example.com: " + notWritten},
	} {
		t.Run(name, func(t *testing.T) {
			report := protectOwn(test.reason, test.inEffect, test.plane).Report(gateway.Outcome{Push: gateway.Push{State: test.push, Message: "A failure."}})
			c := conditions.TypeAccessReady.Find(report.Gateway.Conditions)
			if got := string(c.Status) + " " + c.Reason + " " + c.Message; got != test.want {
				t.Errorf("got %q,\nwant %q", got, test.want)
			}
			if c.ObservedGeneration != gatewayGeneration {
				t.Errorf("the condition has the generation %d", c.ObservedGeneration)
			}
		})
	}
}

// While the settings are not valid, or AccessPolicies cannot be read, it is not known which
// hostnames must be protected.
func TestAccessReadyRemainsWhileTheDemandsAreNotKnown(t *testing.T) {
	for name, change := range map[string]func(*gateway.Snapshot){
		"the settings are not valid":    func(s *gateway.Snapshot) { s.ClassConfiguration = nil },
		"AccessPolicies cannot be read": func(s *gateway.Snapshot) { s.AccessPoliciesUnknown = true },
	} {
		s := accessSnapshot()
		s.Gateway.Status.Conditions = []metav1.Condition{{Type: "tunnelgateway.dev/AccessReady", Status: metav1.ConditionTrue, Reason: "Protected", ObservedGeneration: 2}}
		change(s)
		report := gateway.Build(s, options).Report(gateway.Outcome{})
		c := conditions.TypeAccessReady.Find(report.Gateway.Conditions)
		if c == nil || c.Reason != "Protected" || c.ObservedGeneration != 2 {
			t.Errorf("%s: got %+v, want the condition unchanged", name, c)
		}
	}
}

// A Gateway on which no hostname must be protected has no condition about it.
func TestAccessReadyIsAboutDemandedHostnames(t *testing.T) {
	report := gateway.Build(accessSnapshot(), options).Report(gateway.Outcome{})
	if got := accessReady(report.Gateway.Conditions) + accessReady(report.ListenerSets[0].Status.Conditions); got != "" {
		t.Errorf("got %q", got)
	}
}
