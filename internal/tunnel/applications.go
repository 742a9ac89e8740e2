package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Access describes the applications of the Gateway's hostnames. Its zero value means that the
// controller manages no applications in the account.
type Access struct {
	// Unreleased reports whether applications remain that are handed over to another Gateway
	// or deleted before the Tunnel object of a deleted tunnel is deleted.
	Unreleased bool
	// BlockedUntil is the uptime until which an outage or another API token may have prevented
	// the release of applications; 0 if neither has.
	BlockedUntil time.Duration
	// Status is what the Tunnel reports about the applications; nil for none.
	Status *v1alpha1.TunnelAccessStatus
}

// releaseApplications waits until the applications were handed over to other Gateways or
// deleted. Until the tunnel was deleted, its rules demand their tokens. Applications that remain
// protect nothing, and are reported as orphans.
func releaseApplications(f Facts) Step {
	if !f.Access.Unreleased {
		return Step{}
	}
	remaining := untilReleased(f.Memory.ApplicationsRemainSince, f.Access.BlockedUntil, f.Uptime)
	if remaining <= 0 {
		return Step{}
	}
	w := waitFor(remaining)
	w.Problem = problem(conditions.ReasonApplicationsRemain, "Applications of Cloudflare Access that the controller manages remain for the deleted tunnel. "+
		"The controller hands them over to other Gateways or deletes them. It deletes the Tunnel after at most %s in which Cloudflare answers.", releaseTimeout)
	return w
}

// awaitApplications notes since when the Tunnel waits for its applications.
func (m Memory) awaitApplications(f Facts) Memory {
	f.Memory = m
	switch {
	case f.Object == nil || DepartureOf(f) != ReleasesApplications:
		m.ApplicationsRemainSince = Instant{}
	case f.Access.Unreleased && !m.ApplicationsRemainSince.IsSet():
		m.ApplicationsRemainSince = At(f.Uptime)
	}
	return m
}
