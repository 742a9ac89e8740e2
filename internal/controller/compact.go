package controller

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// compact reduces the memory that a cached object needs. It drops the metadata that no
// decision reads, whose size the API server does not limit well: an object can have
// thousands of labels. It drops nothing from statuses, because a status write replaces
// the whole status, even other controllers' entries. It stores equal parts of one
// object once instead; nothing changes objects in the cache.
func compact(object any) (any, error) {
	o, ok := object.(client.Object)
	if !ok {
		return object, nil // for example a tombstone
	}
	dropMetadata(o)
	s := sharing{texts: map[string]string{}, pointers: map[any]any{}}
	switch o := object.(type) {
	case *unstructured.Unstructured: // a ServiceImport
		delete(o.Object, "status")
	case *gatewayv1.Gateway:
		shareListeners(&s, o.Spec.Listeners, o.Status.Listeners)
	case *gatewayv1.ListenerSet:
		shareListeners(&s, o.Spec.Listeners, o.Status.Listeners)
	}
	if spec, status, isRoute := gateway.CommonRoute(o); isRoute {
		s.shareParents(spec, status)
	}
	return object, nil
}

// dropMetadata drops the metadata that nothing reads. Nothing writes the object as a
// whole: a status write changes no metadata.
func dropMetadata(o client.Object) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	labels := map[string]string(nil)
	switch o.(type) {
	case *gatewayv1.GatewayClass, *gatewayv1.Gateway, *v1alpha1.TunnelConfiguration, *corev1.Namespace:
		return // users who create these kinds are trusted, and their labels and annotations count
	case *metav1.PartialObjectMetadata:
		if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "Secret" && kind != "ConfigMap" {
			return
		}
	case *discoveryv1.EndpointSlice:
		labels = map[string]string{}
		for _, name := range []string{discoveryv1.LabelServiceName, multicluster.LabelServiceName} {
			if value, ok := o.GetLabels()[name]; ok {
				labels[name] = value
			}
		}
	}
	o.SetLabels(labels)
	o.SetAnnotations(nil)
	if service, ok := o.(*corev1.Service); ok {
		service.Annotations = gateway.TrafficAnnotations(annotations)
	}
	o.SetFinalizers(nil)
	var owners []metav1.OwnerReference
	if owner := metav1.GetControllerOf(o); owner != nil {
		owners = []metav1.OwnerReference{*owner} // a Tunnel owns some Secrets
	}
	o.SetOwnerReferences(owners)
}

// sharing contains the parts of one object that have occurred so far.
type sharing struct {
	texts      map[string]string
	pointers   map[any]any // by value
	conditions [][]metav1.Condition
	allowed    []*gatewayv1.AllowedRoutes
}

func (s *sharing) shareParents(spec *gatewayv1.CommonRouteSpec, status *gatewayv1.RouteStatus) {
	spec.ParentRefs = exactly(spec.ParentRefs)
	for i := range spec.ParentRefs {
		s.shareParentRef(&spec.ParentRefs[i])
	}
	status.Parents = exactly(status.Parents)
	for i := range status.Parents {
		parent := &status.Parents[i]
		s.shareParentRef(&parent.ParentRef)
		shareText(s, &parent.ControllerName)
		parent.Conditions = s.shareConditions(parent.Conditions)
	}
}

func (s *sharing) shareParentRef(ref *gatewayv1.ParentReference) {
	shareText(s, &ref.Name)
	sharePointer(s, &ref.Group)
	sharePointer(s, &ref.Kind)
	sharePointer(s, &ref.Namespace)
	sharePointer(s, &ref.SectionName)
	sharePointer(s, &ref.Port)
}

// shareListeners shares the parts of listeners, and of their statuses, on a Gateway or
// ListenerSet.
func shareListeners[L gatewayv1.Listener | gatewayv1.ListenerEntry, S gatewayv1.ListenerStatus | gatewayv1.ListenerEntryStatus](s *sharing, specs []L, statuses []S) {
	for i := range specs {
		l := gatewayv1.Listener(specs[i])
		shareText(s, &l.Protocol)
		l.AllowedRoutes = s.shareAllowedRoutes(l.AllowedRoutes)
		specs[i] = L(l)
	}
	var kinds []gatewayv1.RouteGroupKind
	for i := range statuses {
		status := gatewayv1.ListenerStatus(statuses[i])
		if shareText(s, &status.Name); reflect.DeepEqual(kinds, status.SupportedKinds) {
			status.SupportedKinds = kinds
		}
		kinds = status.SupportedKinds
		status.Conditions = s.shareConditions(status.Conditions)
		statuses[i] = S(status)
	}
}

// maxCompared limits the values with which a value is compared.
const maxCompared = 8

func (s *sharing) shareAllowedRoutes(allowed *gatewayv1.AllowedRoutes) *gatewayv1.AllowedRoutes {
	for _, other := range s.allowed {
		if reflect.DeepEqual(other, allowed) {
			return other
		}
	}
	if len(s.allowed) < maxCompared {
		s.allowed = append(s.allowed, allowed)
	}
	return allowed
}

func (s *sharing) shareConditions(conditions []metav1.Condition) []metav1.Condition {
	for _, other := range s.conditions {
		if slices.Equal(other, conditions) {
			return other
		}
	}
	conditions = exactly(conditions)
	for i := range conditions {
		c := &conditions[i]
		shareText(s, &c.Type)
		shareText(s, &c.Status)
		shareText(s, &c.Reason)
		shareText(s, &c.Message)
	}
	if len(s.conditions) < maxCompared {
		s.conditions = append(s.conditions, conditions)
	}
	return conditions
}

func shareText[T ~string](s *sharing, text *T) {
	shared, ok := s.texts[string(*text)]
	if !ok {
		s.texts[string(*text)] = string(*text)
		return
	}
	*text = T(shared)
}

func sharePointer[T comparable](s *sharing, pointer **T) {
	if *pointer == nil {
		return
	}
	shared, ok := s.pointers[**pointer]
	if !ok {
		s.pointers[**pointer] = *pointer
		return
	}
	*pointer = shared.(*T)
}

// exactly returns the list without unused capacity.
func exactly[T any](list []T) []T {
	if len(list) == cap(list) {
		return list
	}
	return append(make([]T, 0, len(list)), list...)
}
