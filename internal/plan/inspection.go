package plan

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// maxSteps limits the steps. Only a defect can reach it.
const maxSteps = 50

// inspection simulates the controller for one tunnel. It executes the steps that read
// from Cloudflare, applies changes to the Tunnel object in memory, and ends before the
// first step that would change anything else. While the data plane changes, it assumes
// that the steps succeed, and continues until the change ends.
type inspection struct {
	decision *decision.Decision
	facts    tunnel.Facts
	open     func(context.Context) (provider.Provider, error)
	// notes are remarks about the tunnel.
	notes []string
	// write is the first configuration write that was assumed, and remote the
	// configuration before it; nil if none was.
	write  *tunnel.Step
	remote *tunnel.RemoteConfiguration
}

// run executes the steps and returns the first step that it does not execute.
func (i *inspection) run(ctx context.Context) (tunnel.Step, error) {
	i.noteChange(i.facts.Object.Status.DataPlaneChange)
	for range maxSteps {
		i.facts.Desired = desired(i.decision, i.facts) // the last step may have changed the data plane
		step := tunnel.Decide(i.facts)
		if i.assume(step) {
			continue
		}
		switch step.Action {
		case tunnel.Claim, tunnel.Record:
			i.record(step)
		case tunnel.ReadTunnel, tunnel.FindByName, tunnel.ReadConfiguration:
			if err := i.read(ctx, step); err != nil {
				return step, err
			}
		default:
			if i.write != nil {
				return *i.write, nil
			}
			return step, nil
		}
	}
	return tunnel.Step{}, fmt.Errorf("the tunnel inspection did not end within %d steps", maxSteps)
}

// record applies a step that changes the Tunnel object, in memory.
func (i *inspection) record(step tunnel.Step) {
	if step.Record != nil {
		if next := step.Record.DataPlaneChange; !equality.Semantic.DeepEqual(i.facts.Object.Status.DataPlaneChange, next) {
			i.noteChange(next)
		}
		i.facts.Object.Status = *step.Record
	}
	if e := step.Event; e != nil && (e.Reason == conditions.EventTunnelFound || e.Reason == conditions.EventTunnelLost) {
		i.notes = append(i.notes, e.Message)
	}
	i.facts.Memory = tunnel.Conclude(i.facts.Memory, step, tunnel.Result{Uptime: uptime})
}

// read executes a step that reads from Cloudflare. A missing or a locally managed
// tunnel is a result, not an error.
func (i *inspection) read(ctx context.Context, step tunnel.Step) error {
	p, err := i.open(ctx)
	if err != nil {
		return err
	}
	r, object := tunnel.Result{Uptime: uptime}, i.facts.Object
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
	i.facts.Memory = tunnel.Conclude(i.facts.Memory, step, r)
	if step.Action != tunnel.ReadConfiguration {
		// The configuration's backoff applies to the previous tunnel.
		i.facts.Memory.Backoffs[tunnel.TrackConfiguration] = tunnel.Backoff{}
	}
	return nil
}
