package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fakeAuthorizer simulates an API server with namespaces and permissions.
type fakeAuthorizer struct {
	client.Client // nil, so that other calls panic
	// rules contains the permissions in each existing namespace.
	rules map[string][]authorizationv1.ResourceRule
	// incomplete means that a webhook is also an authorizer. Its permissions appear
	// only in access reviews.
	incomplete bool
	// webhook contains the namespaces in which the webhook grants every permission.
	webhook map[string]bool
	// reviews counts the access reviews.
	reviews int
}

// Get returns NotFound unless the Namespace exists.
func (a *fakeAuthorizer) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if _, exists := a.rules[key.Name]; !exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	return nil
}

func (a *fakeAuthorizer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	switch review := object.(type) {
	case *authorizationv1.SelfSubjectRulesReview:
		review.Status = authorizationv1.SubjectRulesReviewStatus{ResourceRules: a.rules[review.Spec.Namespace], Incomplete: a.incomplete}
	case *authorizationv1.SelfSubjectAccessReview:
		a.reviews++
		review.Status.Allowed = a.webhook[review.Spec.ResourceAttributes.Namespace]
	default:
		return errors.ErrUnsupported
	}
	return nil
}

func rule(resources []string, verbs ...string) authorizationv1.ResourceRule {
	return authorizationv1.ResourceRule{APIGroups: []string{"*"}, Resources: resources, Verbs: verbs}
}

var allPermissions = rule([]string{"*"}, "list", "watch")

func TestFindNamespacesReturnsUsableNamespaces(t *testing.T) {
	a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{
		"served":  {allPermissions},
		"partial": {rule([]string{"gateways", "listenersets", "httproutes"}, "list", "watch")},
		"by-name": {{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}, ResourceNames: []string{"one"}}},
	}}
	var logged strings.Builder
	logger := funcr.New(func(_, line string) { logged.WriteString(line + "\n") }, funcr.Options{})
	found, err := FindNamespaces(t.Context(), a, logger, []string{"missing", "partial", "served", "by-name"}, (*AccessPolicies)(nil).Kinds())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"served"}, found.Served); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	if len(lines) != 3 {
		t.Errorf("got %d lines, want one for each ignored namespace:\n%s", len(lines), logged.String())
	}
	for _, want := range []string{
		`"namespace"="missing"`, "does not exist", `"namespace"="partial"`, "list services", "list grpcroutes.gateway.networking.k8s.io", "helm upgrade",
	} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the log does not contain %q:\n%s", want, logged.String())
		}
	}
	if strings.Contains(logged.String(), "list gateways.gateway.networking.k8s.io, list") || a.reviews > 0 {
		t.Errorf("the log names granted permissions, or there were %d access reviews for complete rules:\n%s", a.reviews, logged.String())
	}
}

func TestFindSecretNamespacesReturnsReadableNamespaces(t *testing.T) {
	// The controller serves a namespace in which it cannot read Secrets, but does not check
	// the certificates there.
	a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{
		"readable": {rule([]string{"secrets"}, "list", "watch")},
		"denied":   {rule([]string{"services"}, "list", "watch")},
	}}
	var logged strings.Builder
	logger := funcr.New(func(_, line string) { logged.WriteString(line + "\n") }, funcr.Options{})
	found, err := FindSecretNamespaces(t.Context(), a, logger, []string{"readable", "denied", "missing"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"readable"}, found.Served); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"namespace"="denied"`, "no permission to list secrets, watch secrets", `"namespace"="missing"`, "not validating"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the log does not contain %q:\n%s", want, logged.String())
		}
	}
	if none, err := FindSecretNamespaces(t.Context(), a, logger, []string{"denied"}); err != nil || len(none.Served) > 0 {
		t.Errorf("without a readable namespace: got %v, %v, want no error", none, err)
	}
}

func TestFindNamespacesRequiresAUsableNamespace(t *testing.T) {
	// An empty result would make the controller watch all namespaces.
	a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{"denied": nil}}
	if _, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"denied", "missing"}, (*AccessPolicies)(nil).Kinds()); err == nil ||
		!strings.Contains(err.Error(), "denied: the controller has no permission to list") || !strings.Contains(err.Error(), "missing: the namespace does not exist") {
		t.Errorf("got %v, want an error that explains each namespace", err)
	}
	if found, err := FindNamespaces(t.Context(), a, logr.Discard(), nil, (*AccessPolicies)(nil).Kinds()); err != nil || len(found.Served) > 0 {
		t.Errorf("without a list: got %v, %v, want all namespaces", found, err)
	}
}

func TestPermissionsGrantedByAWebhookAreFound(t *testing.T) {
	// Rules that the API server reports as incomplete are completed by access reviews.
	a := &fakeAuthorizer{
		rules:      map[string][]authorizationv1.ResourceRule{"a": {rule([]string{"gateways"}, "list", "watch")}, "b": nil},
		incomplete: true, webhook: map[string]bool{"a": true},
	}
	found, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"a", "b"}, (*AccessPolicies)(nil).Kinds())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.Served, []string{"a"}) || a.reviews == 0 {
		t.Errorf("got namespaces %q after %d access reviews, want only a and some reviews", found.Served, a.reviews)
	}
}

func TestChangedNamespacesAreDescribed(t *testing.T) {
	all := []authorizationv1.ResourceRule{allPermissions}
	for name, test := range map[string]struct {
		now    map[string][]authorizationv1.ResourceRule
		synced bool
		want   string
	}{
		"no change":                             {map[string][]authorizationv1.ResourceRule{"served": all, "denied": nil}, true, ""},
		"a Role is created":                     {map[string][]authorizationv1.ResourceRule{"served": all, "denied": all}, true, "denied can now be served"},
		"a namespace is created with a Role":    {map[string][]authorizationv1.ResourceRule{"served": all, "denied": nil, "missing": all}, true, "missing can now be served"},
		"a namespace is created without a Role": {map[string][]authorizationv1.ResourceRule{"served": all, "denied": nil, "missing": nil}, true, ""},
		"a namespace is deleted":                {map[string][]authorizationv1.ResourceRule{"denied": nil}, true, "served can no longer be served: the namespace does not exist"},
		"a Role is deleted after the sync":      {map[string][]authorizationv1.ResourceRule{"served": nil, "denied": nil}, true, ""},
		"a Role is deleted before the sync":     {map[string][]authorizationv1.ResourceRule{"served": nil, "denied": nil}, false, "served can no longer be served: the controller has no permission to list"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{"served": all, "denied": nil}}
			n, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"served", "denied", "missing"}, (*AccessPolicies)(nil).Kinds())
			if err != nil {
				t.Fatal(err)
			}
			a.rules = test.now
			got, err := n.change(t.Context(), a, test.synced)
			if err != nil || !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
