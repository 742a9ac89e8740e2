// Package connector says what runs the connectors of a Gateway: a Deployment of
// stock cloudflared and the objects around it, and what the Deployment's status
// says of them. It is pure: the settings come in merged, and writing the objects
// is left to the controller.
//
// The objects are apply configurations: they hold what this project decides and
// nothing else, so that server-side apply owns exactly that. An autoscaler keeps
// its replicas, and what others add to an object stays.
package connector

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Input is all that the connectors of a Gateway depend on. Routes are not in it,
// but for HTTP2: no change of a route may restart a connector.
type Input struct {
	// Gateway is the owner of the objects. Of it count only the name, namespace and
	// UID, the class and spec.infrastructure.
	Gateway *gatewayv1.Gateway
	// Settings are those of both levels, merged and valid; what is not set has its
	// default. Autoscaling counts before replicas, should both be set.
	Settings v1alpha1.Connector
	// TokenSecret is the name of the Secret, in the Gateway's namespace, that holds
	// the tunnel's token under TokenKey.
	TokenSecret string
	TokenKey    string
	// TokenVersion changes when the token does, for instance a hash of it: a
	// connector reads its token only when it starts, so the pods are then replaced.
	TokenVersion string
	// HTTP2: the Gateway has, or has had, a GRPCRoute. Protocol auto is then http2,
	// because gRPC's trailers do not survive QUIC.
	HTTP2 bool
}

// Objects are what runs the connectors of a Gateway. All have the name that Name
// gives. One that is nil is not wanted, and goes if it is there.
type Objects struct {
	ServiceAccount          *corev1ac.ServiceAccountApplyConfiguration
	NetworkPolicy           *networkingv1ac.NetworkPolicyApplyConfiguration
	Deployment              *appsv1ac.DeploymentApplyConfiguration
	PodDisruptionBudget     *policyv1ac.PodDisruptionBudgetApplyConfiguration
	HorizontalPodAutoscaler *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration
}

// Build returns what runs the connectors: nothing when they are not enabled. It
// keeps no part of the input. An error means settings that the validation of the
// CustomResourceDefinition refuses.
func Build(in Input) (Objects, error) {
	if !ptr.Deref(in.Settings.Enabled, true) {
		return Objects{}, nil
	}
	deployment, err := deployment(in)
	if err != nil {
		return Objects{}, fmt.Errorf("connector settings: %w", err)
	}
	return Objects{
		ServiceAccount:          serviceAccount(in),
		NetworkPolicy:           networkPolicy(in),
		Deployment:              deployment,
		PodDisruptionBudget:     podDisruptionBudget(in),
		HorizontalPodAutoscaler: horizontalPodAutoscaler(in),
	}, nil
}

// ByKind returns the objects in the order in which to apply them: what confines
// the pods before the pods. One that is not wanted is nil.
func (o Objects) ByKind() []runtime.ApplyConfiguration {
	all := make([]runtime.ApplyConfiguration, 5)
	if o.ServiceAccount != nil {
		all[0] = o.ServiceAccount
	}
	if o.NetworkPolicy != nil {
		all[1] = o.NetworkPolicy
	}
	if o.Deployment != nil {
		all[2] = o.Deployment
	}
	if o.PodDisruptionBudget != nil {
		all[3] = o.PodDisruptionBudget
	}
	if o.HorizontalPodAutoscaler != nil {
		all[4] = o.HorizontalPodAutoscaler
	}
	return all
}

// serviceAccount is an account of the connectors' own that may do nothing. The
// namespace's default account could be granted something, and it does not carry
// the labels of spec.infrastructure.
func serviceAccount(in Input) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(Name(in.Gateway), in.Gateway.Namespace).
		WithLabels(Labels(in.Gateway)).
		WithAnnotations(annotations(in.Gateway)).
		WithOwnerReferences(owner(in.Gateway)).
		WithAutomountServiceAccountToken(false)
}
