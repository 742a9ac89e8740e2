package node

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endpoint is an address and a port to which a Service sends connections.
type endpoint struct {
	ip   netip.Addr
	port int32
}

func (n *Node) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, net.UnknownNetworkError(network)
	}
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	target := endpoint{port: port}
	if target.ip, err = netip.ParseAddr(host); err != nil {
		if target, err = n.resolve(ctx, host, target.port); err != nil {
			return nil, err
		}
	}
	return n.network.dial(ctx, network, target.ip, target.port)
}

// splitAddress returns the host and port in an address.
func splitAddress(address string) (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.ParseUint(text, 10, 16)
	return host, int32(number), err
}

// resolve returns an endpoint for the Service with that DNS name, and selects the
// endpoints in turn.
func (n *Node) resolve(ctx context.Context, host string, port int32) (endpoint, error) {
	key, err := serviceKey(host)
	if err != nil {
		return endpoint{}, err
	}
	service, slices, err := n.services.read(ctx, n.kube, key)
	if err != nil {
		return endpoint{}, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return endpoint{}, fmt.Errorf("the Service %s has type ExternalName and no endpoints", key)
	}
	ready, err := endpoints(service, slices, port)
	if err != nil {
		return endpoint{}, err
	}
	if len(ready) == 0 {
		return endpoint{}, fmt.Errorf("the Service %s has no ready endpoint for port %d", key, port)
	}
	return ready[n.network.nextIndex(host)%len(ready)], nil
}

// serviceKey parses "<service>.<namespace>.svc", with or without the cluster domain.
func serviceKey(host string) (client.ObjectKey, error) {
	name, _ := strings.CutSuffix(strings.TrimSuffix(host, "."), ".cluster.local")
	parts := strings.Split(name, ".")
	if len(parts) != 3 || parts[2] != "svc" {
		return client.ObjectKey{}, fmt.Errorf("%q is neither an IP address nor <service>.<namespace>.svc.cluster.local", host)
	}
	return client.ObjectKey{Namespace: parts[1], Name: parts[0]}, nil
}

// endpoints returns the endpoints that receive connections for a Service port, sorted. If
// no endpoint is ready and the Service has an address, terminating endpoints that still
// serve receive connections, as Kubernetes documents under "Traffic load balancing during
// termination" on its page about virtual IPs.
func endpoints(service *corev1.Service, all []discoveryv1.EndpointSlice, port int32) ([]endpoint, error) {
	headless := service.Spec.ClusterIP == corev1.ClusterIPNone
	name, found := portName(service, port)
	if !headless && !found {
		return nil, fmt.Errorf("the Service %s/%s has no TCP port %d", service.Namespace, service.Name, port)
	}
	var ready, terminating []endpoint
	for _, slice := range all {
		target := port // DNS returns no ports, so a headless Service does not map them
		if !headless {
			if target, found = slicePort(slice.Ports, name); !found {
				continue
			}
		}
		ready = appendEndpoints(ready, slice, target, isReady)
		terminating = appendEndpoints(terminating, slice, target, isServingAndTerminating)
	}
	if len(ready) == 0 && !headless {
		ready = terminating
	}
	slices.SortFunc(ready, func(a, b endpoint) int {
		return cmp.Or(a.ip.Compare(b.ip), cmp.Compare(a.port, b.port))
	})
	return slices.Compact(ready), nil
}

// portName returns the name of the Service's TCP port, which may be empty, and whether
// the port exists.
func portName(service *corev1.Service, port int32) (string, bool) {
	for _, p := range service.Spec.Ports {
		if p.Port == port && isTCP(p.Protocol) {
			return p.Name, true
		}
	}
	return "", false
}

func slicePort(ports []discoveryv1.EndpointPort, name string) (int32, bool) {
	for _, p := range ports {
		if ptr.Deref(p.Name, "") == name && isTCP(ptr.Deref(p.Protocol, "")) && p.Port != nil {
			return *p.Port, true
		}
	}
	return 0, false
}

func isTCP(protocol corev1.Protocol) bool { return protocol == "" || protocol == corev1.ProtocolTCP }

// appendEndpoints adds the matching endpoints in the slice, with their first addresses.
// As kube-proxy does, it ignores an endpoint's further addresses. It ignores addresses
// that are not IP addresses.
func appendEndpoints(found []endpoint, slice discoveryv1.EndpointSlice, port int32, matches func(discoveryv1.EndpointConditions) bool) []endpoint {
	for _, e := range slice.Endpoints {
		if !matches(e.Conditions) || len(e.Addresses) == 0 {
			continue
		}
		if ip, err := netip.ParseAddr(e.Addresses[0]); err == nil {
			found = append(found, endpoint{ip, port})
		}
	}
	return found
}

// isReady treats an endpoint without the condition as ready, as the API specifies.
func isReady(c discoveryv1.EndpointConditions) bool { return ptr.Deref(c.Ready, true) }

func isServingAndTerminating(c discoveryv1.EndpointConditions) bool {
	return ptr.Deref(c.Serving, true) && ptr.Deref(c.Terminating, false)
}
