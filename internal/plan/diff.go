package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Diff is how the document of a Gateway differs from the one that its tunnel
// holds at Cloudflare.
type Diff struct {
	// Tunnel is the one that was read; empty where there is none, or nothing
	// is pushed.
	Tunnel provider.TunnelID `json:"tunnel"`
	// Version is that of the document that was read; 0 where there is none.
	Version provider.Version `json:"version"`
	// Different is whether a push would change what the tunnel holds.
	Different bool `json:"different"`
	// Unified is the unified diff of both documents in YAML, with its headers;
	// empty when they are equal.
	Unified string `json:"unified"`
	// Notes are what keeps the push from happening, and what there is to know
	// of the tunnel.
	Notes []string `json:"notes"`

	// nothing is pushed, so that nothing was compared.
	nothing bool
}

// OpenAccount returns the account in which a Gateway with the settings has its
// tunnel, by ID, and the provider to read it with.
type OpenAccount func(ctx context.Context, s *gateway.Settings) (account string, p provider.Provider, err error)

// Compare fills in [Gateway.Diff]. It only reads. A Gateway that cannot be
// compared is named in the error, and keeps no other from being compared.
func (p *Plan) Compare(ctx context.Context, open OpenAccount) error {
	var errs []error
	for i := range p.Gateways {
		g := &p.Gateways[i]
		var err error
		g.Diff, err = g.compare(ctx, open)
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

// Different reports whether a push would change any of the tunnels.
func (p *Plan) Different() bool {
	for _, g := range p.Gateways {
		if g.Diff != nil && g.Diff.Different {
			return true
		}
	}
	return false
}

func (g *Gateway) compare(ctx context.Context, open OpenAccount) (*Diff, error) {
	if why := g.notPushed(); why != "" {
		return &Diff{Notes: []string{"nothing is pushed: " + why}, nothing: true}, nil
	}
	have, err := g.read(ctx, open)
	if err != nil {
		return nil, err
	}
	text, err := unified(have.document, *g.Config, have.header(), escape(fmt.Sprintf("Gateway %s/%s", g.Namespace, g.Name)))
	if err != nil {
		return nil, err
	}
	d := &Diff{Tunnel: have.id, Version: have.version, Different: text != "", Unified: text, Notes: []string{}}
	if have.missing != "" {
		d.Notes = append(d.Notes, have.missing)
	}
	if why := g.heldBack(have); d.Different && why != "" {
		d.Notes = append(d.Notes, why)
	}
	return d, nil
}

// notPushed says why the Gateway has no document to push, or "".
func (g *Gateway) notPushed() string {
	if g.Config == nil {
		return fmt.Sprintf("not accepted: %s: %s", g.result.Rejected.Reason, g.result.Rejected.Message)
	}
	return g.heldBy()
}

// heldBy says which other controller holds the Gateway, or "".
func (g *Gateway) heldBy() string {
	holder := g.record.Controller
	if holder == "" || holder == g.controller {
		return ""
	}
	return fmt.Sprintf("controller %s holds the Gateway", holder)
}

// stopped says why nothing is pushed whatever the tunnel holds, or "".
func (g *Gateway) stopped() string {
	by := g.heldBy()
	switch {
	case by != "":
		return "nothing is pushed: " + by
	case g.marks[state.PausedAnnotation] == "true":
		return fmt.Sprintf("paused: nothing is pushed before the annotation %s is taken off", state.PausedAnnotation)
	case g.record.Contested:
		return fmt.Sprintf("nothing is pushed: somebody else kept changing the tunnel; see the annotation %s", state.PausedAnnotation)
	}
	return ""
}

// heldBack says why a difference stays until somebody does something, or "".
func (g *Gateway) heldBack(have *held) string {
	known := have.version == 0 || g.record.Knows(have.document.Hash())
	foreign := g.record.Origin == state.OriginAdopted || g.record.Tunnel == "" && g.result.Settings.ExistingTunnel() != ""
	stopped := g.stopped()
	switch {
	case stopped != "":
		return stopped
	case foreign && !known && !g.record.MayReplace() && g.marks[state.TakeoverAnnotation] != "true":
		return fmt.Sprintf("nothing is pushed before the annotation %s permits it: the tunnel holds a configuration that the controller did not write", state.TakeoverAnnotation)
	}
	return ""
}

// held is what a tunnel holds.
type held struct {
	id       provider.TunnelID
	document provider.Configuration
	version  provider.Version
	// missing says why there is no tunnel to read.
	missing string
}

func (h *held) header() string {
	if h.missing != "" {
		return "new tunnel"
	}
	return escape(fmt.Sprintf("tunnel %s (version %d)", h.id, h.version))
}

// read reads the Gateway's tunnel: the one of its record, or else the one that
// the settings name.
func (g *Gateway) read(ctx context.Context, open OpenAccount) (*held, error) {
	existing, name := g.result.Settings.ExistingTunnel(), g.result.Settings.TunnelName()
	if g.record.Tunnel == "" && existing == "" && name == "" {
		return &held{missing: fmt.Sprintf("new tunnel: the Gateway has no record of one (annotation %s)", state.RecordAnnotation)}, nil
	}
	account, p, err := open(ctx, g.result.Settings)
	if err != nil {
		return nil, err
	}
	switch {
	case g.record.Tunnel != "":
		return g.readRecorded(ctx, p, account)
	case existing != "":
		have, err := readTunnel(ctx, p, existing)
		if errors.Is(err, provider.ErrNotFound) {
			return nil, fmt.Errorf("tunnel %q, which the settings name in tunnel.existing.id, does not exist in account %s", existing, account)
		}
		return have, err
	}
	found, err := p.FindTunnel(ctx, name)
	if errors.Is(err, provider.ErrNotFound) {
		return &held{missing: fmt.Sprintf("new tunnel: account %s has none called %s", account, name)}, nil
	}
	if err != nil {
		return nil, err
	}
	return readTunnel(ctx, p, found.ID)
}

// readRecorded reads the tunnel of the record, unless the controller would
// refuse to go on with it.
func (g *Gateway) readRecorded(ctx context.Context, p provider.Provider, account string) (*held, error) {
	id, existing := g.record.Tunnel, g.result.Settings.ExistingTunnel()
	adopted := g.record.Origin == state.OriginAdopted
	switch {
	case g.record.Account != account:
		return nil, fmt.Errorf("its tunnel is in account %q, as the annotation %s says, and its settings ask for account %s", g.record.Account, state.RecordAnnotation, account)
	case existing != "" && existing != id:
		return nil, fmt.Errorf("it has tunnel %q, as the annotation %s says, and its settings ask for %q", id, state.RecordAnnotation, existing)
	case existing == "" && adopted:
		return nil, fmt.Errorf("it has adopted tunnel %q, as the annotation %s says, and its settings ask for none any more", id, state.RecordAnnotation)
	}
	have, err := readTunnel(ctx, p, id)
	if !errors.Is(err, provider.ErrNotFound) {
		return have, err
	}
	after := "a new one is made unless another of its name is there"
	if adopted {
		after = "nothing is pushed until the settings name another in tunnel.existing.id"
	}
	return &held{missing: fmt.Sprintf("tunnel %q, which the annotation %s names, does not exist any more; %s", id, state.RecordAnnotation, after)}, nil
}

func readTunnel(ctx context.Context, p provider.Provider, id provider.TunnelID) (*held, error) {
	document, version, err := p.Configuration(ctx, id)
	if errors.Is(err, provider.ErrLocallyManaged) {
		return nil, fmt.Errorf("tunnel %s is locally managed: its connectors take their configuration from a file, so nothing is pushed to it", id)
	}
	if err != nil {
		return nil, err
	}
	return &held{id: id, document: document, version: version}, nil
}
