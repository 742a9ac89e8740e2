package controller

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// Scope defines the namespaces that the controller watches. The controller always
// watches its own namespace and cluster-scoped objects.
type Scope struct {
	// ControllerNamespace is the controller's own namespace.
	ControllerNamespace string
	// Namespaces are the namespaces in which the controller watches Gateways, routes
	// and the objects that they refer to. An empty list means all namespaces.
	Namespaces []string
	// AllSecrets makes the controller watch Secrets in all namespaces, to validate
	// certificates.
	AllSecrets bool
	// SecretNamespaces are the namespaces in which the controller watches Secrets, in
	// addition to its own, when AllSecrets is false.
	SecretNamespaces []string
}

// ReadsCertificates reports whether the controller validates certificates in the namespace.
func (s Scope) ReadsCertificates(namespace string) bool {
	return s.AllSecrets || slices.Contains(s.SecretNamespaces, namespace)
}

// includes reports whether the controller watches the kind in the namespace. It always
// watches cluster-scoped objects.
func (s Scope) includes(namespace, kind string) bool {
	switch {
	case namespace == "":
		return true
	case kind == "Secret":
		return namespace == s.ControllerNamespace || s.ReadsCertificates(namespace)
	case namespace == s.ControllerNamespace && (kind == kindOf(&v1alpha1.TunnelConfiguration{}) || ownNamespaceKinds[kind]):
		return true
	}
	return len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, namespace)
}

// NewCache returns a constructor for the manager's cache. The cache watches Tunnels and
// connector objects in the controller's own namespace only. It drops managed fields,
// and [compact] reduces the other objects; code that needs the fields reads the object
// from the API server. The cache reports watch errors to readiness.
//
// To a reader, objects outside the scope do not exist.
func NewCache(scope Scope, readiness *Readiness) cache.NewCacheFunc {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		o.DefaultTransform = compact
		o.DefaultWatchErrorHandler = readiness.WatchFailed
		// Readiness covers only the kinds that are watched from the start.
		o.ReaderFailOnMissingInformer = true
		o.ByObject = map[client.Object]cache.ByObject{}
		connectorPods, err := labels.Parse(connector.TunnelLabel)
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds.Select(isOwnNamespaceKind) {
			object, by := kind.New(), watchedIn(scope.ControllerNamespace)
			// The controller updates some of these objects as a whole.
			by.Transform = cache.TransformStripManagedFields()
			if kind.GVK() == kinds.Pod.GVK() {
				by.Label, by.Transform = connectorPods, stripPod
			}
			o.ByObject[object] = by
		}
		if !scope.AllSecrets {
			o.ByObject[&corev1.Secret{}] = watchedIn(scope.ControllerNamespace, scope.SecretNamespaces...)
		}
		if len(scope.Namespaces) > 0 {
			o.DefaultNamespaces = watchedIn(scope.Namespaces[0], scope.Namespaces[1:]...).Namespaces
			o.ByObject[&v1alpha1.TunnelConfiguration{}] = watchedIn(scope.ControllerNamespace, scope.Namespaces...)
		}
		found, err := cache.New(config, o)
		if err != nil {
			return nil, err
		}
		live, err := client.New(config, client.Options{HTTPClient: o.HTTPClient, Scheme: o.Scheme, Mapper: o.Mapper})
		return &scopedCache{Cache: found, scope: scope, confirmer: newConfirmer(live)}, err
	}
}

// stripPod keeps only the phase and the addresses of a connector pod.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		TypeMeta: pod.TypeMeta, Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIPs: pod.Status.PodIPs},
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels},
	}, nil
}

// watchedIn watches a kind in the namespaces only.
func watchedIn(first string, rest ...string) cache.ByObject {
	namespaces := map[string]cache.Config{first: {}}
	for _, namespace := range rest {
		namespaces[namespace] = cache.Config{}
	}
	return cache.ByObject{Namespaces: namespaces}
}

func isOwnNamespaceKind(kind kinds.Kind) bool { return kind.OwnNamespace }

// ownNamespaceKinds are the kinds, in the form of kindOf, that the cache watches only
// in the controller's own namespace.
var ownNamespaceKinds = func() map[string]bool {
	all := map[string]bool{}
	for _, kind := range kinds.Select(isOwnNamespaceKind) {
		all[kindOf(kind.New())] = true
	}
	return all
}()

// scopedCache is a cache that reports objects outside its scope as not found, and others
// after a confirmation.
type scopedCache struct {
	cache.Cache
	scope     Scope
	confirmer *confirmer
}

// Get implements client.Reader.
func (c *scopedCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	kind := kindOf(object)
	if !c.scope.includes(key.Namespace, kind) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	err := c.Cache.Get(ctx, key, object, opts...)
	if isConfirmed(object) {
		return c.confirmer.confirm(ctx, key, object, err)
	}
	return err
}

// List implements client.Reader.
func (c *scopedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	if o.ApplyOptions(opts); !c.scope.includes(o.Namespace, listedKind(list)) {
		return nil
	}
	return c.Cache.List(ctx, list, opts...)
}

// listedKind returns the kind of the items of a list, in the form of kindOf.
func listedKind(list client.ObjectList) string {
	if kind := list.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return strings.TrimSuffix(kind, "List")
	}
	return strings.TrimSuffix(fmt.Sprintf("%T", list), "List")
}

// typeName returns the name of the object's Go type, which is the kind of a typed object.
func typeName(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }

// kindOf returns the kind of a metadata object and the Go type of a typed object.
func kindOf(object client.Object) string {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return fmt.Sprintf("%T", object)
}
