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

// permission is one verb for one resource, as a role grants it.
type permission struct {
	verb, group, resource string
	namespace, name       string // any when empty
}

// allows reports whether the request needed the permission. Applying an object
// that does not exist needs the verb create as well.
func (p permission) allows(r cluster.Request) bool {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	verb := p.verb == r.Verb || p.verb == "create" && r.Verb == "patch" && r.Code == http.StatusCreated
	return verb && p.group == r.Group && p.resource == resource &&
		(p.namespace == "" || p.namespace == r.Namespace) && (p.name == "" || p.name == r.Name)
}

// permissions returns the permissions that the roles of a release in the cluster
// grant.
func (w *world) permissions(t *testing.T, instance string) []permission {
	t.Helper()
	var granted []permission
	var cluster rbacv1.ClusterRoleList
	var roles rbacv1.RoleList
	ofRelease := client.MatchingLabels{"app.kubernetes.io/instance": instance}
	for _, list := range []client.ObjectList{&cluster, &roles} {
		if err := w.kube.List(t.Context(), list, ofRelease); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range cluster.Items {
		granted = append(granted, expand("", role.Rules)...)
	}
	for _, role := range roles.Items {
		granted = append(granted, expand(role.Namespace, role.Rules)...)
	}
	if len(granted) == 0 {
		t.Fatalf("release %s has no roles", instance)
	}
	return granted
}

func expand(namespace string, rules []rbacv1.PolicyRule) []permission {
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

// inOneOf returns the permissions such that a permission in several of the
// namespaces counts as used when it is used in one of them.
func inOneOf(granted []permission, namespaces ...string) []permission {
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

// requests returns the controller's requests to the API server so far.
func (w *world) requests(t *testing.T, user string) []cluster.Request {
	t.Helper()
	requests, err := cluster.ReadAudit(w.audit, user)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// unused returns an error that names the permissions that no request has needed
// yet.
func unused(granted []permission, requests []cluster.Request) error {
	var idle []string
	for _, p := range granted {
		if !slices.ContainsFunc(requests, p.allows) {
			idle = append(idle, fmt.Sprintf("%s %s.%s in %q, name %q", p.verb, p.resource, p.group, p.namespace, p.name))
		}
	}
	if len(idle) > 0 {
		return fmt.Errorf("granted and not used: %q", idle)
	}
	return nil
}

// checkAudit fails for every request of the controller that the API server
// refused since the controller was started, and for every one that changes an
// object outside the controller's namespace, other than a status or an event.
func (w *world) checkAudit(t *testing.T, r *running) {
	t.Helper()
	requests := w.requests(t, r.user)
	if len(requests) == r.earlier {
		t.Error("the audit log has no request of the controller")
	}
	for _, request := range requests[r.earlier:] {
		if request.Code == http.StatusForbidden || request.Code == http.StatusUnauthorized {
			t.Errorf("refused: %s", request)
		}
	}
	for _, request := range requests {
		if request.ChangesOutside(func(namespace string) bool { return namespace == r.namespace }) {
			t.Errorf("changes an object outside namespace %s: %s", r.namespace, request)
		}
	}
}

// checkSecrets fails if Secrets are listed with their contents, or if others than
// the given ones are read.
func checkSecrets(t *testing.T, requests []cluster.Request, referred ...string) {
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
				t.Errorf("Secrets are listed with their contents (%s): %s", r.ResponseKind, r)
			}
		case "get":
			if read[r.Namespace+"/"+r.Name] = true; !slices.Contains(referred, r.Namespace+"/"+r.Name) {
				t.Errorf("the controller reads a Secret that nothing refers to: %s", r)
			}
		}
	}
	for _, name := range referred {
		if !read[name] {
			t.Errorf("Secret %s is not read", name)
		}
	}
	if !listed {
		t.Error("the audit log has no list of Secrets")
	}
}
