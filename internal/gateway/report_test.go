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

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The generations that the objects in reportSnapshot have. All are different.
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

// reportSnapshot returns a Gateway with one listener, and a ListenerSet with one
// valid listener, one listener that conflicts with the Gateway's, and a route.
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

// programmed returns a Programmed condition for the current status of an object.
func programmed(status metav1.ConditionStatus, generation int64) []metav1.Condition {
	reason := "Programmed"
	if status == metav1.ConditionFalse {
		reason = "Pending"
	}
	return []metav1.Condition{{Type: "Programmed", Status: status, ObservedGeneration: generation, Reason: reason, Message: "Current."}}
}

// withCurrent sets the Programmed conditions in the current statuses, for the generation
// of each object plus offset.
func withCurrent(s *gateway.Snapshot, status metav1.ConditionStatus, offset int64) *gateway.Snapshot {
	s.Gateway.Status.Conditions = programmed(status, gatewayGeneration+offset)
	s.Gateway.Status.Listeners = []gatewayv1.ListenerStatus{{Name: "own", Conditions: programmed(status, gatewayGeneration+offset)}}
	set := s.ListenerSets[0]
	set.Status.Conditions = programmed(status, setGeneration+offset)
	set.Status.Listeners = []gatewayv1.ListenerEntryStatus{
		{Name: "taken", Conditions: programmed(status, setGeneration+offset)},
		{Name: "good", Conditions: programmed(status, setGeneration+offset)},
	}
	return s
}

// conditionsByPlace returns all condition lists in a report by an object or listener
// name.
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
		if programmed, ok := statusAndReason(conditions)["Programmed"]; ok {
			got[place] = programmed
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Programmed differs (-want +got):\n%s", diff)
	}
}

// programmedEverywhere returns the same status and reason for each valid object and
// listener. The conflicting entry keeps its own reason.
func programmedEverywhere(programmed string) map[string]string {
	return map[string]string{
		"Gateway": programmed, "listener own": programmed, "ListenerSet": programmed, "entry good": programmed, "entry taken": "False HostnameConflict",
	}
}

// Programmed is True once the tunnel has a configuration for this generation, and
// later route changes in progress do not unset it. Programmed is False with reason
// Pending while the first push of a generation is outstanding, and after a failed
// push.
func TestProgrammedFollowsThePush(t *testing.T) {
	failed := gateway.Push{State: gateway.PushFailed, Message: "The API is unavailable; retrying in 2s."}
	otherTunnel := gateway.Push{State: gateway.PushFailed, Reason: conditions.ReasonSettingsNotApplied, Message: "The setting account requires another tunnel."}
	onGatewayOnly := programmedEverywhere("False Pending")
	onGatewayOnly["Gateway"] = "False SettingsNotApplied"
	for name, test := range map[string]struct {
		snapshot *gateway.Snapshot
		push     gateway.Push
		want     map[string]string
	}{
		"succeeded": {reportSnapshot(), gateway.Push{State: gateway.PushSucceeded}, programmedEverywhere("True Programmed")},
		"outstanding, without current conditions":         {reportSnapshot(), gateway.Push{}, programmedEverywhere("False Pending")},
		"outstanding, programmed for this generation":     {withCurrent(reportSnapshot(), metav1.ConditionTrue, 0), gateway.Push{}, programmedEverywhere("True Programmed")},
		"outstanding, programmed for the last generation": {withCurrent(reportSnapshot(), metav1.ConditionTrue, -1), gateway.Push{}, programmedEverywhere("False Pending")},
		"outstanding, not programmed":                     {withCurrent(reportSnapshot(), metav1.ConditionFalse, 0), gateway.Push{}, programmedEverywhere("False Pending")},
		"failed, without current conditions":              {reportSnapshot(), failed, programmedEverywhere("False Pending")},
		"failed, programmed for this generation":          {withCurrent(reportSnapshot(), metav1.ConditionTrue, 0), failed, programmedEverywhere("False Pending")},
		"failed with a reason":                            {reportSnapshot(), otherTunnel, onGatewayOnly},
	} {
		t.Run(name, func(t *testing.T) {
			r := gateway.Build(test.snapshot, options).Report(gateway.Outcome{Push: test.push})
			wantProgrammed(t, r, test.want)
			for place, conditions := range conditionsByPlace(r) {
				message := messageOf(conditions, "Programmed")
				if statusAndReason(conditions)["Programmed"] != "False Pending" || test.push.Message == "" {
					continue
				}
				// The message for tenants refers to the Gateway's status.
				tenant := place == "ListenerSet" || strings.HasPrefix(place, "entry ")
				if tenant != strings.Contains(message, "See the Gateway's status.") || !tenant && message != test.push.Message {
					t.Errorf("%s has the message %q", place, message)
				}
			}
		})
	}
}

// While a push is outstanding, each object and listener keeps its own current
// condition.
func TestOutstandingPushKeepsCurrentConditions(t *testing.T) {
	s := reportSnapshot()
	s.Gateway.Status.Conditions = programmed(metav1.ConditionTrue, gatewayGeneration)
	s.ListenerSets[0].Status.Listeners = []gatewayv1.ListenerEntryStatus{{Name: "good", Conditions: programmed(metav1.ConditionTrue, setGeneration)}}
	want := programmedEverywhere("False Pending")
	want["Gateway"], want["entry good"] = "True Programmed", "True Programmed"
	wantProgrammed(t, gateway.Build(s, options).Report(gateway.Outcome{}), want)
}

// While a push is delayed, the Gateway and its listeners keep their condition with
// another message. The ListenerSet statuses do not change.
func TestDelayedPushIsReportedOnTheGateway(t *testing.T) {
	delayed := gateway.Push{State: gateway.PushDelayed, Message: "The changes wait."}
	for name, test := range map[string]struct {
		status         metav1.ConditionStatus
		onGateway      string
		onListenerSets string
	}{
		"programmed":     {metav1.ConditionTrue, "The tunnel's last configuration is in effect. The changes wait.", "Current."},
		"not programmed": {metav1.ConditionFalse, "The changes wait.", "Current."},
		"no condition":   {"", "The changes wait.", "The changes wait."},
	} {
		t.Run(name, func(t *testing.T) {
			s, state := reportSnapshot(), "False Pending"
			if test.status != "" {
				s = withCurrent(s, test.status, 0)
			}
			if test.status == metav1.ConditionTrue {
				state = "True Programmed"
			}
			r := gateway.Build(s, options).Report(gateway.Outcome{Push: delayed})
			wantProgrammed(t, r, programmedEverywhere(state))
			for place, conditions := range conditionsByPlace(r) {
				want := test.onGateway
				if place == "ListenerSet" || place == "entry good" {
					want = test.onListenerSets
				}
				if got := messageOf(conditions, "Programmed"); place != "entry taken" && place != "route" && got != want {
					t.Errorf("%s has the message %q, want %q", place, got, want)
				}
			}
		})
	}
}

// The push does not affect a Gateway that is not accepted.
func TestPushDoesNotAffectRejectedGateway(t *testing.T) {
	want := maps.Clone(programmedEverywhere("False Invalid"))
	want["Gateway"], want["ListenerSet"] = "False Invalid", "False ParentNotProgrammed"
	for _, state := range []gateway.PushState{gateway.PushOutstanding, gateway.PushFailed, gateway.PushSucceeded} {
		s := withCurrent(reportSnapshot(), metav1.ConditionTrue, 0)
		s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
		r := gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: state}, Tunnel: "tunnel"})
		wantProgrammed(t, r, want)
		if got := statusAndReason(conditionsByPlace(r)["ListenerSet"])["Accepted"]; got != "False ParentNotAccepted" {
			t.Errorf("the ListenerSet has Accepted=%s, want False ParentNotAccepted", got)
		}
		if len(r.Gateway.Addresses) != 1 {
			t.Errorf("got %d addresses, want the address of the existing tunnel", len(r.Gateway.Addresses))
		}
	}
}

// Every condition has the generation of its own object, and no transition time.
func TestConditionsHaveTheGenerationOfTheirObject(t *testing.T) {
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
				t.Errorf("%s of %s: got generation %d and time %s, want generation %d and no time", c.Type, place, c.ObservedGeneration, c.LastTransitionTime, want[place])
			}
		}
	}
}

func TestReportHasTheAddressOfTheTunnel(t *testing.T) {
	result := gateway.Build(reportSnapshot(), options)
	if got := result.Report(gateway.Outcome{}).Gateway.Addresses; len(got) != 0 {
		t.Errorf("got addresses %v without a tunnel, want none", got)
	}
	want := []gatewayv1.GatewayStatusAddress{{Type: new(gatewayv1.HostnameAddressType), Value: "t-1.cfargotunnel.com"}}
	if diff := cmp.Diff(want, result.Report(gateway.Outcome{Tunnel: "t-1"}).Gateway.Addresses); diff != "" {
		t.Errorf("addresses differ (-want +got):\n%s", diff)
	}
}

func TestReportCoversTheGatewayAndItsListenerSets(t *testing.T) {
	r := gateway.Build(reportSnapshot(), options).Report(gateway.Outcome{})
	if diff := cmp.Diff(map[gateway.Owner]bool{reportGateway: true, reportSet: true}, r.Owners); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
}

// The message of the Accepted condition lists the object's other problems.
func TestAcceptedMessageListsOtherProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*gateway.Snapshot)
		place  string
		want   string
	}{
		"the Gateway": {func(*gateway.Snapshot) {}, "Gateway", "The Gateway is accepted."},
		"the Gateway, with a listener that is not served": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, gatewayv1.Listener{Name: "raw", Port: 5432, Protocol: gatewayv1.TCPProtocolType})
		}, "Gateway", `The Gateway is accepted, but some of its listeners are not served: listener "raw" (UnsupportedProtocol). See their conditions.`},
		"the Gateway, with spec.tls.frontend": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &gatewayv1.FrontendTLSConfig{}}
		}, "Gateway", "The Gateway is accepted. The field spec.tls.frontend has no effect, because Cloudflare's edge terminates TLS with its own settings."},
		"the ListenerSet, with a conflicting listener": {func(*gateway.Snapshot) {}, "ListenerSet",
			`The ListenerSet is accepted, but some of its listeners are not served: listener "taken" (HostnameConflict). See their conditions.`},
		"the ListenerSet, with valid listeners only": {func(s *gateway.Snapshot) {
			s.ListenerSets[0].Spec.Listeners = s.ListenerSets[0].Spec.Listeners[:1]
		}, "ListenerSet", "The ListenerSet is accepted."},
		"a listener": {func(*gateway.Snapshot) {}, "listener own", "The listener is accepted."},
		"a listener that shares its hostname with another port": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener("second", "own.example.com", 8080))
		}, "listener own", "The listener is accepted. It shares its routes with the listeners for the same hostname on other ports (8080), because a tunnel serves a hostname on all ports."},
		"the listener on the other port": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener("second", "own.example.com", 8080))
		}, "listener second", "The listener is accepted. It shares its routes with the listeners for the same hostname on other ports (80), because a tunnel serves a hostname on all ports."},
		"a listener that shares its hostname with several ports": {func(s *gateway.Snapshot) {
			s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener("second", "own.example.com", 8080), httpListener("third", "own.example.com", 8443))
		}, "listener own", "The listener is accepted. It shares its routes with the listeners for the same hostname on other ports (8080, 8443), because a tunnel serves a hostname on all ports."},
		"a listener that shares its hostname with rejected listeners": {func(s *gateway.Snapshot) {
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

// A listener's ResolvedRefs message lists the certificates that were not checked or have
// expired.
func TestResolvedRefsMessageListsCertificateWarnings(t *testing.T) {
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
	want := `All references are resolved. The controller did not validate the certificate in Secret infra/unread, because it does not read Secrets in namespace "infra".` +
		" The certificate in Secret infra/expired expired at 2025-01-01T00:00:00Z."
	if diff := cmp.Diff(want, messageOf(places["listener own"], "ResolvedRefs")); diff != "" {
		t.Errorf("the message differs (-want +got):\n%s", diff)
	}
}

// ResetReport returns the CRD default status for ListenerSets, and routes without
// entries.
func TestResetReportRemovesStatuses(t *testing.T) {
	r := gateway.ResetReport(reportGateway, withCurrent(reportSnapshot(), metav1.ConditionTrue, 0))
	if diff := cmp.Diff(map[gateway.Owner]bool{reportGateway: true, reportSet: true}, r.Owners); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(gatewayv1.GatewayStatus{}, r.Gateway); diff != "" {
		t.Errorf("the report has a status for the Gateway, which this controller does not manage (-want +got):\n%s", diff)
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
		t.Errorf("ListenerSets differ (-want +got):\n%s", diff)
	}
	if len(r.Routes) != 1 || r.Routes[0].Name != "route" || len(r.Routes[0].Parents) != 0 {
		t.Errorf("got routes %+v, want one route without entries", r.Routes)
	}
}

// The report for a ListenerSet that does not exist has only routes.
func TestResetReportOfMissingListenerSetHasOnlyRoutes(t *testing.T) {
	r := gateway.ResetReport(reportSet, &gateway.Snapshot{HTTPRoutes: reportSnapshot().HTTPRoutes})
	if diff := cmp.Diff(map[gateway.Owner]bool{reportSet: true}, r.Owners); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	if len(r.ListenerSets) != 0 || len(r.Routes) != 1 || !strings.HasPrefix(r.Routes[0].String(), "team/") {
		t.Errorf("got ListenerSets %v and routes %v, want only one route", r.ListenerSets, r.Routes)
	}
}
