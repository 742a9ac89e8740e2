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

// allows reports whether the request needed the permission. What is applied and
// is not there is created, for which the API server asks for that verb too.
func (p permission) allows(r cluster.Request) bool {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	verb := p.verb == r.Verb || p.verb == "create" && r.Verb == "patch" && r.Code == http.StatusCreated
	return verb && p.group == r.Group && p.resource == resource &&
		(p.namespace == "" || p.namespace == r.Namespace) && (p.name == "" || p.name == r.Name)
}

// permissions returns what the roles of a release grant, by reading them from
// the API server.
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

// inOneOf has it count for all of the namespaces when a permission is used in one
// of them.
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

// requests returns what the controller has asked the API server so far.
func (w *world) requests(t *testing.T, user string) []cluster.Request {
	t.Helper()
	requests, err := cluster.ReadAudit(w.audit, user)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// unused returns an error that names the permissions which no request has
// needed yet.
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

// checkNoneRefused fails for every request that the controller was not allowed
// to make.
func checkNoneRefused(t *testing.T, requests []cluster.Request) {
	t.Helper()
	if len(requests) == 0 {
		t.Error("the audit log has no request of the controller")
	}
	for _, r := range requests {
		if r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized {
			t.Errorf("refused: %s", r)
		}
	}
}

// checkSecrets: all Secrets are looked at as metadata, and only those are read
// that something refers to, which is what "referred" names.
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
			if r.Answer != "PartialObjectMetadataList" {
				t.Errorf("Secrets are listed with their contents (%s): %s", r.Answer, r)
			}
		case "get":
			if read[r.Namespace+"/"+r.Name] = true; !slices.Contains(referred, r.Namespace+"/"+r.Name) {
				t.Errorf("a Secret is read that nothing refers to: %s", r)
			}
		}
	}
	for _, name := range referred {
		if !read[name] {
			t.Errorf("Secret %s is not read", name)
		}
	}
	if !listed {
		t.Error("no list of Secrets is in the audit log, so nothing is known of what was asked for")
	}
}
