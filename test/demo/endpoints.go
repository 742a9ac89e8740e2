package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// endpointAddress is the address in each EndpointSlice. Nothing connects to it: it is
// reserved for documentation, and the API server accepts no loopback address.
const endpointAddress = "192.0.2.1"

// endpoints creates an EndpointSlice for each Service that the backends answer for, so that
// check finds a ready endpoint.
type endpoints struct{ kube client.Client }

func (e endpoints) reconcile(ctx context.Context) error {
	var services corev1.ServiceList
	if err := e.kube.List(ctx, &services); err != nil {
		return err
	}
	var errs []error
	for i := range services.Items {
		slice := newEndpointSlice(&services.Items[i])
		if slice == nil {
			continue
		}
		if err := e.kube.Create(ctx, slice); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) { // the namespace can be terminating
			errs = append(errs, fmt.Errorf("create the EndpointSlice of Service %s: %w", services.Items[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// newEndpointSlice returns the EndpointSlice of a Service, or nil if pods, the API server or
// its user provide its endpoints.
func newEndpointSlice(service *corev1.Service) *discoveryv1.EndpointSlice {
	if service.Namespace == cluster.ControllerNamespace || service.Labels["component"] == "apiserver" || len(service.Spec.Selector) == 0 {
		return nil
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{endpointAddress}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	for _, port := range service.Spec.Ports {
		number := port.Port
		if port.TargetPort.Type == intstr.Int && port.TargetPort.IntVal != 0 {
			number = port.TargetPort.IntVal
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &number, Protocol: &port.Protocol})
	}
	return slice
}
