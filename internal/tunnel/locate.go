package tunnel

import (
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// locate makes sure that the tunnel is known: an existing one, one of the
// Gateway's name, or a new one.
func locate(f Facts) Step {
	switch {
	case f.adopts():
		return locateExisting(f)
	case f.Object.Status.TunnelID == "":
		return locateByName(f)
	case f.Memory.Remote.Configuration.Missing:
		return confirmLoss(f)
	default:
		return Step{}
	}
}

// locateExisting reads an existing tunnel before its first configuration, and
// when Cloudflare did not find it. A missing one is never replaced.
func locateExisting(f Facts) Step {
	remote, served := f.Memory.Remote, f.Object.Status.Configuration.Hash != ""
	if served && !remote.Configuration.Missing {
		return Step{}
	}
	if remote.Tunnel.Presence != Present || string(remote.Tunnel.ID) != f.Object.Spec.Existing.ID {
		return f.request(TrackTunnel, Step{Action: ReadTunnel})
	}
	if name := remote.Tunnel.Name; strings.HasPrefix(name, NamePrefix(f.Options.ClusterID)) && name != f.Object.Spec.Name {
		return blocked(problem(ReasonNameReserved, "Tunnel %s was created for another Gateway of this cluster. Name another tunnel in tunnel.existing.id.", f.Object.Spec.Existing.ID))
	}
	return Step{}
}

// locateByName finds the tunnel of the Gateway's name or creates it.
func locateByName(f Facts) Step {
	status, found := f.Object.Status, f.Memory.Remote.Tunnel
	if status.Creating && found.Presence != Present {
		// The tunnel of a create that was not answered may still appear.
		if left := provider.CallTimeout - f.Memory.Created.since(f.Uptime); left > 0 {
			w := waitFor(left)
			w.Problem = f.Memory.Backoffs[TrackTunnel].Problem
			return w
		}
	}
	switch found.Presence {
	case Present:
		return f.recordTunnel()
	case Absent:
		step := Step{Action: Create}
		if !status.Creating {
			step.Record = f.record(func(s *v1alpha1.TunnelStatus) { s.Creating = true })
		}
		return f.request(TrackTunnel, step)
	default:
		return f.request(TrackTunnel, Step{Action: FindByName})
	}
}

// recordTunnel records the tunnel that was created or found.
func (f Facts) recordTunnel() Step {
	found := f.Memory.Remote.Tunnel
	var event *Event
	switch {
	case f.Object.Status.TunnelID == string(found.ID): // it is recorded already
	case f.Memory.Remote.Configuration.Known:
		event = &Event{Reason: EventTunnelCreated, Message: fmt.Sprintf("Created tunnel %s (%s).", found.Name, found.ID)}
	default:
		event = &Event{Reason: EventTunnelFound, Message: fmt.Sprintf("Found tunnel %s (%s), which gets the configuration of this Gateway.", found.Name, found.ID)}
	}
	return Step{Action: Record, Event: event, Record: f.record(func(s *v1alpha1.TunnelStatus) {
		if s.TunnelID != string(found.ID) {
			s.Configuration, s.Token = v1alpha1.ConfigurationRecord{}, v1alpha1.TokenStatus{}
		}
		s.TunnelID, s.Creating = string(found.ID), false
	})}
}

// confirmLoss looks whether the recorded tunnel, which Cloudflare did not find,
// was deleted.
func confirmLoss(f Facts) Step {
	switch found := f.Memory.Remote.Tunnel; found.Presence {
	case Present: // another tunnel of the name
		return f.recordTunnel()
	case Absent:
		return Step{
			Action: Record,
			Event: &Event{Reason: EventTunnelLost, Warning: true, Message: fmt.Sprintf(
				"Somebody deleted tunnel %s at Cloudflare. The controller creates a new tunnel with a new address.", f.Object.Status.TunnelID)},
			Record: f.record(func(s *v1alpha1.TunnelStatus) {
				s.TunnelID, s.Creating, s.Configuration, s.Token = "", false, v1alpha1.ConfigurationRecord{}, v1alpha1.TokenStatus{}
			}),
		}
	default:
		return f.request(TrackTunnel, Step{Action: FindByName})
	}
}
