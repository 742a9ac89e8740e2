package faults

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

const (
	// largeSize is in bytes. etcd stores objects of at most 1.5 MiB.
	largeSize = 1_400_000
	// largeLabel is the domain of the labels that make objects large.
	largeLabel = "large.example.com"
)

// growObjects makes an object of every kind that the controller reads nearly as large as etcd
// permits, while others change. The visitors depend on most of the objects.
func growObjects(w *world) {
	others := w.createOtherKinds()
	objects := w.objectsOfEveryKind()
	for _, object := range objects {
		w.label(object, largeLabels())
	}
	w.follow()
	w.churn()
	w.settle()
	for _, object := range objects {
		w.label(object, nil)
	}
	w.delete(others...)
}

// largeLabels returns labels that take largeSize bytes, half of it as the names of managed fields.
func largeLabels() map[string]any {
	labels := map[string]any{}
	prefix := strings.Repeat("large.", 30) + largeLabel
	for size := 0; size < largeSize; {
		key := fmt.Sprintf("%s/%s-%05d", prefix, strings.Repeat("k", 57), len(labels))
		labels[key] = strings.Repeat("v", 63)
		size += 2*len(key) + 63 + 20
	}
	return labels
}

// label sets the large labels of an object, and removes them if labels is nil.
func (w *world) label(object *metav1.PartialObjectMetadata, labels map[string]any) {
	w.Helper()
	w.eventually("label "+object.Kind+" "+object.Name, func() string {
		if err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return text(client.IgnoreNotFound(err)) // a Pod may have been replaced
		}
		change := labels
		if labels == nil {
			change = map[string]any{}
			for key := range object.Labels {
				if strings.Contains(key, largeLabel) {
					change[key] = nil
				}
			}
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": change}})
		if err != nil {
			return err.Error()
		}
		return text(w.kube.Patch(w.Context(), object, client.RawPatch("application/merge-patch+json", patch)))
	})
}

// createOtherKinds creates objects of the kinds that no visitor depends on, and returns them.
func (w *world) createOtherKinds() []client.Object {
	w.Helper()
	grpc := &gatewayv1.GRPCRoute{ObjectMeta: in("infra", "other"), Spec: gatewayv1.GRPCRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{sectionOf("envoy", "probe")}},
		Rules: []gatewayv1.GRPCRouteRule{{
			Matches:     []gatewayv1.GRPCRouteMatch{{Method: &gatewayv1.GRPCMethodMatch{Service: ptr.To("other.Service")}}},
			BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: ptr.To[int32](80)}}}},
		}},
	}}
	others := []client.Object{
		grpc,
		&corev1.ConfigMap{ObjectMeta: in("infra", "other")},
		&gatewayv1beta1.ReferenceGrant{ObjectMeta: in("infra", "other"), Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "HTTPRoute", Namespace: "team"}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service"}},
		}},
		&gatewayv1.BackendTLSPolicy{ObjectMeta: in("infra", "other"), Spec: gatewayv1.BackendTLSPolicySpec{
			TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: "other"},
			}},
			Validation: gatewayv1.BackendTLSPolicyValidation{Hostname: "other.example.com", WellKnownCACertificates: ptr.To(gatewayv1.WellKnownCACertificatesSystem)},
		}},
	}
	w.create(others...)
	return others
}

// missingKinds are the kinds without an object here: the cluster has no ServiceImports, no setting
// asks for an autoscaler, and a single connector has no PodDisruptionBudget.
var missingKinds = map[string]bool{"ServiceImport": true, "HorizontalPodAutoscaler": true, "PodDisruptionBudget": true}

// objectsOfEveryKind returns an object of each kind that the controller reads.
func (w *world) objectsOfEveryKind() (found []*metav1.PartialObjectMetadata) {
	w.Helper()
	for _, kind := range kinds.All() {
		gvk := kind.GVK()
		if missingKinds[gvk.Kind] {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		gvk.Kind += "List"
		list.SetGroupVersionKind(gvk)
		w.must(w.kube.List(w.Context(), list))
		if object := firstOf(list.Items); object != nil {
			object.SetGroupVersionKind(kind.GVK())
			found = append(found, object)
		} else {
			w.Errorf("there is no object of the kind %s", kind.GVK().Kind)
		}
	}
	return found
}

// firstOf returns the first object that belongs to the suite.
func firstOf(objects []metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	suite := map[string]bool{"": true, "infra": true, "team": true, cluster.ControllerNamespace: true}
	for i := range objects {
		o := &objects[i]
		isOther := o.Namespace == "" && o.Kind == "Namespace" && !suite[o.Name]
		if suite[o.Namespace] && !isOther && o.Name != "kube-root-ca.crt" && o.Name != "default" {
			return o
		}
	}
	return nil
}
