package controller

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestScope(t *testing.T) {
	token := types.NamespacedName{Namespace: "platform", Name: "cloudflare"}
	for name, test := range map[string]struct {
		namespaces []string
		namespace  string
		kind       string
		want       bool
	}{
		"a namespace of the list":                 {[]string{"a", "b"}, "b", "Service", true},
		"another one":                             {[]string{"a", "b"}, "c", "Service", false},
		"what is in no namespace":                 {[]string{"a"}, "", "Namespace", true},
		"Secrets beside the API token":            {[]string{"a"}, "platform", "Secret", true},
		"other kinds beside the API token":        {[]string{"a"}, "platform", "Service", false},
		"Secrets of another namespace":            {[]string{"a"}, "c", "Secret", false},
		"other kinds, the token's is one of ours": {[]string{"a", "platform"}, "platform", "Service", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newScope(test.namespaces, token).has(test.namespace, test.kind); got != test.want {
				t.Errorf("has(%q, %q) = %v, want %v", test.namespace, test.kind, got, test.want)
			}
		})
	}
	if !newScope(nil, token).all() || newScope([]string{"a"}, token).all() {
		t.Error("only a scope without namespaces has all of them")
	}
}

// Of the API token's namespace nothing but that one Secret is watched.
func TestScopeOfSecrets(t *testing.T) {
	token := types.NamespacedName{Namespace: "platform", Name: "cloudflare"}
	selectors := func(s scope) map[string]string {
		all := map[string]string{}
		for namespace, config := range s.secrets() {
			all[namespace] = ""
			if config.FieldSelector != nil {
				all[namespace] = config.FieldSelector.String()
			}
		}
		return all
	}
	for _, test := range []struct {
		namespaces []string
		want       map[string]string
	}{
		{[]string{"a", "b"}, map[string]string{"a": "", "b": "", "platform": "metadata.name=cloudflare"}},
		{[]string{"a", "platform"}, map[string]string{"a": "", "platform": ""}},
	} {
		if diff := cmp.Diff(test.want, selectors(newScope(test.namespaces, token))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.namespaces, diff)
		}
	}
	if got := slices.Sorted(maps.Keys(selectors(newScope([]string{"a"}, types.NamespacedName{})))); !slices.Equal(got, []string{"a"}) {
		t.Errorf("without a Secret with the API token, Secrets are watched in %v", got)
	}
}

// The cache behind it, which is none here, is not asked: it would refuse.
func TestOtherNamespacesAreEmpty(t *testing.T) {
	c := &scopedCache{scope: newScope([]string{"a"}, types.NamespacedName{})}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "b", Name: "shared"}, &gatewayv1.Gateway{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a Gateway elsewhere: got %v, want that it is not found", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "b", Name: "x"}, secretMetadata(types.NamespacedName{})); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret elsewhere: got %v, want that it is not found", err)
	}
	if err := c.List(t.Context(), &gatewayv1.GatewayList{}, client.InNamespace("b")); err != nil {
		t.Errorf("a list elsewhere: got %v, want none and no error", err)
	}
}
