package gateway_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The generations of the objects in reportSnapshot, all different.
const (
	gatewayGeneration = 5
	setGeneration     = 3
	routeGeneration   = 7
)

var (
	reportGateway = gateway.Owner{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "infra", Name: "shared"}}
	reportSet     = gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: types.NamespacedName{Namespace: "team", Name: "set"}}
)

func httpListener(name, hostname string, port gatewayv1.PortNumber) gatewayv1.Listener {
	return gatewayv1.Listener{Name: gatewayv1.SectionName(name), Hostname: new(gatewayv1.Hostname(hostname)), Port: port, Protocol: gatewayv1.HTTPProtocolType}
}

// reportSnapshot is a Gateway with one listener, a set with one that is good
// and one that loses to the Gateway's, and a route at each.
func reportSnapshot() *gateway.Snapshot {
	g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared", Generation: gatewayGeneration}}
	g.Spec.Listeners = []gatewayv1.Listener{httpListener("own", "own.example.com", 80)}
	g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set", Generation: setGeneration}}
	set.Spec.Listeners = []gatewayv1.ListenerEntry{
		gatewayv1.ListenerEntry(httpListener("good", "team.example.com", 80)),
		gatewayv1.ListenerEntry(httpListener("taken", "own.example.com", 80)),
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "route", Generation: routeGeneration}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Kind: new(gatewayv1.Kind("ListenerSet")), Name: "set"}}
	return &gateway.Snapshot{
		Gateway: g, ListenerSets: []*gatewayv1.ListenerSet{set}, HTTPRoutes: []*gatewayv1.HTTPRoute{route},
		Namespaces: map[string]*corev1.Namespace{"team": {ObjectMeta: metav1.ObjectMeta{Name: "team"}}},
	}
}

// programmed returns a condition that an object may have already.
func programmed(status metav1.ConditionStatus, generation int64) []metav1.Condition {
	return []metav1.Condition{{Type: "Programmed", Status: status, ObservedGeneration: generation, Reason: "Programmed"}}
}

// withCurrent sets the Programmed conditions that the objects have already, at
// their generations plus newer.
func withCurrent(s *gateway.Snapshot, status metav1.ConditionStatus, newer int64) *gateway.Snapshot {
	s.Gateway.Status.Conditions = programmed(status, gatewayGeneration+newer)
	s.Gateway.Status.Listeners = []gatewayv1.ListenerStatus{{Name: "own", Conditions: programmed(status, gatewayGeneration+newer)}}
	set := s.ListenerSets[0]
	set.Status.Conditions = programmed(status, setGeneration+newer)
	set.Status.Listeners = []gatewayv1.ListenerEntryStatus{
		{Name: "taken", Conditions: programmed(status, setGeneration+newer)},
		{Name: "good", Conditions: programmed(status, setGeneration+newer)},
	}
	return s
}

// conditionsByPlace lists the conditions of every place of a report.
func conditionsByPlace(r gateway.Report) map[string][]metav1.Condition {
	places := map[string][]metav1.Condition{"Gateway": r.Gateway.Conditions}
	for _, l := range r.Gateway.Listeners {
		places["listener "+string(l.Name)] = l.Conditions
	}
	for _, set := range r.ListenerSets {
		places["ListenerSet"] = set.Status.Conditions
		for _, entry := range set.Status.Listeners {
			places["entry "+string(entry.Name)] = entry.Conditions
		}
	}
	for _, route := range r.Routes {
		for _, parent := range route.Parents {
			places["route"] = parent.Conditions
		}
	}
	return places
}

func wantProgrammed(t *testing.T, r gateway.Report, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for place, conditions := range conditionsByPlace(r) {
		if short, ok := statusAndReason(conditions)["Programmed"]; ok {
			got[place] = short
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Programmed differs (-want +got):\n%s", diff)
	}
}

// programmedEverywhere is the same for each place whose own state is good; the entry that
// lost to the Gateway's listener keeps its own reason.
func programmedEverywhere(short string) map[string]string {
	return map[string]string{
		"Gateway": short, "listener own": short, "ListenerSet": short, "entry good": short, "entry taken": "False HostnameConflict",
	}
}

// "True once a document for this generation is at Cloudflare; [...] later
// route changes under way do not unset it. [...] False/Pending when the first
// push of a generation is outstanding or a push failed."
func TestReportProgrammedFollowsThePush(t *testing.T) {
	failed := gateway.Push{State: gateway.PushFailed, Message: "The API is down. It is tried again in 2s."}
	otherTunnel := gateway.Push{State: gateway.PushFailed, Reason: "SettingsNotApplied", Message: "The setting account asks for another tunnel."}
	onGatewayOnly := programmedEverywhere("False Pending")
	onGatewayOnly["Gateway"] = "False SettingsNotApplied"
	for name, test := range map[string]struct {
		snapshot *gateway.Snapshot
		push     gateway.Push
		want     map[string]string
	}{
		"succeeded":                                  {reportSnapshot(), gateway.Push{State: gateway.PushSucceeded}, programmedEverywhere("True Programmed")},
		"outstanding, nothing said yet":              {reportSnapshot(), gateway.Push{}, programmedEverywhere("False Pending")},
		"outstanding, programmed in this generation": {withCurrent(reportSnapshot(), metav1.ConditionTrue, 0), gateway.Push{}, programmedEverywhere("True Programmed")},
		"outstanding, programmed in an older one":    {withCurrent(reportSnapshot(), metav1.ConditionTrue, -1), gateway.Push{}, programmedEverywhere("False Pending")},
		"outstanding, not programmed":                {withCurrent(reportSnapshot(), metav1.ConditionFalse, 0), gateway.Push{}, programmedEverywhere("False Pending")},
		"failed, nothing said yet":                   {reportSnapshot(), failed, programmedEverywhere("False Pending")},
		"failed, programmed in this generation":      {withCurrent(reportSnapshot(), metav1.ConditionTrue, 0), failed, programmedEverywhere("False Pending")},
		"failed with a reason of its own":            {reportSnapshot(), otherTunnel, onGatewayOnly},
	} {
		t.Run(name, func(t *testing.T) {
			r := gateway.Build(test.snapshot, options).Report(gateway.Outcome{Push: test.push})
			wantProgrammed(t, r, test.want)
			for place, conditions := range conditionsByPlace(r) {
				message := messageOf(conditions, "Programmed")
				if statusAndReason(conditions)["Programmed"] != "False Pending" || test.push.Message == "" {
					continue
				}
				// Tenants can do nothing about it, and are sent to the Gateway.
				tenant := place == "ListenerSet" || strings.HasPrefix(place, "entry ")
				if tenant != strings.Contains(message, "the status of the Gateway says why") || !tenant && message != test.push.Message {
					t.Errorf("%s says %q", place, message)
				}
			}
		})
	}
}

// While an attempt is under way each object is judged by its own status.
func TestReportWhilePushIsOutstanding(t *testing.T) {
	s := reportSnapshot()
	s.Gateway.Status.Conditions = programmed(metav1.ConditionTrue, gatewayGeneration)
	s.ListenerSets[0].Status.Listeners = []gatewayv1.ListenerEntryStatus{{Name: "good", Conditions: programmed(metav1.ConditionTrue, setGeneration)}}
	want := programmedEverywhere("False Pending")
	want["Gateway"], want["entry good"] = "True Programmed", "True Programmed"
	wantProgrammed(t, gateway.Build(s, options).Report(gateway.Outcome{}), want)
}

// Whatever the push: nothing is sent for a Gateway that is not accepted.
func TestReportOfRejectedGateway(t *testing.T) {
	want := maps.Clone(programmedEverywhere("False Pending"))
	want["Gateway"], want["ListenerSet"] = "False Invalid", "False ParentNotProgrammed"
	for _, state := range []gateway.PushState{gateway.PushOutstanding, gateway.PushFailed, gateway.PushSucceeded} {
		s := withCurrent(reportSnapshot(), metav1.ConditionTrue, 0)
		s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
		r := gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: state}, Tunnel: "tunnel"})
		wantProgrammed(t, r, want)
		if got := statusAndReason(conditionsByPlace(r)["ListenerSet"])["Accepted"]; got != "False ParentNotAccepted" {
			t.Errorf("the set's Accepted is %s", got)
		}
		if len(r.Gateway.Addresses) != 1 {
			t.Errorf("%d addresses, want that of the tunnel, which is still there", len(r.Gateway.Addresses))
		}
	}
}

// "Every condition with the generation that was read", that of its own object.
func TestReportObservedGenerations(t *testing.T) {
	r := gateway.Build(reportSnapshot(), options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}})
	want := map[string]int64{
		"Gateway": gatewayGeneration, "listener own": gatewayGeneration,
		"ListenerSet": setGeneration, "entry good": setGeneration, "entry taken": setGeneration,
		"route": routeGeneration,
	}
	places := conditionsByPlace(r)
	if diff := cmp.Diff(len(want), len(places)); diff != "" {
		t.Errorf("the number of places differs (-want +got):\n%s", diff)
	}
	for place, conditions := range places {
		for _, c := range conditions {
			if c.ObservedGeneration != want[place] || !c.LastTransitionTime.IsZero() {
				t.Errorf("%s of %s: generation %d and time %s, want %d and none", c.Type, place, c.ObservedGeneration, c.LastTransitionTime, want[place])
			}
		}
	}
}

func TestReportAddress(t *testing.T) {
	result := gateway.Build(reportSnapshot(), options)
	if got := result.Report(gateway.Outcome{}).Gateway.Addresses; len(got) != 0 {
		t.Errorf("without a tunnel the addresses are %v", got)
	}
	want := []gatewayv1.GatewayStatusAddress{{Type: new(gatewayv1.HostnameAddressType), Value: "t-1.cfargotunnel.com"}}
	if diff := cmp.Diff(want, result.Report(gateway.Outcome{Tunnel: "t-1"}).Gateway.Addresses); diff != "" {
		t.Errorf("addresses differ (-want +got):\n%s", diff)
	}
}

func TestReportOwners(t *testing.T) {
	r := gateway.Build(reportSnapshot(), options).Report(gateway.Outcome{})
	if diff := cmp.Diff(map[gateway.Owner]bool{reportGateway: true, reportSet: true}, r.Owners); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
}

// A good condition says what is not good beside it.
func TestReportAcceptedMessages(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*gateway.Snapshot)
		place  string
		want   string
	}{
		"the Gateway": {func(*gateway.Snapshot) {}, "Gateway", "The Gateway is accepted."},
		"the Gateway, with a listener that does not serve": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, gatewayv1.Listener{Name: "raw", Port: 5432, Protocol: gatewayv1.TCPProtocolType})
		}, "Gateway", `The Gateway is accepted, but not all of its listeners serve: listener "raw": UnsupportedProtocol.`},
		"the Gateway, with TLS settings of its own": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.TLS = &gatewayv1.GatewayTLSConfig{}
		}, "Gateway", "The Gateway is accepted. Its spec.tls has no effect: Cloudflare's edge terminates TLS with its own settings."},
		"the set, with an entry that lost": {func(*gateway.Snapshot) {}, "ListenerSet",
			`The ListenerSet is accepted, but not all of its listeners serve: listener "taken": HostnameConflict.`},
		"the set, when all serve": {func(s *gateway.Snapshot) {
			s.ListenerSets[0].Spec.Listeners = s.ListenerSets[0].Spec.Listeners[:1]
		}, "ListenerSet", "The ListenerSet is accepted."},
		"a listener": {func(*gateway.Snapshot) {}, "listener own", "The listener is accepted."},
		"a listener whose hostname is on another port too": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener("second", "own.example.com", 8080))
		}, "listener own", "The listener is accepted. Its hostname is used on port 8080 too: a tunnel serves a hostname on every port at once, so they share their routes."},
		"the other of the two": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener("second", "own.example.com", 8080))
		}, "listener second", "The listener is accepted. Its hostname is used on port 80 too: a tunnel serves a hostname on every port at once, so they share their routes."},
		"a listener whose hostname is on several ports": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener("second", "own.example.com", 8080), httpListener("third", "own.example.com", 8443))
		}, "listener own", "The listener is accepted. Its hostname is used on port 8080, 8443 too: a tunnel serves a hostname on every port at once, so they share their routes."},
		"a listener whose hostname is on a port where nobody serves it": {func(s *gateway.Snapshot) {
			secure := httpListener("secure", "own.example.com", 8443)
			secure.Protocol = gatewayv1.HTTPSProtocolType
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, secure, httpListener("plain", "own.example.com", 8443))
		}, "listener own", "The listener is accepted."},
	} {
		t.Run(name, func(t *testing.T) {
			s := reportSnapshot()
			test.change(s)
			places := conditionsByPlace(gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}}))
			if diff := cmp.Diff(test.want, messageOf(places[test.place], "Accepted")); diff != "" {
				t.Errorf("the message differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A listener names the certificates that were not checked, and those that have
// expired.
func TestReportCertificates(t *testing.T) {
	s := reportSnapshot()
	l := &s.Gateway.Spec.Listeners[0]
	l.Protocol, l.Port = gatewayv1.HTTPSProtocolType, 443
	l.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "valid"}, {Name: "unread"}, {Name: "expired"}}}
	s.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Certificates = map[types.NamespacedName]gateway.Certificate{
		{Namespace: "infra", Name: "valid"}:   {NotAfter: s.Now.AddDate(1, 0, 0)},
		{Namespace: "infra", Name: "unread"}:  {Unchecked: true},
		{Namespace: "infra", Name: "expired"}: {NotAfter: s.Now.AddDate(-1, 0, 0)},
	}
	places := conditionsByPlace(gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}}))
	want := `Every reference resolves. The certificate in Secret infra/unread was not checked, because Secrets in namespace "infra" are not read.` +
		" The certificate in Secret infra/expired expired at 2025-01-01T00:00:00Z."
	if diff := cmp.Diff(want, messageOf(places["listener own"], "ResolvedRefs")); diff != "" {
		t.Errorf("the message differs (-want +got):\n%s", diff)
	}
}

// What was said about sets and routes is taken back: sets as the CRD makes
// them, routes without entries.
func TestResetReport(t *testing.T) {
	r := gateway.ResetReport(reportGateway, withCurrent(reportSnapshot(), metav1.ConditionTrue, 0))
	if diff := cmp.Diff(map[gateway.Owner]bool{reportGateway: true, reportSet: true}, r.Owners); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(gatewayv1.GatewayStatus{}, r.Gateway); diff != "" {
		t.Errorf("something is said about the Gateway, which is not ours (-want +got):\n%s", diff)
	}
	waiting := func(kind string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionUnknown, ObservedGeneration: setGeneration, Reason: "Pending", Message: "Waiting for controller",
		}
	}
	want := []gateway.ListenerSetStatus{{
		NamespacedName: reportSet.NamespacedName,
		Status:         gatewayv1.ListenerSetStatus{Conditions: []metav1.Condition{waiting("Accepted"), waiting("Programmed")}},
	}}
	if diff := cmp.Diff(want, r.ListenerSets); diff != "" {
		t.Errorf("sets differ (-want +got):\n%s", diff)
	}
	if len(r.Routes) != 1 || r.Routes[0].Name != "route" || len(r.Routes[0].Parents) != 0 {
		t.Errorf("routes are %+v, want one without entries", r.Routes)
	}
}

// A ListenerSet that does not exist has nothing but routes.
func TestResetReportOfMissingListenerSet(t *testing.T) {
	r := gateway.ResetReport(reportSet, &gateway.Snapshot{HTTPRoutes: reportSnapshot().HTTPRoutes})
	if diff := cmp.Diff(map[gateway.Owner]bool{reportSet: true}, r.Owners); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	if len(r.ListenerSets) != 0 || len(r.Routes) != 1 || !strings.HasPrefix(r.Routes[0].String(), "team/") {
		t.Errorf("sets %v, routes %v, want one route", r.ListenerSets, r.Routes)
	}
}
