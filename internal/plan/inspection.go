package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// maxSteps ends decisions that do not come to an end, which would be a defect.
const maxSteps = 50

// inspection runs the decisions about one tunnel. It executes only the steps that read
// Cloudflare, makes the changes of the Tunnel object in memory, and ends at the
// first step that would change anything else.
type inspection struct {
	facts tunnel.Facts
	open  func(context.Context) (provider.Provider, error)
	// notes are what the decisions found out about the tunnel.
	notes []string
}

// run returns the step at which the decisions end.
func (l *inspection) run(ctx context.Context) (tunnel.Step, error) {
	for range maxSteps {
		step := tunnel.Decide(l.facts)
		switch step.Action {
		case tunnel.Claim, tunnel.Record:
			l.record(step)
		case tunnel.ReadTunnel, tunnel.FindByName, tunnel.ReadConfiguration:
			if err := l.read(ctx, step); err != nil {
				return step, err
			}
		default:
			return step, nil
		}
	}
	return tunnel.Step{}, fmt.Errorf("the decisions about its tunnel did not end within %d steps", maxSteps)
}

// record changes the Tunnel object in memory.
func (l *inspection) record(step tunnel.Step) {
	if step.Record != nil {
		l.facts.Object.Status = *step.Record
	}
	if e := step.Event; e != nil && (e.Reason == tunnel.EventTunnelFound || e.Reason == tunnel.EventTunnelLost) {
		l.notes = append(l.notes, e.Message)
	}
	l.facts.Memory = tunnel.Conclude(l.facts.Memory, step, tunnel.Result{Uptime: uptime})
}

// read executes a step that reads Cloudflare. That the tunnel does not exist, or
// is locally managed, is a result like any other.
func (l *inspection) read(ctx context.Context, step tunnel.Step) error {
	p, err := l.open(ctx)
	if err != nil {
		return err
	}
	r, object := tunnel.Result{Uptime: uptime}, l.facts.Object
	id := provider.TunnelID(object.Status.TunnelID)
	switch step.Action {
	case tunnel.ReadTunnel:
		r.Tunnel, r.Err = p.Tunnel(ctx, id)
	case tunnel.FindByName:
		r.Tunnel, r.Err = p.FindTunnel(ctx, object.Spec.Name)
	default:
		r.Configuration, r.Version, r.Err = p.Configuration(ctx, id)
	}
	if r.Err != nil && !errors.Is(r.Err, provider.ErrNotFound) && !errors.Is(r.Err, provider.ErrLocallyManaged) {
		return r.Err
	}
	l.facts.Memory = tunnel.Conclude(l.facts.Memory, step, r)
	if step.Action != tunnel.ReadConfiguration {
		// The configuration of another tunnel can be read without a wait.
		l.facts.Memory.Backoffs[tunnel.TrackConfiguration] = tunnel.Backoff{}
	}
	return nil
}
