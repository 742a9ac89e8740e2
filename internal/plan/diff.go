package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Diff compares the configuration that a tunnel has at Cloudflare with its Gateway's
// configuration.
type Diff struct {
	// Tunnel is the tunnel's ID; empty if the tunnel does not exist or was not
	// compared.
	Tunnel provider.TunnelID `json:"tunnel"`
	// Version is the configuration's version; 0 if there is none.
	Version provider.Version `json:"version"`
	// Different reports whether a push would change the tunnel's configuration, or the
	// manifests change the routing table.
	Different bool `json:"different"`
	// Unified is a unified diff between the configurations in YAML, with headers; empty
	// if they are equal.
	Unified string `json:"unified"`
	// Routes is a unified diff between the routing tables without and with the
	// manifests, with headers; empty if they are equal or were not compared.
	Routes string `json:"routes"`
	// Notes are remarks about the tunnel, such as why the configuration is not pushed.
	Notes []string `json:"notes"`

	// notCompared reports that there was no configuration to compare.
	notCompared bool
}

// IsEqual reports whether there was a configuration to compare, and it does not differ.
func (d *Diff) IsEqual() bool { return !d.Different && !d.notCompared }

// OpenAccount returns the provider for an account's tunnels.
type OpenAccount func(ctx context.Context, from credentials.Source) (provider.Provider, error)

// Compare sets [Gateway.Diff]. It only reads from Cloudflare. The error names each
// Gateway that cannot be compared; Compare continues with the other Gateways.
func (p *Plan) Compare(ctx context.Context, open OpenAccount) error {
	var errs []error
	for i := range p.Gateways {
		g := &p.Gateways[i]
		var err error
		g.Diff, err = p.compare(ctx, g, open)
		if errors.Is(err, provider.ErrUnauthorized) {
			err = fmt.Errorf("%w; the API token requires the permission Cloudflare Tunnel: Read", err)
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

// HasChanges reports whether a push would change a tunnel, according to
// [Plan.Compare], the manifests change a routing table, according to
// [Plan.CompareTables], or the controller would change DNS records, according to
// [Plan.CompareZones], or applications of Cloudflare Access, according to
// [Plan.ReadApplications].
func (p *Plan) HasChanges() bool {
	if slices.ContainsFunc(p.Zones, func(z Zone) bool { return z.changesRecords() }) ||
		slices.ContainsFunc(p.Accounts, func(a Account) bool { return a.changesApplications() }) {
		return true
	}
	for _, g := range p.Gateways {
		if g.Diff != nil && g.Diff.Different {
			return true
		}
	}
	return false
}

// compare compares one Gateway's configuration.
func (p *Plan) compare(ctx context.Context, g *Gateway, open OpenAccount) (*Diff, error) {
	if g.Config == nil {
		return &Diff{Notes: []string{notAccepted(g.result.Rejected.Reason.String(), g.result.Rejected.Message)}, notCompared: true}, nil
	}
	i := &inspection{decision: g.decision, facts: resumed(g.facts), notes: []string{}, open: func(ctx context.Context) (provider.Provider, error) {
		return open(ctx, p.tunnels.credentialSource(g.facts.Object.Spec))
	}}
	remote, err := i.readRemote(ctx)
	if err != nil {
		return nil, err
	}
	text, err := unifiedDiff(remote.configuration, i.lastConfiguration(), remote.header(), terminal.Escape(fmt.Sprintf("Gateway %s/%s", g.Namespace, g.Name)))
	if err != nil {
		return nil, err
	}
	if g.facts.Gateway.Paused && text != "" {
		i.notes = append(i.notes, tunnel.PausedMessage)
	}
	return &Diff{Tunnel: remote.id, Version: remote.version, Different: text != "", Unified: text, Notes: i.notes}, nil
}

// notAccepted returns the remark about a Gateway that is not accepted.
func notAccepted(reason, message string) string {
	return fmt.Sprintf("The Gateway is not accepted, so the controller does not push its configuration: %s: %s", reason, message)
}

// resumed returns a Gateway's facts as if it were not paused. The difference shows what
// the controller pushes after the pause.
func resumed(f tunnel.Facts) tunnel.Facts {
	f.Gateway.Paused = false
	f.Object = f.Object.DeepCopy()
	f.Object.Spec.Paused = false
	return f
}

// remoteConfiguration is the configuration that a tunnel has at Cloudflare. The zero
// value represents a tunnel that does not exist yet.
type remoteConfiguration struct {
	id            provider.TunnelID
	configuration provider.Configuration
	version       provider.Version
}

// header names the configuration in a diff header.
func (c *remoteConfiguration) header() string {
	if c.id == "" {
		return "new tunnel"
	}
	return terminal.Escape(fmt.Sprintf("tunnel %s (version %d)", c.id, c.version))
}

// readRemote returns the tunnel's configuration, and adds notes about reasons that
// prevent the controller from replacing it. The error explains why the configuration
// cannot be compared.
func (i *inspection) readRemote(ctx context.Context) (*remoteConfiguration, error) {
	if f := i.facts; f.Options.ClusterID == "" && f.Object.Status.TunnelID == "" && f.Object.Spec.Existing == nil {
		i.notes = append(i.notes, "The manifests contain no Tunnel object, so the tunnel counts as new. "+
			"Add --context to compare with a cluster's tunnel, or --cluster-id to find the tunnel by its name.")
		return &remoteConfiguration{}, nil
	}
	step, err := i.run(ctx)
	if err != nil {
		return nil, err
	}
	outcome, remote := tunnel.Programmed(i.facts), i.facts.Memory.Remote.Configuration
	if i.remote != nil {
		remote = *i.remote
	}
	switch {
	case step.Action == tunnel.Create:
		i.notes = append(i.notes, fmt.Sprintf("The tunnel does not exist yet. The controller creates it with the name %s.", i.facts.Object.Spec.Name))
		return &remoteConfiguration{}, nil
	case remote.Known:
	case outcome.Message != "":
		return nil, errors.New(terminal.Escape(outcome.Message))
	default:
		return nil, fmt.Errorf("unexpected next step of the controller: %s", step.Action)
	}
	i.noteOutcome(step, outcome)
	return &remoteConfiguration{id: provider.TunnelID(i.facts.Object.Status.TunnelID), configuration: remote.Configuration, version: remote.Version}, nil
}

// noteOutcome adds notes about an external change to the configuration, and about
// reasons that prevent the controller from replacing it.
func (i *inspection) noteOutcome(last tunnel.Step, o tunnel.Outcome) {
	if last.ExternalChange != 0 {
		i.notes = append(i.notes, "An external change replaced the tunnel configuration.")
	}
	if o.State == tunnel.OutcomeFailed {
		i.notes = append(i.notes, o.Message)
	}
	if change := o.DataPlaneChange; change != nil && change.Reason.RequiresAction() {
		i.notes = append(i.notes, change.Message)
	}
}
