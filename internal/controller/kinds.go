package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
)

// inputKinds returns the kinds that the controller watches in all namespaces of its
// scope. Reading a kind that is neither in inputKinds nor in managedKinds from the
// cache is an error.
func inputKinds() []client.Object {
	definitions := &metav1.PartialObjectMetadata{}
	definitions.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return []client.Object{
		&gatewayv1.GatewayClass{}, &gatewayv1.Gateway{}, &gatewayv1.ListenerSet{}, &gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{},
		&gatewayv1beta1.ReferenceGrant{}, &v1alpha1.TunnelConfiguration{}, definitions, secrets.Metadata(types.NamespacedName{}),
		&corev1.Namespace{}, &corev1.Service{}, &discoveryv1.EndpointSlice{},
	}
}

// managedKinds returns the kinds that the controller watches only in its own namespace.
func managedKinds() []client.Object {
	kinds := []client.Object{&v1alpha1.Tunnel{}, &corev1.Pod{}}
	for _, kind := range connector.Kinds() {
		kinds = append(kinds, kind.New())
	}
	return kinds
}

// resource is the API resource of a kind.
type resource struct {
	schema.GroupResource
	namespaced bool
}

// resourceOf returns the API resource of the object's kind.
func resourceOf(object client.Object, scheme *runtime.Scheme, mapper meta.RESTMapper) (resource, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return resource{}, err
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return resource{}, fmt.Errorf("look up the API resource of kind %s: %w", gvk.Kind, err)
	}
	return resource{mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}
