package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCache returns what makes the manager's cache. Of the kinds that connectors
// are made of it keeps only what is made for Gateways, and of no object who wrote
// which field: what needs that reads the object itself. Readiness is told what
// cannot be watched.
//
// With a list of namespaces, it watches these alone, and says of all others
// that there is nothing in them: a reference to there ends at something that
// does not exist. Only the Secret with the API token may be elsewhere.
func NewCache(namespaces []string, tokenSecret types.NamespacedName, readiness *Readiness) cache.NewCacheFunc {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		scope := newScope(namespaces, tokenSecret)
		o.DefaultTransform = cache.TransformStripManagedFields()
		o.DefaultWatchErrorHandler = readiness.WatchFailed
		// What is not watched from the start would neither count for readiness nor
		// be asked for when it is found out where the controller can work.
		o.ReaderFailOnMissingInformer = true
		o.ByObject = map[client.Object]cache.ByObject{}
		made := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{managedByLabel: managedBy})}
		for _, object := range ConnectorObjects() {
			o.ByObject[object] = made
		}
		if scope.all() {
			return cache.New(config, o)
		}
		o.DefaultNamespaces = map[string]cache.Config{}
		for namespace := range scope.namespaces {
			o.DefaultNamespaces[namespace] = cache.Config{}
		}
		o.ByObject[&corev1.Secret{}] = cache.ByObject{Namespaces: scope.secrets()}
		found, err := cache.New(config, o)
		return &scopedCache{Cache: found, scope: scope}, err
	}
}

// scope is what is watched: everything without namespaces.
type scope struct {
	namespaces map[string]bool
	// token is the Secret with the API token, where it is in none of them.
	token types.NamespacedName
}

func newScope(namespaces []string, tokenSecret types.NamespacedName) scope {
	s := scope{namespaces: map[string]bool{}}
	for _, namespace := range namespaces {
		s.namespaces[namespace] = true
	}
	if !s.namespaces[tokenSecret.Namespace] {
		s.token = tokenSecret
	}
	return s
}

func (s scope) all() bool { return len(s.namespaces) == 0 }

// secrets says which Secrets are watched where.
func (s scope) secrets() map[string]cache.Config {
	watched := map[string]cache.Config{}
	for namespace := range s.namespaces {
		watched[namespace] = cache.Config{}
	}
	if s.token.Name != "" {
		watched[s.token.Namespace] = cache.Config{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, s.token.Name)}
	}
	return watched
}

// has reports whether what is in the namespace is watched, for a kind; what is
// in no namespace always is.
func (s scope) has(namespace, kind string) bool {
	return namespace == "" || s.namespaces[namespace] || kind == "Secret" && s.token.Name != "" && namespace == s.token.Namespace
}

// scopedCache is a cache of some namespaces, to which all others are empty.
type scopedCache struct {
	cache.Cache
	scope scope
}

// Get implements client.Reader.
func (c *scopedCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	kind := kindOf(into)
	if !c.scope.has(key.Namespace, kind) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	return c.Cache.Get(ctx, key, into, opts...)
}

// List implements client.Reader.
func (c *scopedCache) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	if o.ApplyOptions(opts); !c.scope.has(o.Namespace, "") {
		return nil
	}
	return c.Cache.List(ctx, into, opts...)
}

// kindOf is the kind of metadata; of a typed object its type tells enough.
func kindOf(object client.Object) string {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return fmt.Sprintf("%T", object)
}
