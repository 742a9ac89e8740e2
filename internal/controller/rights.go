package controller

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rights are what the API server lets the controller do in one namespace.
type rights struct {
	// missing are the verbs and resources that watching needs and that are not
	// granted.
	missing []string
	// roles are the names of the Roles whose finalizers may be changed.
	roles []string
}

// needs are the verbs of a watch.
var needs = []string{"list", "watch"}

// rightsIn asks for all rights at once. Of an API server that does not know all
// of them, since not only RBAC decides there, it asks again for each that is not
// among them.
func rightsIn(ctx context.Context, c client.Client, namespace string, watched []resource) (rights, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(ctx, review); err != nil {
		return rights{}, fmt.Errorf("asking what the controller may do in namespace %s: %w", namespace, err)
	}
	found := rights{roles: keptRoles(review.Status.ResourceRules)}
	for _, r := range watched {
		for _, verb := range needs {
			allowed := slices.ContainsFunc(review.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool { return allows(rule, verb, r) })
			if !allowed && review.Status.Incomplete {
				var err error
				if allowed, err = allowedTo(ctx, c, namespace, verb, r); err != nil {
					return rights{}, err
				}
			}
			if !allowed {
				found.missing = append(found.missing, verb+" "+r.String())
			}
		}
	}
	return found, nil
}

func allowedTo(ctx context.Context, c client.Client, namespace, verb string, r resource) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: r.Group, Resource: r.Resource},
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether the controller may %s %s in namespace %s: %w", verb, r, namespace, err)
	}
	return review.Status.Allowed, nil
}

// allows reports whether the rule is for all objects of the resource.
func allows(rule authorizationv1.ResourceRule, verb string, r resource) bool {
	return len(rule.ResourceNames) == 0 && oneOf(rule.Verbs, verb) && oneOf(rule.APIGroups, r.Group) && oneOf(rule.Resources, r.Resource)
}

// keptRoles are those that a rule names: what may patch a Role by its name is
// there to keep it.
func keptRoles(rules []authorizationv1.ResourceRule) []string {
	var names []string
	for _, rule := range rules {
		if oneOf(rule.Verbs, "patch") && oneOf(rule.APIGroups, rbacv1.GroupName) && oneOf(rule.Resources, "roles") {
			names = append(names, rule.ResourceNames...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// oneOf reports whether a list of a rule has the value, or all.
func oneOf(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, rbacv1.ResourceAll)
}
