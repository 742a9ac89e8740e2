package gateway

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// tenants determines each namespace's tenant.
type tenants struct {
	label      string // or empty when each namespace is its own tenant
	namespaces map[string]*corev1.Namespace
}

func (t tenants) of(namespace string) limits.Tenant {
	if object := t.namespaces[namespace]; t.label != "" && object != nil {
		if value, ok := object.Labels[t.label]; ok {
			return limits.Tenant{Name: value, Labeled: true}
		}
	}
	return limits.Tenant{Name: namespace}
}

// describe names a namespace's tenant for a message to that tenant.
func (t tenants) describe(namespace string) string {
	if tenant := t.of(namespace); tenant.Labeled {
		return "the namespaces with the label " + t.label + "=" + tenant.Name
	}
	return "namespace " + namespace
}
