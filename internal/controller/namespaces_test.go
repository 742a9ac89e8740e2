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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// fakeAuthorizer is an API server that has namespaces and permissions in them.
type fakeAuthorizer struct {
	client.Client // nil: any other call panics
	// rules are the permissions in each namespace that exists.
	rules map[string][]authorizationv1.ResourceRule
	// incomplete is whether a webhook decides as well: the namespaces in which it
	// permits everything show only in access reviews.
	incomplete bool
	webhook    map[string]bool
	// reviews counts the access reviews.
	reviews int
}

func (a *fakeAuthorizer) Scheme() *runtime.Scheme { return Scheme() }

func (a *fakeAuthorizer) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, object := range inputKinds() {
		gvk, err := apiutil.GVKForObject(object, Scheme())
		if err != nil {
			panic(err)
		}
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if slices.Contains([]string{"GatewayClass", "CustomResourceDefinition", "Namespace"}, gvk.Kind) {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	return mapper
}

// Get reads a Namespace.
func (a *fakeAuthorizer) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if _, there := a.rules[key.Name]; !there {
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

var everything = rule([]string{"*"}, "list", "watch")

func TestFindNamespacesReturnsUsableNamespaces(t *testing.T) {
	a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{
		"served":  {everything},
		"less":    {rule([]string{"gateways", "listenersets", "httproutes"}, "list", "watch")},
		"by-name": {{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}, ResourceNames: []string{"one"}}},
	}}
	var logged strings.Builder
	logger := funcr.New(func(_, line string) { logged.WriteString(line + "\n") }, funcr.Options{})
	found, err := FindNamespaces(t.Context(), a, logger, []string{"missing", "less", "served", "by-name"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"served"}, found.Served); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	if len(lines) != 3 {
		t.Errorf("got %d lines, want one for each namespace that is left out:\n%s", len(lines), logged.String())
	}
	for _, want := range []string{
		`"namespace"="missing"`, "does not exist", `"namespace"="less"`, "list services", "list grpcroutes.gateway.networking.k8s.io", "helm upgrade",
	} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, logged.String())
		}
	}
	if strings.Contains(logged.String(), "list gateways.gateway.networking.k8s.io, list") || a.reviews > 0 {
		t.Errorf("the log names granted permissions, or there were %d access reviews although the rules are complete:\n%s", a.reviews, logged.String())
	}
}

// A namespace without permission to read Secrets is served, and its certificates
// are not checked.
func TestFindSecretNamespacesReturnsReadableNamespaces(t *testing.T) {
	a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{
		"readable": {rule([]string{"secrets"}, "list", "watch")},
		"barred":   {rule([]string{"services"}, "list", "watch")},
	}}
	var logged strings.Builder
	logger := funcr.New(func(_, line string) { logged.WriteString(line + "\n") }, funcr.Options{})
	found, err := FindSecretNamespaces(t.Context(), a, logger, []string{"readable", "barred", "missing"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"readable"}, found.Served); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"namespace"="barred"`, "no permission to list secrets, watch secrets", `"namespace"="missing"`, "not checked"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, logged.String())
		}
	}
	if none, err := FindSecretNamespaces(t.Context(), a, logger, []string{"barred"}); err != nil || len(none.Served) > 0 {
		t.Errorf("without any: got %v, %v, want no error", none, err)
	}
}

// A cache without namespaces is a cache of the whole cluster.
func TestFindNamespacesRequiresAUsableNamespace(t *testing.T) {
	a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{"barred": nil}}
	if _, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"barred", "missing"}); err == nil ||
		!strings.Contains(err.Error(), "barred: the controller has no permission to list") || !strings.Contains(err.Error(), "missing: the namespace does not exist") {
		t.Errorf("got %v, want an error that explains each namespace", err)
	}
	if found, err := FindNamespaces(t.Context(), a, logr.Discard(), nil); err != nil || len(found.Served) > 0 {
		t.Errorf("without a list: got %v, %v, want all namespaces", found, err)
	}
}

// The list of rules is incomplete where a webhook decides as well.
func TestPermissionsGrantedByAWebhookAreFound(t *testing.T) {
	a := &fakeAuthorizer{
		rules:      map[string][]authorizationv1.ResourceRule{"a": {rule([]string{"gateways"}, "list", "watch")}, "b": nil},
		incomplete: true, webhook: map[string]bool{"a": true},
	}
	found, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.Served, []string{"a"}) || a.reviews == 0 {
		t.Errorf("%q are served after %d access reviews, want only a after some", found.Served, a.reviews)
	}
}

func TestChangedNamespacesAreDescribed(t *testing.T) {
	all := []authorizationv1.ResourceRule{everything}
	for name, test := range map[string]struct {
		now    map[string][]authorizationv1.ResourceRule
		synced bool
		want   string
	}{
		"nothing":                                     {map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil}, true, ""},
		"a namespace is permitted":                    {map[string][]authorizationv1.ResourceRule{"served": all, "barred": all}, true, "barred can be served"},
		"a namespace is created":                      {map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil, "missing": all}, true, "missing can be served"},
		"a namespace without a Role is created":       {map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil, "missing": nil}, true, ""},
		"a namespace is gone":                         {map[string][]authorizationv1.ResourceRule{"barred": nil}, true, "served has to be left out: the namespace does not exist"},
		"the Role is gone":                            {map[string][]authorizationv1.ResourceRule{"served": nil, "barred": nil}, true, ""},
		"the Role is gone before everything was read": {map[string][]authorizationv1.ResourceRule{"served": nil, "barred": nil}, false, "served has to be left out: the controller has no permission to list"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &fakeAuthorizer{rules: map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil}}
			n, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"served", "barred", "missing"})
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
