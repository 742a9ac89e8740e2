package tunnel

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// life says which part of its life a Tunnel is in.
type life int

const (
	lifeUnknown  life = iota // the API server does not say whether the Gateway exists
	lifeServe                // the Gateway exists
	lifeMissing              // the Gateway is gone, and the retirement delay has not passed
	lifeReturned             // the Gateway exists, and the deletion of its tunnel has begun
	lifeRetire               // the Gateway is gone for good
)

// restoredDelay is the retirement delay of a Tunnel that never recorded a
// Gateway's UID: it was restored without its status, perhaps before its Gateway.
const restoredDelay = time.Hour

func (f Facts) life() life {
	switch {
	case f.missing():
		if since := f.Memory.MissingSince; since.IsSet() && since.since(f.Uptime) >= f.retirementDelay() {
			return lifeRetire
		}
		return lifeMissing
	case f.Gateway.State == GatewayUnknown:
		return lifeUnknown
	case f.Object.Status.Deleting:
		return lifeReturned
	default:
		return lifeServe
	}
}

// missing reports whether the Gateway that the Tunnel serves is gone or not
// managed. A Gateway of the same name that was created anew resumes the Tunnel
// only when its identity agrees.
func (f Facts) missing() bool {
	switch f.Gateway.State {
	case GatewayGone, GatewayNotManaged:
		return true
	case GatewayExists:
		recorded := types.UID(f.Object.Status.GatewayUID)
		return recorded != "" && recorded != f.Gateway.UID && f.Desired != nil && !agree(f.Object.Spec, f.Desired.Spec)
	default:
		return false
	}
}

func (f Facts) retirementDelay() time.Duration {
	if f.Object.Status.GatewayUID == "" {
		return max(restoredDelay, f.Options.RetirementDelay)
	}
	return f.Options.RetirementDelay
}

// unusable returns why the Tunnel object must not be used, or nil.
func (f Facts) unusable() *Problem {
	spec := f.Object.Spec
	switch {
	case spec.ControllerName != f.Options.ControllerName,
		spec.Gateway != v1alpha1.GatewayReference{Namespace: f.Name.Namespace, Name: f.Name.Name}:
		return problem(ReasonObjectMismatch, "Tunnel %s is for Gateway %s/%s of controller %s and is not used. Delete it to let this Gateway have a Tunnel.",
			f.Object.Name, spec.Gateway.Namespace, spec.Gateway.Name, spec.ControllerName)
	case spec.ClusterUID != f.Options.ClusterUID:
		return problem(ReasonOtherCluster, "Tunnel %s was created in another cluster (UID %s), so its tunnel is not touched. "+
			"Delete the Tunnel object if this cluster replaces the other one.", f.Object.Name, spec.ClusterUID)
	}
	return nil
}

// Observe returns the Memory after the Facts were gathered. The controller calls
// it before each [Decide]: it notes since when the Gateway is missing, that the
// credentials were replaced, and that the object is gone.
func Observe(f Facts) Memory {
	m := f.Memory
	switch {
	case f.Object == nil:
		m = m.WithoutObject()
	case !f.missing():
		m.MissingSince, m.StatusesWithdrawn, m.ConnectorsStopped = Instant{}, false, Instant{}
	case !m.MissingSince.IsSet():
		m.MissingSince = At(f.Uptime)
	}
	if f.Object != nil && f.Object.Spec.Paused {
		m.Drift = Drift{} // a person works on the configuration
	}
	if f.Credentials.State == CredentialsUsable && m.CredentialsVersion != f.Credentials.Version {
		m.CredentialsVersion = f.Credentials.Version
		m.Backoffs[TrackTunnel], m.Backoffs[TrackConfiguration], m.Backoffs[TrackToken] = Backoff{}, Backoff{}, Backoff{}
	}
	if f.Connectors.Pods >= f.connected() {
		m.SurplusSince = Instant{}
	} else if !m.SurplusSince.IsSet() {
		m.SurplusSince = At(f.Uptime)
	}
	return m
}

// WithoutObject forgets what is known of a tunnel whose object is gone: the next
// object has to find it again. What may still be under way stays.
func (m Memory) WithoutObject() Memory {
	return Memory{
		Created: m.Created, Deleted: m.Deleted, Late: m.Late, Push: m.Push, Drift: m.Drift,
		CredentialsVersion: m.CredentialsVersion, Backoffs: m.Backoffs,
	}
}

// connected counts the connectors that Cloudflare reported as connected.
func (f Facts) connected() int {
	n := 0
	for _, c := range f.Memory.Remote.Connections.Connectors {
		if c.Connected {
			n++
		}
	}
	return n
}

// agree reports whether two specs identify the same tunnel.
func agree(a, b v1alpha1.TunnelSpec) bool { return Disagreement(a, b) == "" }

// Disagreement names the first setting in which the identity of the desired spec
// differs from the recorded one, or returns "".
func Disagreement(recorded, desired v1alpha1.TunnelSpec) string {
	have, want := ptr.Deref(recorded.Existing, v1alpha1.AdoptedTunnel{}).ID, ptr.Deref(desired.Existing, v1alpha1.AdoptedTunnel{}).ID
	switch {
	case recorded.AccountID != desired.AccountID:
		return "account"
	case have != want:
		return "tunnel.existing"
	case recorded.Name != desired.Name:
		return "--cluster-id"
	case recorded.ClusterUID != desired.ClusterUID, recorded.ControllerName != desired.ControllerName, recorded.Gateway != desired.Gateway:
		return "identity"
	}
	return ""
}

// DesiredSpec returns the spec that the Tunnel should have now. The controller
// overwrites the spec only while the Gateway exists and its settings agree with
// the identity; while they disagree, only paused; otherwise nothing.
func DesiredSpec(f Facts) v1alpha1.TunnelSpec {
	if f.Object == nil {
		return f.Desired.Spec
	}
	spec := *f.Object.Spec.DeepCopy()
	if f.Gateway.State != GatewayExists || f.missing() {
		return spec
	}
	if f.Desired != nil && agree(spec, f.Desired.Spec) {
		spec = *f.Desired.Spec.DeepCopy()
	}
	spec.Paused = f.Gateway.Paused
	return spec
}

// record returns a copy of the status for a step to change.
func (f Facts) record(change func(*v1alpha1.TunnelStatus)) *v1alpha1.TunnelStatus {
	status := f.Object.Status.DeepCopy()
	change(status)
	return status
}

// spread returns a share of d that depends on the Tunnel, so that many Tunnels
// do not act at the same moment.
func (f Facts) spread(d time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.Name.String())) // never fails
	const steps = 1000
	return d / steps * time.Duration(h.Sum32()%steps)
}

// adopts reports whether the Tunnel adopts an existing tunnel.
func (f Facts) adopts() bool { return f.Object.Spec.Existing != nil }
