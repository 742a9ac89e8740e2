package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
)

func TestScopeContainsOnlyServedNamespaces(t *testing.T) {
	secret := secrets.Metadata(types.NamespacedName{})
	unrestricted := Scope{ControllerNamespace: controllerNamespace, AllSecrets: true}
	fewSecrets := Scope{ControllerNamespace: controllerNamespace, SecretNamespaces: []string{"a"}}
	listed := Scope{ControllerNamespace: controllerNamespace, Namespaces: []string{"a", "b"}, SecretNamespaces: []string{"a"}}
	listedController := Scope{ControllerNamespace: controllerNamespace, Namespaces: []string{"a", controllerNamespace}}
	for name, test := range map[string]struct {
		scope     Scope
		namespace string
		object    client.Object
		want      bool
	}{
		"all Secrets":                                            {unrestricted, "a", secret, true},
		"all Gateways":                                           {unrestricted, "a", &gatewayv1.Gateway{}, true},
		"Secrets in a readable namespace":                        {fewSecrets, "a", secret, true},
		"Secrets in another namespace":                           {fewSecrets, "b", secret, false},
		"Gateways in a namespace without readable Secrets":       {fewSecrets, "b", &gatewayv1.Gateway{}, true},
		"Secrets in the controller's namespace":                  {fewSecrets, controllerNamespace, secret, true},
		"a listed namespace":                                     {listed, "b", &gatewayv1.Gateway{}, true},
		"Secrets in a listed namespace":                          {listed, "a", secret, true},
		"Secrets in a listed namespace without readable Secrets": {listed, "b", secret, false},
		"another namespace":                                      {listed, "c", &gatewayv1.Gateway{}, false},
		"a cluster-scoped object":                                {listed, "", &gatewayv1.GatewayClass{}, true},
		"TunnelConfigurations in the controller's namespace":     {listed, controllerNamespace, &v1alpha1.TunnelConfiguration{}, true},
		"Tunnels in the controller's namespace":                  {listed, controllerNamespace, &v1alpha1.Tunnel{}, true},
		"Deployments in the controller's namespace":              {listed, controllerNamespace, &appsv1.Deployment{}, true},
		"Gateways in the controller's namespace":                 {listed, controllerNamespace, &gatewayv1.Gateway{}, false},
		"Gateways in the controller's namespace if it is listed": {listedController, controllerNamespace, &gatewayv1.Gateway{}, true},
		"Secrets in a namespace that is not listed":              {listed, "c", secret, false},
		"TunnelConfigurations in a namespace that is not listed": {listed, "c", &v1alpha1.TunnelConfiguration{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.scope.includes(test.namespace, kindOf(test.object)); got != test.want {
				t.Errorf("includes(%q, %q) = %v, want %v", test.namespace, kindOf(test.object), got, test.want)
			}
		})
	}
}

func TestScopeReadsCertificates(t *testing.T) {
	// The controller always reads Secrets in its own namespace, but it checks certificates
	// there only if the namespace is configured.
	scope := Scope{ControllerNamespace: controllerNamespace, SecretNamespaces: []string{"a"}}
	for namespace, want := range map[string]bool{"a": true, "b": false, controllerNamespace: false} {
		if got := scope.ReadsCertificates(namespace); got != want {
			t.Errorf("ReadsCertificates(%q) = %v, want %v", namespace, got, want)
		}
	}
}

func TestCacheHidesObjectsOutsideItsScope(t *testing.T) {
	// A scopedCache does not pass requests for other namespaces to the underlying cache,
	// which would return an error. In this test, the underlying cache is nil.
	c := &scopedCache{scope: Scope{ControllerNamespace: controllerNamespace, Namespaces: []string{"a"}}}
	for _, object := range []client.Object{&gatewayv1.Gateway{}, secrets.Metadata(types.NamespacedName{}), &v1alpha1.TunnelConfiguration{}} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "b", Name: "x"}, object); !apierrors.IsNotFound(err) {
			t.Errorf("Get of a %s outside the scope: got %v, want NotFound", kindOf(object), err)
		}
	}
	if err := c.List(t.Context(), &gatewayv1.GatewayList{}, client.InNamespace("b")); err != nil {
		t.Errorf("List outside the scope: got %v, want no error", err)
	}
}
