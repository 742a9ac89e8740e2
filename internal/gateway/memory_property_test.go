package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

var bothDataPlanes = gateway.Options{
	ControllerName: "tunnelgateway.dev/controller", ClusterDomain: "cluster.local",
	DataPlanes: routing.DataPlanes{v1alpha1.DataPlaneIngressRules: ingress.Capabilities(), v1alpha1.DataPlaneEnvoy: envoy.Capabilities()},
}

// A decision with the memory of all earlier ones equals the decision without.
func TestMemoryDoesNotAffectTheResult(t *testing.T) {
	kept, built := 0, 0
	for seed := range *clusters / 4 {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if differs := checkMemory(t, newMemoryWorld(seed), 16, &kept, &built); differs != "" {
				t.Fatal(differs)
			}
		})
	}
	if kept*8 < built {
		t.Errorf("%d of %d decisions change the last one, want at least an eighth", kept, built)
	}
}

// Each part of a Snapshot that a Memory compares is necessary: without it, the property
// above finds a wrong decision.
func TestMemoryNeedsEveryDependency(t *testing.T) {
	edits := [][]string{
		{"the Gateway"}, {"the GatewayClass"}, {"a ReferenceGrant"}, {"certificates", "time"}, {"a Namespace"}, {"the CRD of ServiceImports", "reserved addresses"},
		{"a BackendTLSPolicy"}, {"an AccessPolicy"}, {"the data plane"}, {"other Gateways", "an orphan"}, {"a conflict"},
		{"a Service"}, {"imports"}, {"EndpointSlices"}, {"imports"},
		{"the data plane"}, {"the GatewayClass"}, {"the GatewayClass"}, {"a ReferenceGrant"},
		{"the CRD of ServiceImports", "reserved addresses"}, {"a BackendTLSPolicy"},
	}
	if len(edits) != gateway.Dependencies() {
		t.Fatalf("a memory compares %d parts of a Snapshot, and %d have edits", gateway.Dependencies(), len(edits))
	}
	for i, only := range edits {
		t.Run(fmt.Sprint(i, only), func(t *testing.T) {
			gateway.WithoutDependency(i, func() {
				kept, built := 0, 0
				for seed := range uint64(100) {
					w := newMemoryWorld(seed)
					if w.only = only; checkMemory(t, w, 6, &kept, &built) != "" {
						return
					}
				}
				t.Error("no decision is wrong without this dependency")
			})
		})
	}
}

// checkMemory changes a random cluster several times. It returns the first difference that
// the memory makes, and counts the decisions that change the last one.
func checkMemory(t *testing.T, w *memoryWorld, steps int, kept, built *int) string {
	t.Helper()
	memories := map[v1alpha1.DataPlane]*gateway.Memory{v1alpha1.DataPlaneIngressRules: {}, v1alpha1.DataPlaneEnvoy: {}}
	last, renderings := map[v1alpha1.DataPlane]*gateway.Result{}, map[v1alpha1.DataPlane]*ingress.Rendering{}
	plane := pick(w.randomizer, v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy)
	var left leftover
	left.encoded = encodeParts(t, left.values())
	for step := range steps {
		s := w.next()
		if s.DataPlane == "" {
			s.DataPlane = plane
		}
		result := memories[plane].Build(s, bothDataPlanes)
		if now := encodeParts(t, left.values()); !bytes.Equal(left.encoded, now) {
			return fmt.Sprintf("after %v, the last table or report has changed (-before +after):\n%s", w.edits, cmp.Diff(indent(left.encoded), indent(now)))
		}
		if *built++; last[plane] != nil && memories[plane].KeepsDecision(last[plane]) {
			*kept++
		}
		last[plane] = result
		renderings[plane] = ingress.Render(result.DataPlane, result.Table, renderings[plane])
		want, got := encodeDecision(t, gateway.Build(s, bothDataPlanes), nil, step), encodeDecision(t, result, renderings[plane], step)
		if !bytes.Equal(want, got) {
			return fmt.Sprintf("after %v, the memory affects the decision (-without +with):\n%s", w.edits, cmp.Diff(indent(want), indent(got)))
		}
		left = leftover{table: result.Table, rendering: renderings[plane], report: report(result, s)}
		left.encoded = encodeParts(t, left.values())
	}
	return ""
}

// leftover is what stays valid of a decision after the next one.
type leftover struct {
	table     *routing.Table
	rendering *ingress.Rendering
	report    gateway.Report
	encoded   []byte
}

func (l *leftover) values() []any {
	return []any{encodeTable(l.table), l.rendering.Configuration(), l.report.Gateway, l.report.ListenerSets, l.report.Routes, l.report.Policies}
}

func encodeParts(t *testing.T, parts []any) []byte {
	t.Helper()
	encoded, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// encodeDecision returns everything that follows from a decision, as JSON. before is a rendering of
// its table or an earlier one, or nil.
func encodeDecision(t *testing.T, r *gateway.Result, before *ingress.Rendering, step int) []byte {
	t.Helper()
	outcomes := []gateway.Outcome{
		{Push: gateway.Push{State: gateway.PushSucceeded}, Tunnel: "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415", DNS: &gateway.DNS{}},
		{Push: gateway.Push{State: gateway.PushFailed, Message: "The API does not respond."}},
	}
	report := r.Report(outcomes[step%2])
	configuration := ingress.Render(r.DataPlane, r.Table, before).Configuration()
	hash := ""
	if configuration != nil {
		hash = configuration.Hash()
	}
	parts := []any{
		configuration, hash, report.Gateway, report.ListenerSets, report.Routes, report.Policies, report.AccessPolicies, len(report.Owners), encodeTable(r.Table),
		r.Usage, r.Uncounted, r.Warnings, r.DataPlane, r.Paused, r.DNS, r.Hostnames(), r.DNSHostnames(), r.RecordHostnames(true, true), r.RecordHostnames(false, true),
		r.ServesGRPC(), r.HostnameWarnings(),
		r.AccessDemands(), r.AccessHostnames(), r.AccessStates, r.Demanded.Unknown, r.Demanded.ByHand, r.Demanded.Hostnames, r.PolicyProblems(), r.AttachedListenerSets(),
		fmt.Sprint(r.Rejected), fmt.Sprint(r.ClientCertificateProblem()),
	}
	for _, route := range r.Routes {
		parts = append(parts, route.NamespacedName, route.Hostnames, route.Rules, route.ParentRefs(), fmt.Sprint(route.Unresolved), fmt.Sprint(route.Dropped))
		for i := range route.Parents {
			p := &route.Parents[i]
			parts = append(parts, p.Ref, len(p.Listeners), fmt.Sprint(p.Rejected), p.Dropped, p.RedirectLoops, route.DescribeLeftOut(p), route.DescribeProtectedCalls())
		}
	}
	for _, c := range r.ClaimedHostnames {
		parts = append(parts, c.Message(), c.RouteMessage())
	}
	return encodeParts(t, parts)
}

// encodeTable returns the table with the lists for each hostname, in which entries are
// positions.
func encodeTable(t *routing.Table) []any {
	if t == nil {
		return nil
	}
	positions := map[*routing.Entry]int{}
	parts := []any{t.Groups, t.Access, t.ClusterDomain, t.OriginRequest, t.Protection, t.Telemetry, t.ClientCertificate}
	for e := range t.Entries() {
		positions[e] = len(positions)
		parts = append(parts, e.InsteadOf, fmt.Sprint(e.Action.Problem))
	}
	for range 2 { // the second time, the lists are known
		for _, host := range t.Hosts() {
			numbers := []int{}
			for _, e := range host.Entries {
				position, found := positions[e]
				if !found {
					position = -1
				}
				numbers = append(numbers, position)
			}
			parts = append(parts, host.Hostname, numbers, host.Access, host.Domain)
		}
	}
	for _, host := range t.Hosts("also.example.com") {
		parts = append(parts, host.Hostname, len(host.Entries))
	}
	return parts
}

func newMemoryWorld(seed uint64) *memoryWorld {
	s := newRandomSnapshot(seed, seed%3 != 0)
	w := &memoryWorld{randomizer: &randomizer{
		Rand: rand.New(rand.NewPCG(seed, 42)), snapshot: s, hostnames: randomHostnames, everything: seed%3 != 0, //nolint:gosec // the test must be reproducible
	}}
	w.imports = &randomizer{Rand: rand.New(rand.NewPCG(seed, 43)), snapshot: s} //nolint:gosec // the test must be reproducible
	return w
}
