package tunnel

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// lifecycle is the stage that a Tunnel is in.
type lifecycle int

const (
	lifecycleUnknown  lifecycle = iota // it is unknown whether the Gateway exists
	lifecycleServing                   // the Gateway exists
	lifecycleMissing                   // the Gateway is gone, and the retirement delay has not passed
	lifecycleReturned                  // the Gateway exists, but the deletion of its tunnel has begun
	lifecycleRetiring                  // the Gateway is gone, and the retirement delay has passed
)

// restoredDelay is the retirement delay for a Tunnel that has not recorded a Gateway
// UID: it was restored without its status, perhaps before its Gateway.
const restoredDelay = time.Hour

func (f Facts) lifecycle() lifecycle {
	switch {
	case f.gatewayMissing():
		if since := f.Memory.MissingSince; since.IsSet() && since.Since(f.Uptime) >= f.retirementDelay() {
			return lifecycleRetiring
		}
		return lifecycleMissing
	case f.Gateway.State == GatewayUnknown:
		return lifecycleUnknown
	case f.Object.Status.Deleting:
		return lifecycleReturned
	default:
		return lifecycleServing
	}
}

// gatewayMissing reports whether the Tunnel's Gateway is gone or not managed by this
// controller. A new Gateway with the same name resumes the Tunnel only if their
// identities agree; otherwise the Tunnel's Gateway counts as missing.
func (f Facts) gatewayMissing() bool {
	switch f.Gateway.State {
	case GatewayGone, GatewayNotManaged:
		return true
	case GatewayExists:
		recorded := types.UID(f.Object.Status.GatewayUID)
		return recorded != "" && recorded != f.Gateway.UID && f.Desired != nil && !specsAgree(f.Object.Spec, f.Desired.Spec)
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

// objectProblem returns the problem that forbids using the Tunnel object, or nil.
func (f Facts) objectProblem() *Problem {
	spec := f.Object.Spec
	switch {
	case spec.ControllerName != f.Options.ControllerName,
		spec.Gateway != v1alpha1.GatewayReference{Namespace: f.Name.Namespace, Name: f.Name.Name}:
		return problem(conditions.ReasonObjectMismatch, "Tunnel %s belongs to Gateway %s/%s of controller %s, so this Gateway cannot use it. Delete the Tunnel object; the controller then creates a new one.",
			f.Object.Name, spec.Gateway.Namespace, spec.Gateway.Name, spec.ControllerName)
	case spec.ClusterUID != f.Options.ClusterUID:
		return problem(conditions.ReasonOtherCluster, "Tunnel %s was created in another cluster (UID %s), so the controller does not change its tunnel. "+
			"Delete the Tunnel object if this cluster replaces the other cluster.", f.Object.Name, spec.ClusterUID)
	}
	return f.versionProblem()
}

// Observe returns the Memory after the Facts were gathered. The controller calls it
// before each [Decide]. It updates the time since which the Gateway is missing, resets
// backoffs when the credentials were replaced, begins a requested reconcile, notes
// since when Envoys have not acknowledged their routes, and forgets the tunnel when the
// Tunnel object is gone.
func Observe(f Facts) Memory {
	m := f.Memory
	switch {
	case f.Object == nil:
		m = m.WithoutObject()
	case !f.gatewayMissing():
		m.MissingSince, m.StatusesWithdrawn, m.ConnectorsStopped = Instant{}, false, Instant{}
	case !m.MissingSince.IsSet():
		m.MissingSince = At(f.Uptime)
	}
	if f.Object != nil && f.Object.Spec.Paused {
		m.Drift = Drift{} // a paused configuration may be changed externally
	}
	if f.Credentials.State == CredentialsUsable && m.CredentialsVersion != f.Credentials.Version {
		m.CredentialsVersion = f.Credentials.Version
		m.RecordsRemainSince, m.ApplicationsRemainSince = Instant{}, Instant{} // the other token may have prevented their release
		m.Backoffs[TrackTunnel], m.Backoffs[TrackConfiguration], m.Backoffs[TrackToken] = Backoff{}, Backoff{}, Backoff{}
	}
	switch {
	case f.Object == nil || !DependsOnPods(f) || f.Connectors.Pods >= f.connectedCount():
		m.SurplusSince = Instant{} // Connectors.Pods is 0 unless a decision depends on it
	case !m.SurplusSince.IsSet():
		m.SurplusSince = At(f.Uptime)
	}
	return f.observeEnvoys(m).startRefresh(f).awaitRecords(f).awaitApplications(f)
}

// WithoutObject returns the Memory after the Tunnel object is gone. The next object
// must find the tunnel again. Requests that Cloudflare may still apply are remembered.
func (m Memory) WithoutObject() Memory {
	return Memory{
		Created: m.Created, Deleted: m.Deleted, LateWrites: m.LateWrites, Push: m.Push, Updates: m.Updates, Revocations: m.Revocations, Drift: m.Drift,
		CredentialsVersion: m.CredentialsVersion, Backoffs: m.Backoffs,
	}
}

// connectedCount counts the connectors that Cloudflare lists as connected.
func (f Facts) connectedCount() int {
	n := 0
	for _, c := range f.Memory.Remote.Connections.Connectors {
		if c.Connected {
			n++
		}
	}
	return n
}

// specsAgree reports whether two specs identify the same tunnel.
func specsAgree(a, b v1alpha1.TunnelSpec) bool { return Disagreement(a, b) == "" }

// Disagreement names the first setting in which the desired spec identifies another
// tunnel than the recorded spec. It returns "" if they agree.
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

// DesiredSpec returns the spec that the Tunnel must have now. The controller overwrites
// the whole spec only while the Gateway exists and its settings agree with the recorded
// identity. While they disagree, it overwrites only spec.paused; while the Gateway does
// not exist or its state is unknown, it overwrites nothing.
func DesiredSpec(f Facts) v1alpha1.TunnelSpec {
	if f.Object == nil {
		spec := *f.Desired.Spec.DeepCopy()
		spec.Paused = f.Gateway.Paused
		return spec
	}
	spec := *f.Object.Spec.DeepCopy()
	if f.Gateway.State != GatewayExists || f.gatewayMissing() {
		return spec
	}
	if f.Desired != nil && specsAgree(spec, f.Desired.Spec) {
		spec = *f.Desired.Spec.DeepCopy()
	}
	spec.Paused = f.Gateway.Paused
	return spec
}

// statusWith returns a copy of the status with the change applied, and with this
// controller's version.
func (f Facts) statusWith(change func(*v1alpha1.TunnelStatus)) *v1alpha1.TunnelStatus {
	status := f.Object.Status.DeepCopy()
	change(status)
	status.SchemaVersion = SchemaVersion
	return status
}

// jitter returns a fraction of d that depends on the Gateway's name, so that many
// Tunnels do not act at the same time.
func (f Facts) jitter(d time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.Name.String())) // never fails
	const steps = 1000
	return d / steps * time.Duration(h.Sum32()%steps)
}

// adopts reports whether the Tunnel adopts an existing tunnel.
func (f Facts) adopts() bool { return f.Object.Spec.Existing != nil }
