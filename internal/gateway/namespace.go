package gateway

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// namespaceRule is a Gateway's allowedListeners.namespaces, or a listener's
// allowedRoutes.namespaces.
type namespaceRule struct {
	from           gatewayv1.FromNamespaces
	ownerNamespace string          // the namespace that "Same" refers to
	selector       labels.Selector // nil without a selector
	invalid        error           // why the selector is not valid, or nil
	namespaces     map[string]*corev1.Namespace
}

func newNamespaceRule(from gatewayv1.FromNamespaces, selector *metav1.LabelSelector, ownerNamespace string, namespaces map[string]*corev1.Namespace) namespaceRule {
	rule := namespaceRule{from: from, ownerNamespace: ownerNamespace, namespaces: namespaces}
	if from == gatewayv1.NamespacesFromSelector && selector != nil {
		rule.selector, rule.invalid = metav1.LabelSelectorAsSelector(selector)
	}
	return rule
}

// admits reports whether objects in the namespace can attach.
func (r namespaceRule) admits(namespace string) bool {
	switch r.from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return namespace == r.ownerNamespace
	case gatewayv1.NamespacesFromSelector:
		object := r.namespaces[namespace]
		return r.selector != nil && r.invalid == nil && object != nil && r.selector.Matches(labels.Set(object.Labels))
	default: // None, and values that a later API version adds
		return false
	}
}

// describeRejection returns why the rule does not admit the namespace, as a predicate for
// a sentence whose subject is the field name.
func (r namespaceRule) describeRejection(namespace string) string {
	switch r.from {
	case gatewayv1.NamespacesFromSame:
		return fmt.Sprintf("allows only namespace %q (from: Same)", r.ownerNamespace)
	case gatewayv1.NamespacesFromSelector:
		if r.selector == nil && r.invalid == nil {
			return "allows no namespace, because it has from: Selector without a selector"
		}
		if r.invalid != nil {
			return message.Cut(fmt.Sprintf("has a selector that is not valid: %v", r.invalid), 2*maxLabelsSize)
		}
		object := r.namespaces[namespace]
		if object == nil {
			return fmt.Sprintf("has the selector %q, and the namespace does not exist", r.describeSelector())
		}
		if len(object.Labels) == 0 {
			return fmt.Sprintf("has the selector %q, and the namespace has no labels", r.describeSelector())
		}
		return fmt.Sprintf("has the selector %q, and the namespace has the labels %q", r.describeSelector(), r.describeLabels(object.Labels))
	default:
		return "allows no namespace (from: None, the default)"
	}
}

// maxLabelsSize limits how long the description of a selector or labels is.
const maxLabelsSize = 250

func (r namespaceRule) describeSelector() string {
	list := message.List{Separator: ",", More: " and %d more", MaxSize: maxLabelsSize}
	requirements, _ := r.selector.Requirements()
	for i := range requirements {
		list.Add("%s", requirements[i].String())
	}
	return list.String()
}

// describeLabels lists the labels that the selector names before the others.
func (r namespaceRule) describeLabels(all labels.Set) string {
	named := map[string]bool{}
	requirements, _ := r.selector.Requirements()
	for i := range requirements {
		named[requirements[i].Key()] = true
	}
	keys := slices.Sorted(maps.Keys(all))
	if len(all.String()) > maxLabelsSize {
		slices.SortStableFunc(keys, func(a, b string) int {
			switch {
			case named[a] == named[b]:
				return 0
			case named[a]:
				return -1
			default:
				return 1
			}
		})
	}
	list := message.List{Separator: ",", More: " and %d more", MaxSize: maxLabelsSize}
	for _, key := range keys {
		list.Add("%s=%s", key, all[key])
	}
	return list.String()
}
