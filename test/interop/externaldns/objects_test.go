package externaldns

import (
	"fmt"
	"strings"
)

// header begins a manifest of the Gateway API.
func header(kind, name string) string {
	namespace, name, _ := strings.Cut(name, "/")
	return fmt.Sprintf("\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", kind, name, namespace)
}

// gateway returns a Gateway with the given listeners, which all ListenerSets
// may join.
func gateway(name string, listeners ...string) string {
	return header("Gateway", name) + fmt.Sprintf(
		"spec: {gatewayClassName: cloudflare-tunnel, allowedListeners: {namespaces: {from: All}}, listeners: [%s]}",
		strings.Join(listeners, ", "))
}

// listenerSet returns a set of the Gateway "shared" with the given listeners.
func listenerSet(name string, listeners ...string) string {
	return header("ListenerSet", name) + fmt.Sprintf(
		"spec: {parentRef: {name: shared, namespace: PLATFORM}, listeners: [%s]}", strings.Join(listeners, ", "))
}

// listener returns a listener on port 80; more adds fields to it.
func listener(name, hostname string, more ...string) string {
	fields := append([]string{"name: " + name, "port: 80", "protocol: HTTP", fmt.Sprintf("hostname: %q", hostname)}, more...)
	return "{" + strings.Join(fields, ", ") + "}"
}

// openToAll lets routes of every namespace attach to a listener.
const openToAll = "allowedRoutes: {namespaces: {from: All}}"

// The parents of routes.
const (
	sharedGateway = "{name: shared, namespace: PLATFORM}"
	teamSet       = "{kind: ListenerSet, name: set, namespace: TEAM}"
)

// route returns an HTTPRoute of everything to the Service "web".
func route(name, parents string, hostnames ...string) string {
	return header("HTTPRoute", name) + fmt.Sprintf(
		"spec: {parentRefs: [%s], hostnames: [%s], rules: [{backendRefs: [{name: web, port: 80}]}]}",
		parents, quoted(hostnames))
}

// grpcRoute returns a GRPCRoute of everything to the Service "web" by TLS.
func grpcRoute(name, parents string, hostnames ...string) string {
	return header("GRPCRoute", name) + fmt.Sprintf(
		"spec: {parentRefs: [%s], hostnames: [%s], rules: [{backendRefs: [{name: web, port: 443}]}]}",
		parents, quoted(hostnames))
}

func quoted(hostnames []string) string {
	all := make([]string, len(hostnames))
	for i, h := range hostnames {
		all[i] = fmt.Sprintf("%q", h)
	}
	return strings.Join(all, ", ")
}
