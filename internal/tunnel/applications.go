package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// applicationsTimeout is how long the Tunnel object of a deleted tunnel waits for its
// applications of Cloudflare Access. Applications that remain protect nothing, and are
// reported as orphans. The time without an answer from Cloudflare does not count.
const applicationsTimeout = 10 * time.Minute

// Access describes the applications of the Gateway's hostnames. Its zero value means that the
// controller manages no applications in the account.
type Access struct {
	// Unreleased reports whether applications remain that are handed over to another Gateway
	// or deleted before the Tunnel object of a deleted tunnel is deleted.
	Unreleased bool
	// RetryAt is the uptime before which the applications cannot be released, because the last
	// request has failed; 0 if it has not.
	RetryAt time.Duration
	// Status is what the Tunnel reports about the applications; nil for none.
	Status *v1alpha1.TunnelAccessStatus
}

// releaseApplications waits until the applications were handed over to other Gateways or
// deleted. Until the tunnel was deleted, its rules demand their tokens.
func releaseApplications(f Facts) Step {
	if !f.Access.Unreleased {
		return Step{}
	}
	remaining := applicationsTimeout
	if since := f.Memory.ApplicationsRemainSince; since.IsSet() {
		remaining -= since.Since(f.Uptime)
	}
	if remaining <= 0 {
		return Step{}
	}
	w := waitFor(remaining)
	w.Problem = problem(conditions.ReasonApplicationsRemain, "Applications of Cloudflare Access that the controller manages remain for the deleted tunnel. "+
		"The controller hands them over to other Gateways or deletes them. It deletes the Tunnel after at most %s.", applicationsTimeout)
	return w
}

// awaitApplications notes since when the Tunnel waits for its applications.
func (m Memory) awaitApplications(f Facts) Memory {
	f.Memory = m
	switch {
	case f.Object == nil || DepartureOf(f) != ReleasesApplications:
		m.ApplicationsRemainSince = Instant{}
	case f.Access.Unreleased:
		m.ApplicationsRemainSince = m.ApplicationsRemainSince.orLater(f.Uptime, f.Access.RetryAt)
	}
	return m
}
