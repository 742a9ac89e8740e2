package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

const (
	// releaseTimeout is how long a retiring Tunnel waits for its DNS records, and then for its
	// applications, after the last time in which they could not be released.
	releaseTimeout = 10 * time.Minute
	// maxReleaseTimeout is how long it waits at most.
	maxReleaseTimeout = 24 * time.Hour
)

// untilReleased returns the time for which a Tunnel waits that has waited since then.
func untilReleased(since Instant, blockedUntil, now time.Duration) time.Duration {
	begin := now
	if since.IsSet() {
		begin = since.at
	}
	return min(max(begin, blockedUntil)+releaseTimeout, begin+maxReleaseTimeout) - now
}

// releaseRecords waits until the DNS records that lead to the tunnel were moved to other
// Gateways or deleted. Records that lead to a deleted tunnel would answer with an error page; records
// that remain are reported as orphans. A deletion that has begun does not wait.
func releaseRecords(f Facts) Step {
	if !f.DNS.Unreleased || f.Object.Status.Deleting {
		return Step{}
	}
	remaining := untilReleased(f.Memory.RecordsRemainSince, f.DNS.BlockedUntil, f.Uptime)
	if remaining <= 0 {
		return Step{}
	}
	w := waitFor(remaining)
	w.Problem = problem(conditions.ReasonRecordsRemain, "DNS records that the controller manages still lead to the tunnel. "+
		"The controller moves them to other Gateways or deletes them. It deletes the tunnel after at most %s in which Cloudflare answers.", releaseTimeout)
	return w
}

// Departure is what becomes of the DNS records and the applications of a Tunnel whose Gateway
// is gone.
type Departure int

const (
	// Undecided means that the Gateway exists, that it is unknown whether it exists, or
	// that its Tunnel does not retire yet.
	Undecided Departure = iota
	// KeepsTunnel means that the tunnel is retained, or that the Tunnel is blocked.
	KeepsTunnel
	// ReleasesRecords means that the connectors have ended, and that the tunnel is deleted
	// after its records.
	ReleasesRecords
	// ReleasesApplications means that the tunnel was deleted, or belongs to another Tunnel, and
	// that the Tunnel object is deleted after its applications.
	ReleasesApplications
)

// DepartureOf returns what becomes of the Tunnel's DNS records and applications. The Tunnel
// must exist.
func DepartureOf(f Facts) Departure {
	switch {
	case f.lifecycle() != lifecycleRetiring:
		return Undecided
	case f.objectProblem() != nil || f.retains():
		return KeepsTunnel
	}
	for _, r := range []rule{keepPaused, stopConnectors, waitForPods} {
		step := r(f)
		switch {
		case step.Problem != nil && step.Problem.RequiresAction:
			return KeepsTunnel
		case step.Action != "":
			return Undecided
		}
	}
	if releaseRecords(f).Action != "" || deleteTunnel(f).Action != "" {
		return ReleasesRecords
	}
	return ReleasesApplications
}

// awaitRecords notes since when the Tunnel waits for its DNS records.
func (m Memory) awaitRecords(f Facts) Memory {
	f.Memory = m
	switch {
	case f.Object == nil || DepartureOf(f) < ReleasesRecords:
		m.RecordsRemainSince = Instant{}
	case f.DNS.Unreleased && !m.RecordsRemainSince.IsSet():
		m.RecordsRemainSince = At(f.Uptime)
	}
	return m
}
