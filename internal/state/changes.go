package state

import (
	"container/list"
	"maps"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// maxChanges limits the objects that Changes remembers, which takes about 1 MiB. A Gateway
// that was last loaded before the oldest of them is loaded completely.
const maxChanges = 1 << 12

// Changes remembers which objects have changed in a cache, so that [Loader.Reload] reads
// only these. The cache's event handlers record every event before it queues a
// Gateway, even if it affects no Gateway. The zero value is ready for use.
type Changes struct {
	mu sync.Mutex
	// newest is the number of the newest change, and forgotten of the newest change that is
	// not remembered any longer.
	newest, forgotten uint64
	// order has each object's newest change, the oldest first.
	order    list.List
	byObject map[changedObject]*list.Element
}

// changedObject identifies a changed object. Instead of an EndpointSlice, it is the Service of
// the EndpointSlice.
type changedObject struct {
	kind string
	types.NamespacedName
}

type change struct {
	changedObject
	number uint64
}

// kindSlices is the kind in a changedObject for the EndpointSlices of a Service.
const kindSlices = "EndpointSlice"

// Record records that the object was created, changed or deleted. After an update, both the
// old and the new object are recorded.
func (c *Changes) Record(object client.Object) {
	kind := KindOf(object)
	if _, isMetadata := object.(*metav1.PartialObjectMetadata); isMetadata {
		kind = object.GetObjectKind().GroupVersionKind().Kind
	}
	if appliers[kind] == nil {
		return
	}
	name := client.ObjectKeyFromObject(object)
	if kind == kindSlices {
		// Only a Gateway without ServiceImports is reloaded, so that their label is not read.
		if name.Name = object.GetLabels()[discoveryv1.LabelServiceName]; name.Name == "" {
			return
		}
	}
	c.add(changedObject{kind, name})
}

func (c *Changes) add(object changedObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byObject == nil {
		c.byObject = map[changedObject]*list.Element{}
	}
	c.newest++
	if element := c.byObject[object]; element != nil {
		element.Value = change{object, c.newest}
		c.order.MoveToBack(element)
		return
	}
	c.byObject[object] = c.order.PushBack(change{object, c.newest})
	if len(c.byObject) > maxChanges {
		oldest := c.order.Remove(c.order.Front()).(change)
		c.forgotten = oldest.number
		delete(c.byObject, oldest.changedObject)
	}
}

// since returns the objects that have changed after the change with the number, each once,
// and the number of the newest change. It returns false if it has forgotten some of them.
func (c *Changes) since(number uint64) (objects []changedObject, newest uint64, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number < c.forgotten {
		return nil, c.newest, false
	}
	for element := c.order.Back(); element != nil && element.Value.(change).number > number; element = element.Prev() {
		objects = append(objects, element.Value.(change).changedObject)
	}
	return objects, c.newest, true
}

// owner returns the object as a key.
func (o changedObject) owner() gateway.Owner {
	return gateway.Owner{Kind: o.kind, NamespacedName: o.NamespacedName}
}

// isSameVersion reports whether both are the same version of an object in a cache.
func isSameVersion(a, b client.Object) bool {
	return a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() && a.GetUID() == b.GetUID()
}

// hasSameSpec reports whether two versions of an object differ at most in their status
// and in metadata that no decision reads.
func hasSameSpec(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && a.GetGeneration() > 0 &&
		a.GetDeletionTimestamp().IsZero() == b.GetDeletionTimestamp().IsZero() &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}
