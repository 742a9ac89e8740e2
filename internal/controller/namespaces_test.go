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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// authority is an API server that knows namespaces and what may be done there.
type authority struct {
	client.Client // none: everything else is an error
	// rules are by namespace; one that is not there does not exist.
	rules map[string][]authorizationv1.ResourceRule
	// webhook has rules of which only single questions tell.
	incomplete bool
	webhook    map[string]bool // by namespace
	asked      int             // single questions
}

func (a *authority) Scheme() *runtime.Scheme { return Scheme() }

func (a *authority) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, object := range watchedKinds() {
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

func (a *authority) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	name, _ := o.ApplyOptions(opts).FieldSelector.RequiresExactMatch(metav1.ObjectNameField)
	if _, there := a.rules[name]; there {
		into.(*corev1.NamespaceList).Items = make([]corev1.Namespace, 1)
	}
	return nil
}

// Get is that of a cache of Namespaces.
func (a *authority) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if _, there := a.rules[key.Name]; !there {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	return nil
}

func (a *authority) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	switch review := object.(type) {
	case *authorizationv1.SelfSubjectRulesReview:
		review.Status = authorizationv1.SubjectRulesReviewStatus{ResourceRules: a.rules[review.Spec.Namespace], Incomplete: a.incomplete}
	case *authorizationv1.SelfSubjectAccessReview:
		a.asked++
		review.Status.Allowed = a.webhook[review.Spec.ResourceAttributes.Namespace]
	default:
		return errors.ErrUnsupported
	}
	return nil
}

func rule(resources []string, verbs ...string) authorizationv1.ResourceRule {
	return authorizationv1.ResourceRule{APIGroups: []string{"*"}, Resources: resources, Verbs: verbs}
}

var (
	everything = rule([]string{"*"}, "list", "watch")
	ownRoles   = authorizationv1.ResourceRule{
		APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"},
		Verbs: []string{"get", "patch"}, ResourceNames: []string{"mine-token", "mine"},
	}
)

func TestFindNamespaces(t *testing.T) {
	a := &authority{rules: map[string][]authorizationv1.ResourceRule{
		"served": {everything, ownRoles},
		// Whoever has a namespace may take anything out of the Role.
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
	if diff := cmp.Diff([]string{"mine", "mine-token"}, found.Roles); diff != "" {
		t.Errorf("own Roles (-want +got):\n%s", diff)
	}
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	if len(lines) != 3 {
		t.Errorf("got %d lines, want one for each that is left out:\n%s", len(lines), logged.String())
	}
	for _, want := range []string{
		`"namespace"="missing"`, "does not exist", `"namespace"="less"`, "list services", "watch secrets", "list grpcroutes.gateway.networking.k8s.io", "helm upgrade",
	} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, logged.String())
		}
	}
	if strings.Contains(logged.String(), "list gateways.gateway.networking.k8s.io, list") || a.asked > 0 {
		t.Errorf("it misses what is granted, or asked %d single questions though all is known:\n%s", a.asked, logged.String())
	}
}

// A cache without namespaces would be one of the whole cluster.
func TestFindNoNamespace(t *testing.T) {
	a := &authority{rules: map[string][]authorizationv1.ResourceRule{"barred": nil}}
	if _, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"barred", "missing"}); err == nil ||
		!strings.Contains(err.Error(), "barred: the controller has no right to list") || !strings.Contains(err.Error(), "missing: the namespace does not exist") {
		t.Errorf("got %v, want an error that says what is wrong with each", err)
	}
	if found, err := FindNamespaces(t.Context(), a, logr.Discard(), nil); err != nil || len(found.Served) > 0 {
		t.Errorf("without a list: got %v, %v, want all namespaces", found, err)
	}
}

// Where not only RBAC decides, the rules are not all.
func TestRightsThatNoRuleTells(t *testing.T) {
	a := &authority{
		rules:      map[string][]authorizationv1.ResourceRule{"a": {rule([]string{"gateways"}, "list", "watch")}, "b": nil},
		incomplete: true, webhook: map[string]bool{"a": true},
	}
	found, err := FindNamespaces(t.Context(), a, logr.Discard(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.Served, []string{"a"}) || a.asked == 0 {
		t.Errorf("%q are served after %d questions, want a alone, by asking", found.Served, a.asked)
	}
}

func TestNamespacesChange(t *testing.T) {
	all := []authorizationv1.ResourceRule{everything}
	for name, test := range map[string]struct {
		now    map[string][]authorizationv1.ResourceRule
		synced bool
		want   string
	}{
		"nothing":                         {map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil}, true, ""},
		"one that was left out":           {map[string][]authorizationv1.ResourceRule{"served": all, "barred": all}, true, "barred can be worked in"},
		"one that was missing":            {map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil, "missing": all}, true, "missing can be worked in"},
		"there, without a Role yet":       {map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil, "missing": nil}, true, ""},
		"one is gone":                     {map[string][]authorizationv1.ResourceRule{"barred": nil}, true, "served has to be left out: the namespace does not exist"},
		"the Role is gone":                {map[string][]authorizationv1.ResourceRule{"served": nil, "barred": nil}, true, ""},
		"the Role is gone before the end": {map[string][]authorizationv1.ResourceRule{"served": nil, "barred": nil}, false, "served has to be left out: the controller has no right to list"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &authority{rules: map[string][]authorizationv1.ResourceRule{"served": all, "barred": nil}}
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
