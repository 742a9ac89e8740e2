package connector_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// metricsPort is the port on which cloudflared serves its metrics and its configuration.
const metricsPort = 2000

// sender is a pod that connects to a connector.
type sender struct {
	namespace, pod labels.Set
}

// networkPolicySpec returns the policy of the connectors with these settings.
func networkPolicySpec(t *testing.T, c v1alpha1.Connector) networkingv1.NetworkPolicySpec {
	t.Helper()
	text, err := yaml.Marshal(buildSettings(t, c).NetworkPolicy.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var spec networkingv1.NetworkPolicySpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// admits reports whether the policy admits connections from a pod outside the namespace of the
// connectors to a TCP port, as the Kubernetes documentation of NetworkPolicies specifies.
func admits(t *testing.T, policy networkingv1.NetworkPolicySpec, from sender, port int) bool {
	t.Helper()
	for _, rule := range policy.Ingress {
		onPort := len(rule.Ports) == 0
		for _, p := range rule.Ports {
			onPort = onPort || p.Port == nil || p.Port.IntValue() == port
		}
		fromPeer := len(rule.From) == 0
		for _, peer := range rule.From {
			fromPeer = fromPeer || peer.NamespaceSelector != nil && matches(t, peer.NamespaceSelector, from.namespace) &&
				(peer.PodSelector == nil || matches(t, peer.PodSelector, from.pod))
		}
		if onPort && fromPeer {
			return true
		}
	}
	return false
}

func matches(t *testing.T, selector *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(set)
}

// expectedToFail fails if the check succeeds, although the reason says why it cannot.
func expectedToFail(t *testing.T, reason string, check func() bool) {
	t.Helper()
	if check() {
		t.Errorf("the check succeeds now; remove the mark: %s", reason)
	}
}

func TestOtherPodsCannotReachTheMetricsPort(t *testing.T) {
	tenant := sender{namespace: labels.Set{"kubernetes.io/metadata.name": "team-a"}, pod: labels.Set{"app": "shop"}}
	policy := networkPolicySpec(t, v1alpha1.Connector{})
	expectedToFail(t, "the NetworkPolicy allows the metrics port for any sender", func() bool {
		return !admits(t, policy, tenant, metricsPort)
	})
}
