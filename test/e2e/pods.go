package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preStop is how long a pod serves after it has begun to terminate, as with the preStop hook
// that Kubernetes' documentation recommends.
const preStop = 2 * time.Second

// pod is a Service's server, in this process.
type pod struct {
	server *http.Server
	slice  *discoveryv1.EndpointSlice
}

// namespaceAddress belongs to the machine in a network namespace from package netns.
const namespaceAddress = "10.244.255.254"

// listenAsPod listens on an address that an EndpointSlice can contain. Kubernetes accepts no
// loopback address, so the pods of a run share one of the machine's addresses, and each has
// its own port.
func listenAsPod() (net.Listener, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	candidates := []string{namespaceAddress}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			candidates = append(candidates, network.IP.String())
		}
	}
	var errs []error
	for _, candidate := range candidates {
		listener, err := net.Listen("tcp", net.JoinHostPort(candidate, "0"))
		if err == nil {
			return listener, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("find an IPv4 address of this machine for the backends: %w", errors.Join(errs...))
}

// startPod starts a ready pod of the Service. It stops with the bed.
func (b *bed) startPod(ctx context.Context, service string) error {
	listener, err := listenAsPod()
	if err != nil {
		return err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	p := &pod{server: &http.Server{Handler: newBackend(service), Protocols: protocols, ReadHeaderTimeout: time.Minute}}
	go func() { _ = p.server.Serve(listener) }() // until it is closed
	b.servers = append(b.servers, p.server.Close)
	address := listener.Addr().(*net.TCPAddr)
	port := int32(address.Port) // #nosec G115 -- a port
	p.slice = &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.prefix, Name: fmt.Sprintf("%s-%d", service, port), Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address.IP.String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: &port}},
	}
	if err := b.kube.Create(ctx, p.slice); err != nil {
		return fmt.Errorf("create the endpoint of Service %s: %w", service, err)
	}
	b.pods[service] = append(b.pods[service], p)
	return nil
}

// stopPod ends a pod as the kubelet does: its endpoint is terminating until it has ended, and
// the server first completes its requests.
func (b *bed) stopPod(ctx context.Context, service string, p *pod) error {
	patch := client.MergeFrom(p.slice.DeepCopy())
	p.slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	if err := b.kube.Patch(ctx, p.slice, patch); err != nil {
		return fmt.Errorf("terminate a pod of Service %s: %w", service, err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(preStop):
	}
	if err := p.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop a pod of Service %s: %w", service, err)
	}
	b.pods[service] = slices.DeleteFunc(b.pods[service], func(other *pod) bool { return other == p })
	return b.kube.Delete(ctx, p.slice)
}
