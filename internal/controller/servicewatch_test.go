package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// sliceOfWeb returns an EndpointSlice for the Service web.
func sliceOfWeb(namespace string, addresses ...string) *discoveryv1.EndpointSlice {
	s := withName(namespace, "web-1", &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080))}}})
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	for _, ip := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip}})
	}
	return s
}

func connectorPod(phase corev1.PodPhase, ip string) *corev1.Pod {
	return withName(controllerNamespace, "connector", &corev1.Pod{Status: corev1.PodStatus{Phase: phase, PodIPs: []corev1.PodIP{{IP: ip}}}})
}

// Every Gateway that names a Service is built when the verdict on an EndpointSlice changes,
// and not when only endpoints change.
func TestEndpointsThatWakeGateways(t *testing.T) {
	reader := watchedCluster(t)
	for _, object := range []client.Object{withName("team", "web", &corev1.Service{}), connectorPod(corev1.PodRunning, "10.244.0.9")} {
		if err := reader.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w := watches{reader: reader, controllerName: controllerName, namespace: controllerNamespace}
	pods, more := sliceOfWeb("team", "10.0.0.1"), sliceOfWeb("team", "10.0.0.1", "10.0.0.2")
	loopback, connector := sliceOfWeb("team", "10.0.0.1", "127.0.0.1"), sliceOfWeb("team", "::ffff:10.244.0.9")
	unready, moved, ports := loopback.DeepCopy(), loopback.DeepCopy(), pods.DeepCopy()
	unready.Endpoints[0].Conditions.Ready = new(false)
	moved.Labels[discoveryv1.LabelServiceName] = "other"
	ports.Ports[0].Port = new(int32(8081))
	for name, test := range map[string]struct {
		before, after *discoveryv1.EndpointSlice
		passes, wakes bool
	}{
		"a further pod":                         {pods, more, false, false},
		"a loopback address":                    {pods, loopback, true, true},
		"a connector's address":                 {pods, connector, true, true},
		"a refused address goes":                {connector, pods, true, true},
		"another reason":                        {loopback, connector, true, true},
		"readiness beside a refused address":    {loopback, unready, false, true},
		"a refused address of another Service":  {loopback, moved, true, true},
		"another port, which no decision reads": {pods, ports, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.endpointsChanged().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.passes {
				t.Errorf("the update passes: %t, want %t", got, test.passes)
			}
			var keys []state.Key
			for _, slice := range []*discoveryv1.EndpointSlice{test.before, test.after} {
				found, err := w.fromEndpointSlice(t.Context(), slice)
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, found...)
			}
			if wakes := slices.Contains(keys, state.GatewayKey("infra", "second")); wakes != test.wakes {
				t.Errorf("the update wakes %v, want a Gateway: %t", keys, test.wakes)
			}
		})
	}
}

// A connector that starts or stops affects the Gateways with a backend at its address.
func TestConnectorPodsThatWakeGateways(t *testing.T) {
	reader := watchedCluster(t)
	if err := reader.Create(t.Context(), sliceOfWeb("team", "10.0.0.1", "::ffff:10.244.0.9")); err != nil {
		t.Fatal(err)
	}
	w := watches{reader: reader, controllerName: controllerName, namespace: controllerNamespace}
	for ip, want := range map[string]int{"10.244.0.9": 4, "10.244.0.8": 0} {
		keys, err := w.fromConnectorPod(t.Context(), connectorPod(corev1.PodRunning, ip))
		if err != nil {
			t.Fatal(err)
		}
		distinct := map[state.Key]bool{}
		for _, key := range keys {
			distinct[key] = true
		}
		if len(distinct) != want {
			t.Errorf("pod with %s wakes %v, want %d keys", ip, keys, want)
		}
	}
	running, ended := connectorPod(corev1.PodRunning, "10.244.0.9"), connectorPod(corev1.PodSucceeded, "10.244.0.9")
	labelled := running.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	for name, test := range map[string]struct {
		after *corev1.Pod
		want  bool
	}{"an end": {ended, true}, "another address": {connectorPod(corev1.PodRunning, "10.244.0.8"), true}, "a label": {labelled, false}} {
		if got := addressesChanged.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s passes: %t, want %t", name, got, test.want)
		}
	}
}

// While an EndpointSlice of a Service contains the address of a connector or of the
// controller, the Service does not resolve if Envoy uses its ClusterIP.
func TestServiceLeadingToAConnector(t *testing.T) {
	h := newEnvoyHarness(t)
	service := &corev1.Service{}
	h.change("infra", "web", service, func() { service.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal) })
	resolved := func() string {
		t.Helper()
		h.reconcileOnce()
		route := &gatewayv1.HTTPRoute{}
		if err := h.kube.Get(t.Context(), client.ObjectKey{Namespace: "infra", Name: "web"}, route); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(route.Status.Parents[0].Conditions, string(gatewayv1.RouteConditionResolvedRefs))
		return c.Reason
	}
	var got []string
	slice := sliceOfWeb("infra", "10.244.0.9", "10.0.0.1")
	h.create(slice)
	got = append(got, resolved())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "connector"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.244.0.9"}}}}
	h.create(pod)
	got = append(got, resolved())
	h.delete(pod)
	got = append(got, resolved())
	h.change("infra", "web-1", slice, func() { slice.Endpoints[0].Addresses = []string{"fd00:0::1"} }) // the controller's pod
	got = append(got, resolved())
	h.change("infra", "web-1", slice, func() { slice.Endpoints[0].Addresses = []string{"10.0.0.2"} })
	got = append(got, resolved())
	if diff := cmp.Diff([]string{"ResolvedRefs", "BackendNotFound", "ResolvedRefs", "BackendNotFound", "ResolvedRefs"}, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
