// Package authority issues the certificates with which the controller and the Envoys
// beside the connectors identify each other.
package authority

import "k8s.io/apimachinery/pkg/types"

// Identity is what a client certificate says about an Envoy.
type Identity struct {
	ClusterID string
	Gateway   types.NamespacedName
	Tunnel    types.UID
}
