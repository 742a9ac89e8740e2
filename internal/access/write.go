package access

import (
	"cmp"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// maxRepairs is how many external changes of one application are repaired within
	// repairInterval. The last repair adds a tag, with which the next external change stays.
	maxRepairs     = 3
	repairInterval = time.Hour
)

// change is a write that the account needs.
type change struct {
	Write
	// key is that of the application in traces.
	key string
	// namespace is the namespace for which the change counts; "" if it counts for none.
	// turn is the tenant whose turn it is, and created the age of the demand.
	namespace string
	turn      limits.Tenant
	created   time.Time
	rank      int
	// revokes reports whether an Update adds the tag that demands a revocation, and repair
	// whether it repairs an external change.
	revokes, repair bool
	// counts reports whether it counts as a change of the namespace, and spaced whether it
	// must come a minute after the last one of the application.
	counts, spaced bool
	// adopts reports whether an Update adopts an application.
	adopts bool
}

// The ranks of changes. First applications precede other changes, except the end of
// a permission and a revocation.
const (
	rankFirst = iota
	rankUpdate
	rankDelete
)

// finding is what is reported about a hostname.
type finding struct {
	reason  conditions.Reason
	message string
}

// needed returns the write that the decision needs. It returns no write, but possibly why,
// if it needs none or another writer prevents it.
func (s *situation) needed(d decision) (*change, *finding) {
	switch d.kind {
	case create:
		c := s.newChange(Create, d)
		c.Spec, c.rank = d.target.spec, rankFirst
		c.Spec.Name, c.Spec.Tags = d.name, []string{s.tag(d.target)}
		c.counts = !d.target.bypass // another namespace's wildcard waits for it
		return c, nil
	case update:
		return s.neededUpdate(d)
	case remake:
		c := s.newChange(Delete, d)
		c.rank, c.spaced = rankUpdate, true
		return c, nil
	case remove:
		c := s.newChange(Delete, d)
		c.rank = rankDelete
		return c, nil
	default:
		return nil, nil
	}
}

// newChange returns a write about the hostname.
func (s *situation) newChange(o Operation, d decision) *change {
	c := &change{Write: Write{Operation: o, Hostname: d.name}, key: d.name, counts: true}
	if d.app != nil {
		c.Last, c.key = *d.app.Application, d.app.key()
		c.namespace = s.Memory.traces[c.key].namespace
		if d.app.holder != nil {
			c.Gateway = d.app.holder.NamespacedName
		}
	}
	c.turn = limits.Tenant{Name: c.namespace}
	if d.target != nil {
		c.turn = d.target.tenant()
		c.Gateway, c.namespace, c.created = d.target.NamespacedName, d.target.demand.Namespace, d.target.demand.Created
	}
	return c
}

// neededUpdate returns the update that the application needs, or the next request of a
// revocation.
func (s *situation) neededUpdate(d decision) (*change, *finding) {
	o, t := d.app, s.Memory.traces[d.app.key()]
	matches, owns := d.target.matches(o), ownTag(o.Tags, tagPrefix) == s.tag(d.target)
	c := s.newChange(Update, d)
	c.Spec = d.target.spec
	c.Spec.Name = cmp.Or(o.Name, d.name)
	marks := o.marks()
	switch {
	case !matches && s.isContested(d, t):
		return nil, &finding{conditions.ReasonContested, contested}
	case !matches || !owns:
		marks = s.describeUpdate(c, d, t)
	case o.revoke && !t.revoked:
		c.Operation, c.rank, c.counts = Revoke, rankFirst, false
		c.Spec = provider.ApplicationSpec{}
		return c, nil
	case o.revoke:
		c.rank, c.counts = rankFirst, false
		marks = unmarked(marks, revokeTag)
	case s.isCalm(o, t):
		c.rank, c.counts = rankUpdate, false
		marks = unmarked(marks, contestedTag)
	default:
		return nil, nil
	}
	c.Spec.Tags = withTags(o.Tags, s.tag(d.target), marks...)
	return c, nil
}

// describeUpdate notes what the update of an application means, and returns its marks.
func (s *situation) describeUpdate(c *change, d decision, t trace) []string {
	c.revokes = s.isStricter(d.app, d.target)
	c.repair = s.isRepair(d, t)
	c.rank, c.spaced = rankUpdate, true
	if d.target.isUrgent(d.app) {
		c.rank, c.spaced = rankFirst, false
	}
	marks := marked(d.app.marks(), c.revokes, revokeTag)
	return marked(marks, c.repair && len(s.recentRepairs(t)) >= maxRepairs-1, contestedTag)
}

// isCalm reports whether a contested application has been as wanted for an hour.
func (s *situation) isCalm(o *owned, t trace) bool {
	return o.contested && t.calm.IsSet() && s.Uptime >= t.calm.at+repairInterval
}

const contested = "another writer changes the application of Cloudflare Access again and again, and the controller no longer repairs it. " +
	"Find the other writer, stop it, and remove the tag " + contestedTag + " from the application."

// isRepair reports whether an external change is the reason why the application is not as wanted.
func (s *situation) isRepair(d decision, t trace) bool {
	return t.id == d.app.ID && t.content != "" && t.content != d.app.content() && !d.target.matches(d.app)
}

// isContested reports whether the application, which is not as wanted, is no longer repaired.
// After a restart, the tag tells.
func (s *situation) isContested(d decision, t trace) bool {
	if d.app.contested && (t.id != d.app.ID || t.content == "") {
		return true
	}
	return s.isRepair(d, t) && (d.app.contested || len(s.recentRepairs(t)) >= maxRepairs)
}

// recentRepairs returns when the application was repaired within the last hour.
func (s *situation) recentRepairs(t trace) []time.Duration {
	for i, at := range t.repairs {
		if at+repairInterval > s.Uptime {
			return t.repairs[i:]
		}
	}
	return nil
}

// marks returns the marks that the application has.
func (o *owned) marks() []string {
	return marked(marked(nil, o.revoke, revokeTag), o.contested, contestedTag)
}

// marked returns the marks with another one, if the condition holds.
func marked(marks []string, condition bool, mark string) []string {
	if !condition {
		return marks
	}
	return append(unmarked(marks, mark), mark)
}

// unmarked returns the marks without one.
func unmarked(marks []string, mark string) []string {
	var others []string
	for _, m := range marks {
		if m != mark {
			others = append(others, m)
		}
	}
	return others
}
