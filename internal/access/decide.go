package access

import (
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// readInterval is how often the applications are read, and creationReadAge how old the
	// last list can be when an application is created: Cloudflare does not prevent an
	// application below the wildcard of another one.
	readInterval    = 10 * time.Minute
	creationReadAge = time.Minute
	// policiesInterval is how often the policies are read, and missingInterval how often
	// while one is missing.
	policiesInterval = time.Hour
	missingInterval  = time.Minute
	// applicationsPerRequest is how many applications one request lists.
	applicationsPerRequest = 100
)

// decider finds the next step. Its rules return false if they have none, and note when they
// will.
type decider struct {
	*situation
	wake Instant
}

// Decide returns the next step. The caller has called [Observe].
func Decide(f Facts) Step {
	d := &decider{situation: newSituation(f)}
	for _, rule := range []func() (Step, bool){
		d.concludeAdoptions, d.idle, d.afterFailure, d.readApplications, d.readPolicies, d.change,
	} {
		if step, ok := rule(); ok {
			return step
		}
	}
	return d.end()
}

// end returns the step without a request, which ends with the first wait that a rule has
// noted.
func (d *decider) end() Step {
	if !d.wake.IsSet() {
		return Step{Action: None}
	}
	return Step{Action: Wait, Delay: max(d.wake.at-d.Uptime, 0)}
}

// idle sends no request without a token or a key, and if no GatewayClass manages
// applications.
func (d *decider) idle() (Step, bool) {
	return d.end(), !d.mayManage() || d.TokenVersion == ""
}

// wakeAt notes that a rule has a step at that uptime.
func (d *decider) wakeAt(uptime time.Duration) {
	if !d.wake.IsSet() || uptime < d.wake.at {
		d.wake = At(uptime)
	}
}

// isDue reports whether the uptime has come, and otherwise notes it.
func (d *decider) isDue(uptime time.Duration) bool {
	if d.Uptime >= uptime {
		return true
	}
	d.wakeAt(uptime)
	return false
}

// afterFailure waits after an error. A token without the permission is tried again only
// while something is demanded.
func (d *decider) afterFailure() (Step, bool) {
	f := d.Memory.failure
	if f.Forbidden() != "" && !d.isUsed() {
		return d.end(), true
	}
	due := d.isDue(f.Until())
	return d.end(), !due
}

// isUsed reports whether the applications matter: something is demanded, a Gateway retires, the
// installation has applications, or no list shows yet that it has none.
func (d *decider) isUsed() bool {
	if slices.ContainsFunc(d.parties, func(p *party) bool { return p.State == ownership.Retiring }) {
		return true
	}
	return len(d.claims) > 0 || len(d.Adoptions) > 0 || d.Memory.applications.written || d.remote != nil && len(d.remote.owned) > 0
}

// readApplications lists the applications at the start, after an error, when a lost write can
// no longer be applied, and periodically.
func (d *decider) readApplications() (Step, bool) {
	m := d.Memory.applications
	read := m.outdated || m.all == nil && (d.isUsed() || d.isDue(d.Memory.started.at+provider.CallTimeout))
	for _, until := range d.Memory.unanswered {
		read = d.isDue(until) || read
	}
	if m.all == nil && !read {
		return d.end(), true // a write of a process before can still be applied
	}
	if !read && d.isUsed() {
		read = m.again.IsSet() && d.isDue(m.again.at) || d.isDue(m.read.at+readInterval)
	}
	return d.list(), read
}

// list returns the step that lists all applications.
func (d *decider) list() Step {
	return Step{Action: ReadApplications, Requests: max((len(d.Memory.applications.all)+applicationsPerRequest-1)/applicationsPerRequest, 1)}
}

// readPolicies lists the reusable policies when a demand names one.
func (d *decider) readPolicies() (Step, bool) {
	step := Step{Action: ReadPolicies, Requests: 1}
	m := d.Memory.policies
	needed, missing := d.policies()
	switch {
	case !needed:
		return step, false
	case !m.read.IsSet() || m.outdated:
		return step, true
	case missing:
		return step, d.isDue(m.read.at + missingInterval)
	}
	return step, d.isDue(m.read.at + policiesInterval)
}

// policies reports whether a demand names a policy of a catalogue, and whether one of these
// was not found.
func (d *decider) policies() (needed, missing bool) {
	for _, claims := range d.claims {
		for _, c := range claims {
			if !c.isManaged() || c.bypass {
				continue
			}
			for _, id := range c.spec.Policies {
				_, found := d.Memory.policies.decisions[id]
				needed, missing = true, missing || !found
			}
		}
	}
	return needed, missing
}

// change returns the step that changes applications.
func (d *decider) change() (Step, bool) {
	if !d.manages() {
		return Step{}, false
	}
	if retry, forbidden := d.Memory.failure.ChangesForbiddenUntil(); forbidden && !d.isDue(retry) {
		return Step{}, false
	}
	a := newAgenda(d.situation)
	if a.wake.IsSet() {
		d.wakeAt(a.wake.at)
	}
	switch {
	case len(a.outcomes) > 0:
		return Step{Action: ConcludeAdoptions, Adoptions: a.outcomes}, true
	case a.unread:
		return d.list(), true
	case len(a.due) == 0:
		return Step{}, false
	}
	return d.apply(a), true
}

// apply returns the step with the first writes, or the step that they need before.
func (d *decider) apply(a *agenda) Step {
	writes := a.due[:min(len(a.due), MaxWrites)]
	age := d.Uptime - d.Memory.applications.read.at
	for _, c := range writes {
		if c.Operation == Create && age > creationReadAge {
			return d.list()
		}
	}
	if step := d.ensureTags(writes); len(step.Writes) > 0 {
		return step
	}
	step := Step{Action: Apply, changes: writes}
	for _, c := range writes {
		step.Writes = append(step.Writes, c.Write)
		step.Requests += c.requests()
	}
	return step
}

// ensureTags returns the step that makes the tags which the writes need and which may not
// exist.
func (d *decider) ensureTags(writes []*change) Step {
	step := Step{Action: Apply}
	known := map[string]bool{}
	for _, c := range writes {
		for _, tag := range c.Spec.Tags {
			if !d.Memory.tags[tag] && !known[tag] && strings.HasPrefix(tag, tagPrefix) && len(step.Writes) < MaxWrites {
				known[tag] = true
				step.Writes = append(step.Writes, Write{Operation: EnsureTag, Hostname: c.Hostname, Gateway: c.Gateway, Tag: tag})
				step.Requests++
			}
		}
	}
	return step
}

// requests returns how many API requests the write sends. An update and a deletion read the
// application before.
func (c *change) requests() int {
	if c.Operation == Update || c.Operation == Delete {
		return 2
	}
	return 1
}
