package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	nameLabel      = "app.kubernetes.io/name"
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "tunnel-gateway"
	connectorName  = "cloudflared"
)

const (
	// longestName is the longest name of a Deployment whose pods are still called
	// <deployment>-<hash>-<suffix>: a pod's name has 63 characters at most, because
	// it is the pod's hostname too, and what is too much of the name that was asked
	// for is cut from its end, hash first. The hash has up to 10 characters and the
	// suffix 5.
	longestName = 63 - len("-0123456789") - len("-01234")
	// longestLabel is the longest value of a label.
	longestLabel = 63
)

// Name returns the name of every object that runs the Gateway's connectors:
// <gateway>-<class>, as GEP-1762 has it. One that is too long is cut and ends
// with a hash of both.
func Name(g *gatewayv1.Gateway) string {
	class := string(g.Spec.GatewayClassName)
	return Shorten(g.Name+"-"+class, longestName, g.Name+"/"+class)
}

// Shorten cuts a name that is longer than the length, and ends it with a hash of
// the identity instead.
func Shorten(name string, length int, identity string) string {
	if len(name) <= length {
		return name
	}
	sum := sha256.Sum256([]byte(identity))
	suffix := "-" + hex.EncodeToString(sum[:5])
	// A label of a DNS name may not begin or end with what the cut could leave.
	return strings.TrimRight(name[:length-len(suffix)], "-.") + suffix
}

// Selector returns the labels by which the pods of the Gateway's connectors are
// found. A Deployment's selector can never be changed, so it holds nothing that
// can: pods of another controller for the same Gateway, before it changed its
// class, carry its name too, but not these.
func Selector(g *gatewayv1.Gateway) map[string]string {
	return map[string]string{
		nameLabel:                     connectorName,
		managedByLabel:                managedBy,
		gatewayv1.GatewayNameLabelKey: Shorten(g.Name, longestLabel, g.Name),
	}
}

// Labels returns the labels of every object that runs the Gateway's connectors:
// those of its spec.infrastructure, and our own, which win. An object whose
// class is an earlier one of the Gateway is left over, and found by Selector.
func Labels(g *gatewayv1.Gateway) map[string]string {
	labels := map[string]string{}
	if g.Spec.Infrastructure != nil {
		for name, value := range g.Spec.Infrastructure.Labels {
			labels[string(name)] = string(value)
		}
	}
	class := string(g.Spec.GatewayClassName)
	labels[gatewayv1.GatewayClassNameLabelKey] = Shorten(class, longestLabel, class)
	maps.Copy(labels, Selector(g))
	return labels
}

// annotations are those of the Gateway's spec.infrastructure.
func annotations(g *gatewayv1.Gateway) map[string]string {
	annotations := map[string]string{}
	if g.Spec.Infrastructure != nil {
		for name, value := range g.Spec.Infrastructure.Annotations {
			annotations[string(name)] = string(value)
		}
	}
	return annotations
}

// owner makes an object the Gateway's: it goes when the Gateway goes, and does
// not hold up its deletion.
func owner(g *gatewayv1.Gateway) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(gatewayv1.GroupVersion.String()).WithKind("Gateway").
		WithName(g.Name).WithUID(g.UID).
		WithController(true).WithBlockOwnerDeletion(false)
}

// selector is Selector as the objects hold it.
func selector(g *gatewayv1.Gateway) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(Selector(g))
}
