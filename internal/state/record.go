package state

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Annotations and the finalizer on a Gateway.
const (
	// RecordAnnotation holds the Record of the Gateway's tunnel.
	RecordAnnotation = "tunnelgateway.dev/tunnel"
	// TakeoverAnnotation, set to "true" by a user, permits the controller to
	// replace the configuration of a tunnel that it did not make.
	TakeoverAnnotation = "tunnelgateway.dev/takeover"
	// PausedAnnotation, set to "true" by a user, keeps the controller from
	// changing anything at Cloudflare.
	PausedAnnotation = "tunnelgateway.dev/paused"
	// DeletionPolicyAnnotation says what becomes of the tunnel when its Gateway
	// is deleted: see [DeletionPolicy].
	DeletionPolicyAnnotation = "tunnelgateway.dev/deletion-policy"
	// Finalizer keeps a Gateway until its tunnel is let go.
	Finalizer = "tunnelgateway.dev/tunnel"
)

// MessagePaused says of a Gateway that nothing is pushed.
const MessagePaused = "The Gateway is paused by its annotation " + PausedAnnotation + ": changes are computed, and not pushed."

// DeletionPolicy is what becomes of a tunnel when its Gateway is let go.
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionDelete deletes the tunnel. It is the default.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionRetain leaves the tunnel and its configuration as they are, and
	// makes no call to Cloudflare.
	DeletionRetain DeletionPolicy = "Retain"
)

// Origin says how a Gateway came to its tunnel.
type Origin string

// The origins of a tunnel.
const (
	// OriginCreated: we made it, now or in the life of an earlier cluster of the
	// same ID; it has the Gateway's name, and what is in it is ours.
	OriginCreated Origin = "created"
	// OriginAdopted: it existed, with a configuration that we did not write.
	OriginAdopted Origin = "adopted"
)

// Record is what we own for a Gateway, kept in an annotation: status is not a
// record, it can be lost. It is written together with the finalizer, before
// there is a tunnel.
type Record struct {
	// Controller is the name of the controller that holds the Gateway; another
	// one leaves finalizer, tunnel and record alone.
	Controller gatewayv1.GatewayController `json:"controller"`
	// Account is the Cloudflare account of the tunnel.
	Account string            `json:"account"`
	Tunnel  provider.TunnelID `json:"tunnel,omitempty"`
	// Name is the tunnel's, where the settings gave it one.
	Name   string `json:"name,omitempty"`
	Origin Origin `json:"origin,omitempty"`
	// Hash is that of the document that was last written, or is being written.
	Hash string `json:"hash,omitempty"`
	// Previous is the hash of the one before it, which is in effect until the
	// write ends.
	Previous string `json:"previous,omitempty"`
	// Policy is what is to become of the tunnel, as the settings said last: they
	// may be gone when the Gateway goes.
	Policy DeletionPolicy `json:"policy,omitempty"`
	// HTTP2 is true once the Gateway had a GRPCRoute: its connectors talk HTTP/2
	// to the edge from then on, unless the settings say otherwise.
	HTTP2 bool `json:"http2,omitempty"`
	// Late is the hash of a document that was given up shortly before the last
	// one was written, and may replace it yet.
	Late string `json:"late,omitempty"`
	// Contested is true when somebody else kept changing the document, so that
	// it is not written until the Gateway has been paused.
	Contested bool `json:"contested,omitempty"`
	// TakenOver is true once a user has permitted to replace the configuration
	// of an adopted tunnel.
	TakenOver bool `json:"takenOver,omitempty"`
}

// Knows reports whether a document with the hash is one that we wrote.
func (r Record) Knows(hash string) bool {
	return hash != "" && (hash == r.Hash || hash == r.Previous)
}

// MayReplace reports whether a document that somebody else wrote may be
// replaced.
func (r Record) MayReplace() bool { return r.Origin == OriginCreated || r.TakenOver }

// Writing returns the record for the moment before the document with the hash
// is written: until the write has ended, either document may be in effect.
func (r Record) Writing(hash, inEffect string) Record {
	r.Hash, r.Previous, r.Late = hash, inEffect, ""
	return r
}

// ReadRecord returns the record of an object, the zero Record when there is
// none, and an error when it does not parse.
func ReadRecord(object client.Object) (Record, error) {
	text := object.GetAnnotations()[RecordAnnotation]
	if text == "" {
		return Record{}, nil
	}
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("annotation %s: %w", RecordAnnotation, err)
	}
	return r, nil
}

// String returns the record as the annotation holds it.
func (r Record) String() string {
	text, _ := json.Marshal(r) // strings and a boolean always marshal
	return string(text)
}
