package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Diff is the difference between the configuration of a Gateway and the one that
// its tunnel has at Cloudflare.
type Diff struct {
	// Tunnel is the tunnel that was read; empty when there is none, or nothing is
	// pushed.
	Tunnel provider.TunnelID `json:"tunnel"`
	// Version is that of the configuration that was read; 0 when there is none.
	Version provider.Version `json:"version"`
	// Different is whether a push would change the configuration of the tunnel.
	Different bool `json:"different"`
	// Unified is the unified diff of both configurations in YAML, with its headers;
	// empty when they are equal.
	Unified string `json:"unified"`
	// Notes say what prevents the push, and what was found out about the tunnel.
	Notes []string `json:"notes"`

	// notCompared is whether nothing is pushed, so that nothing was compared.
	notCompared bool
}

// OpenAccount returns the provider with which the tunnels of an account are read.
type OpenAccount func(ctx context.Context, from credentials.Source) (provider.Provider, error)

// Compare fills in [Gateway.Diff]. It only reads. The error names each Gateway
// that cannot be compared; the others are compared nevertheless.
func (p *Plan) Compare(ctx context.Context, open OpenAccount) error {
	var errs []error
	for i := range p.Gateways {
		g := &p.Gateways[i]
		var err error
		g.Diff, err = p.compare(ctx, g, open)
		if errors.Is(err, provider.ErrUnauthorized) {
			err = fmt.Errorf("%w; the API token needs the permission Cloudflare Tunnel: Read of the account", err)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("Gateway %s/%s: %w", g.Namespace, g.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// HasChanges reports whether a push would change any of the tunnels.
func (p *Plan) HasChanges() bool {
	for _, g := range p.Gateways {
		if g.Diff != nil && g.Diff.Different {
			return true
		}
	}
	return false
}

func (p *Plan) compare(ctx context.Context, g *Gateway, open OpenAccount) (*Diff, error) {
	if g.Config == nil {
		note := fmt.Sprintf("The Gateway is not accepted, so nothing is pushed: %s: %s", g.result.Rejected.Reason, g.result.Rejected.Message)
		return &Diff{Notes: []string{note}, notCompared: true}, nil
	}
	l := &inspection{facts: resumed(g.facts), notes: []string{}, open: func(ctx context.Context) (provider.Provider, error) {
		return open(ctx, p.tunnels.credentialSource(g.facts.Object.Spec))
	}}
	have, err := l.readRemote(ctx)
	if err != nil {
		return nil, err
	}
	text, err := unifiedDiff(have.configuration, *g.Config, have.header(), escape(fmt.Sprintf("Gateway %s/%s", g.Namespace, g.Name)))
	if err != nil {
		return nil, err
	}
	if g.facts.Gateway.Paused && text != "" {
		l.notes = append(l.notes, tunnel.PausedMessage)
	}
	return &Diff{Tunnel: have.id, Version: have.version, Different: text != "", Unified: text, Notes: l.notes}, nil
}

// resumed returns the facts of a Gateway as if it were not paused: the
// difference is what the controller pushes when the pause ends.
func resumed(f tunnel.Facts) tunnel.Facts {
	f.Gateway.Paused = false
	desired := *f.Desired
	desired.Spec.Paused = false
	f.Desired, f.Object = &desired, f.Object.DeepCopy()
	f.Object.Spec.Paused = false
	return f
}

// remoteConfiguration is the configuration that a tunnel has at Cloudflare. The zero value is
// that of a tunnel that does not exist yet.
type remoteConfiguration struct {
	id            provider.TunnelID
	configuration provider.Configuration
	version       provider.Version
}

func (h *remoteConfiguration) header() string {
	if h.id == "" {
		return "new tunnel"
	}
	return escape(fmt.Sprintf("tunnel %s (version %d)", h.id, h.version))
}

// readRemote returns the configuration that the tunnel has. It notes what prevents the
// controller from replacing it. An error says why it cannot be compared.
func (l *inspection) readRemote(ctx context.Context) (*remoteConfiguration, error) {
	if f := l.facts; f.Options.ClusterID == "" && f.Object.Status.TunnelID == "" && f.Object.Spec.Existing == nil {
		l.notes = append(l.notes, "The manifests have no Tunnel object, so the tunnel counts as new. "+
			"Add --context to compare with the tunnel of a cluster, or --cluster-id to find the tunnel by its name.")
		return &remoteConfiguration{}, nil
	}
	step, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	outcome, remote := tunnel.Programmed(l.facts), l.facts.Memory.Remote.Configuration
	switch {
	case step.Action == tunnel.Create:
		l.notes = append(l.notes, fmt.Sprintf("The tunnel does not exist yet. The controller creates it with the name %s.", l.facts.Object.Spec.Name))
		return &remoteConfiguration{}, nil
	case remote.Known:
	case outcome.Message != "":
		return nil, errors.New(escape(outcome.Message))
	default:
		return nil, fmt.Errorf("its tunnel cannot be compared: the next step is %s", step.Action)
	}
	if step.ExternalChange != 0 {
		l.notes = append(l.notes, "The configuration of the tunnel was changed outside the controller.")
	}
	if outcome.State == tunnel.OutcomeFailed {
		l.notes = append(l.notes, outcome.Message)
	}
	return &remoteConfiguration{id: provider.TunnelID(l.facts.Object.Status.TunnelID), configuration: remote.Configuration, version: remote.Version}, nil
}
