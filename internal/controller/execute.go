package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func (r *run) executeAction(ctx context.Context, f tunnel.Facts, s tunnel.Step) tunnel.Result {
	var result tunnel.Result
	switch s.Action {
	case tunnel.Claim:
		result.Err = r.claim(ctx, f, s)
	case tunnel.RunConnectors:
		result.Err = r.runConnectors(ctx, f)
	case tunnel.StopConnectors:
		r.memory.applied = applied{}
		result.Err = r.process.connectors.stop(ctx, f.Object)
	case tunnel.WithdrawStatuses:
		r.withdraw(ctx)
	case tunnel.DeleteObject:
		result.Err = r.process.objects.remove(ctx, f.Object)
	case tunnel.Record:
	default:
		result = r.call(r.requests.context(ctx, s.Priority), f, s)
	}
	result.Uptime = r.process.clock.uptime()
	return result
}

func (r *run) runConnectors(ctx context.Context, f tunnel.Facts) error {
	done, err := r.process.connectors.apply(ctx, f, r.decision.Settings())
	if err != nil {
		return err
	}
	r.memory.applied, r.applied = done, done.hash
	return nil
}

// claim creates the Tunnel object or updates its spec, and records the existing tunnel
// that it claims. It then lists the Tunnels from the API server, because the next
// decision requires a current list of rivals.
func (r *run) claim(ctx context.Context, f tunnel.Facts, s tunnel.Step) error {
	object, err := r.process.objects.apply(ctx, f)
	if err != nil {
		return err
	}
	if s.Record != nil {
		if object, err = r.process.objects.writeStatus(ctx, object, *s.Record); err != nil {
			return err
		}
	}
	r.tunnel.object = object
	if object.Spec.Existing == nil {
		return nil
	}
	tunnels, err := r.process.objects.list(ctx, r.process.objects.live)
	if err != nil {
		return err
	}
	r.confirmed = tunnel.Rivals(object, tunnels)
	return nil
}

// call makes the step's Cloudflare API request.
func (r *run) call(ctx context.Context, f tunnel.Facts, s tunnel.Step) (result tunnel.Result) {
	account, err := r.process.accounts.open(ctx, f.Object)
	if err != nil {
		return tunnel.Result{Err: err}
	}
	p, id := account.provider, provider.TunnelID(f.Object.Status.TunnelID)
	switch s.Action {
	case tunnel.ReadTunnel, tunnel.FindByName, tunnel.Create:
		result.Tunnel, result.Err = locate(ctx, p, f.Object, s.Action)
	case tunnel.ReadConfiguration:
		result.Configuration, result.Version, result.Err = p.Configuration(ctx, id)
	case tunnel.Configure:
		result.Configuration, result.Version, result.Err = r.configure(ctx, p, f, s)
	case tunnel.ReadToken:
		result.Err = r.readToken(ctx, p, f)
	case tunnel.RotateToken:
		result.Err = p.RotateToken(ctx, id)
	case tunnel.ListConnections:
		result.Connectors, result.Err = p.Connections(ctx, id)
	case tunnel.Disconnect:
		result.Err = p.Disconnect(ctx, id, s.Connector)
	case tunnel.Delete:
		result.Err = p.DeleteTunnel(ctx, id)
	default:
		result.Err = fmt.Errorf("unknown action %q", s.Action)
	}
	return result
}

// locate reads the tunnel by its ID, finds it by its name or creates it.
func locate(ctx context.Context, p provider.Provider, t *v1alpha1.Tunnel, a tunnel.Action) (provider.Tunnel, error) {
	switch a {
	case tunnel.ReadTunnel:
		return p.Tunnel(ctx, provider.TunnelID(t.Status.TunnelID))
	case tunnel.FindByName:
		return p.FindTunnel(ctx, t.Spec.Name)
	default:
		return p.CreateTunnel(ctx, t.Spec.Name)
	}
}

// configure writes the step's configuration. It keeps the fields in the remote
// configuration that the controller does not support.
func (r *run) configure(ctx context.Context, p provider.Provider, f tunnel.Facts, s tunnel.Step) (provider.Configuration, provider.Version, error) {
	configuration := *s.Configuration
	remote := f.Memory.Remote.Configuration
	configuration.UnknownFields = remote.Configuration.UnknownFields
	version, err := p.Configure(ctx, provider.TunnelID(f.Object.Status.TunnelID), configuration)
	if err == nil {
		log.FromContext(ctx).Info("wrote the tunnel's configuration", "tunnel", f.Object.Status.TunnelID,
			"rules", len(configuration.Ingress), "version", version, "expected", remote.Version+1)
	}
	return configuration, version, err
}

// readToken reads the tunnel's token and writes it to the token Secret.
func (r *run) readToken(ctx context.Context, p provider.Provider, f tunnel.Facts) error {
	token, err := p.Token(ctx, provider.TunnelID(f.Object.Status.TunnelID))
	if err != nil {
		return err
	}
	return r.process.tokens.write(ctx, f.Object, connector.TokenSecret(f.Object, token), &r.tunnel.token)
}

// withdraw removes the Gateway's status entries from routes and ListenerSets. An entry
// that cannot be removed does not delay deleting the tunnel: the [status.Writer]
// retries it, and when a Gateway without a Tunnel is reconciled, the entries are
// removed again.
func (r *run) withdraw(ctx context.Context) {
	// Another controller that wrote this status may have written the ListenerSets'
	// statuses.
	managed := r.state.State != tunnel.GatewayNotManaged || !statusIsCurrent(r.gateway)
	report := decision.Withdraw(r.key, r.snapshot, managed)
	r.memory.statuses = status.Last{} // the report replaces what it says
	if err := r.process.writer.WriteAttached(ctx, r.key, report); err != nil {
		log.FromContext(ctx).V(1).Info("failed to remove status entries", "cause", err.Error())
	}
}

// statusIsCurrent reports whether the Gateway's Accepted condition covers its current
// generation.
func statusIsCurrent(g *gatewayv1.Gateway) bool {
	if g == nil {
		return false
	}
	accepted := conditions.TypeAccepted.Find(g.Status.Conditions)
	return accepted != nil && accepted.ObservedGeneration == g.Generation
}
