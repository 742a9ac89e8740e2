package tunnel

import (
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// locate ensures that the tunnel is known: an existing tunnel, a tunnel with the
// Gateway's name, or a new tunnel.
func locate(f Facts) Step {
	switch {
	case f.adopts():
		return locateExisting(f)
	case f.Object.Status.TunnelID == "":
		return locateByName(f)
	case f.Memory.Remote.Configuration.Missing:
		return handleMissingTunnel(f)
	default:
		return Step{}
	}
}

// locateExisting reads an existing tunnel before its first configuration, and when
// Cloudflare did not find it. A missing existing tunnel is never replaced.
func locateExisting(f Facts) Step {
	remote, served := f.Memory.Remote, f.Object.Status.Configuration.Hash != ""
	if served && !remote.Configuration.Missing {
		return Step{}
	}
	if remote.Tunnel.Presence != Present || string(remote.Tunnel.ID) != f.Object.Spec.Existing.ID {
		return f.attemptCall(TrackTunnel, Step{Action: ReadTunnel})
	}
	if name := remote.Tunnel.Name; strings.HasPrefix(name, NamePrefix(f.Options.ClusterID)) && name != f.Object.Spec.Name {
		p := problem(conditions.ReasonNameReserved, "Tunnel %s was created for another Gateway of this cluster. Set tunnel.existing.id to another tunnel.", f.Object.Spec.Existing.ID)
		return f.rereadTunnel(p, maxBackoff, provider.PriorityChange)
	}
	return Step{}
}

// adoptionEvent returns the event for an existing tunnel whose configuration is recorded
// for the first time, or nil.
func (f Facts) adoptionEvent() *Event {
	if !f.adopts() || f.Object.Status.Configuration.Hash != "" {
		return nil
	}
	return newEvent(conditions.EventTunnelAdopted, "The controller adopted tunnel %s (%s).", f.Memory.Remote.Tunnel.Name, f.Object.Spec.Existing.ID)
}

// rereadTunnel reads the tunnel again when the interval has passed since the last read,
// because a user may have fixed the problem.
func (f Facts) rereadTunnel(p *Problem, interval time.Duration, priority provider.Priority) Step {
	if remaining := interval - f.Memory.Remote.Tunnel.Read.Since(f.Uptime); remaining > 0 {
		w := waitFor(remaining)
		w.Problem = p
		return w
	}
	return f.attemptCall(TrackTunnel, Step{Action: ReadTunnel, Priority: priority})
}

// locateByName finds the tunnel with the Gateway's name, or creates it.
func locateByName(f Facts) Step {
	status, found := f.Object.Status, f.Memory.Remote.Tunnel
	if status.Creating && found.Presence != Present {
		// A create without a response may still be applied.
		if remaining := provider.CallTimeout - f.Memory.Created.Since(f.Uptime); remaining > 0 {
			w := waitFor(remaining)
			w.Problem = f.Memory.Backoffs[TrackTunnel].Problem
			return w
		}
	}
	switch found.Presence {
	case Present:
		return f.recordTunnel()
	case Absent:
		switch {
		case f.createPending():
			return f.attemptCall(TrackTunnel, Step{Action: FindByName})
		case f.Desired == nil || f.Desired.Configuration == nil:
			return Step{} // the controller creates no tunnel for a Gateway that is not accepted
		}
		step := Step{Action: Create, ReadInterval: f.driftInterval()}
		if !status.Creating {
			step.Record = f.statusWith(func(s *v1alpha1.TunnelStatus) { s.Creating = true })
		}
		return f.attemptCall(TrackTunnel, step)
	default:
		return f.attemptCall(TrackTunnel, Step{Action: FindByName})
	}
}

// recordTunnel records the tunnel that was created or found, with an event.
func (f Facts) recordTunnel() Step {
	found := f.Memory.Remote.Tunnel
	var e *Event
	switch {
	case f.Object.Status.TunnelID == string(found.ID): // already recorded
	case f.Memory.Remote.Configuration.Known:
		e = newEvent(conditions.EventTunnelCreated, "The controller created tunnel %s (%s).", found.Name, found.ID)
	default:
		e = newEvent(conditions.EventTunnelFound, "Tunnel %s (%s) has the name of this Gateway's tunnel, so the controller uses it and replaces its configuration.", found.Name, found.ID)
	}
	return Step{Action: Record, Event: e, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) {
		if s.TunnelID != string(found.ID) {
			s.Configuration, s.Token = v1alpha1.ConfigurationRecord{}, v1alpha1.TokenStatus{}
		}
		s.TunnelID, s.Creating = string(found.ID), false
	})}
}

// handleMissingTunnel finds the tunnel by its name after Cloudflare did not find the
// recorded tunnel. If no tunnel has the name, it records the loss.
func handleMissingTunnel(f Facts) Step {
	switch found := f.Memory.Remote.Tunnel; found.Presence {
	case Present: // another tunnel with the name
		return f.recordTunnel()
	case Absent:
		return Step{
			Action: Record,
			Event:  newEvent(conditions.EventTunnelLost, "Another client deleted tunnel %s at Cloudflare. The controller creates a new tunnel, which has a new address.", f.Object.Status.TunnelID),
			Record: f.statusWith(func(s *v1alpha1.TunnelStatus) {
				s.TunnelID, s.Creating, s.Configuration, s.Token = "", false, v1alpha1.ConfigurationRecord{}, v1alpha1.TokenStatus{}
			}),
		}
	default:
		return f.attemptCall(TrackTunnel, Step{Action: FindByName})
	}
}
