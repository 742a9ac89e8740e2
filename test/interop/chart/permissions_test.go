package chart

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// permission is a permission to use one verb on one resource.
type permission struct {
	verb, group, resource string
	namespace, name       string // empty means any
}

// allows reports whether the request required the permission. A request to apply
// an object that does not exist also requires the verb create.
func (p permission) allows(r cluster.Request) bool {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	verb := p.verb == r.Verb || p.verb == "create" && r.Verb == "patch" && r.Code == http.StatusCreated
	return verb && p.group == r.Group && p.resource == resource &&
		(p.namespace == "" || p.namespace == r.Namespace) && (p.name == "" || p.name == r.Name)
}

// permissions returns the permissions that a release's ClusterRoles and Roles grant.
func (e *environment) permissions(t *testing.T, instance string) []permission {
	t.Helper()
	var granted []permission
	var cluster rbacv1.ClusterRoleList
	var roles rbacv1.RoleList
	releaseLabels := client.MatchingLabels{"app.kubernetes.io/instance": instance}
	for _, list := range []client.ObjectList{&cluster, &roles} {
		if err := e.kube.List(t.Context(), list, releaseLabels); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range cluster.Items {
		// The ClusterRoles for users are not bound.
		err := e.kube.Get(t.Context(), client.ObjectKeyFromObject(&role), &rbacv1.ClusterRoleBinding{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err == nil {
			granted = append(granted, expandRules("", role.Rules)...)
		}
	}
	for _, role := range roles.Items {
		granted = append(granted, expandRules(role.Namespace, role.Rules)...)
	}
	if len(granted) == 0 {
		t.Fatalf("release %s has no roles", instance)
	}
	return granted
}

// expandRules returns a permission for each combination in the rules.
func expandRules(namespace string, rules []rbacv1.PolicyRule) []permission {
	var all []permission
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, permission{verb, group, resource, namespace, name})
					}
				}
			}
		}
	}
	return all
}

// mergeNamespaces merges permissions that differ only in which of the namespaces they
// apply to. Using one in one of the namespaces then counts for all of them.
func mergeNamespaces(granted []permission, namespaces ...string) []permission {
	var all []permission
	for _, p := range granted {
		if slices.Contains(namespaces, p.namespace) {
			p.namespace = ""
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// requests returns the user's requests in the audit log.
func (e *environment) requests(t *testing.T, user string) []cluster.Request {
	t.Helper()
	requests, err := cluster.ReadAudit(e.auditLog, user)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// checkAllUsed returns an error that names the permissions that no request has
// required.
func checkAllUsed(granted []permission, requests []cluster.Request) error {
	var unused []string
	for _, p := range granted {
		if !slices.ContainsFunc(requests, p.allows) {
			unused = append(unused, fmt.Sprintf("%s %s.%s in %q, name %q", p.verb, p.resource, p.group, p.namespace, p.name))
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("granted but unused permissions: %q", unused)
	}
	return nil
}

// checkAudit fails the test for each request that the API server rejected since the
// controller started because a permission was missing. It also fails for each request
// that changes an object outside the controller's namespace, except statuses and events.
func (e *environment) checkAudit(t *testing.T, r *runningController) {
	t.Helper()
	requests := e.requests(t, r.user)
	if len(requests) == r.earlierRequests {
		t.Error("the audit log contains no request of the controller")
	}
	for _, request := range requests[r.earlierRequests:] {
		if request.Code == http.StatusForbidden || request.Code == http.StatusUnauthorized {
			t.Errorf("the API server rejects a request: %s", request)
		}
	}
	for _, request := range requests {
		if request.ChangesOutside(func(namespace string) bool { return namespace == r.namespace }) {
			t.Errorf("the controller changes an object outside namespace %s: %s", r.namespace, request)
		}
	}
}

// checkSecrets fails the test if a request lists Secrets with their contents, or if the
// Secrets that the controller gets are not exactly the referenced ones.
func checkSecrets(t *testing.T, requests []cluster.Request, referenced ...string) {
	t.Helper()
	listed, read := false, map[string]bool{}
	for _, r := range requests {
		if r.Resource != "secrets" {
			continue
		}
		switch r.Verb {
		case "list":
			listed = true
			if r.ResponseKind != "PartialObjectMetadataList" {
				t.Errorf("the controller lists Secrets with their contents (%s): %s", r.ResponseKind, r)
			}
		case "get":
			if read[r.Namespace+"/"+r.Name] = true; !slices.Contains(referenced, r.Namespace+"/"+r.Name) {
				t.Errorf("the controller reads a Secret that no object references: %s", r)
			}
		}
	}
	for _, name := range referenced {
		if !read[name] {
			t.Errorf("the controller does not read Secret %s", name)
		}
	}
	if !listed {
		t.Error("the audit log contains no list request for Secrets")
	}
}
