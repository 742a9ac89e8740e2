package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The budget for a status in JSON bytes. It does not include the names that the API makes
// a status repeat.
const (
	statusBudget  = 8 << 10
	entryBudget   = 1 << 10
	messageBudget = 1 << 10
)

// A hostile team uses names and lists that are as long as the API permits.
func TestStatusesStaySmall(t *testing.T) {
	for seed := range uint64(30) {
		wantSmallStatuses(t, seed)
	}
}

func FuzzStatusesStaySmall(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(wantSmallStatuses)
}

func wantSmallStatuses(t *testing.T, seed uint64) {
	t.Helper()
	for _, exceeded := range largeStatuses(t, newHostileSnapshot(seed), seed) {
		t.Errorf("seed %d: %s", seed, exceeded)
	}
}

// largeStatuses describes the statuses and the messages that are larger than their budget.
func largeStatuses(t *testing.T, s *gateway.Snapshot, seed uint64) []string {
	t.Helper()
	b := budgets{T: t}
	report := gateway.Build(s, randomOptions).Report(hostileOutcome(seed))
	gatewayStatus := report.Gateway
	b.checkStatus("the Gateway", &gatewayStatus, namesOfListeners(gatewayStatus.Listeners), len(s.Gateway.Spec.Listeners))
	b.checkMessages("the Gateway", gatewayStatus.Conditions)
	for _, l := range gatewayStatus.Listeners {
		b.checkMessages("a listener", l.Conditions)
	}
	for i := range report.ListenerSets {
		set := &report.ListenerSets[i]
		b.checkStatus("a ListenerSet", &set.Status, namesOfListeners(set.Status.Listeners), len(set.Status.Listeners))
		b.checkMessages("a ListenerSet", set.Status.Conditions)
		for _, l := range set.Status.Listeners {
			b.checkMessages("an entry", l.Conditions)
		}
	}
	for _, route := range report.Routes {
		status, names := gatewayv1.RouteStatus{Parents: route.Parents}, 0
		for _, parent := range route.Parents {
			names += sizeOf(t, parent.ParentRef) + len(parent.ControllerName)
			b.checkMessages("a route", parent.Conditions)
		}
		b.checkStatus("a route", &status, names, len(route.Parents))
	}
	return b.exceeded
}

// namesOfListeners returns the size that the names of listeners and their kinds take.
func namesOfListeners[S gatewayv1.ListenerStatus | gatewayv1.ListenerEntryStatus](listeners []S) int {
	size := 0
	for _, l := range listeners {
		size += len(gatewayv1.ListenerStatus(l).Name)
	}
	return size
}

// budgets collects what exceeds a budget.
type budgets struct {
	*testing.T
	exceeded []string
}

func (b *budgets) checkStatus(object string, status any, names, entries int) {
	// Package status adds the transition times, which all have the same length.
	transition := sizeOf(b.T, metav1.NewTime(time.Unix(0, 0))) - sizeOf(b.T, metav1.Time{})
	size := sizeOf(b.T, status) + transition*strings.Count(string(encode(b.T, status)), `"lastTransitionTime"`) - names
	if budget := statusBudget + entries*entryBudget; size > budget {
		b.exceeded = append(b.exceeded, fmt.Sprintf("the status of %s with %d entries needs %d bytes, more than %d", object, entries, size, budget))
	}
}

func (b *budgets) checkMessages(object string, conditions []metav1.Condition) {
	for _, c := range conditions {
		if len(c.Message) > messageBudget || !utf8.ValidString(c.Message) {
			b.exceeded = append(b.exceeded, fmt.Sprintf("the message of %s of %s is not valid or has %d bytes: %q", c.Type, object, len(c.Message), c.Message))
		}
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func sizeOf(t *testing.T, value any) int { return len(encode(t, value)) }

// hostileOutcome returns an outcome with long messages.
func hostileOutcome(seed uint64) gateway.Outcome {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: a test
	long := strings.Repeat(`"ü<" `, r.IntN(500))
	shared := gateway.Shared{Known: true, By: map[string][]types.NamespacedName{}}
	for i := range r.IntN(50) {
		shared.By[hostileName(i, 253)] = []types.NamespacedName{{Namespace: hostileName(i, 63), Name: hostileName(i, 253)}}
	}
	findings := dns.Findings{}
	for i := range 100 {
		findings[string(hostileHostname(i))] = dns.Finding{Reason: conditions.ReasonForbidden, Message: long, Certificate: dns.CertificateMissing, CertificateMessage: long}
	}
	return gateway.Outcome{
		DNS:  &gateway.DNS{Known: true, Findings: findings},
		Push: gateway.Push{State: gateway.PushState(r.IntN(4)), Message: long}, Tunnel: "b1946ac9-2f3f-4c6b-9d5e-0c1f0d6f6a11", Shared: shared,
		Connectors: &gateway.Readiness{Status: metav1.ConditionFalse, Reason: conditions.ReasonUnavailable, Message: long},
		Envoys:     &gateway.Envoys{Wanted: 2, Rejected: long},
	}
}

// hostileName returns a name with the length that contains the number.
func hostileName(i, length int) string {
	text := fmt.Sprintf("n%d", i)
	return text + strings.Repeat("x", length-len(text))
}

func hostileHostname(i int) gatewayv1.Hostname {
	label := strings.Repeat("a", 60)
	return gatewayv1.Hostname(fmt.Sprintf("h%d.%s.%s.%s.example.com", i, label, label, label))
}

type hostileCluster struct {
	*rand.Rand
	*gateway.Snapshot
}

// newHostileSnapshot returns a Gateway and ListenerSets with up to 64 listeners, and routes
// with up to 32 parents.
func newHostileSnapshot(seed uint64) *gateway.Snapshot {
	h := hostileCluster{rand.New(rand.NewPCG(seed, 0)), &gateway.Snapshot{}} //nolint:gosec // G404: a test
	h.Now = time.Unix(1e9, 0)
	h.Namespaces = map[string]*corev1.Namespace{}
	for i := range 3 {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hostileName(i, 63), Labels: map[string]string{}}}
		for l := range h.IntN(40) {
			namespace.Labels[hostileName(l, 200)] = hostileName(l, 63)
		}
		if h.IntN(2) == 0 {
			namespace.Annotations = map[string]string{"tunnelgateway.dev/hostnames": strings.Repeat("*.example.org, ", h.IntN(100))}
		}
		h.Namespaces[namespace.Name] = namespace
	}
	if h.IntN(2) == 0 {
		h.ClassConfiguration = &v1alpha1.TunnelConfiguration{Spec: v1alpha1.TunnelConfigurationSpec{
			Hostnames: &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)},
		}}
	}
	h.Gateway = &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: hostileName(0, 63), Name: hostileName(0, 253), Generation: h.Int64N(1e6)}}
	h.Gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
	if h.IntN(2) == 0 {
		h.Gateway.Spec.AllowedListeners.Namespaces = &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromSelector), Selector: h.selector()}
	}
	h.Gateway.Spec.Listeners = h.listeners()
	for i := range 3 {
		set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: hostileName(h.IntN(3), 63), Name: hostileName(i, 253), Generation: h.Int64N(1e6)}}
		for _, l := range h.listeners() {
			set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry(l))
		}
		h.ListenerSets = append(h.ListenerSets, set)
	}
	for i := range 6 {
		h.addRoute(i)
	}
	return h.Snapshot
}

func (h hostileCluster) selector() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := range h.IntN(40) {
		selector.MatchLabels[hostileName(i, 200)] = "ü" + hostileName(i, 60)
	}
	return selector
}

func (h hostileCluster) listeners() []gatewayv1.Listener {
	listeners := make([]gatewayv1.Listener, 1+h.IntN(64))
	for i := range listeners {
		l := gatewayv1.Listener{
			Name: gatewayv1.SectionName(hostileName(i, 253)), Port: 60000 + h.Int32N(2),
			Protocol: []gatewayv1.ProtocolType{"HTTP", "HTTP", "HTTPS", gatewayv1.ProtocolType(hostileName(i, 255))}[h.IntN(4)],
			Hostname: new(hostileHostname(h.IntN(20))),
		}
		l.AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From: new([]gatewayv1.FromNamespaces{gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSelector}[h.IntN(2)]), Selector: h.selector(),
		}}
		for k := range h.IntN(8) {
			l.AllowedRoutes.Kinds = append(l.AllowedRoutes.Kinds, gatewayv1.RouteGroupKind{Group: new(gatewayv1.Group(hostileName(k, 253))), Kind: gatewayv1.Kind(hostileName(k, 63))})
		}
		if l.Protocol != "HTTP" {
			l.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: h.certificates()}
		}
		listeners[i] = l
	}
	return listeners
}

// certificates returns references to certificates that are missing, not permitted or expired.
func (h hostileCluster) certificates() []gatewayv1.SecretObjectReference {
	refs := make([]gatewayv1.SecretObjectReference, h.IntN(64))
	expired := h.IntN(2) == 0
	for i := range refs {
		refs[i].Name = gatewayv1.ObjectName(hostileName(i, 253))
		if !expired {
			refs[i].Namespace = new(gatewayv1.Namespace(hostileName(h.IntN(3), 63)))
		}
		for namespace := range h.Namespaces {
			if h.Certificates == nil {
				h.Certificates = map[types.NamespacedName]gateway.Certificate{}
			}
			if expired {
				h.Certificates[types.NamespacedName{Namespace: namespace, Name: string(refs[i].Name)}] = gateway.Certificate{NotAfter: h.Now.Add(-time.Hour)}
			}
		}
	}
	return refs
}

// addRoute adds a route with many parents, backends that do not exist and matches that ingress
// rules cannot express.
func (h hostileCluster) addRoute(i int) {
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: hostileName(h.IntN(3), 63), Name: hostileName(i, 253), Generation: h.Int64N(1e6)}}
	for p := range 1 + h.IntN(32) {
		ref := gatewayv1.ParentReference{Namespace: new(gatewayv1.Namespace(h.Gateway.Namespace)), Name: gatewayv1.ObjectName(h.Gateway.Name)}
		if h.IntN(2) == 0 {
			set := h.ListenerSets[h.IntN(len(h.ListenerSets))]
			ref.Kind, ref.Namespace, ref.Name = new(gatewayv1.Kind(gateway.KindListenerSet)), new(gatewayv1.Namespace(set.Namespace)), gatewayv1.ObjectName(set.Name)
		}
		if h.IntN(2) == 0 {
			ref.SectionName = new(gatewayv1.SectionName(hostileName(p, 253)))
		}
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, ref)
	}
	for n := range h.IntN(16) {
		route.Spec.Hostnames = append(route.Spec.Hostnames, hostileHostname(n))
	}
	for range h.IntN(3) {
		route.Spec.Hostnames = append(route.Spec.Hostnames, "192.0.2.1")
	}
	for range h.IntN(17) {
		route.Spec.Rules = append(route.Spec.Rules, h.rule())
	}
	h.HTTPRoutes = append(h.HTTPRoutes, route)
}

func (h hostileCluster) rule() gatewayv1.HTTPRouteRule {
	var rule gatewayv1.HTTPRouteRule
	for i := range h.IntN(16) {
		var ref gatewayv1.HTTPBackendRef
		ref.Name, ref.Port = gatewayv1.ObjectName(hostileName(i, 253)), new(gatewayv1.PortNumber(80))
		rule.BackendRefs = append(rule.BackendRefs, ref)
	}
	for range h.IntN(9) {
		match := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{
			Type: new(gatewayv1.PathMatchRegularExpression), Value: new("/(" + strings.Repeat(`<"ü`, h.IntN(200))),
		}}
		for q := range h.IntN(16) {
			match.QueryParams = append(match.QueryParams, gatewayv1.HTTPQueryParamMatch{
				Type: new(gatewayv1.QueryParamMatchRegularExpression), Name: gatewayv1.HTTPHeaderName(hostileName(q, 256)), Value: "(" + strings.Repeat("<", 500),
			})
		}
		rule.Matches = append(rule.Matches, match)
	}
	return rule
}
