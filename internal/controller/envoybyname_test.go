package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// byName returns the addresses published last for the clusters of Envoys without routes,
// or "-", by Service.
func (h *harness) byName(service string) map[string]string {
	h.t.Helper()
	f := followed{gateway: h.key.NamespacedName}
	if service != "" {
		f.source = serviceSource("infra", service)
	}
	if err := h.envoys.publishByName(h.t.Context(), f); err != nil {
		h.t.Fatal(err)
	}
	if len(h.xds.byName) == 0 {
		return nil
	}
	found := map[string]string{}
	for name, a := range h.xds.byName[len(h.xds.byName)-1] {
		var ips []string
		for _, locality := range a.GetEndpoints() {
			for _, e := range locality.GetLbEndpoints() {
				ips = append(ips, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
		}
		if len(ips) == 0 {
			ips = []string{"-"}
		}
		found[strings.Split(name, ".")[2]] = strings.Join(ips, " ")
	}
	h.xds.byName = nil
	return found
}

// A cluster gets the endpoints of the Service in its name, within the limit and without
// connectors, and none if the Service or its port does not exist.
func TestEndpointsByName(t *testing.T) {
	h := newAssignmentHarness(t)
	const hash = ".0123456789abcdef"
	h.xds.subscriptions = []string{"s.infra.web.80" + hash, "s.infra.other.81" + hash, "s.infra.gone.80" + hash, "i.infra.import.80" + hash}
	if diff := cmp.Diff(map[string]string{"web": "10.244.0.1", "other": "-", "gone": "-", "import": "-"}, h.byName("")); diff != "" {
		t.Errorf("the endpoints differ (-want +got):\n%s", diff)
	}

	h.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.envoys.namespace, Name: "connector", Labels: map[string]string{connector.TunnelLabel: "t"}},
		Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.244.0.9"}}},
	})
	slice := &discoveryv1.EndpointSlice{}
	h.change("infra", "web", slice, func() {
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.9"}}, {Addresses: []string{"10.244.0.2"}}, {Addresses: []string{"10.244.0.3"}}, {Addresses: []string{"10.244.0.4"}}}
	})
	if diff := cmp.Diff(map[string]string{"web": "10.244.0.2 10.244.0.3"}, h.byName("web")); diff != "" { // the fake's limit is 2
		t.Errorf("the endpoints differ (-want +got):\n%s", diff)
	}

	service := &corev1.Service{}
	h.change("infra", "web", service, func() { service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com" })
	if diff := cmp.Diff(map[string]string{"web": "-"}, h.byName("web")); diff != "" {
		t.Errorf("the endpoints differ (-want +got):\n%s", diff)
	}
	h.xds.subscriptions = nil
	if got := h.byName(""); got != nil {
		t.Errorf("published %v without a subscription", got)
	}
}

// Changes of Services, EndpointSlices and connectors reach the clusters by their names.
func TestEventsReachClustersByName(t *testing.T) {
	h := newEnvoyHarness(t)
	h.xds.subscriptions = []string{"s.infra.named.80.0123456789abcdef"}
	named := serviceSource("infra", "named")
	meta := metav1.ObjectMeta{Namespace: "infra", Name: "named", Labels: map[string]string{discoveryv1.LabelServiceName: "named"}}
	for name, test := range map[string]struct {
		got  []followed
		want envoy.EndpointSource
	}{
		"Service":       {h.envoys.fromService(context.Background(), &corev1.Service{ObjectMeta: meta}), named},
		"EndpointSlice": {h.envoys.fromEndpointSlice(context.Background(), &discoveryv1.EndpointSlice{ObjectMeta: meta}), named},
		"Pod":           {slices.Compact(h.envoys.fromConnectorPod(context.Background(), &corev1.Pod{})), envoy.EndpointSource{}},
	} {
		if len(test.got) != 1 || test.got[0] != (followed{h.key.NamespacedName, test.want}) {
			t.Errorf("%s: got %v", name, test.got)
		}
	}
	if got := h.envoys.fromService(context.Background(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web"}}); len(got) > 0 {
		t.Errorf("a Service without a cluster wakes %v", got)
	}
}

// A cluster for a ServiceImport gets the endpoints from all source clusters.
func TestEndpointsByNameOfAServiceImport(t *testing.T) {
	h := newAssignmentHarness(t)
	h.xds.subscriptions = []string{"i.infra.web.80.0123456789abcdef"}
	h.create(&multicluster.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web"},
		Spec:       multicluster.ServiceImportSpec{Type: multicluster.TypeHeadless, Ports: []multicluster.ServicePort{{Name: "http", Port: 80}}},
	})
	for cluster, ip := range map[string]string{"east": "10.245.0.1", "west": "10.246.0.1"} {
		h.create(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "infra", Name: cluster, Labels: map[string]string{multicluster.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080)}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip}}},
		})
	}
	if diff := cmp.Diff(map[string]string{"web": "10.245.0.1 10.246.0.1"}, h.byName("")); diff != "" {
		t.Errorf("the endpoints differ (-want +got):\n%s", diff)
	}
}

// A ServiceImport that cannot be read does not keep the endpoints from Services.
func TestEndpointsByNameWithoutServiceImports(t *testing.T) {
	h := newAssignmentHarness(t)
	h.adapt = func(d *dependencies, _ *Options) { d.imports = &serviceImports{} }
	h.restart()
	h.xds.subscriptions = []string{"i.infra.import.80.0123456789abcdef", "s.infra.web.80.0123456789abcdef"}
	err := h.envoys.publishByName(t.Context(), followed{gateway: h.key.NamespacedName})
	if !errors.Is(err, errUnknownVersion) {
		t.Errorf("got the error %v, want %v", err, errUnknownVersion)
	}
	if len(h.xds.byName) != 1 || endpointsIn(h.xds.byName[0]) != "web=10.244.0.1" {
		t.Errorf("published %v, want web=10.244.0.1", h.xds.byName)
	}
}

// Any number of clusters can be for one Service or ServiceImport, which can be large.
func TestEndpointsByNameReadEachObjectOnce(t *testing.T) {
	h := newAssignmentHarness(t)
	reads := 0
	h.envoys.reader = countingReader{h.kube, &reads}
	for _, port := range []string{"80", "81", "82", "83"} {
		h.xds.subscriptions = append(h.xds.subscriptions, "s.infra.web."+port+".0123456789abcdef", "i.infra.web."+port+".0123456789abcdef")
	}
	if h.byName(""); reads != 2 {
		t.Errorf("there were %d reads, want one for the Service and one for the ServiceImport", reads)
	}
}
