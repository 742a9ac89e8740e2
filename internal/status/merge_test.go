package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

const controllerName = "tunnelgateway.dev/controller"

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
)

// condition is a condition as a report has it.
func condition(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Reason: "Reason", Message: "message"}
}

// at is a condition as a status has it.
func at(transition metav1.Time, c metav1.Condition) metav1.Condition {
	c.LastTransitionTime = transition
	return c
}

func withMessage(message string, c metav1.Condition) metav1.Condition {
	c.Message = message
	return c
}

const (
	isTrue  = metav1.ConditionTrue
	isFalse = metav1.ConditionFalse
)

// conditionCases are the law for every list of conditions: "lastTransitionTime
// moves only with the status value. An unchanged status is not written.
// Conditions of types that are not ours stay, and a higher observedGeneration
// is never overwritten with a lower."
var conditionCases = map[string]struct {
	current, wanted, want []metav1.Condition
	changed               bool
}{
	"a new condition begins now": {
		wanted:  []metav1.Condition{condition("Accepted", isTrue, 1)},
		want:    []metav1.Condition{at(now, condition("Accepted", isTrue, 1))},
		changed: true,
	},
	"what is said already is no change": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		wanted:  []metav1.Condition{condition("Accepted", isTrue, 1)},
		want:    []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
	},
	"another status value is a transition": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		wanted:  []metav1.Condition{condition("Accepted", isFalse, 1)},
		want:    []metav1.Condition{at(now, condition("Accepted", isFalse, 1))},
		changed: true,
	},
	"another generation and message are no transition": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		wanted:  []metav1.Condition{withMessage("other", condition("Accepted", isTrue, 2))},
		want:    []metav1.Condition{at(before, withMessage("other", condition("Accepted", isTrue, 2)))},
		changed: true,
	},
	"another's type stays": {
		current: []metav1.Condition{at(before, condition("example.com/Audited", isFalse, 1))},
		wanted:  []metav1.Condition{condition("Accepted", isTrue, 1)},
		want:    []metav1.Condition{at(before, condition("example.com/Audited", isFalse, 1)), at(now, condition("Accepted", isTrue, 1))},
		changed: true,
	},
	"a newer generation is not overwritten": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 3))},
		wanted:  []metav1.Condition{condition("Accepted", isFalse, 2)},
		want:    []metav1.Condition{at(before, condition("Accepted", isTrue, 3))},
	},
}

// ref is a parentRef to a Gateway in the route's namespace.
func ref(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
}

// entry is what a controller says of a route's parent.
func entry(controller gatewayv1.GatewayController, to gatewayv1.ParentReference, conditions ...metav1.Condition) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{ParentRef: to, ControllerName: controller, Conditions: conditions}
}

// TestMergeConditions holds every place that has conditions against the same law.
func TestMergeConditions(t *testing.T) {
	type merge func(current, wanted []metav1.Condition) (merged []metav1.Condition, changed bool)
	for place, merge := range map[string]merge{
		"Gateway": func(current, wanted []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeGateway(gatewayv1.GatewayStatus{Conditions: current}, gatewayv1.GatewayStatus{Conditions: wanted}, now)
			return s.Conditions, changed
		},
		"listener": func(current, wanted []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeGateway(gatewayListener(current), gatewayListener(wanted), now)
			return s.Listeners[0].Conditions, changed
		},
		"ListenerSet": func(current, wanted []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeListenerSet(gatewayv1.ListenerSetStatus{Conditions: current}, gatewayv1.ListenerSetStatus{Conditions: wanted}, now)
			return s.Conditions, changed
		},
		"entry of a ListenerSet": func(current, wanted []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeListenerSet(setEntry(current), setEntry(wanted), now)
			return s.Listeners[0].Conditions, changed
		},
		"GatewayClass": func(current, wanted []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeClass(gatewayv1.GatewayClassStatus{Conditions: current}, gatewayv1.GatewayClassStatus{Conditions: wanted}, now)
			return s.Conditions, changed
		},
		"parent of a route": func(current, wanted []metav1.Condition) ([]metav1.Condition, bool) {
			parents, changed := mergeRoute(
				[]gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), current...)},
				[]gatewayv1.ParentReference{ref("g")}, entry(controllerName, ref("g"), wanted...))
			return parents[0].Conditions, changed
		},
	} {
		for name, test := range conditionCases {
			t.Run(place+"/"+name, func(t *testing.T) {
				got, changed := merge(test.current, test.wanted)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("conditions differ (-want +got):\n%s", diff)
				}
				if changed != test.changed {
					t.Errorf("changed = %t, want %t", changed, test.changed)
				}
			})
		}
	}
}

func gatewayListener(conditions []metav1.Condition) gatewayv1.GatewayStatus {
	return gatewayv1.GatewayStatus{Listeners: []gatewayv1.ListenerStatus{{Name: "a", Conditions: conditions}}}
}

func setEntry(conditions []metav1.Condition) gatewayv1.ListenerSetStatus {
	return gatewayv1.ListenerSetStatus{Listeners: []gatewayv1.ListenerEntryStatus{{Name: "a", Conditions: conditions}}}
}

// mergeRoute merges a report that speaks for the Gateway "g" in namespace
// "team".
func mergeRoute(current []gatewayv1.RouteParentStatus, spec []gatewayv1.ParentReference, wanted ...gatewayv1.RouteParentStatus) ([]gatewayv1.RouteParentStatus, bool) {
	self := gateway.Owner{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "team", Name: "g"}}
	report := gateway.RouteStatus{
		Kind: gateway.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: "route"},
		Parents: wanted,
	}
	return status.MergeRoute(current, spec, report, map[gateway.Owner]bool{self: true}, controllerName, now)
}

func TestMergeRouteEntries(t *testing.T) {
	accepted := at(before, condition("Accepted", isTrue, 1))
	section := ref("g")
	section.SectionName = new(gatewayv1.SectionName("a"))
	port := ref("g")
	port.Port = new(gatewayv1.PortNumber(80))
	full := ref("g")
	full.Group, full.Kind, full.Namespace = new(gatewayv1.Group(gatewayv1.GroupName)), new(gatewayv1.Kind("Gateway")), new(gatewayv1.Namespace("team"))
	set := ref("g")
	set.Kind = new(gatewayv1.Kind("ListenerSet"))
	type entries = []gatewayv1.RouteParentStatus
	type refs = []gatewayv1.ParentReference
	for name, test := range map[string]struct {
		current entries
		spec    refs
		wanted  entries
		want    entries
		changed bool
	}{
		"another controller's entry for the same parentRef stays, ours comes beside it": {
			current: entries{entry("example.com/other", ref("g"), accepted)},
			spec:    refs{ref("g")},
			wanted:  entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want: entries{
				entry("example.com/other", ref("g"), accepted),
				entry(controllerName, ref("g"), at(now, condition("Accepted", isTrue, 1))),
			},
			changed: true,
		},
		"another controller's entry stays, also when the spec does not have its parentRef": {
			current: entries{entry("example.com/other", ref("left"), accepted)},
			want:    entries{entry("example.com/other", ref("left"), accepted)},
		},
		"our entry for another Gateway of ours stays": {
			current: entries{entry(controllerName, ref("second"), accepted)},
			spec:    refs{ref("g"), ref("second")},
			wanted:  entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want: entries{
				entry(controllerName, ref("second"), accepted),
				entry(controllerName, ref("g"), at(now, condition("Accepted", isTrue, 1))),
			},
			changed: true,
		},
		"our entry goes with its parentRef": {
			current: entries{entry(controllerName, ref("g"), accepted), entry(controllerName, ref("second"), accepted)},
			want:    entries{},
			changed: true,
		},
		"our entry goes with the section that the parentRef named": {
			current: entries{entry(controllerName, section, accepted)},
			spec:    refs{ref("g")},
			wanted:  entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:    entries{entry(controllerName, ref("g"), at(now, condition("Accepted", isTrue, 1)))},
			changed: true,
		},
		"our entry goes when the parent that the report speaks for does not say it any more": {
			current: entries{entry(controllerName, ref("g"), accepted)},
			spec:    refs{ref("g")},
			want:    entries{},
			changed: true,
		},
		"a Gateway and a ListenerSet that share a name have entries of their own": {
			current: entries{entry(controllerName, set, accepted)},
			spec:    refs{set, ref("g")},
			wanted:  entries{entry(controllerName, ref("g"), condition("Accepted", isFalse, 1))},
			want: entries{
				entry(controllerName, set, accepted), entry(controllerName, ref("g"), at(now, condition("Accepted", isFalse, 1))),
			},
			changed: true,
		},
		"a report about a Gateway does not speak for the ListenerSet of its name": {
			current: entries{entry(controllerName, set, accepted)},
			spec:    refs{set},
			want:    entries{entry(controllerName, set, accepted)},
		},
		"defaults written out mean the same, and the entry takes the spec's form": {
			current: entries{entry(controllerName, full, accepted)},
			spec:    refs{ref("g")},
			wanted:  entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:    entries{entry(controllerName, ref("g"), accepted)},
			changed: true,
		},
		"sections and ports have entries of their own": {
			current: entries{entry(controllerName, section, accepted)},
			spec:    refs{section, port},
			wanted: entries{
				entry(controllerName, port, condition("Accepted", isFalse, 1)), entry(controllerName, section, condition("Accepted", isTrue, 1)),
			},
			want: entries{
				entry(controllerName, section, accepted), entry(controllerName, port, at(now, condition("Accepted", isFalse, 1))),
			},
			changed: true,
		},
		"what is wanted for a parentRef that the spec has lost meanwhile is not written": {
			wanted: entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:   entries{},
		},
		"PartiallyInvalid goes when it is not said any more, others' conditions stay": {
			current: entries{entry(controllerName, ref("g"), accepted,
				at(before, condition("PartiallyInvalid", isTrue, 1)), at(before, condition("example.com/Audited", isTrue, 1)))},
			spec:    refs{ref("g")},
			wanted:  entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:    entries{entry(controllerName, ref("g"), accepted, at(before, condition("example.com/Audited", isTrue, 1)))},
			changed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := mergeRoute(test.current, test.spec, test.wanted...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries differ (-want +got):\n%s", diff)
			}
			if changed != test.changed {
				t.Errorf("changed = %t, want %t", changed, test.changed)
			}
		})
	}
}

// Two Gateways of ours speak about one route in turn.
func TestMergeRouteKeepsEntriesOfOtherGateways(t *testing.T) {
	spec := []gatewayv1.ParentReference{ref("g"), ref("second")}
	var current []gatewayv1.RouteParentStatus
	for range 2 {
		for _, name := range []string{"g", "second"} {
			self := gateway.Owner{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
			current, _ = status.MergeRoute(current, spec, gateway.RouteStatus{
				NamespacedName: types.NamespacedName{Namespace: "team", Name: "route"},
				Parents:        []gatewayv1.RouteParentStatus{entry(controllerName, ref(name), condition("Accepted", isTrue, 1))},
			}, map[gateway.Owner]bool{self: true}, controllerName, now)
		}
	}
	want := []gatewayv1.RouteParentStatus{
		entry(controllerName, ref("g"), at(now, condition("Accepted", isTrue, 1))),
		entry(controllerName, ref("second"), at(now, condition("Accepted", isTrue, 1))),
	}
	if diff := cmp.Diff(want, current); diff != "" {
		t.Errorf("entries differ (-want +got):\n%s", diff)
	}
}

// The rest of a status has no memory: it is what the report says.
func TestMergeReplacesOtherStatusFields(t *testing.T) {
	current := gatewayv1.GatewayStatus{
		Addresses:            []gatewayv1.GatewayStatusAddress{{Value: "old"}},
		AttachedListenerSets: new(int32(1)),
		Listeners:            []gatewayv1.ListenerStatus{{Name: "a", AttachedRoutes: 1}, {Name: "left"}},
	}
	wanted := gatewayv1.GatewayStatus{
		Addresses:            []gatewayv1.GatewayStatusAddress{{Value: "new"}},
		AttachedListenerSets: new(int32(2)),
		Listeners:            []gatewayv1.ListenerStatus{{Name: "new"}, {Name: "a", AttachedRoutes: 2}},
	}
	got, changed := status.MergeGateway(current, wanted, now)
	if diff := cmp.Diff(wanted, got); diff != "" || !changed {
		t.Errorf("changed = %t, the status differs (-want +got):\n%s", changed, diff)
	}
	if again, changed := status.MergeGateway(got, wanted, now); changed {
		t.Errorf("the second time it changes again (-first +second):\n%s", cmp.Diff(got, again))
	}
}

// A report about an older generation may come late: "a higher
// observedGeneration is never overwritten with a lower", nor taken away.
func TestMergeIgnoresOlderReport(t *testing.T) {
	newer := at(before, condition("Accepted", isTrue, 3))
	t.Run("listener", func(t *testing.T) {
		current := gatewayListener([]metav1.Condition{newer})
		current.Conditions = []metav1.Condition{newer}
		got, _ := status.MergeGateway(current, gatewayv1.GatewayStatus{Conditions: []metav1.Condition{condition("Accepted", isTrue, 2)}}, now)
		if diff := cmp.Diff(current, got); diff != "" {
			t.Errorf("the status differs (-want +got):\n%s", diff)
		}
	})
	t.Run("PartiallyInvalid", func(t *testing.T) {
		current := []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), newer, at(before, condition("PartiallyInvalid", isTrue, 3)))}
		got, _ := mergeRoute(current, []gatewayv1.ParentReference{ref("g")}, entry(controllerName, ref("g"), condition("Accepted", isTrue, 2)))
		if diff := cmp.Diff(current, got); diff != "" {
			t.Errorf("entries differ (-want +got):\n%s", diff)
		}
	})
}

// The current status is the cache's own copy.
func TestMergeDoesNotChangeItsInput(t *testing.T) {
	current := gatewayv1.GatewayStatus{
		Conditions: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		Listeners:  []gatewayv1.ListenerStatus{{Name: "a", Conditions: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))}}},
	}
	wanted := gatewayv1.GatewayStatus{
		Conditions: []metav1.Condition{condition("Accepted", isFalse, 2)},
		Listeners:  []gatewayv1.ListenerStatus{{Name: "a", Conditions: []metav1.Condition{condition("Accepted", isFalse, 2)}}},
	}
	currentCopy, wantedCopy := current.DeepCopy(), wanted.DeepCopy()
	status.MergeGateway(current, wanted, now)
	if diff := cmp.Diff(*currentCopy, current) + cmp.Diff(*wantedCopy, wanted); diff != "" {
		t.Errorf("the input was changed (-before +after):\n%s", diff)
	}

	parents := []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"),
		at(before, condition("PartiallyInvalid", isTrue, 1)), at(before, condition("Accepted", isTrue, 1)))}
	parentsCopy := (&gatewayv1.RouteStatus{Parents: parents}).DeepCopy().Parents
	mergeRoute(parents, []gatewayv1.ParentReference{ref("g")}, entry(controllerName, ref("g"), condition("Accepted", isFalse, 2)))
	if diff := cmp.Diff(parentsCopy, parents); diff != "" {
		t.Errorf("the entries were changed (-before +after):\n%s", diff)
	}
}
