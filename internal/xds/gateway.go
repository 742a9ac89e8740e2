package xds

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

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

	// acknowledged maps RouteConfiguration names to the routes that an Envoy
	// acknowledged.
	acknowledged map[string]acknowledged
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

// acknowledged is a RouteConfiguration with the snapshot that has its clusters.
type acknowledged struct {
	*resource
	*snapshot
}

// rejections are the last publication's resources that Envoys rejected.
type rejections struct {
	// routes maps rejected RouteConfigurations to their versions.
	routes map[string]string
	// clusters maps the clusters in the last rejected response to their versions. At
	// least one is not valid.
	clusters map[string]string
	// problem is the last error, and edition identifies its publication.
	problem string
	edition uint64
	// leaked are clusters that Envoys may have, although they do not list them.
	leaked map[string]struct{}
}

// maxLeaked limits how many clusters from rejected responses are remembered.
const maxLeaked = 100_000

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
	g.acknowledged, g.acknowledgedClusters = map[string]acknowledged{}, nil
	g.rejected = rejections{routes: map[string]string{}, leaked: map[string]struct{}{}}
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
func (g *gateway) replaceEndpoints(r resources) {
	if haveEqualVersions(g.published.byKind[endpoints], r) {
		return
	}
	g.published = g.published.withEndpoints(r)
	if g.target == nil {
		return
	}
	all := r
	if g.target.isPartial {
		all = maps.Clone(g.target.byKind[endpoints])
		replaceCommon(all, r)
	}
	g.target = g.target.withEndpoints(all)
}

// forgetRejections forgets rejected resources that are no longer published.
func (g *gateway) forgetRejections() {
	for name, version := range g.rejected.routes {
		if g.published.byKind[routes][name].GetVersion() != version {
			delete(g.rejected.routes, name)
		}
	}
	if !contains(g.published.byKind[clusters], g.rejected.clusters) {
		g.rejected.clusters = nil
	}
}

// contains reports whether the resources have all the versions.
func contains(all resources, versions map[string]string) bool {
	for name, version := range versions {
		if all[name].GetVersion() != version {
			return false
		}
	}
	return true
}

// compose sets the target. For example, if an Envoy rejects the routes "open" in
// version v2, the target has "open" in the version that an Envoy last acknowledged,
// with the clusters it needs. If an Envoy rejects clusters, both RouteConfigurations
// revert. The target omits a RouteConfiguration that no Envoy has acknowledged.
func (g *gateway) compose() {
	if len(g.rejected.routes) == 0 && g.rejected.clusters == nil {
		g.target = g.published
		return
	}
	base := g.published
	if g.rejected.clusters != nil {
		base = g.acknowledgedClusters
	}
	g.target = nil
	if base == nil {
		return
	}
	g.editions++
	t := &snapshot{edition: g.editions, isPartial: true}
	for _, k := range []kind{listeners, secrets, limits} {
		t.byKind[k] = g.published.byKind[k]
	}
	for _, k := range []kind{clusters, endpoints} {
		t.byKind[k] = maps.Clone(base.byKind[k])
	}
	replaceCommon(t.byKind[endpoints], g.published.byKind[endpoints])
	t.byKind[routes] = resources{}
	for name, r := range g.published.byKind[routes] {
		if g.rejected.clusters == nil && g.rejected.routes[name] != r.Version {
			t.byKind[routes][name] = r
			continue
		}
		last, ok := g.acknowledged[name]
		if !ok {
			continue
		}
		t.byKind[routes][name] = last.resource
		for _, k := range []kind{clusters, endpoints} {
			addMissing(t.byKind[k], last.byKind[k])
		}
	}
	g.target = t
}

func addMissing(to, from resources) {
	for name, r := range from {
		if _, ok := to[name]; !ok {
			to[name] = r
		}
	}
}

// replaceCommon replaces the resources that both have.
func replaceCommon(to, from resources) {
	for name := range to {
		if r, ok := from[name]; ok {
			to[name] = r
		}
	}
}

// acknowledge records that an Envoy has accepted a response.
func (g *gateway) acknowledge(k kind, r *response) {
	if r.snapshot == nil || r.snapshot.isPartial || g.published == nil || len(r.added) == 0 {
		return
	}
	switch k {
	case clusters:
		g.acknowledgeClusters(r.snapshot)
	case routes:
		for _, added := range r.added {
			g.acknowledgeRoutes(added, r.snapshot)
		}
	default: // the server keeps no earlier endpoints, listeners, secrets and limits
	}
}

func (g *gateway) acknowledgeClusters(s *snapshot) {
	if g.acknowledgedClusters == nil || g.acknowledgedClusters.edition <= s.edition {
		g.acknowledgedClusters = s
	}
	if g.rejected.clusters != nil && contains(s.byKind[clusters], g.rejected.clusters) {
		g.rejected.clusters = nil // another Envoy accepts them
		g.compose()
	}
}

func (g *gateway) acknowledgeRoutes(r *resource, s *snapshot) {
	if last, ok := g.acknowledged[r.Name]; !ok || last.edition <= s.edition {
		g.acknowledged[r.Name] = acknowledged{r, s}
	}
	if g.rejected.routes[r.Name] == r.Version {
		delete(g.rejected.routes, r.Name)
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
	for _, r := range s.byKind[routes] {
		g.acknowledgeRoutes(r, s)
	}
	if s.edition == g.published.edition && s.edition > g.rejected.edition {
		g.rejected.problem = ""
	}
	g.forgetRejection()
}

// forgetRejection forgets the last error when every connected Envoy has the
// publication: the Envoy that rejected it is gone, or accepted it in the end.
func (g *gateway) forgetRejection() {
	if g.isComplete() {
		g.rejected.problem = ""
	}
}

// reject records that an Envoy has rejected a response.
func (g *gateway) reject(k kind, r *response, problem string) {
	if g.published == nil {
		return
	}
	versions := map[string]string{}
	for _, added := range r.added {
		versions[added.Name] = added.Version
	}
	if k == clusters {
		g.rememberLeaked(r)
	}
	if !contains(g.published.byKind[k], versions) {
		return // no longer published
	}
	g.rejected.problem, g.rejected.edition = problem, g.published.edition
	switch k {
	case clusters:
		g.rejectClusters(versions)
	case routes:
		g.rejectRoutes(versions)
	default: // the last endpoints, listeners, secrets and limits stay in effect
	}
}

// rejectClusters withholds the clusters, unless an Envoy has acknowledged them.
func (g *gateway) rejectClusters(versions map[string]string) {
	if last := g.acknowledgedClusters; last == nil || !contains(last.byKind[clusters], versions) {
		g.rejected.clusters = versions
		g.compose()
	}
}

// rejectRoutes withholds the routes, unless an Envoy has acknowledged them.
func (g *gateway) rejectRoutes(versions map[string]string) {
	for name, version := range versions {
		if g.acknowledged[name].GetVersion() != version {
			g.rejected.routes[name] = version
			g.compose()
		}
	}
}

// rememberLeaked remembers clusters that Envoy may have applied from a rejected
// response, for its next stream.
func (g *gateway) rememberLeaked(r *response) {
	for _, added := range r.added {
		if _, ok := r.previous[added.Name]; !ok && len(g.rejected.leaked) < maxLeaked {
			g.rejected.leaked[added.Name] = struct{}{}
		}
	}
}

const maxProblem = 200

// problemText shortens an error that Envoy reports, and removes control characters.
func problemText(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > maxProblem {
		text = string(runes[:maxProblem])
	}
	if text = strings.TrimSpace(text); text == "" {
		return "Envoy gave no reason"
	}
	return text
}
