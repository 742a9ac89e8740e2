package controller

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// hostnameWarnings emits events about the hostnames of ListenerSets and routes, once for
// each object, reason and message.
type hostnameWarnings struct {
	notify notifier

	mu sync.Mutex
	// emitted contains the current warnings, by Gateway.
	emitted map[state.Key]map[gateway.HostnameWarning]bool
}

// emit emits the warnings about one Gateway that are new. The snapshot contains their
// objects.
func (w *hostnameWarnings) emit(key state.Key, s *gateway.Snapshot, warnings []gateway.HostnameWarning) {
	unreported := w.replace(key, warnings)
	if len(unreported) == 0 {
		return
	}
	objects := attachedObjects(s)
	for _, warning := range unreported {
		if object := objects[warning.Object]; object != nil {
			w.notify.emitReport(object, warning.Reason.IsWarning(), warning.Reason.String(), warning.Message)
		}
	}
}

// replace records the warnings about the Gateway and returns the new ones.
func (w *hostnameWarnings) replace(key state.Key, warnings []gateway.HostnameWarning) []gateway.HostnameWarning {
	w.mu.Lock()
	defer w.mu.Unlock()
	current := make(map[gateway.HostnameWarning]bool, len(warnings))
	var unreported []gateway.HostnameWarning
	for _, warning := range warnings {
		current[warning] = true
		if !w.emitted[key][warning] {
			unreported = append(unreported, warning)
		}
	}
	if w.emitted[key] = current; len(current) == 0 {
		delete(w.emitted, key)
	}
	return unreported
}

// attachedObjects returns the ListenerSets and the routes of a Gateway.
func attachedObjects(s *gateway.Snapshot) map[gateway.Owner]client.Object {
	objects := map[gateway.Owner]client.Object{}
	for _, set := range s.ListenerSets {
		objects[gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)}] = set
	}
	for _, route := range s.HTTPRoutes {
		objects[gateway.Owner{Kind: gateway.KindHTTPRoute, NamespacedName: client.ObjectKeyFromObject(route)}] = route
	}
	for _, route := range s.GRPCRoutes {
		objects[gateway.Owner{Kind: gateway.KindGRPCRoute, NamespacedName: client.ObjectKeyFromObject(route)}] = route
	}
	return objects
}
