package connector

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// networkPolicy allows connections from connectors to Cloudflare and to backends, and
// connections from the peers in the settings to the metrics ports. It needs no rule for
// probes, because NetworkPolicies never block a pod's node. NetworkPolicies are
// additive: to allow backends outside the cluster's pod network, an administrator
// creates another policy for the same pods.
func networkPolicy(in Input) (*networkingv1ac.NetworkPolicyApplyConfiguration, error) {
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(selector(in.Tunnel)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithEgress(toCloudflare(), toBackends())
	// A rule without peers would allow every sender.
	if len(in.Settings.MetricsFrom) > 0 {
		rule := networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(corev1.ProtocolTCP, metricsPort))
		if in.Envoy != nil {
			rule.WithPorts(port(corev1.ProtocolTCP, envoy.PortReady))
		}
		for _, peer := range in.Settings.MetricsFrom {
			from, err := applied[networkingv1ac.NetworkPolicyPeerApplyConfiguration](peer)
			if err != nil {
				return nil, fmt.Errorf("metricsFrom: %w", err)
			}
			rule.WithFrom(from)
		}
		spec.WithIngress(rule)
	}
	return owned(in, networkingv1ac.NetworkPolicy(name(in.Tunnel), in.Tunnel.Namespace)).WithSpec(spec), nil
}

// toCloudflare allows the ports that cloudflared requires, to any address: Cloudflare's
// addresses change, and no selector matches the address of a node's DNS resolver.
func toCloudflare() *networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	return networkingv1ac.NetworkPolicyEgressRule().WithPorts(
		// DNS, and DNS over TLS, which cloudflared uses to find the edge when the
		// cluster's resolver does not return SRV records.
		port(corev1.ProtocolUDP, 53), port(corev1.ProtocolTCP, 53), port(corev1.ProtocolTCP, 853),
		// The edge: QUIC and HTTP/2.
		port(corev1.ProtocolUDP, 7844), port(corev1.ProtocolTCP, 7844),
		// The keys that verify Cloudflare Access tokens.
		port(corev1.ProtocolTCP, 443),
	)
}

// toBackends allows all ports on all pods in the cluster. A narrower rule would have to
// be updated whenever a route changes, and requests to a new backend would be dropped
// until the update. Services need no rule, because NetworkPolicies apply to the pod and
// the target port behind a Service. The rule also lets Envoys connect to the
// controller.
func toBackends() *networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	return networkingv1ac.NetworkPolicyEgressRule().
		WithTo(networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector()))
}

func port(protocol corev1.Protocol, number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
	return networkingv1ac.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}
