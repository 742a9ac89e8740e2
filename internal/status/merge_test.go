package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

const controllerName = "tunnelgateway.dev/controller"

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
)

// condition returns a condition as in a report: without a transition time.
func condition(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Reason: "Reason", Message: "message"}
}

// at returns the condition with a transition time, as in a status.
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

// conditionCases apply to every list of conditions: lastTransitionTime changes only with
// the status value, an unchanged status is not written, conditions with other types
// remain, and a lower observedGeneration never overwrites a higher one.
var conditionCases = map[string]struct {
	current, desired, want []metav1.Condition
	changed                bool
}{
	"a new condition has the current time": {
		desired: []metav1.Condition{condition("Accepted", isTrue, 1)},
		want:    []metav1.Condition{at(now, condition("Accepted", isTrue, 1))},
		changed: true,
	},
	"an equal condition is not a change": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		desired: []metav1.Condition{condition("Accepted", isTrue, 1)},
		want:    []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
	},
	"a new status value changes the transition time": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		desired: []metav1.Condition{condition("Accepted", isFalse, 1)},
		want:    []metav1.Condition{at(now, condition("Accepted", isFalse, 1))},
		changed: true,
	},
	"a new generation and message do not change the transition time": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		desired: []metav1.Condition{withMessage("other", condition("Accepted", isTrue, 2))},
		want:    []metav1.Condition{at(before, withMessage("other", condition("Accepted", isTrue, 2)))},
		changed: true,
	},
	"a condition of another type remains": {
		current: []metav1.Condition{at(before, condition("example.com/Audited", isFalse, 1))},
		desired: []metav1.Condition{condition("Accepted", isTrue, 1)},
		want:    []metav1.Condition{at(before, condition("example.com/Audited", isFalse, 1)), at(now, condition("Accepted", isTrue, 1))},
		changed: true,
	},
	"a condition for a newer generation remains": {
		current: []metav1.Condition{at(before, condition("Accepted", isTrue, 3))},
		desired: []metav1.Condition{condition("Accepted", isFalse, 2)},
		want:    []metav1.Condition{at(before, condition("Accepted", isTrue, 3))},
	},
}

// ref returns a parentRef to a Gateway in the route's namespace.
func ref(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
}

// entry returns an entry in a route's status.
func entry(controller gatewayv1.GatewayController, parent gatewayv1.ParentReference, conditions ...metav1.Condition) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{ParentRef: parent, ControllerName: controller, Conditions: conditions}
}

func TestMergeKeepsAndUpdatesConditions(t *testing.T) {
	// The same cases apply to conditions on every kind of object.
	type merge func(current, desired []metav1.Condition) (merged []metav1.Condition, changed bool)
	for place, merge := range map[string]merge{
		"Gateway": func(current, desired []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeGateway(gatewayv1.GatewayStatus{Conditions: current}, gatewayv1.GatewayStatus{Conditions: desired}, now)
			return s.Conditions, changed
		},
		"listener": func(current, desired []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeGateway(gatewayListener(current), gatewayListener(desired), now)
			return s.Listeners[0].Conditions, changed
		},
		"ListenerSet": func(current, desired []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeListenerSet(gatewayv1.ListenerSetStatus{Conditions: current}, gatewayv1.ListenerSetStatus{Conditions: desired}, now)
			return s.Conditions, changed
		},
		"entry of a ListenerSet": func(current, desired []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeListenerSet(setEntry(current), setEntry(desired), now)
			return s.Listeners[0].Conditions, changed
		},
		"GatewayClass": func(current, desired []metav1.Condition) ([]metav1.Condition, bool) {
			s, changed := status.MergeClass(gatewayv1.GatewayClassStatus{Conditions: current}, gatewayv1.GatewayClassStatus{Conditions: desired}, now)
			return s.Conditions, changed
		},
		"parent of a route": func(current, desired []metav1.Condition) ([]metav1.Condition, bool) {
			parents, changed := mergeRoute(
				[]gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), current...)},
				[]gatewayv1.ParentReference{ref("g")}, entry(controllerName, ref("g"), desired...))
			return parents[0].Conditions, changed
		},
	} {
		for name, test := range conditionCases {
			t.Run(place+"/"+name, func(t *testing.T) {
				got, changed := merge(test.current, test.desired)
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

// With dns.mode Off, the conditions about DNS disappear, and others remain.
func TestOptionalConditionsThatAreNoLongerReportedDisappear(t *testing.T) {
	current := []metav1.Condition{
		at(before, condition("tunnelgateway.dev/DNSReady", isFalse, 1)), at(before, condition("example.com/Audited", isTrue, 1)),
		at(before, condition("tunnelgateway.dev/EdgeCertificateReady", isTrue, 1)), at(before, condition("Accepted", isTrue, 1)),
	}
	desired, want := current[3:], []metav1.Condition{current[1], current[3]}
	onGateway, _ := status.MergeGateway(gatewayv1.GatewayStatus{Conditions: current}, gatewayv1.GatewayStatus{Conditions: desired}, now)
	onSet, _ := status.MergeListenerSet(gatewayv1.ListenerSetStatus{Conditions: current}, gatewayv1.ListenerSetStatus{Conditions: desired}, now)
	for object, got := range map[string][]metav1.Condition{"Gateway": onGateway.Conditions, "ListenerSet": onSet.Conditions} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conditions of the %s differ (-want +got):\n%s", object, diff)
		}
	}
}

func gatewayListener(conditions []metav1.Condition) gatewayv1.GatewayStatus {
	return gatewayv1.GatewayStatus{Listeners: []gatewayv1.ListenerStatus{{Name: "a", Conditions: conditions}}}
}

// Nothing in an entry says which controller has written it, but the condition types do.
func TestARefusedSetKeepsOnlyWhatOthersWrote(t *testing.T) {
	other := at(before, condition("example.com/Audited", isTrue, 1))
	current := gatewayv1.ListenerSetStatus{Listeners: []gatewayv1.ListenerEntryStatus{
		{Name: "mine", AttachedRoutes: 3, Conditions: []metav1.Condition{at(before, condition("Accepted", isTrue, 1)), at(before, condition("ResolvedRefs", isTrue, 1))}},
		{Name: "audited", AttachedRoutes: 3, Conditions: []metav1.Condition{at(before, condition("Accepted", isTrue, 1)), other}},
	}}
	desired := gatewayv1.ListenerSetStatus{Conditions: []metav1.Condition{condition("Accepted", isFalse, 1)}}
	got, changed := status.MergeListenerSet(current, desired, now)
	want := []gatewayv1.ListenerEntryStatus{{Name: "audited", SupportedKinds: []gatewayv1.RouteGroupKind{}, Conditions: []metav1.Condition{other}}}
	if diff := cmp.Diff(want, got.Listeners); diff != "" || !changed {
		t.Errorf("changed: %t, entries differ (-want +got):\n%s", changed, diff)
	}
	if _, changed := status.MergeListenerSet(got, desired, now); changed {
		t.Error("the merged status changes again")
	}
}

func setEntry(conditions []metav1.Condition) gatewayv1.ListenerSetStatus {
	return gatewayv1.ListenerSetStatus{Listeners: []gatewayv1.ListenerEntryStatus{{Name: "a", Conditions: conditions}}}
}

// mergeRoute merges a report that covers the Gateway "g" in namespace "team".
func mergeRoute(current []gatewayv1.RouteParentStatus, spec []gatewayv1.ParentReference, desired ...gatewayv1.RouteParentStatus) ([]gatewayv1.RouteParentStatus, bool) {
	owner := gateway.Owner{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "team", Name: "g"}}
	report := &gateway.RouteStatus{
		Kind: gateway.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: "route"},
		Parents: desired,
	}
	return status.MergeRoute(current, spec, report, map[gateway.Owner]bool{owner: true}, controllerName, now)
}

func TestMergeRouteKeepsAndRemovesEntries(t *testing.T) {
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
		desired entries
		want    entries
		changed bool
	}{
		"an entry of another controller for the same parentRef remains": {
			current: entries{entry("example.com/other", ref("g"), accepted)},
			spec:    refs{ref("g")},
			desired: entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want: entries{
				entry("example.com/other", ref("g"), accepted),
				entry(controllerName, ref("g"), at(now, condition("Accepted", isTrue, 1))),
			},
			changed: true,
		},
		"an entry of another controller remains without its parentRef": {
			current: entries{entry("example.com/other", ref("left"), accepted)},
			want:    entries{entry("example.com/other", ref("left"), accepted)},
		},
		"an entry for another managed Gateway remains": {
			current: entries{entry(controllerName, ref("second"), accepted)},
			spec:    refs{ref("g"), ref("second")},
			desired: entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want: entries{
				entry(controllerName, ref("second"), accepted),
				entry(controllerName, ref("g"), at(now, condition("Accepted", isTrue, 1))),
			},
			changed: true,
		},
		"an entry without its parentRef is removed": {
			current: entries{entry(controllerName, ref("g"), accepted), entry(controllerName, ref("second"), accepted)},
			want:    entries{},
			changed: true,
		},
		"an entry without the sectionName of its parentRef is removed": {
			current: entries{entry(controllerName, section, accepted)},
			spec:    refs{ref("g")},
			desired: entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:    entries{entry(controllerName, ref("g"), at(now, condition("Accepted", isTrue, 1)))},
			changed: true,
		},
		"an entry that the report no longer contains is removed": {
			current: entries{entry(controllerName, ref("g"), accepted)},
			spec:    refs{ref("g")},
			want:    entries{},
			changed: true,
		},
		"a Gateway and a ListenerSet with the same name have separate entries": {
			current: entries{entry(controllerName, set, accepted)},
			spec:    refs{set, ref("g")},
			desired: entries{entry(controllerName, ref("g"), condition("Accepted", isFalse, 1))},
			want: entries{
				entry(controllerName, set, accepted), entry(controllerName, ref("g"), at(now, condition("Accepted", isFalse, 1))),
			},
			changed: true,
		},
		"a report about a Gateway does not cover a same-named ListenerSet": {
			current: entries{entry(controllerName, set, accepted)},
			spec:    refs{set},
			want:    entries{entry(controllerName, set, accepted)},
		},
		"a parentRef with explicit defaults takes the form in spec": {
			current: entries{entry(controllerName, full, accepted)},
			spec:    refs{ref("g")},
			desired: entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:    entries{entry(controllerName, ref("g"), accepted)},
			changed: true,
		},
		"parentRefs with a sectionName or a port have separate entries": {
			current: entries{entry(controllerName, section, accepted)},
			spec:    refs{section, port},
			desired: entries{
				entry(controllerName, port, condition("Accepted", isFalse, 1)), entry(controllerName, section, condition("Accepted", isTrue, 1)),
			},
			want: entries{
				entry(controllerName, section, accepted), entry(controllerName, port, at(now, condition("Accepted", isFalse, 1))),
			},
			changed: true,
		},
		"an entry for a removed parentRef is not written": {
			desired: entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:    entries{},
		},
		"PartiallyInvalid is removed, and other condition types remain": {
			current: entries{entry(controllerName, ref("g"), accepted,
				at(before, condition("PartiallyInvalid", isTrue, 1)), at(before, condition("example.com/Audited", isTrue, 1)))},
			spec:    refs{ref("g")},
			desired: entries{entry(controllerName, ref("g"), condition("Accepted", isTrue, 1))},
			want:    entries{entry(controllerName, ref("g"), accepted, at(before, condition("example.com/Audited", isTrue, 1)))},
			changed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := mergeRoute(test.current, test.spec, test.desired...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries differ (-want +got):\n%s", diff)
			}
			if changed != test.changed {
				t.Errorf("changed = %t, want %t", changed, test.changed)
			}
		})
	}
}

func TestMergeRouteKeepsEntriesOfOtherGateways(t *testing.T) {
	// When two managed Gateways report about one route, neither report removes the
	// other's entries.
	spec := []gatewayv1.ParentReference{ref("g"), ref("second")}
	var current []gatewayv1.RouteParentStatus
	for range 2 {
		for _, name := range []string{"g", "second"} {
			owner := gateway.Owner{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
			current, _ = status.MergeRoute(current, spec, &gateway.RouteStatus{
				NamespacedName: types.NamespacedName{Namespace: "team", Name: "route"},
				Parents:        []gatewayv1.RouteParentStatus{entry(controllerName, ref(name), condition("Accepted", isTrue, 1))},
			}, map[gateway.Owner]bool{owner: true}, controllerName, now)
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

func TestMergeReplacesOtherStatusFields(t *testing.T) {
	// All fields except conditions are replaced with the report's fields.
	current := gatewayv1.GatewayStatus{
		Addresses:            []gatewayv1.GatewayStatusAddress{{Value: "old"}},
		AttachedListenerSets: new(int32(1)),
		Listeners:            []gatewayv1.ListenerStatus{{Name: "a", AttachedRoutes: 1}, {Name: "left"}},
	}
	desired := gatewayv1.GatewayStatus{
		Addresses:            []gatewayv1.GatewayStatusAddress{{Value: "new"}},
		AttachedListenerSets: new(int32(2)),
		Listeners:            []gatewayv1.ListenerStatus{{Name: "new"}, {Name: "a", AttachedRoutes: 2}},
	}
	got, changed := status.MergeGateway(current, desired, now)
	if diff := cmp.Diff(desired, got); diff != "" || !changed {
		t.Errorf("changed = %t, want true, and the status differs (-want +got):\n%s", changed, diff)
	}
	if repeated, changed := status.MergeGateway(got, desired, now); changed {
		t.Errorf("the second merge changes the status (-first +second):\n%s", cmp.Diff(got, repeated))
	}
}

func TestMergeRemovesConditionsOfTheDataPlane(t *testing.T) {
	accepted := condition("Accepted", isTrue, 1)
	current := gatewayv1.GatewayStatus{Conditions: []metav1.Condition{at(before, accepted), at(before, condition(conditions.TypeDataPlaneReady.String(), isFalse, 1))}}
	got, changed := status.MergeGateway(current, gatewayv1.GatewayStatus{Conditions: []metav1.Condition{accepted}}, now)
	if diff := cmp.Diff([]metav1.Condition{at(before, accepted)}, got.Conditions); diff != "" || !changed {
		t.Errorf("changed = %t, want true, and the conditions differ (-want +got):\n%s", changed, diff)
	}
}

// A condition that was kept from an older generation does not make the report outdated, and
// does not replace a condition that was written since.
func TestMergeAcceptsAConditionOfAnOlderGeneration(t *testing.T) {
	kept := condition(conditions.TypeDataPlaneReady.String(), isTrue, 1)
	desired := gatewayv1.GatewayStatus{Conditions: []metav1.Condition{condition("Accepted", isTrue, 2), kept}}
	for name, test := range map[string]struct{ current, want metav1.Condition }{
		"the same condition": {at(before, kept), at(before, kept)},
		"a newer condition": {
			at(before, condition(conditions.TypeDataPlaneReady.String(), isFalse, 2)), at(before, condition(conditions.TypeDataPlaneReady.String(), isFalse, 2)),
		},
	} {
		current := gatewayv1.GatewayStatus{Conditions: []metav1.Condition{test.current}}
		got, changed := status.MergeGateway(current, desired, now)
		want := []metav1.Condition{test.want, at(now, condition("Accepted", isTrue, 2))}
		if diff := cmp.Diff(want, got.Conditions); diff != "" || !changed {
			t.Errorf("%s: changed = %t, want true, and the conditions differ (-want +got):\n%s", name, changed, diff)
		}
	}
}

func TestMergeIgnoresOlderReport(t *testing.T) {
	// A report about an older generation does not overwrite or remove conditions for a
	// newer generation.
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

func TestMergeDoesNotChangeItsInput(t *testing.T) {
	// The current status belongs to the cache and must not change.
	current := gatewayv1.GatewayStatus{
		Conditions: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))},
		Listeners:  []gatewayv1.ListenerStatus{{Name: "a", Conditions: []metav1.Condition{at(before, condition("Accepted", isTrue, 1))}}},
	}
	desired := gatewayv1.GatewayStatus{
		Conditions: []metav1.Condition{condition("Accepted", isFalse, 2)},
		Listeners:  []gatewayv1.ListenerStatus{{Name: "a", Conditions: []metav1.Condition{condition("Accepted", isFalse, 2)}}},
	}
	currentCopy, desiredCopy := current.DeepCopy(), desired.DeepCopy()
	status.MergeGateway(current, desired, now)
	if diff := cmp.Diff(*currentCopy, current) + cmp.Diff(*desiredCopy, desired); diff != "" {
		t.Errorf("the input has changed (-before +after):\n%s", diff)
	}

	parents := []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"),
		at(before, condition("PartiallyInvalid", isTrue, 1)), at(before, condition("Accepted", isTrue, 1)))}
	parentsCopy := (&gatewayv1.RouteStatus{Parents: parents}).DeepCopy().Parents
	mergeRoute(parents, []gatewayv1.ParentReference{ref("g")}, entry(controllerName, ref("g"), condition("Accepted", isFalse, 2)))
	if diff := cmp.Diff(parentsCopy, parents); diff != "" {
		t.Errorf("the entries have changed (-before +after):\n%s", diff)
	}
}
