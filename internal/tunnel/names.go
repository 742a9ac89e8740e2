package tunnel

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// longestObjectName keeps the name usable as the value of a label.
	longestObjectName = 63
	// longestConnectorName leaves room for what a Deployment appends to the names
	// of its pods.
	connectorNameCut = 29
	// longestTunnelName is well below what the Cloudflare API accepts.
	longestTunnelName = 96
	// digits of the hash that ends a shortened name.
	hashDigits = 16
	// clusterIDDigits is the length of the default cluster ID.
	clusterIDDigits = 10
)

// ObjectName returns the name of a Gateway's Tunnel object. A namespace has no
// dot, so that the name is unambiguous.
func ObjectName(gateway types.NamespacedName) string {
	name := gateway.Namespace + "." + gateway.Name
	if len(name) <= longestObjectName {
		return name
	}
	return cut(name, longestObjectName-1-hashDigits) + "-" + hashOf(gateway)
}

// ConnectorName returns the name of every object that runs the Gateway's
// connectors.
func ConnectorName(gateway types.NamespacedName) string {
	name := strings.ReplaceAll(gateway.Namespace+"."+gateway.Name, ".", "-")
	return cut(name, connectorNameCut) + "-" + hashOf(gateway)
}

// RemoteName returns the name of a Gateway's tunnel at Cloudflare.
func RemoteName(clusterID string, gateway types.NamespacedName) string {
	name := NamePrefix(clusterID) + gateway.Namespace + "." + gateway.Name
	if len(name) <= longestTunnelName {
		return name
	}
	return cut(name, longestTunnelName-1-hashDigits) + "-" + hashOf(gateway)
}

// NamePrefix returns what the names of all tunnels of an installation begin
// with.
func NamePrefix(clusterID string) string { return clusterID + "." }

// DefaultClusterID returns the cluster ID of an installation that was given
// none. It survives the deletion of the controller's namespace, and not the
// rebuilding of the cluster.
func DefaultClusterID(clusterUID, controllerName string) string {
	return digest(clusterUID + "/" + controllerName)[:clusterIDDigits]
}

func cut(name string, length int) string {
	return strings.TrimRight(name[:min(length, len(name))], ".-")
}

func hashOf(gateway types.NamespacedName) string { return digest(gateway.String())[:hashDigits] }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
