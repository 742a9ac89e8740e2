package status_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

const policyController = gatewayv1.GatewayController("tunnelgateway.dev/controller")

// ancestor returns a status entry for a Gateway with one condition.
func ancestor(name string, controller gatewayv1.GatewayController, condition string, generation int64) gatewayv1.PolicyAncestorStatus {
	return gatewayv1.PolicyAncestorStatus{
		AncestorRef:    gatewayv1.ParentReference{Namespace: ptr.To[gatewayv1.Namespace]("infra"), Name: gatewayv1.ObjectName(name)},
		ControllerName: controller,
		Conditions:     []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: generation}},
	}
}

// summary lists the entries as "controller name conditions".
func summary(entries []gatewayv1.PolicyAncestorStatus) []string {
	var all []string
	for _, e := range entries {
		text := fmt.Sprintf("%s %s", e.ControllerName, e.AncestorRef.Name)
		for _, c := range e.Conditions {
			text += fmt.Sprintf(" %s/%d", c.Type, c.ObservedGeneration)
		}
		all = append(all, text)
	}
	return all
}

func TestMergePolicyChangesOnlyTheOwnEntry(t *testing.T) {
	shared := types.NamespacedName{Namespace: "infra", Name: "shared"}
	owners := map[gateway.Owner]bool{{Kind: gateway.KindGateway, NamespacedName: shared}: true}
	other, second := ancestor("shared", "example.com/other", "Accepted", 1), ancestor("second", policyController, "Accepted", 1)
	own := ancestor("shared", policyController, "Accepted", 2)
	full := make([]gatewayv1.PolicyAncestorStatus, 16)
	for i := range full {
		full[i] = ancestor(fmt.Sprintf("g%d", i), policyController, "Accepted", 1)
	}
	stale := ancestor("shared", policyController, "ResolvedRefs", 1)
	audited := ancestor("shared", policyController, "example.com/Audited", 1)
	for name, tt := range map[string]struct {
		current []gatewayv1.PolicyAncestorStatus
		desired *gatewayv1.PolicyAncestorStatus
		want    []string
		changed bool
	}{
		"a new entry":                       {[]gatewayv1.PolicyAncestorStatus{other, second}, &own, append(summary([]gatewayv1.PolicyAncestorStatus{other, second}), "tunnelgateway.dev/controller shared Accepted/2"), true},
		"a removed entry":                   {[]gatewayv1.PolicyAncestorStatus{other, own, second}, nil, summary([]gatewayv1.PolicyAncestorStatus{other, second}), true},
		"nothing to remove":                 {[]gatewayv1.PolicyAncestorStatus{other}, nil, summary([]gatewayv1.PolicyAncestorStatus{other}), false},
		"a condition that no longer exists": {[]gatewayv1.PolicyAncestorStatus{stale}, &own, []string{"tunnelgateway.dev/controller shared Accepted/2"}, true},
		"another controller's condition":    {[]gatewayv1.PolicyAncestorStatus{audited}, &own, []string{"tunnelgateway.dev/controller shared example.com/Audited/1 Accepted/2"}, true},
		"a newer generation":                {[]gatewayv1.PolicyAncestorStatus{ancestor("shared", policyController, "Accepted", 3)}, &own, []string{"tunnelgateway.dev/controller shared Accepted/3"}, false},
		"a full status":                     {full, &own, summary(full), false},
		"a full status with the entry":      {append(append([]gatewayv1.PolicyAncestorStatus{}, full[:15]...), stale), &own, append(summary(full[:15]), "tunnelgateway.dev/controller shared Accepted/2"), true},
	} {
		desired := gateway.PolicyStatus{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}, Ancestor: tt.desired}
		merged, changed := status.MergePolicy(tt.current, desired, owners, policyController, metav1.NewTime(time.Unix(1, 0)))
		if diff := cmp.Diff(tt.want, summary(merged)); diff != "" || changed != tt.changed {
			t.Errorf("%s: changed %t, entries (-want +got):\n%s", name, changed, diff)
		}
	}
}

// A target without a managed Gateway is its own ancestor.
func TestMergeAccessPolicyKeepsOneEntryForEachOwner(t *testing.T) {
	entry := func(kind, name string, controller gatewayv1.GatewayController, types ...string) gatewayv1.PolicyAncestorStatus {
		e := gatewayv1.PolicyAncestorStatus{
			AncestorRef:    gatewayv1.ParentReference{Kind: ptr.To(gatewayv1.Kind(kind)), Name: gatewayv1.ObjectName(name)},
			ControllerName: controller,
		}
		for _, t := range types {
			e.Conditions = append(e.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: 1})
		}
		return e
	}
	set := func(name string, types ...string) gatewayv1.PolicyAncestorStatus {
		return entry(gateway.KindListenerSet, name, policyController, types...)
	}
	owner := func(kind, name string) gateway.Owner {
		return gateway.Owner{Kind: kind, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
	}
	owners := map[gateway.Owner]bool{owner(gateway.KindGateway, "g"): true, owner(gateway.KindListenerSet, "a"): true, owner(gateway.KindListenerSet, "b"): true}
	full := make([]gatewayv1.PolicyAncestorStatus, 15)
	for i := range full {
		full[i] = set(fmt.Sprintf("s%d", i), "Accepted")
	}
	for name, tt := range map[string]struct {
		current, desired []gatewayv1.PolicyAncestorStatus
		want             []string
		changed          bool
	}{
		"entries of two sets": {nil, []gatewayv1.PolicyAncestorStatus{set("a", "Accepted"), set("b", "Accepted")}, []string{
			"tunnelgateway.dev/controller a Accepted/1", "tunnelgateway.dev/controller b Accepted/1",
		}, true},
		"an unchanged entry": {
			[]gatewayv1.PolicyAncestorStatus{set("a", "Accepted")}, []gatewayv1.PolicyAncestorStatus{set("a", "Accepted")},
			[]string{"tunnelgateway.dev/controller a Accepted/1"}, false,
		},
		"a set whose Gateway is now managed": {
			[]gatewayv1.PolicyAncestorStatus{set("a", "Accepted"), set("c", "Accepted")},
			[]gatewayv1.PolicyAncestorStatus{entry(gateway.KindGateway, "g", policyController, "Accepted", "Programmed")},
			[]string{"tunnelgateway.dev/controller c Accepted/1", "tunnelgateway.dev/controller g Accepted/1 Programmed/1"}, true,
		},
		"a policy without targets": {
			[]gatewayv1.PolicyAncestorStatus{set("a", "Accepted"), set("a", "Accepted"), entry(gateway.KindListenerSet, "a", "example.com/other", "Accepted")},
			nil, []string{"example.com/other a Accepted/1"}, true,
		},
		"a condition that no longer exists": {
			[]gatewayv1.PolicyAncestorStatus{set("a", "Accepted", "Programmed", "example.com/Audited")}, []gatewayv1.PolicyAncestorStatus{set("a", "Accepted")},
			[]string{"tunnelgateway.dev/controller a Accepted/1 example.com/Audited/1"}, true,
		},
		"a status with room for one entry": {full, []gatewayv1.PolicyAncestorStatus{set("a", "Accepted"), set("b", "Accepted")},
			append(summary(full), "tunnelgateway.dev/controller a Accepted/1"), true},
	} {
		desired := gateway.AccessPolicyStatus{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "admin"}, Ancestors: tt.desired}
		merged, changed := status.MergeAccessPolicy(tt.current, desired, owners, policyController, metav1.NewTime(time.Unix(1, 0)))
		if diff := cmp.Diff(tt.want, summary(merged)); diff != "" || changed != tt.changed {
			t.Errorf("%s: changed %t, entries (-want +got):\n%s", name, changed, diff)
		}
	}
}
