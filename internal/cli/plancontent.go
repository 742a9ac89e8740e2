package cli

import (
	"context"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// complete adds what only some outputs contain.
func (o *planOptions) complete(ctx context.Context, p *plan.Plan, source *state.Source) error {
	if o.printsEnvoy() {
		if err := p.RenderEnvoy(ctx, source); err != nil {
			return err
		}
	}
	return o.readEndpoints(ctx, p, source)
}

// readEndpoints reads the EndpointSlices that --why prints.
func (o *planOptions) readEndpoints(ctx context.Context, p *plan.Plan, source *state.Source) error {
	if o.why == "" {
		return nil
	}
	request, err := o.request()
	if err != nil {
		return err
	}
	return p.ReadEndpoints(ctx, source, request)
}
