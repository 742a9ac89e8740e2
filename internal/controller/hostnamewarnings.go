package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// emitHostnameWarnings emits the new warnings about hostnames on ListenerSets and
// routes, once for each object, reason and message. It returns the current ones. The
// snapshot contains their objects.
func (n notifier) emitHostnameWarnings(s *gateway.Snapshot, last map[gateway.HostnameWarning]bool, warnings []gateway.HostnameWarning) map[gateway.HostnameWarning]bool {
	if len(warnings) == 0 {
		return nil
	}
	current, objects := make(map[gateway.HostnameWarning]bool, len(warnings)), attachedObjects(s)
	for _, warning := range warnings {
		current[warning] = true
		if object := objects[warning.Object]; object != nil && !last[warning] {
			n.emitReport(object, warning.Reason.IsWarning(), warning.Reason.String(), warning.Message)
		}
	}
	return current
}

// attachedObjects returns a Gateway's ListenerSets and routes.
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
