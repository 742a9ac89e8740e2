package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Change is a change of the data plane that is in progress, or that the settings ask for but
// that cannot begin.
type Change struct {
	// To is the data plane that will serve the Gateway.
	To v1alpha1.DataPlane
	// Phase is the phase of the change; empty if it has not begun.
	Phase v1alpha1.DataPlaneChangePhase
	// Reason is [ReasonDataPlaneChanging], or the reason of the problem that delays the
	// change.
	Reason Reason
	// Message describes what the change waits for.
	Message string
	// StartedAt is the time when the change began; zero if it has not begun.
	StartedAt time.Time
}

// RunsEnvoy reports whether the connectors of the Tunnel have Envoy now, according to the
// record.
func RunsEnvoy(t *v1alpha1.Tunnel) bool {
	if t != nil && t.Status.DataPlaneChange != nil {
		return t.Status.DataPlaneChange.Phase != v1alpha1.DataPlaneRemovingEnvoy
	}
	return RecordedDataPlane(t) == v1alpha1.DataPlaneEnvoy
}

// NeedsBoth reports whether the routing tables of both data planes are needed: while the data
// plane changes, and while the settings ask for another data plane than the Tunnel records.
func NeedsBoth(t *v1alpha1.Tunnel, wanted v1alpha1.DataPlane) bool {
	recorded := RecordedDataPlane(t)
	return recorded != "" && (recorded != wanted || t.Status.DataPlaneChange != nil)
}
