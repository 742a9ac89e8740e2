package connector

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an API object. Every Object is a client.Object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is a kind of object that runs connectors.
type Kind struct {
	// New returns an empty object of the kind.
	New func() Object
	// Select returns the object of the kind, or nil if there is none.
	Select func(Objects) runtime.ApplyConfiguration
	// OutlivesPods reports whether the object must exist until the last pod has ended,
	// because it restricts the pods.
	OutlivesPods bool
}

// Kinds returns the kinds of objects that run connectors, in the order in which to apply
// them: objects that restrict the pods come before the Deployment. The Secrets of TokenSecret
// and IdentitySecretName are not included, because Secrets are not cached.
func Kinds() []Kind {
	return []Kind{
		{
			New:          func() Object { return &corev1.ServiceAccount{} },
			Select:       func(o Objects) runtime.ApplyConfiguration { return untyped(o.ServiceAccount) },
			OutlivesPods: true,
		},
		{
			New:          func() Object { return &networkingv1.NetworkPolicy{} },
			Select:       func(o Objects) runtime.ApplyConfiguration { return untyped(o.NetworkPolicy) },
			OutlivesPods: true,
		},
		{
			New:    func() Object { return &appsv1.Deployment{} },
			Select: func(o Objects) runtime.ApplyConfiguration { return untyped(o.Deployment) },
		},
		{
			New:    func() Object { return &policyv1.PodDisruptionBudget{} },
			Select: func(o Objects) runtime.ApplyConfiguration { return untyped(o.PodDisruptionBudget) },
		},
		{
			New:    func() Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
			Select: func(o Objects) runtime.ApplyConfiguration { return untyped(o.HorizontalPodAutoscaler) },
		},
	}
}

// untyped returns the object as an interface value, which is nil if the pointer is nil.
func untyped[T any, P interface {
	*T
	runtime.ApplyConfiguration
}](object P) runtime.ApplyConfiguration {
	if object == nil {
		return nil
	}
	return object
}
