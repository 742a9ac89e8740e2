package controller

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchVerbs are the verbs that a watch requires.
var watchVerbs = []string{"list", "watch"}

// missingPermissions returns the verbs and resources that watching the kinds requires
// and that are not granted in the namespace. It requests all rules with one review. If
// the API server reports the rules as incomplete, because RBAC is not the only
// authorizer, it also reviews each missing permission individually.
func missingPermissions(ctx context.Context, c client.Client, namespace string, watched []schema.GroupResource) ([]string, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("review the permissions in namespace %s: %w", namespace, err)
	}
	var missing []string
	for _, r := range watched {
		for _, verb := range watchVerbs {
			allowed := slices.ContainsFunc(review.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool { return ruleAllows(rule, verb, r) })
			if !allowed && review.Status.Incomplete {
				var err error
				if allowed, err = isAllowed(ctx, c, namespace, verb, r); err != nil {
					return nil, err
				}
			}
			if !allowed {
				missing = append(missing, verb+" "+r.String())
			}
		}
	}
	return missing, nil
}

// isAllowed reports whether the API server grants a single permission.
func isAllowed(ctx context.Context, c client.Client, namespace, verb string, r schema.GroupResource) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: r.Group, Resource: r.Resource},
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review the permission to %s %s in namespace %s: %w", verb, r, namespace, err)
	}
	return review.Status.Allowed, nil
}

// ruleAllows reports whether the rule grants the verb for all objects of the resource.
func ruleAllows(rule authorizationv1.ResourceRule, verb string, r schema.GroupResource) bool {
	return len(rule.ResourceNames) == 0 && includesValue(rule.Verbs, verb) && includesValue(rule.APIGroups, r.Group) && includesValue(rule.Resources, r.Resource)
}

// includesValue reports whether a list in a rule contains the value or the wildcard.
func includesValue(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, rbacv1.ResourceAll)
}
