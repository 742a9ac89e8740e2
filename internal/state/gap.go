package state

import "k8s.io/apimachinery/pkg/types"

// Gap is a read from the cluster that the user has no permission for. The [Source] does
// not contain the objects, so that they can exist or not.
type Gap struct {
	// Verb is "list" or "get".
	Verb string `json:"verb"`
	// Kind is the kind in the Gateway API's or Kubernetes' spelling, such as "Gateway".
	Kind string `json:"kind"`
	// Resource is the API resource with its group, such as
	// "gateways.gateway.networking.k8s.io".
	Resource string `json:"resource"`
	// Namespace is empty for cluster-scoped objects, and for a list of all namespaces.
	// After such a list, the Source contains the objects in [Source.Namespaces] unless
	// another Gap names the namespace.
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for a list.
	Name string `json:"name,omitempty"`
}

// String describes the request, in the words of `kubectl auth can-i`.
func (g Gap) String() string {
	text := g.Verb + " " + g.Resource
	switch {
	case g.Name != "" && g.Namespace != "":
		return text + " " + types.NamespacedName{Namespace: g.Namespace, Name: g.Name}.String()
	case g.Name != "":
		return text + " " + g.Name
	case g.Namespace != "":
		return text + " in namespace " + g.Namespace
	}
	return text
}
