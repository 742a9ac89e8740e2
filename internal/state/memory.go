package state

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory is a client.Reader for objects in memory, with the same indexes as the
// controller's cache. It does not copy the objects that it returns.
type Memory struct {
	stores map[reflect.Type]cache.Indexer
}

// NewMemory returns a reader for the objects. No two objects of a kind may have the
// same namespace and name.
func NewMemory(objects []client.Object, indexes []Index) (*Memory, error) {
	m := &Memory{stores: map[reflect.Type]cache.Indexer{}}
	indexers := map[reflect.Type]cache.Indexers{}
	for _, index := range indexes {
		kind := reflect.TypeOf(index.Object)
		if indexers[kind] == nil {
			indexers[kind] = cache.Indexers{}
		}
		indexers[kind][index.Field] = func(o any) ([]string, error) { return index.Extract(o.(client.Object)), nil }
	}
	for _, object := range objects {
		kind := reflect.TypeOf(object)
		if m.stores[kind] == nil {
			byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
			maps.Copy(byNamespace, indexers[kind])
			m.stores[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
		}
		if err := m.stores[kind].Add(object); err != nil {
			return nil, fmt.Errorf("index %s %s: %w", kind.Elem().Name(), client.ObjectKeyFromObject(object), err)
		}
	}
	return m, nil
}

// Get implements client.Reader.
func (m *Memory) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", object)}, key.String())
	store := m.stores[reflect.TypeOf(object)]
	if store == nil {
		return notFound
	}
	found, ok, err := store.GetByKey(cache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil {
		return fmt.Errorf("look up %s: %w", key, err)
	}
	if !ok {
		return notFound
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// List implements client.Reader. It supports selection by namespace, by labels and by one
// indexed field.
func (m *Memory) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	store := m.stores[itemType(list)]
	if store == nil {
		return meta.SetList(list, nil)
	}
	found, err := candidates(store, &options)
	if err != nil {
		return fmt.Errorf("list %T: %w", list, err)
	}
	objects := make([]runtime.Object, 0, len(found))
	for _, object := range found {
		if matchesOptions(&options, object.(client.Object)) {
			objects = append(objects, object.(runtime.Object))
		}
	}
	return meta.SetList(list, objects)
}

// candidates returns the objects that the narrowest index selects.
func candidates(store cache.Indexer, options *client.ListOptions) ([]any, error) {
	switch {
	case options.FieldSelector != nil:
		field := options.FieldSelector.Requirements()[0]
		return store.ByIndex(field.Field, field.Value)
	case options.Namespace != "":
		return store.ByIndex(cache.NamespaceIndex, options.Namespace)
	default:
		return store.List(), nil
	}
}

// matchesOptions reports whether the object's namespace and labels match the options.
func matchesOptions(options *client.ListOptions, object client.Object) bool {
	return (options.Namespace == "" || options.Namespace == object.GetNamespace()) &&
		(options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(object.GetLabels())))
}

func itemType(list client.ObjectList) reflect.Type {
	items, _ := reflect.TypeOf(list).Elem().FieldByName("Items")
	return reflect.PointerTo(items.Type.Elem())
}
