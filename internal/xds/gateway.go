package xds

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// gateway is the server's state for one Gateway. Server.mu guards it.
type gateway struct {
	name types.NamespacedName
	// publishing serializes publications, and guards validator.
	publishing sync.Mutex
	validator  validator

	// tunnel, sequence and published belong to the last publication.
	tunnel    types.UID
	sequence  int64
	published *snapshot
	// wanted is the edition whose acknowledgements Publish's caller waits for, or 0.
	// arrived is the last edition whose acknowledgements need no report. It never
	// decreases, so clients that connect again and again cause no reports.
	wanted, arrived uint64
	// refused explains why the newest publication is not valid. It is empty if that
	// publication is valid.
	refused string
	// target is the snapshot that the Envoys should have: published, without what
	// Envoys have rejected. It is nil if nothing is left.
	target   *snapshot
	editions uint64

	// acknowledged are the routes and scopes that Envoys acknowledged.
	acknowledged acknowledgements
	// acknowledgedClusters is the last snapshot whose clusters an Envoy acknowledged.
	acknowledgedClusters *snapshot
	rejected             rejections

	connections map[*connection]struct{}
	streams     map[*stream]struct{}
	// names is the sum over stream.names.
	names int
	// unread is the sum over connection.unread. Server.mu does not guard it.
	unread atomic.Int64
	// byName are clusters whose endpoints are answered without a publication.
	byName byName
	// hasConnected reports whether an Envoy has had a stream.
	hasConnected bool
	// reported is the state at the last call to Options.Changed, and progress the
	// newest sequence reported as acknowledged.
	reported State
	progress int64
	// reports limits the calls that report no progress, and logs the messages about
	// rejections.
	reports, logs *rate.Limiter
}

// A client that connects or rejects again and again changes the state each time, and
// each reported change costs a reconcile. The next [Server.sweep] reports what is above
// the limit.
const (
	reportBurst    = 100
	reportInterval = 2 * time.Second
)

func newGateway(name types.NamespacedName) *gateway {
	newLimiter := func() *rate.Limiter { return rate.NewLimiter(rate.Every(reportInterval), reportBurst) }
	g := &gateway{
		name: name, connections: map[*connection]struct{}{}, streams: map[*stream]struct{}{},
		reports: newLimiter(), logs: newLimiter(), byName: newByName(),
	}
	g.replaceTunnel("")
	return g
}

// replaceTunnel forgets everything about the last Tunnel.
func (g *gateway) replaceTunnel(tunnel types.UID) {
	g.tunnel, g.sequence, g.progress, g.published, g.target, g.wanted = tunnel, 0, 0, nil, nil, 0
	g.acknowledged, g.acknowledgedClusters = acknowledgements{}, nil
	g.rejected = rejections{leaked: map[string]struct{}{}}
	g.rejected.versions[routes], g.rejected.versions[scopes] = map[string]string{}, map[string]string{}
}

// accept makes the snapshot the published one.
func (g *gateway) accept(s *snapshot, sequence int64) {
	if g.published != nil && g.published.hasSameEdition(s) {
		g.sequence = sequence
		g.replaceEndpoints(s.byKind[endpoints])
		return
	}
	for st := range g.streams {
		st.sequence = g.acknowledgedBy(st)
	}
	g.editions++
	s.edition = g.editions
	g.published, g.sequence = s, sequence
	g.forgetRejections()
	g.compose()
}

// want starts or stops waiting for the publication's acknowledgements.
func (g *gateway) want(isWanted bool) {
	g.wanted = 0
	if isWanted {
		g.wanted = g.published.edition
	}
	if g.isComplete() {
		g.arrived = max(g.arrived, g.published.edition)
	}
}

// replaceEndpoints replaces the endpoints without a new edition.
func (g *gateway) replaceEndpoints(r *set) {
	if g.published.byKind[endpoints] == r {
		return
	}
	g.published = g.published.withEndpoints(r)
	if g.target == nil {
		return
	}
	all := r
	if g.target.isPartial {
		all = g.target.byKind[endpoints].withCommon(r)
	}
	g.target = g.target.withEndpoints(all)
}

// acknowledge records that an Envoy has accepted a response.
func (g *gateway) acknowledge(k kind, r *response) {
	if r.snapshot == nil || r.snapshot.isPartial || g.published == nil || len(r.added) == 0 {
		return
	}
	switch k {
	case clusters:
		g.acknowledgeClusters(r.snapshot)
	case routes, scopes:
		for _, added := range r.added {
			g.acknowledgeOne(k, added, r.snapshot)
		}
	default: // the server keeps no earlier endpoints, listeners, secrets and limits
	}
}

func (g *gateway) acknowledgeClusters(s *snapshot) {
	if g.acknowledgedClusters == nil || g.acknowledgedClusters.edition <= s.edition {
		g.acknowledgedClusters = s
	}
	if g.rejected.clusters != nil && s.byKind[clusters].contains(g.rejected.clusters) {
		g.rejected.clusters = nil // another Envoy accepts them
		g.compose()
	}
}

// acknowledgeOne records that an Envoy has accepted a RouteConfiguration or a scope.
func (g *gateway) acknowledgeOne(k kind, r *resource, s *snapshot) {
	if s.byKind[k].get(r.Name) != r {
		return // the client gets its routes in another form
	}
	g.acknowledged.add(k, r, s)
	if g.rejected.versions[k][r.Name] == r.Version {
		delete(g.rejected.versions[k], r.Name)
		g.compose()
	}
}

// complete records that the stream's Envoy has all resources in the snapshot.
func (g *gateway) complete(st *stream, s *snapshot) {
	if s == nil || s.isPartial || g.published == nil || st.completed == s.edition {
		return
	}
	st.completed, st.isLate = s.edition, false
	g.acknowledgeClusters(s)
	g.acknowledged.complete(s)
	g.acceptAll(s)
	if s.edition == g.published.edition && s.edition > g.rejected.edition {
		g.rejected.problem = ""
	}
	g.forgetRejection()
}
