package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// recording returns a filter that records every event before the filter passes it, which may
// be nil. A reconcile that an event causes then finds the event's object in the changes.
func recording(changes *state.Changes, filter predicate.Predicate) predicate.Predicate {
	if changes == nil {
		return filter
	}
	if filter == nil {
		filter = predicate.Funcs{}
	}
	record := func(objects ...client.Object) {
		for _, object := range objects {
			changes.Record(object)
		}
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { record(e.Object); return filter.Create(e) },
		UpdateFunc: func(e event.UpdateEvent) bool { record(e.ObjectOld, e.ObjectNew); return filter.Update(e) },
		DeleteFunc: func(e event.DeleteEvent) bool { record(e.Object); return filter.Delete(e) },
	}
}
