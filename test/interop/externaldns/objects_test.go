package externaldns

import (
	"fmt"
	"strings"
)

// header returns the beginning of a manifest for a Gateway API kind.
func header(kind, name string) string {
	namespace, name, _ := strings.Cut(name, "/")
	return fmt.Sprintf("\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", kind, name, namespace)
}

// gateway returns a Gateway with the listeners. All namespaces may attach
// ListenerSets to it.
func gateway(name string, listeners ...string) string {
	return header("Gateway", name) + fmt.Sprintf(
		"spec: {gatewayClassName: cloudflare-tunnel, allowedListeners: {namespaces: {from: All}}, listeners: [%s]}",
		strings.Join(listeners, ", "))
}

// listenerSet returns a ListenerSet with the listeners that attaches to the Gateway
// "shared".
func listenerSet(name string, listeners ...string) string {
	return header("ListenerSet", name) + fmt.Sprintf(
		"spec: {parentRef: {name: shared, namespace: PLATFORM}, listeners: [%s]}", strings.Join(listeners, ", "))
}

// listener returns a listener on port 80 with additional fields.
func listener(name, hostname string, extra ...string) string {
	fields := append([]string{"name: " + name, "port: 80", "protocol: HTTP", fmt.Sprintf("hostname: %q", hostname)}, extra...)
	return "{" + strings.Join(fields, ", ") + "}"
}

// allNamespaces allows routes in all namespaces to attach to a listener.
const allNamespaces = "allowedRoutes: {namespaces: {from: All}}"

// Route parents.
const (
	sharedGateway = "{name: shared, namespace: PLATFORM}"
	teamSet       = "{kind: ListenerSet, name: set, namespace: TEAM}"
)

// route returns an HTTPRoute that sends all requests to the Service "web".
func route(name, parents string, hostnames ...string) string {
	return header("HTTPRoute", name) + fmt.Sprintf(
		"spec: {parentRefs: [%s], hostnames: [%s], rules: [{backendRefs: [{name: web, port: 80}]}]}",
		parents, quoteAll(hostnames))
}

// grpcRoute returns a GRPCRoute that sends all requests to the Service "web" over TLS.
func grpcRoute(name, parents string, hostnames ...string) string {
	return header("GRPCRoute", name) + fmt.Sprintf(
		"spec: {parentRefs: [%s], hostnames: [%s], rules: [{backendRefs: [{name: web, port: 443}]}]}",
		parents, quoteAll(hostnames))
}

func quoteAll(hostnames []string) string {
	all := make([]string, len(hostnames))
	for i, h := range hostnames {
		all[i] = fmt.Sprintf("%q", h)
	}
	return strings.Join(all, ", ")
}
