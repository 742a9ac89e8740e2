package health

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policyCondition is a condition of generation 2, which is the newest of the policy below.
func policyCondition(conditionType, status, reason string) any {
	return map[string]any{"type": conditionType, "status": status, "reason": reason, "message": reason, "observedGeneration": int64(2)}
}

// accessPolicy returns an AccessPolicy with the conditions of each ancestor.
func accessPolicy(ancestors ...[]any) *unstructured.Unstructured {
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tunnelgateway.dev/v1alpha1", "kind": "AccessPolicy",
		"metadata": map[string]any{"name": "admin", "namespace": "team-a", "generation": int64(2)},
	}}
	if len(ancestors) == 0 {
		return policy
	}
	var entries []any
	for _, conditions := range ancestors {
		entries = append(entries, map[string]any{"controllerName": "tunnelgateway.dev/controller", "conditions": conditions})
	}
	policy.Object["status"] = map[string]any{"ancestors": entries}
	return policy
}

// TestHealthOfAccessPolicies evaluates the guide's scripts and expressions. A policy is
// healthy when applications protect all its hostnames.
func TestHealthOfAccessPolicies(t *testing.T) {
	accepted, resolved := policyCondition("Accepted", "True", "Accepted"), policyCondition("ResolvedRefs", "True", "ResolvedRefs")
	programmed := policyCondition("Programmed", "True", "Programmed")
	pending := []any{accepted, resolved, policyCondition("Programmed", "False", "Pending")}
	protected := []any{accepted, resolved, programmed}
	outdated := map[string]any{"type": "Programmed", "status": "True", "reason": "Programmed", "message": "", "observedGeneration": int64(1)}
	checks := map[string]healthCheck{argoCDLenient: builtinScripts(t).override(guideScripts(t)).assess, flux: guideExpressions(t).assess}
	for name, test := range map[string]struct {
		policy       *unstructured.Unstructured
		argoCD, flux string
	}{
		"no status":                         {accessPolicy(), healthProgressing, healthProgressing},
		"every hostname is protected":       {accessPolicy(protected, protected), healthHealthy, healthHealthy},
		"an application is being created":   {accessPolicy(protected, pending), healthProgressing, healthProgressing},
		"the unknown state of applications": {accessPolicy([]any{accepted, resolved, policyCondition("Programmed", "Unknown", "Unknown")}), healthProgressing, healthProgressing},
		"a change that is not processed":    {accessPolicy([]any{accepted, resolved, outdated}), healthProgressing, healthProgressing},
		"a missing target":                  {accessPolicy([]any{policyCondition("Accepted", "False", "TargetNotFound")}), healthDegraded, healthProgressing},
		"an unknown policy":                 {accessPolicy([]any{accepted, policyCondition("ResolvedRefs", "False", "PolicyNotFound"), programmed}), healthDegraded, healthProgressing},
		"another application": {
			accessPolicy(pending, []any{accepted, resolved, policyCondition("Programmed", "False", "ApplicationExists")}), healthDegraded, healthProgressing,
		},
	} {
		for tool, want := range map[string]string{argoCDLenient: test.argoCD, flux: test.flux} {
			if got := checks[tool](test.policy); got.health != want {
				t.Errorf("%s: %s in %s (%s), want %s", name, got.health, tool, got.message, want)
			}
		}
	}
}
