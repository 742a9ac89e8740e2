package state

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// versionCache caches what was found in each retained object until the object's metadata
// changes.
type versionCache[T any] struct {
	mu sync.Mutex
	// retained maps each key to its objects, if it has any.
	retained map[Key]sets.Set[types.NamespacedName]
	// objects contains the retained objects.
	objects map[types.NamespacedName]*cachedObject[T]
}

// cachedObject contains what was found in an object, and the keys that retain it.
type cachedObject[T any] struct {
	keys sets.Set[Key]
	// version is nil if no version of the object has been read.
	version *cachedVersion[T]
}

// cachedVersion is what was found in one version of an object.
type cachedVersion[T any] struct {
	uid     types.UID
	version string
	found   T
}

// Retain replaces the objects that the key refers to. The cache drops what it found in
// objects that no key refers to.
func (c *versionCache[T]) Retain(key Key, names []types.NamespacedName) {
	current := sets.New(names...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.retained[key].Difference(current) {
		object := c.objects[name]
		if object.keys.Delete(key); object.keys.Len() == 0 {
			delete(c.objects, name)
		}
	}
	if current.Len() == 0 {
		delete(c.retained, key)
		return
	}
	if c.retained == nil {
		c.retained, c.objects = map[Key]sets.Set[types.NamespacedName]{}, map[types.NamespacedName]*cachedObject[T]{}
	}
	c.retained[key] = current
	for name := range current {
		if c.objects[name] == nil {
			c.objects[name] = &cachedObject[T]{keys: sets.Set[Key]{}}
		}
		c.objects[name].keys.Insert(key)
	}
}

// lookup returns what was found if it belongs to the object's current version.
func (c *versionCache[T]) lookup(name types.NamespacedName, metadata *metav1.PartialObjectMetadata) (found T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	object := c.objects[name]
	if object == nil || object.version == nil {
		return found, false
	}
	v := object.version
	return v.found, v.uid == metadata.UID && v.version == metadata.ResourceVersion
}

// store replaces what was found, or deletes it if v is nil.
func (c *versionCache[T]) store(name types.NamespacedName, v *cachedVersion[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if object := c.objects[name]; object != nil {
		object.version = v
	}
}
