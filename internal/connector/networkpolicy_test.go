package connector_test

import (
	"slices"
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

func TestOnlySelectedPodsCanReachTheMetricsPort(t *testing.T) {
	namespace := func(name string) labels.Set { return labels.Set{"kubernetes.io/metadata.name": name} }
	prometheus := sender{namespace: namespace("monitoring"), pod: labels.Set{"app": "prometheus"}}
	others := map[string]sender{
		"a pod of a tenant":                          {namespace: namespace("team-a"), pod: labels.Set{"app": "shop"}},
		"a pod of a tenant with the selected label":  {namespace: namespace("team-a"), pod: labels.Set{"app": "prometheus"}},
		"another pod of the selected namespace":      {namespace: namespace("monitoring"), pod: labels.Set{"app": "grafana"}},
		"a pod without labels in an empty namespace": {},
	}
	selected := v1alpha1.Connector{MetricsFrom: []v1alpha1.MetricsPeer{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: namespace("monitoring")},
		PodSelector:       &metav1.LabelSelector{MatchLabels: prometheus.pod},
	}}}
	closed, open := networkPolicySpec(t, v1alpha1.Connector{}), networkPolicySpec(t, selected)
	for name, pod := range others {
		if admits(t, closed, pod, metricsPort) || admits(t, open, pod, metricsPort) {
			t.Errorf("%s can reach the metrics port", name)
		}
	}
	if admits(t, closed, prometheus, metricsPort) {
		t.Error("without metricsFrom, a pod can reach the metrics port")
	}
	if !admits(t, open, prometheus, metricsPort) {
		t.Error("the pod that metricsFrom selects cannot reach the metrics port")
	}
	if admits(t, open, prometheus, 8080) {
		t.Error("the pod that metricsFrom selects can reach another port")
	}
	if !slices.Contains(closed.PolicyTypes, networkingv1.PolicyTypeIngress) {
		t.Error("the policy does not restrict ingress")
	}
}

func TestAnEmptyNamespaceSelectorSelectsAllNamespaces(t *testing.T) {
	policy := networkPolicySpec(t, v1alpha1.Connector{MetricsFrom: []v1alpha1.MetricsPeer{{NamespaceSelector: &metav1.LabelSelector{}}}})
	if !admits(t, policy, sender{}, metricsPort) {
		t.Error("a pod cannot reach the metrics port although the selector selects its namespace")
	}
}
