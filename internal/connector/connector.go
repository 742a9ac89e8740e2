// Package connector builds the objects that run a Tunnel's connectors: a Deployment
// with unmodified cloudflared, optionally with an Envoy in each pod, and related
// objects. It also derives from the Deployment's status whether the connectors are
// ready. The package is pure: the caller merges the settings and writes the objects.
//
// The objects are apply configurations. They contain only the fields that this
// controller manages, so server-side apply makes it the owner of exactly these fields.
// The replicas of a Deployment can belong to an autoscaler, and fields that belong to
// other field managers are kept.
package connector

import (
	"fmt"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Input contains everything that a Tunnel's connectors depend on. Except for HTTP2, it
// does not depend on routes, because a route change must not restart connectors.
type Input struct {
	// Tunnel owns the objects, which are in its namespace. Build uses its name,
	// namespace, UID and spec.gateway.
	Tunnel *v1alpha1.Tunnel
	// Labels and Annotations come from the Gateway's spec.infrastructure, as far as the
	// GatewayClass allows them on the objects and their pods. They replace podLabels
	// and podAnnotations with the same keys.
	Labels, Annotations map[string]string
	// Settings are the merged and validated settings. Unset fields have their defaults.
	// Autoscaling takes precedence over replicas.
	Settings v1alpha1.Connector
	// TokenVersion identifies the token, for instance by its hash. A connector
	// reads its token only when it starts, so a new version replaces the pods.
	TokenVersion string
	// HTTP2 reports whether the Gateway has or had a GRPCRoute. The protocol auto then
	// becomes http2, because gRPC trailers are lost over QUIC.
	HTTP2 bool
	// Envoy is the Envoy beside each connector, or nil if the connectors route
	// requests. The Secret that IdentitySecretName names must exist, or the pods wait
	// for it.
	Envoy *Envoy
}

// Objects run a Tunnel's connectors. All have the name
// tunnel.ConnectorName(spec.gateway). An object is nil if the settings do not require
// it.
type Objects struct {
	ServiceAccount          *corev1ac.ServiceAccountApplyConfiguration
	NetworkPolicy           *networkingv1ac.NetworkPolicyApplyConfiguration
	Deployment              *appsv1ac.DeploymentApplyConfiguration
	PodDisruptionBudget     *policyv1ac.PodDisruptionBudgetApplyConfiguration
	HorizontalPodAutoscaler *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration
}

// Build returns the objects that run the connectors, and no objects if connectors are
// disabled. The objects share no memory with the input. It returns an error for
// settings that the TunnelConfiguration validation rejects.
func Build(in Input) (Objects, error) {
	if !ptr.Deref(in.Settings.Enabled, true) {
		return Objects{}, nil
	}
	deployment, err := deployment(in)
	if err != nil {
		return Objects{}, fmt.Errorf("connector settings: %w", err)
	}
	policy, err := networkPolicy(in)
	if err != nil {
		return Objects{}, fmt.Errorf("connector settings: %w", err)
	}
	return Objects{
		ServiceAccount:          serviceAccount(in),
		NetworkPolicy:           policy,
		Deployment:              deployment,
		PodDisruptionBudget:     podDisruptionBudget(in),
		HorizontalPodAutoscaler: horizontalPodAutoscaler(in),
	}, nil
}

// serviceAccount returns a ServiceAccount without permissions. The namespace's default
// ServiceAccount may have permissions.
func serviceAccount(in Input) *corev1ac.ServiceAccountApplyConfiguration {
	return owned(in, corev1ac.ServiceAccount(name(in.Tunnel), in.Tunnel.Namespace)).
		WithAutomountServiceAccountToken(false)
}
