package chart

import (
	"net"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// typed returns the object as its Go type.
func typed[T any](t *testing.T, o object) *T {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	result := new(T)
	if err := yaml.UnmarshalStrict(text, result); err != nil {
		t.Fatalf("%s: %v", o.id(), err)
	}
	return result
}

// TestEnvoysFindTheController checks that the Service with the name in the controller's
// flag leads Envoys to the controller's port, even while the leader is not ready. A
// headless Service translates no ports.
func TestEnvoysFindTheController(t *testing.T) {
	for _, name := range []string{release, "edge"} {
		all := renderRelease(t, name, namespace)
		service := xdsService(t, all)
		pod := typed[appsv1.Deployment](t, onlyObject(t, all, "Deployment")).Spec.Template
		if service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses || service.Namespace != namespace {
			t.Errorf("%s: the Service is not headless, or has only ready pods: %+v", name, service.Spec)
		}
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s: the Service selects %v, and the labels of the pod are %v", name, service.Spec.Selector, pod.Labels)
		}
		_, port, err := net.SplitHostPort(controllerFlag(t, all, "xds-bind-address"))
		if want := strconv.Itoa(envoy.PortXDS); err != nil || port != want {
			t.Errorf("%s: the controller listens on port %q, want %s: %v", name, port, want, err)
		}
		if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != envoy.PortXDS || !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
			return p.Name == service.Spec.Ports[0].TargetPort.StrVal && p.ContainerPort == envoy.PortXDS
		}) {
			t.Errorf("%s: the Service has the ports %+v, and the pod %+v, want %d", name, service.Spec.Ports, pod.Spec.Containers[0].Ports, envoy.PortXDS)
		}
	}
}

// xdsService returns the Service with the name in the controller's flag.
func xdsService(t *testing.T, all []object) *corev1.Service {
	t.Helper()
	name := controllerFlag(t, all, "xds-service")
	i := slices.IndexFunc(all, func(o object) bool { return o["kind"] == "Service" && o.metadata()["name"] == name })
	if i < 0 {
		t.Fatalf("no Service has the name %s", name)
	}
	return typed[corev1.Service](t, all[i])
}

// TestOnlyConnectorsReachTheControllerOfEnvoys checks which pods the controller's
// NetworkPolicy admits to the port for Envoys.
func TestOnlyConnectorsReachTheControllerOfEnvoys(t *testing.T) {
	policy := typed[networkingv1.NetworkPolicy](t, onlyObject(t, objects(t, render(t)), "NetworkPolicy"))
	connectors := connector.Selector(&v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "infra.web"}})
	for name, test := range map[string]struct {
		pod  labels.Set
		want bool
	}{
		"a connector":    {connectors, true},
		"another pod":    {labels.Set{"app.kubernetes.io/name": "cloudflared"}, false},
		"without labels": {nil, false},
	} {
		if got := admits(t, policy, test.pod, envoy.PortXDS); got != test.want {
			t.Errorf("%s: admitted: %t, want %t", name, got, test.want)
		}
	}
}

// admits reports whether the policy admits a pod in its own namespace to the TCP port.
func admits(t *testing.T, policy *networkingv1.NetworkPolicy, pod labels.Set, port int) bool {
	t.Helper()
	if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
		return true
	}
	return slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		toPort := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port == nil || p.Port.IntValue() == port })
		return toPort && (len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool { return selects(t, peer, pod) }))
	})
}

// selects reports whether the peer selects a pod in the policy's namespace.
func selects(t *testing.T, peer networkingv1.NetworkPolicyPeer, pod labels.Set) bool {
	t.Helper()
	if peer.NamespaceSelector != nil || peer.IPBlock != nil || peer.PodSelector == nil {
		t.Fatalf("the peer %+v selects more than pods of the namespace", peer)
	}
	selector, err := metav1.LabelSelectorAsSelector(peer.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(pod)
}
