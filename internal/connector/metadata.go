package connector

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// This project's labels on connector objects.
const (
	// TunnelLabel contains the Tunnel's name.
	TunnelLabel = "tunnelgateway.dev/tunnel"
	// GatewayNamespaceLabel contains the Gateway's namespace.
	GatewayNamespaceLabel = "tunnelgateway.dev/gateway-namespace"
)

const (
	nameLabel      = "app.kubernetes.io/name"
	managedByLabel = "app.kubernetes.io/managed-by"

	managedBy     = "tunnel-gateway"
	containerName = "cloudflared"
)

// Selector returns the labels that select the Tunnel's connector pods. All the Tunnel's
// objects have these labels. They never change, because a Deployment's selector is
// immutable.
func Selector(t *v1alpha1.Tunnel) map[string]string {
	return map[string]string{
		nameLabel:      containerName,
		managedByLabel: managedBy,
		TunnelLabel:    t.Name,
	}
}

// PodSelector returns the label selector for the Gateway's connector pods, or for those of all
// Gateways if the Gateway has no name.
func PodSelector(gateway types.NamespacedName) string {
	selector := k8slabels.Set{nameLabel: containerName, managedByLabel: managedBy}
	if gateway.Name != "" {
		selector[TunnelLabel] = tunnel.ObjectName(gateway)
	}
	return selector.String()
}

// GatewayOf returns the Gateway that a connector pod belongs to. Its name is shortened if it
// is too long for a label.
func GatewayOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Labels[GatewayNamespaceLabel], Name: pod.Labels[gatewayv1.GatewayNameLabelKey]}
}

// name returns the name that all the Tunnel's connector objects have.
func name(t *v1alpha1.Tunnel) string {
	return tunnel.ConnectorName(types.NamespacedName{Namespace: t.Spec.Gateway.Namespace, Name: t.Spec.Gateway.Name})
}

// labels returns the labels that all the Tunnel's connector objects have. The
// controller's labels replace labels in the input with the same keys.
func labels(in Input) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, in.Labels)
	gateway := in.Tunnel.Spec.Gateway
	labels[GatewayNamespaceLabel] = gateway.Namespace
	labels[gatewayv1.GatewayNameLabelKey] = tunnel.Shorten(gateway.Name, validation.LabelValueMaxLength, gateway.Name)
	maps.Copy(labels, Selector(in.Tunnel))
	return labels
}

// annotatable is an apply configuration with the methods that set an object's metadata.
type annotatable[T any] interface {
	WithLabels(map[string]string) T
	WithAnnotations(map[string]string) T
	WithOwnerReferences(...*metav1ac.OwnerReferenceApplyConfiguration) T
}

// owned sets the object's labels and annotations, and the Tunnel as its owner.
func owned[T annotatable[T]](in Input, object T) T {
	return object.
		WithLabels(labels(in)).
		WithAnnotations(in.Annotations).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind(TunnelKind).
			WithName(in.Tunnel.Name).WithUID(in.Tunnel.UID).
			// OpenShift allows blockOwnerDeletion only for users who can set finalizers
			// on the owner.
			WithController(true).WithBlockOwnerDeletion(false))
}

// TunnelKind is the kind that owns all connector objects.
const TunnelKind = "Tunnel"

// IsManagedBy reports whether the object belongs to the Tunnel or to a deleted Tunnel
// with the same name. In the latter case garbage collection has begun, and applying the
// object again sets its new owner.
func IsManagedBy(object metav1.Object, t *v1alpha1.Tunnel) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == TunnelKind && owner.APIVersion == v1alpha1.GroupVersion.String() && owner.Name == t.Name
}

func selector(t *v1alpha1.Tunnel) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(Selector(t))
}
