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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endpoint is an address and port that a Service stands for.
type endpoint struct {
	ip   netip.Addr
	port int32
}

func (n *Node) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, net.UnknownNetworkError(network)
	}
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	to := endpoint{port: int32(port)}
	if to.ip, err = netip.ParseAddr(host); err != nil {
		if to, err = n.resolve(ctx, host, to.port); err != nil {
			return nil, err
		}
	}
	return n.network.dial(ctx, network, to.ip, to.port)
}

// resolve picks the endpoint whose turn it is of the Service of that DNS name.
// What it reads is what the API server has now.
func (n *Node) resolve(ctx context.Context, host string, port int32) (endpoint, error) {
	key, err := serviceKey(host)
	if err != nil {
		return endpoint{}, err
	}
	service := &corev1.Service{}
	if err := n.kube.Get(ctx, key, service); apierrors.IsNotFound(err) {
		return endpoint{}, fmt.Errorf("there is no Service %s", key)
	} else if err != nil {
		return endpoint{}, fmt.Errorf("reading Service %s: %w", key, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return endpoint{}, fmt.Errorf("the Service %s is an ExternalName, which has no endpoints", key)
	}
	var slices discoveryv1.EndpointSliceList
	err = n.kube.List(ctx, &slices, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name})
	if err != nil {
		return endpoint{}, fmt.Errorf("reading the EndpointSlices of Service %s: %w", key, err)
	}
	ready, err := endpoints(service, slices.Items, port)
	if err != nil {
		return endpoint{}, err
	}
	if len(ready) == 0 {
		return endpoint{}, fmt.Errorf("the Service %s has no ready endpoint for port %d", key, port)
	}
	return ready[n.network.nextIndex(host)%len(ready)], nil
}

// serviceKey splits "<service>.<namespace>.svc", with or without the domain of
// the cluster.
func serviceKey(host string) (client.ObjectKey, error) {
	name, _ := strings.CutSuffix(strings.TrimSuffix(host, "."), ".cluster.local")
	parts := strings.Split(name, ".")
	if len(parts) != 3 || parts[2] != "svc" {
		return client.ObjectKey{}, fmt.Errorf("%q is neither an address nor <service>.<namespace>.svc.cluster.local", host)
	}
	return client.ObjectKey{Namespace: parts[1], Name: parts[0]}, nil
}

// endpoints returns the ready ones behind a port of the service, in order.
func endpoints(service *corev1.Service, all []discoveryv1.EndpointSlice, port int32) ([]endpoint, error) {
	headless := service.Spec.ClusterIP == corev1.ClusterIPNone
	name, found := portName(service, port)
	if !headless && !found {
		return nil, fmt.Errorf("the Service %s/%s has no TCP port %d", service.Namespace, service.Name, port)
	}
	var ready []endpoint
	for _, slice := range all {
		target := port // as with DNS, which knows no ports
		if !headless {
			if target, found = slicePort(slice.Ports, name); !found {
				continue
			}
		}
		for _, ip := range readyAddresses(slice) {
			ready = append(ready, endpoint{ip, target})
		}
	}
	slices.SortFunc(ready, func(a, b endpoint) int {
		return cmp.Or(a.ip.Compare(b.ip), cmp.Compare(a.port, b.port))
	})
	return slices.Compact(ready), nil
}

// portName returns the name, perhaps empty, of the service's TCP port.
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

// readyAddresses leaves out the further addresses of an endpoint, as kube-proxy
// does, and names. An endpoint that does not say whether it is ready is.
func readyAddresses(slice discoveryv1.EndpointSlice) []netip.Addr {
	var ready []netip.Addr
	for _, e := range slice.Endpoints {
		if !ptr.Deref(e.Conditions.Ready, true) || len(e.Addresses) == 0 {
			continue
		}
		if ip, err := netip.ParseAddr(e.Addresses[0]); err == nil {
			ready = append(ready, ip)
		}
	}
	return ready
}
