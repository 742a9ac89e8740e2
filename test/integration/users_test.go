package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// impersonate writes a copy of a kubeconfig to path that impersonates the user.
func impersonate(kubeconfig, user, path string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, identity := range config.AuthInfos {
		identity.Impersonate = user
	}
	return clientcmd.WriteToFile(*config, path)
}

// createViewer grants the chart's role for users of plan to a new user and returns the
// user's name. If omitted is not empty, the role does not include the rule about this
// resource.
func createViewer(ctx context.Context, c client.Client, omitted string) (string, error) {
	text, err := os.ReadFile("../../config/rbac/clusterrole.yaml")
	if err != nil {
		return "", err
	}
	roles, err := decodeManifests(bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	roles = slices.DeleteFunc(roles, func(role *unstructured.Unstructured) bool { return role.GetName() != viewerRole })
	return grantRoles(ctx, c, roles, "", omitted)
}

// createUser grants the first roles on a page to a new user, for a controller in the
// namespace; see createViewer.
func createUser(ctx context.Context, c client.Client, page, namespace, omitted string) (string, error) {
	return createUserWith(ctx, c, page, "", namespace, omitted)
}

// createUserWith is like createUser, for the first manifest on the page with a role of that
// name.
func createUserWith(ctx context.Context, c client.Client, page, role, namespace, omitted string) (string, error) {
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		return "", err
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(apiVersion: rbac.*?)```").FindAllSubmatch(text, -1)
	i := slices.IndexFunc(blocks, func(block [][]byte) bool { return bytes.Contains(block[1], []byte("name: "+role)) })
	if i < 0 {
		return "", fmt.Errorf("docs/%s contains no role %s", page, role)
	}
	roles, err := decodeManifests(bytes.NewReader(blocks[i][1]))
	if err != nil {
		return "", err
	}
	return grantRoles(ctx, c, roles, namespace, omitted)
}

// grantRoles creates the roles and binds them to a new user; see createViewer.
func grantRoles(ctx context.Context, c client.Client, roles []*unstructured.Unstructured, namespace, omitted string) (string, error) {
	user := uniqueName("viewer")
	for _, role := range roles {
		role.SetName(user)
		if role.GetNamespace() != "" {
			role.SetNamespace(namespace)
		}
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		if err != nil {
			return "", err
		}
		role.Object["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
			resources := rule.(map[string]any)["resources"].([]any)
			return slices.Contains(resources, any(omitted))
		})
		if err := c.Create(ctx, role); err != nil {
			return "", err
		}
		if err := bind(ctx, c, user, role.GetNamespace(), role); err != nil {
			return "", err
		}
	}
	return user, nil
}

// bind binds a Role or ClusterRole to the user in a namespace, or in all, and waits until the API
// server knows it.
func bind(ctx context.Context, c client.Client, user, namespace string, role *unstructured.Unstructured) error {
	kind := "RoleBinding"
	if namespace == "" {
		kind = "ClusterRoleBinding"
	}
	binding := newObject(rbacAPI, kind, namespace, uniqueName(user))
	binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": role.GetKind(), "name": role.GetName()}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}}
	if err := c.Create(ctx, binding); err != nil {
		return err
	}
	return awaitPermission(ctx, c, user, namespace, role)
}

// awaitPermission waits until the API server, which reads roles and bindings from a cache,
// permits the user what the role's first rule permits in the namespace, or in all.
func awaitPermission(ctx context.Context, c client.Client, user, namespace string, role *unstructured.Unstructured) error {
	var typed rbacv1.ClusterRole // A Role's rules have the same fields.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
		return err
	}
	if len(typed.Rules) == 0 {
		return nil
	}
	rule := typed.Rules[0]
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	attributes := map[string]any{
		"namespace": namespace, "verb": rule.Verbs[0], "group": rule.APIGroups[0], "resource": resource, "subresource": subresource,
	}
	if len(rule.ResourceNames) > 0 {
		attributes["name"] = rule.ResourceNames[0]
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		review := newObject("authorization.k8s.io/v1", "SubjectAccessReview", "", "")
		review.Object["spec"] = map[string]any{"user": user, "resourceAttributes": attributes}
		if err := c.Create(ctx, review); err != nil {
			return false, err
		}
		allowed, _, err := unstructured.NestedBool(review.Object, "status", "allowed")
		return allowed, err
	})
	if err != nil {
		return fmt.Errorf("wait until user %s has %s %s: %w", user, role.GetKind(), role.GetName(), err)
	}
	return nil
}
