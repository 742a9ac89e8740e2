package plan

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// origin is what a plan was built from. Several requests can use it at a time.
type origin struct {
	// source is separate from the plan's, because requests read from it.
	source  *state.Source
	options Options
	now     time.Time

	// assumed is the plan of [Plan.AssumingApplications]; nil until it was built.
	assumed  atomic.Pointer[Plan]
	building singleflight.Group
	// reading is locked while a request reads from the source, which is not safe for concurrent
	// use.
	reading sync.Mutex
}

// BuildAssumingApplications is [Build] and [Plan.AssumingApplications].
func BuildAssumingApplications(ctx context.Context, source *state.Source, o Options, now time.Time) (*Plan, error) {
	p, err := Build(ctx, source, o, now)
	if err != nil {
		return nil, err
	}
	return p.AssumingApplications(ctx)
}

// AssumingApplications returns the plan for the same source that assumes that the applications
// of demanded hostnames exist. It closes only the hostnames whose demands cannot be met, with
// any contents of the account. It returns p itself if nothing demands an application, and
// builds the other plan once.
func (p *Plan) AssumingApplications(ctx context.Context) (*Plan, error) {
	assumed := p.assumeProtected()
	if assumed == nil {
		return p, nil
	}
	if built := p.origin.assumed.Load(); built != nil {
		return built, nil
	}
	built, err, _ := p.origin.building.Do("", func() (any, error) {
		if built := p.origin.assumed.Load(); built != nil {
			return built, nil
		}
		o := p.origin.options
		o.Applications = assumed
		built, err := Build(context.WithoutCancel(ctx), p.origin.source, o, p.origin.now) // others wait for it too
		if err == nil && p.selected && len(p.Gateways) == 1 {
			err = built.Select(types.NamespacedName{Namespace: p.Gateways[0].Namespace, Name: p.Gateways[0].Name})
		}
		if err != nil {
			return nil, err
		}
		p.origin.assumed.Store(built)
		return built, nil
	})
	if err != nil {
		return nil, err
	}
	return built.(*Plan), nil
}

// ForRequest returns the plan from which plan --why explains the request:
// [Plan.AssumingApplications], with the endpoints of the backends. It does not change p, so
// that several requests can be explained at a time.
func (p *Plan) ForRequest(ctx context.Context, request routing.Request) (*Plan, error) {
	assumed, err := p.AssumingApplications(ctx)
	if err != nil {
		return nil, err
	}
	part := *assumed
	assumed.origin.reading.Lock()
	defer assumed.origin.reading.Unlock()
	return &part, part.ReadEndpoints(ctx, assumed.origin.source, request)
}

// assumedTag stands for the AUD tags of applications that were not read.
const assumedTag = "unknown"

// assumeProtected returns applications as if each demanded hostname had been protected already,
// or nil if there are no demands.
func (p *Plan) assumeProtected() *ReadApplications {
	assumed := &ReadApplications{known: map[types.NamespacedName]access.Known{}}
	for i := range p.Gateways {
		g := &p.Gateways[i]
		known := access.Known{InEffectKnown: true, InEffect: routing.Access{}}
		for hostname := range g.result.Demanded.Demands {
			known.InEffect[hostname] = &routing.Requirement{TeamName: g.result.Applications.TeamName, AUDTags: []string{assumedTag}}
		}
		if len(known.InEffect) > 0 {
			assumed.known[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}] = known
		}
	}
	if len(assumed.known) == 0 {
		return nil
	}
	return assumed
}
