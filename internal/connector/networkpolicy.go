package connector

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

// networkPolicy lets connectors reach what they need, and lets others reach
// their metrics alone. Policies add up: who has a backend that is no pod of this
// cluster's network allows it in a policy of their own for the same pods.
func networkPolicy(in Input) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return networkingv1ac.NetworkPolicy(Name(in.Gateway), in.Gateway.Namespace).
		WithLabels(Labels(in.Gateway)).
		WithAnnotations(annotations(in.Gateway)).
		WithOwnerReferences(owner(in.Gateway)).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(selector(in.Gateway)).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(corev1.ProtocolTCP, metricsPort))).
			WithEgress(outside(), backends()))
}

// outside allows what cloudflared needs by itself, to any address: Cloudflare's
// change, and a node's own resolver has an address that no selector matches.
func outside() *networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	return networkingv1ac.NetworkPolicyEgressRule().WithPorts(
		// DNS, and DNS over TLS, by which cloudflared looks the edge up when the
		// cluster's resolver has no SRV records.
		port(corev1.ProtocolUDP, 53), port(corev1.ProtocolTCP, 53), port(corev1.ProtocolTCP, 853),
		// The edge: QUIC and HTTP/2.
		port(corev1.ProtocolUDP, 7844), port(corev1.ProtocolTCP, 7844),
		// The keys with which a rule's access settings are enforced.
		port(corev1.ProtocolTCP, 443),
	)
}

// backends allows every port of every pod of the cluster. Narrower would have to
// change with the routes, and lag behind them: a route would be programmed and
// its requests dropped. A Service needs no rule of its own: a policy sees the pod
// and the target port that the Service stands for.
func backends() *networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	return networkingv1ac.NetworkPolicyEgressRule().
		WithTo(networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector()))
}

func port(protocol corev1.Protocol, number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
	return networkingv1ac.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}
