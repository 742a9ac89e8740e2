package tunnel

import (
	"fmt"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

const (
	// blockedChangeInterval is how often a blocked data plane change is checked.
	blockedChangeInterval = blockedRotationInterval
	// acknowledgementInterval is how often Envoy acknowledgements are checked. Not
	// every acknowledgement triggers a check.
	acknowledgementInterval = 2 * time.Second
	// terminationInterval is how often the pods are checked while every replica is
	// available and earlier pods stop. No event reports when a pod has ended.
	terminationInterval = 5 * time.Second
)

// untilReady returns what a change to Envoy waits for before the configuration may lead
// to Envoy. The zero value means that every connector of the tunnel can use Envoy.
func (f Facts) untilReady() progress {
	for _, check := range []func(Facts) progress{untilRolledOut, untilAcknowledged, untilNoSurplus} {
		if p := check(f); p.step.Action != "" {
			return p
		}
	}
	return progress{}
}

// untilRolledOut waits until every pod has Envoy and is available. Terminating pods count.
func untilRolledOut(f Facts) progress {
	switch c := f.Connectors; {
	case !c.Current:
		return waiting(rolloutInterval, "The controller adds Envoy to the connectors; the ingress rules keep serving.")
	case c.WithoutEnvoy > 0 || !c.RolledOut || c.Ready < c.Desired:
		return f.waitForRollout("with", c.WithoutEnvoy, "without")
	}
	return progress{}
}

// waitForRollout waits until every pod has Envoy (wanted is "with") or until no pod has
// Envoy ("without"). left counts the remaining pods, and outdated describes them.
func (f Facts) waitForRollout(wanted string, left int, outdated string) progress {
	c := f.Connectors
	if c.NotReady != "" {
		return waiting(rolloutInterval, fmt.Sprintf("%s The ingress rules serve the Gateway; the change continues when every pod is ready %s Envoy.", c.NotReady, wanted))
	}
	interval := rolloutInterval
	if c.Ready >= c.Desired {
		interval = terminationInterval
	}
	return waiting(interval, fmt.Sprintf("The rollout of connectors %s Envoy is not complete: %d of %d connectors are available, remaining pods %s Envoy: %d.", wanted, c.Ready, c.Desired, outdated, left))
}

// untilAcknowledged waits until an Envoy is connected, unless no connector is desired,
// and every connected Envoy has acknowledged the last publication.
func untilAcknowledged(f Facts) progress {
	switch e := f.Envoys; {
	case e.Rejected != "":
		return f.blockedChange("Envoy rejected the configuration: %s. "+
			"The ingress rules keep serving; set dataPlane to IngressRules again, and report this message as a bug in the controller.", strings.TrimSuffix(e.Rejected, "."))
	case e.Connected == 0 && f.Connectors.Desired > 0:
		return waiting(rolloutInterval, "The ingress rules keep serving until an Envoy is connected to the controller.")
	case e.Connected > 0 && !e.Acknowledged && e.Late:
		return waiting(rolloutInterval, "A connected Envoy does not acknowledge the configuration, so the ingress rules keep serving. Check the connector pods.")
	case e.Connected > 0 && !e.Acknowledged:
		p := waiting(acknowledgementInterval, "The ingress rules keep serving until every connected Envoy has acknowledged the configuration.")
		if step := f.awaitEnvoys(); step.Action != "" {
			p.step = step
		}
		return p
	}
	return progress{}
}

// untilNoSurplus waits while Cloudflare lists a connector that this controller does not
// run, because requests to it would fail.
func untilNoSurplus(f Facts) progress {
	switch surplus, remaining := f.surplus(); {
	case f.Memory.Remote.Connections.stale(f.Uptime):
		step := f.attemptCall(TrackTunnel, Step{Action: ListConnections})
		message := "The controller lists the tunnel's connectors."
		if step.Problem != nil {
			message = f.withRetryTime(step.Problem).Message
		}
		return progress{step: step, message: message}
	case surplus && remaining > 0:
		return progress{step: waitFor(remaining), message: "Cloudflare lists more connectors than there are pods. The controller waits until Cloudflare no longer lists the connectors of stopped pods."}
	case surplus:
		return f.blockedChange("Connectors that this controller does not run are connected to tunnel %s, and they have no Envoy. "+
			"Stop them; the ingress rules keep serving until then.", f.Object.Status.TunnelID)
	}
	return progress{}
}

// blockedChange waits until a user has fixed what blocks the change.
func (f Facts) blockedChange(format string, args ...any) progress {
	p := problem(conditions.ReasonDataPlaneBlocked, format, args...)
	step := waitFor(blockedChangeInterval)
	step.Problem = p
	return progress{step: step, message: p.Message}
}
