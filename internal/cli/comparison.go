package cli

import (
	"context"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// comparison returns the function with which the page compares what read returns with Cloudflare
// when a visitor asks for it, as plan --diff compares configurations. It only reads. It returns
// nil without an API token from the flags or the environment. options are those of the page's
// plan.
func (o *diffOptions) comparison(read func(context.Context) (*state.Source, error), options plan.Options) func(context.Context) (*plan.Plan, error) {
	if o.cloudflare.APIToken == "" && o.cloudflare.APITokenSecret == "" {
		return nil
	}
	options.Account = defaultCredentials(o.cloudflare)
	return func(ctx context.Context) (*plan.Plan, error) {
		source, err := read(ctx)
		if err != nil {
			return nil, err
		}
		result, err := plan.Build(ctx, source, options, time.Now())
		if err != nil {
			return nil, err
		}
		accounts, withApplications := o.openAccounts(source), options
		withApplications.Applications = result.ReadApplications(ctx, accounts, o.openApplications(source), source, o.signingKey)
		if withApplications.Applications != nil {
			if result, err = plan.Build(ctx, source, withApplications, time.Now()); err != nil {
				return nil, err
			}
		}
		return result, result.Compare(ctx, accounts)
	}
}
