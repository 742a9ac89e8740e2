// Package ownership has what DNS records and applications of Cloudflare Access have in
// common: the installation to which they belong, and what may happen to what a Gateway owns
// at Cloudflare.
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O.
package ownership

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// Identity is the identity of an installation: a controller with its cluster and its key.
type Identity struct {
	// ClusterID identifies the installation.
	ClusterID string
	// ClusterUID is the UID of the namespace kube-system. A backup of the objects that is
	// restored in another cluster has another one.
	ClusterUID string
	// Key signs what the controller owns. Without a key, the controller changes nothing.
	Key []byte
}

// MAC returns an authentication code (32 bytes) over the cluster ID, the cluster UID and
// the parts. Each part is preceded by its length, so that no two lists of parts have the
// same encoding.
func (i Identity) MAC(parts ...string) []byte {
	h := hmac.New(sha256.New, i.Key)
	for _, part := range append([]string{i.ClusterID, i.ClusterUID}, parts...) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash returns no error
		_, _ = h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// State is what may happen to what a Gateway owns at Cloudflare.
type State int

const (
	// Unknown means that the controller has not decided about the Gateway since the
	// process started, or that it is unknown whether the Gateway exists. Nothing changes
	// for it.
	Unknown State = iota
	// Accepted means that the Gateway exists and is accepted.
	Accepted
	// Rejected means that the Gateway exists and is not accepted. Nothing is created or
	// removed for it, except for a missing permission.
	Rejected
	// Frozen means that the Gateway exists and is paused, or its Tunnel is Blocked.
	// Nothing changes for it, and nothing moves away from it.
	Frozen
	// Departed means that the Gateway is gone and its Tunnel is Retained or Blocked.
	// Nothing changes for it, but what it owns can move to other Gateways after a delay.
	Departed
	// Retiring means that the Gateway is gone, and its Tunnel waits until what the Gateway
	// owns was moved or deleted.
	Retiring
)
