package connector

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// Kind is a kind that runs connectors.
type Kind struct {
	kinds.Kind
	// Select returns the object of this kind, or nil if there is none.
	Select func(Objects) runtime.ApplyConfiguration
	// OutlivesPods reports whether the object must exist until the last pod has ended,
	// because it restricts the pods.
	OutlivesPods bool
}

// Kinds returns the kinds that run connectors, in the order in which to apply them:
// objects that restrict the pods come before the Deployment. The Secrets from
// TokenSecret and IdentitySecret are not included, because Secrets are not cached.
func Kinds() []Kind {
	return []Kind{
		{
			Kind:         kinds.ServiceAccount,
			Select:       func(o Objects) runtime.ApplyConfiguration { return untyped(o.ServiceAccount) },
			OutlivesPods: true,
		},
		{
			Kind:         kinds.NetworkPolicy,
			Select:       func(o Objects) runtime.ApplyConfiguration { return untyped(o.NetworkPolicy) },
			OutlivesPods: true,
		},
		{
			Kind:   kinds.Deployment,
			Select: func(o Objects) runtime.ApplyConfiguration { return untyped(o.Deployment) },
		},
		{
			Kind:   kinds.PodDisruptionBudget,
			Select: func(o Objects) runtime.ApplyConfiguration { return untyped(o.PodDisruptionBudget) },
		},
		{
			Kind:   kinds.HorizontalPodAutoscaler,
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
