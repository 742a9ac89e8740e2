package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// observedSnapshot returns the snapshot with hostnames of tenants, and a GatewayClass that
// observes the zone example.com.
func observedSnapshot(hostnames ...string) *gateway.Snapshot {
	s := tenantsSnapshot(hostnames...)
	s.ClassConfiguration.Namespace = options.ControllerNamespace // spec.dns is valid only there
	s.Class.Spec.ParametersRef.Namespace = new(gatewayv1.Namespace(options.ControllerNamespace))
	s.ClassConfiguration.Spec.DNS = &v1alpha1.DNS{
		Mode: new(v1alpha1.DNSObserve), Zones: []v1alpha1.DNSZone{{Name: "example.com"}}, Exclude: []string{"legacy.example.com"},
	}
	return s
}

// dnsConditions returns a line for each condition about DNS: its type, status, reason,
// generation if it is not 1, and message.
func dnsConditions(list []metav1.Condition) []string {
	var lines []string
	for _, t := range []conditions.Type{conditions.TypeDNSReady, conditions.TypeEdgeCertificateReady} {
		if c := t.Find(list); c != nil {
			line := fmt.Sprintf("%s %s %s: %s", strings.TrimPrefix(c.Type, "tunnelgateway.dev/"), c.Status, c.Reason, c.Message)
			if c.ObservedGeneration != 1 {
				line += fmt.Sprintf(" (generation %d)", c.ObservedGeneration)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func reportDNS(s *gateway.Snapshot, o *gateway.DNS) gateway.Report {
	return gateway.Build(s, options).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}, DNS: o})
}

var (
	published = dns.Finding{Verdict: dns.VerdictManaged, Reason: conditions.ReasonPublished, Certificate: dns.CertificateCovers}
	conflict  = dns.Finding{Verdict: dns.VerdictRecordConflict, Reason: conditions.ReasonRecordConflict, Message: "an A record exists. Delete it.", Certificate: dns.CertificateCovers}
	pending   = dns.Finding{Verdict: dns.VerdictMissing, Reason: conditions.ReasonPending, Message: "it waits.", Certificate: dns.CertificateCovers}
	noZone    = dns.Finding{Verdict: dns.VerdictNoZone, Reason: conditions.ReasonNoZone, Message: "it is in no listed zone."}
	uncovered = dns.Finding{Verdict: dns.VerdictExternal, Reason: conditions.ReasonPublished, Certificate: dns.CertificateMissing, CertificateMessage: "no edge certificate covers it. Order one for *.b.example.com."}
	unchecked = dns.Finding{Verdict: dns.VerdictExternal, Reason: conditions.ReasonPublished}
)

const (
	readyLine   = "DNSReady True Published: A DNS record leads each hostname to the tunnel."
	coveredLine = "EdgeCertificateReady True Covered: An edge certificate covers each hostname."
)

func TestConditionsReportTheFindings(t *testing.T) {
	for name, test := range map[string]struct {
		hostnames []string
		findings  dns.Findings
		want      []string
	}{
		"all published": {[]string{"a.example.com", "b.example.com"}, dns.Findings{"a.example.com": published, "b.example.com": published}, []string{readyLine, coveredLine}},
		"problems, the worst first": {
			[]string{"a.example.com", "b.example.com", "c.example.com", "d.example.com"},
			dns.Findings{"a.example.com": pending, "b.example.com": published, "c.example.com": conflict, "d.example.com": conflict},
			[]string{"DNSReady False RecordConflict: c.example.com, d.example.com: an A record exists. Delete it. a.example.com: it waits.", coveredLine},
		},
		"a hostname without a finding": {
			[]string{"a.example.com", "b.example.com"}, dns.Findings{"a.example.com": published},
			[]string{"DNSReady False Pending: b.example.com: the controller has not compared the hostname with the zone yet. Wait a few seconds.", coveredLine},
		},
		"an excluded hostname":      {[]string{"legacy.example.com", "a.example.com"}, dns.Findings{"a.example.com": published}, []string{readyLine, coveredLine}},
		"only excluded hostnames":   {[]string{"legacy.example.com"}, dns.Findings{}, nil},
		"no hostname":               {nil, dns.Findings{}, nil},
		"a finding for no listener": {[]string{"a.example.com"}, dns.Findings{"a.example.com": published, "b.example.com": conflict}, []string{readyLine, coveredLine}},
		"no zone": {[]string{"a.example.org"}, dns.Findings{"a.example.org": noZone},
			[]string{"DNSReady False NoZone: a.example.org: it is in no listed zone."}},
		"a missing certificate": {[]string{"a.b.example.com", "c.d.example.com"}, dns.Findings{"a.b.example.com": uncovered, "c.d.example.com": unchecked},
			[]string{readyLine, "EdgeCertificateReady False NotCovered: a.b.example.com: no edge certificate covers it. Order one for *.b.example.com."}},
		"unknown certificates": {[]string{"a.b.example.com", "c.d.example.com", "e.example.com"}, dns.Findings{"a.b.example.com": unchecked, "c.d.example.com": unchecked, "e.example.com": published},
			[]string{readyLine, "EdgeCertificateReady Unknown NotChecked: a.b.example.com, c.d.example.com: the controller cannot read whether an edge certificate covers it. " +
				"Give the API token for DNS the permission SSL and Certificates: Read, or check the certificate in a browser."}},
	} {
		t.Run(name, func(t *testing.T) {
			got := reportDNS(observedSnapshot(test.hostnames...), &gateway.DNS{Known: true, Findings: test.findings}).Gateway.Conditions
			if diff := cmp.Diff(test.want, dnsConditions(got)); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
			if !conditions.TypeProgrammed.IsTrue(got) {
				t.Error("Programmed waits for DNS")
			}
		})
	}
}

// The reason is that of the worst hostname, in a fixed order.
func TestTheWorstHostnameDeterminesTheReason(t *testing.T) {
	order := []conditions.Reason{
		conditions.ReasonRecordConflict, conditions.ReasonHostnameNotPermitted, conditions.ReasonHeldByAnotherGateway, conditions.ReasonNotProxied,
		conditions.ReasonNoZone, conditions.ReasonForbidden, conditions.ReasonZoneSettingsConflict, conditions.ReasonQuotaExceeded, conditions.ReasonPending,
	}
	for i, better := range order {
		for _, worse := range order[:i] {
			findings := dns.Findings{
				"a.example.com": {Reason: better, Message: "one."}, "b.example.com": {Reason: worse, Message: "two."}, "c.example.com": {Reason: conditions.ReasonPublished},
			}
			list := reportDNS(observedSnapshot("a.example.com", "b.example.com", "c.example.com"), &gateway.DNS{Known: true, Findings: findings}).Gateway.Conditions
			c := conditions.TypeDNSReady.Find(list)
			if !worse.Is(c) || c.Message != "b.example.com: two. a.example.com: one." {
				t.Errorf("%s and %s: got %s with the message %q", better, worse, c.Reason, c.Message)
			}
		}
	}
}

// The owner of a ListenerSet sees only the hostnames of the set's listeners.
func TestListenerSetsReportTheirOwnHostnames(t *testing.T) {
	s := observedSnapshot("a.example.com", "b.example.com", "c.example.com", "legacy.example.com")
	withGatewayListener(s, "*.example.com")
	attachToGateway(s, 2, "c.example.com", "d.example.com") // c belongs to team-c's listener, which has no route now
	sets := reportDNS(s, &gateway.DNS{Known: true, Findings: dns.Findings{"a.example.com": published, "b.example.com": conflict, "d.example.com": pending}}).ListenerSets
	got := map[string][]string{}
	for _, set := range sets {
		got[set.Namespace] = dnsConditions(set.Status.Conditions)
	}
	want := map[string][]string{
		"team-a": {readyLine, coveredLine},
		"team-b": {"DNSReady False RecordConflict: b.example.com: an A record exists. Delete it.", coveredLine},
		"team-c": nil, "team-d": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
}

// Conditions remain unchanged while the zones are not known, and disappear with Off.
func TestConditionsRemainWhileTheZonesAreNotKnown(t *testing.T) {
	kept := []string{"DNSReady False RecordConflict: old", "EdgeCertificateReady True Covered: old (generation 2)"}
	setCurrent := func(list *[]metav1.Condition) {
		*list = []metav1.Condition{
			conditions.TypeDNSReady.New(metav1.ConditionFalse, conditions.ReasonRecordConflict, "old"),
			conditions.TypeEdgeCertificateReady.New(metav1.ConditionTrue, conditions.ReasonCovered, "old"),
		}
		(*list)[0].ObservedGeneration, (*list)[1].ObservedGeneration = 1, 2
	}
	for name, test := range map[string]struct {
		change func(*gateway.Snapshot)
		dns    *gateway.DNS
		want   []string
	}{
		"not known":                     {func(*gateway.Snapshot) {}, &gateway.DNS{}, kept},
		"invalid settings of the class": {func(s *gateway.Snapshot) { s.ClassConfiguration = nil }, nil, kept},
		"no finding yet": {func(*gateway.Snapshot) {}, &gateway.DNS{Known: true}, []string{
			"DNSReady False Pending: a.example.com: the controller has not compared the hostname with the zone yet. Wait a few seconds.", kept[1],
		}},
		"a zone that cannot be read": {func(*gateway.Snapshot) {}, &gateway.DNS{Known: true, Findings: dns.Findings{
			"a.example.com": {Verdict: dns.VerdictUnread, Reason: conditions.ReasonForbidden, Message: "the token has expired."},
		}}, []string{"DNSReady False Forbidden: a.example.com: the token has expired.", kept[1]}},
		"off": {func(s *gateway.Snapshot) { s.ClassConfiguration.Spec.DNS = nil }, nil, nil},
	} {
		s := observedSnapshot("a.example.com")
		setCurrent(&s.Gateway.Status.Conditions)
		setCurrent(&s.ListenerSets[0].Status.Conditions)
		test.change(s)
		report := reportDNS(s, test.dns)
		for object, list := range map[string][]metav1.Condition{"Gateway": report.Gateway.Conditions, "ListenerSet": report.ListenerSets[0].Status.Conditions} {
			if diff := cmp.Diff(test.want, dnsConditions(list)); diff != "" {
				t.Errorf("%s: conditions of the %s differ (-want +got):\n%s", name, object, diff)
			}
		}
	}
}

// A record that waits for its removal is named, although the Gateway does not keep the
// hostname.
func TestRecordsWithoutAPermissionAreNamed(t *testing.T) {
	s := observedSnapshot("a.example.com", "b.example.com")
	demandPermissions(s)
	permit(s, "team-a", "a.example.com")
	findings := dns.Findings{"a.example.com": published}
	for _, verdict := range []dns.Verdict{"", dns.VerdictMissing} {
		if verdict != "" {
			findings["b.example.com"] = dns.Finding{Verdict: verdict, Reason: conditions.ReasonHostnameNotPermitted}
		}
		if got := dnsConditions(reportDNS(s, &gateway.DNS{Known: true, Findings: findings}).Gateway.Conditions); got[0] != readyLine {
			t.Errorf("a hostname without a permission and a record is reported: %v", got)
		}
	}
	findings["b.example.com"] = dns.Finding{Verdict: dns.VerdictManaged, Reason: conditions.ReasonHostnameNotPermitted, Message: "the record remains.", Certificate: dns.CertificateCovers}
	report := reportDNS(s, &gateway.DNS{Known: true, Findings: findings})
	want := []string{"DNSReady False HostnameNotPermitted: b.example.com: the record remains.", coveredLine}
	for _, list := range [][]metav1.Condition{report.Gateway.Conditions, report.ListenerSets[1].Status.Conditions} {
		if diff := cmp.Diff(want, dnsConditions(list)); diff != "" {
			t.Errorf("conditions differ (-want +got):\n%s", diff)
		}
	}
}

// A message names at most ten hostnames and fits into the status, and counts the others.
func TestMessagesNameTenHostnames(t *testing.T) {
	s := observedSnapshot("*.example.com")
	findings := dns.Findings{}
	for i := range 14 {
		name := fmt.Sprintf("h%02d.example.com", i)
		s.HTTPRoutes[0].Spec.Hostnames = append(s.HTTPRoutes[0].Spec.Hostnames, gatewayv1.Hostname(name))
		findings[name] = conflict
	}
	ready := conditions.TypeDNSReady.Find(reportDNS(s, &gateway.DNS{Known: true, Findings: findings}).Gateway.Conditions)
	if !strings.HasPrefix(ready.Message, "h00.example.com, h01.example.com, ") || !strings.HasSuffix(ready.Message, "h09.example.com: an A record exists. Delete it. And 4 more.") {
		t.Errorf("the message is %q", ready.Message)
	}
	for name, f := range findings {
		f.Message = name + " has a long message of its own: " + strings.Repeat("x", 150) + "."
		findings[name] = f
	}
	ready = conditions.TypeDNSReady.Find(reportDNS(s, &gateway.DNS{Known: true, Findings: findings}).Gateway.Conditions)
	if message.Size(ready.Message) > message.MaxSize || !strings.HasSuffix(ready.Message, "x. And 10 more.") {
		t.Errorf("the message has %d bytes: %q", message.Size(ready.Message), ready.Message)
	}
}
