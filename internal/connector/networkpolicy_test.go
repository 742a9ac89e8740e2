package connector_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// metricsPort is the port on which cloudflared serves its metrics and its configuration.
const metricsPort = 2000

// sender is a pod that connects to a connector.
type sender struct {
	namespace, pod labels.Set
}

// networkPolicySpec returns the connectors' policy with these settings.
func networkPolicySpec(t *testing.T, c v1alpha1.Connector) networkingv1.NetworkPolicySpec {
	t.Helper()
	return networkPolicySpecOf(t, buildSettings(t, c))
}

func networkPolicySpecOf(t *testing.T, o connector.Objects) networkingv1.NetworkPolicySpec {
	t.Helper()
	text, err := yaml.Marshal(o.NetworkPolicy.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var spec networkingv1.NetworkPolicySpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// admits reports whether the policy admits connections from a pod outside the
// connectors' namespace to a TCP port, as the Kubernetes documentation on
// NetworkPolicies specifies.
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

func TestOnlySelectedPodsCanReachEnvoyMetrics(t *testing.T) {
	prometheus := sender{namespace: labels.Set{"kubernetes.io/metadata.name": "monitoring"}}
	for _, c := range []struct {
		name  string
		peers []v1alpha1.MetricsPeer
		envoy *connector.Envoy
		want  bool
	}{
		{"with Envoy", []v1alpha1.MetricsPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: prometheus.namespace}}}, &connector.Envoy{}, true},
		{"without Envoy", []v1alpha1.MetricsPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: prometheus.namespace}}}, nil, false},
		{"without metricsFrom", nil, &connector.Envoy{}, false},
	} {
		in := inputOf("web")
		in.Settings.MetricsFrom, in.Envoy = c.peers, c.envoy
		policy := networkPolicySpecOf(t, build(t, in))
		if got := admits(t, policy, prometheus, envoy.PortReady); got != c.want {
			t.Errorf("%s: the selected pod reaches port %d: %t, want %t", c.name, envoy.PortReady, got, c.want)
		}
		for _, port := range []int{envoy.PortOpen, envoy.PortProtected} {
			if admits(t, policy, prometheus, port) || admits(t, policy, sender{}, envoy.PortReady) {
				t.Errorf("%s: the policy admits pods to port %d, or pods that metricsFrom does not select", c.name, port)
			}
		}
	}
}

// Envoys connect to the controller's pods, whose port no Service translates.
func TestEnvoyCanReachTheController(t *testing.T) {
	in := inputOf("web")
	in.Envoy = &connector.Envoy{}
	for _, rule := range networkPolicySpecOf(t, build(t, in)).Egress {
		toAll := len(rule.To) == 1 && rule.To[0].PodSelector == nil && rule.To[0].NamespaceSelector != nil && matches(t, rule.To[0].NamespaceSelector, nil)
		if toAll && len(rule.Ports) == 0 {
			return
		}
	}
	t.Errorf("no egress rule allows port %d of the controller's pods", envoy.PortXDS)
}
