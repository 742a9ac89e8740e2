package tunnel

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxObjectName limits the length of a Tunnel object's name. The name must be a
	// valid label value.
	maxObjectName = 63
	// maxTunnelName limits the length of a tunnel's name at Cloudflare. The API accepts
	// longer names.
	maxTunnelName = 96
	// maxConnectorNamePrefix limits the length of a connector name without its hash. A
	// Deployment appends suffixes to its pods' names, which may have at most 63
	// characters.
	maxConnectorNamePrefix = 29
	// hashDigits is how many hex digits end a name.
	hashDigits = 16
	// clusterIDDigits is how many hex digits the default cluster ID has.
	clusterIDDigits = 10
)

// ObjectName returns the name of a Gateway's Tunnel object. A namespace contains no
// dot, so Gateways in different namespaces never get the same name. Two Gateways in one
// namespace get the same name only if the name of one ends with the hash of the other.
func ObjectName(gateway types.NamespacedName) string {
	return Shorten(gateway.Namespace+"."+gateway.Name, maxObjectName, gateway.String())
}

// ConnectorName returns the name that all objects which run the Gateway's connectors
// have. It is a DNS label with at most 46 characters.
func ConnectorName(gateway types.NamespacedName) string {
	name := strings.ReplaceAll(gateway.Namespace+"."+gateway.Name, ".", "-")
	return truncateName(name, maxConnectorNamePrefix, gateway.String())
}

// RemoteName returns the name of a Gateway's tunnel at Cloudflare. It begins
// with NamePrefix.
func RemoteName(clusterID string, gateway types.NamespacedName) string {
	return Shorten(NamePrefix(clusterID)+gateway.Namespace+"."+gateway.Name, maxTunnelName, gateway.String())
}

// NamePrefix returns the prefix with which all tunnel names in an installation begin.
func NamePrefix(clusterID string) string { return clusterID + "." }

// DefaultClusterID returns the cluster ID for an installation without an explicit one.
// It stays the same when the controller's namespace is deleted, and changes when the
// cluster is rebuilt.
func DefaultClusterID(clusterUID, controllerName string) string {
	return shortHash(clusterUID + "/" + controllerName)[:clusterIDDigits]
}

// Shorten returns the name if it has at most longest characters. Otherwise it cuts the
// name and appends a hash of identity, so that names with the same beginning differ.
func Shorten(name string, longest int, identity string) string {
	if len(name) <= longest {
		return name
	}
	return truncateName(name, longest-1-hashDigits, identity)
}

// truncateName returns at most length characters from the name, followed by a dash and
// a hash of identity.
func truncateName(name string, length int, identity string) string {
	// A label in a DNS name cannot end with either character.
	return strings.TrimRight(name[:min(length, len(name))], ".-") + "-" + shortHash(identity)[:hashDigits]
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
