package tunnel

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// longestObjectName is the longest name of a Tunnel object, so that the name
	// can be the value of a label.
	longestObjectName = 63
	// longestTunnelName is the longest name of a tunnel at Cloudflare. The API
	// accepts longer ones.
	longestTunnelName = 96
	// connectorNameCut leaves room for the hash, and for the hash and the suffix
	// that a Deployment appends to the names of its pods: a pod's name has 63
	// characters at most.
	connectorNameCut = 29
	// hashDigits is the number of hex digits of the hash that ends a name.
	hashDigits = 16
	// clusterIDDigits is the number of hex digits of the default cluster ID.
	clusterIDDigits = 10
)

// ObjectName returns the name of a Gateway's Tunnel object. A namespace has no
// dot, so Gateways in different namespaces never share a name. A Gateway can
// only share the name of another one in its namespace if its own name spells out
// the hash that ends the other one's.
func ObjectName(gateway types.NamespacedName) string {
	return Shorten(gateway.Namespace+"."+gateway.Name, longestObjectName, gateway.String())
}

// ConnectorName returns the name of every object that runs the Gateway's
// connectors. It is a DNS label of at most 46 characters.
func ConnectorName(gateway types.NamespacedName) string {
	name := strings.ReplaceAll(gateway.Namespace+"."+gateway.Name, ".", "-")
	return cut(name, connectorNameCut, gateway.String())
}

// RemoteName returns the name of a Gateway's tunnel at Cloudflare. It begins
// with NamePrefix.
func RemoteName(clusterID string, gateway types.NamespacedName) string {
	return Shorten(NamePrefix(clusterID)+gateway.Namespace+"."+gateway.Name, longestTunnelName, gateway.String())
}

// NamePrefix returns the prefix of the names of all tunnels of an installation.
func NamePrefix(clusterID string) string { return clusterID + "." }

// DefaultClusterID returns the cluster ID of an installation without an explicit
// one. It stays the same when the controller's namespace is deleted, and changes
// when the cluster is rebuilt.
func DefaultClusterID(clusterUID, controllerName string) string {
	return digest(clusterUID + "/" + controllerName)[:clusterIDDigits]
}

// Shorten returns the name if it has at most longest characters. Otherwise it
// cuts the name and appends a hash of identity, which distinguishes the names
// that begin alike.
func Shorten(name string, longest int, identity string) string {
	if len(name) <= longest {
		return name
	}
	return cut(name, longest-1-hashDigits, identity)
}

// cut returns at most length characters of the name, followed by a dash and a
// hash of identity.
func cut(name string, length int, identity string) string {
	// A part of a DNS name cannot end with either character.
	return strings.TrimRight(name[:min(length, len(name))], ".-") + "-" + digest(identity)[:hashDigits]
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
