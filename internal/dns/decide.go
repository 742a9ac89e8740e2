package dns

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// largeZone is the number of records above which the records are read less often.
	largeZone = 20_000
	// readInterval and largeReadInterval are how often all records are read.
	readInterval      = 10 * time.Minute
	largeReadInterval = time.Hour
	// zoneInterval is how often the zone, its quota and its certificates are read, and
	// retryInterval how often while they cannot be used.
	zoneInterval  = time.Hour
	retryInterval = 10 * time.Minute
	// maxReadAge is how old the answer to the read before an edit can be. Cloudflare
	// changes records without comparing them with what was read.
	maxReadAge = 2 * time.Second
	// deletionInterval is the time between reads for deletions. Other edits take at most one
	// request per editSpacing on average, a quarter of the requests for DNS: a hostname that
	// changes all the time delays no other zone of the account.
	deletionInterval = time.Minute
	editSpacing      = 5 * time.Second
	// recordsPerRequest is how many records one request lists.
	recordsPerRequest = 5000
)

// decider finds the next step. Its rules return false if they have none, and note when
// they will.
type decider struct {
	*situation
	wake Instant
}

// Decide returns the next step. The caller has called [Observe].
func Decide(f Facts) Step {
	d := &decider{situation: newSituation(f)}
	for _, rule := range []func() (Step, bool){
		d.concludeAdoptions, d.idle, d.afterFailure, d.readZone, d.readRecords, d.readCertificates, d.readUsage, d.change,
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

// idle sends no request without a token, and if the mode is Off.
func (d *decider) idle() (Step, bool) {
	return d.end(), d.class == nil || d.class.Settings.Mode == v1alpha1.DNSOff || d.TokenVersion == ""
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

// afterFailure waits after an error, and after a batch whose answer was lost, until
// Cloudflare can no longer apply it.
func (d *decider) afterFailure() (Step, bool) {
	due := d.isDue(max(d.Memory.failure.Until(), d.Memory.records.unanswered.at))
	return d.end(), !due
}

// readZone finds the zone. Nothing else happens in a zone that cannot be used.
func (d *decider) readZone() (Step, bool) {
	id := zoneID(d.class.Settings, d.Zone)
	m := d.Memory.zone
	if !m.read.IsSet() || m.id != id || d.isDue(m.next) {
		return Step{Action: ReadZone, ID: id, Requests: 1}, true
	}
	return d.end(), d.unusable != ""
}

// readRecords lists the zone's records at the start, after an error, and periodically.
func (d *decider) readRecords() (Step, bool) {
	m := d.Memory.records
	if m.view == nil || m.outdated || d.isDue(m.read.at+d.readInterval()) {
		return d.listRecords(0), true
	}
	return Step{}, false
}

func (d *decider) readInterval() time.Duration {
	if d.view.total > largeZone {
		return largeReadInterval
	}
	return readInterval
}

// listRecords returns the step that lists all records, and reserves requests for the steps
// that follow it at once.
func (d *decider) listRecords(following int) Step {
	return Step{Action: ReadRecords, ID: d.id, Requests: d.pages() + following}
}

// pages returns how many requests list all records.
func (d *decider) pages() int {
	if d.view == nil {
		return 1
	}
	return max((d.view.total+recordsPerRequest-1)/recordsPerRequest, 1)
}

func (d *decider) readCertificates() (Step, bool) {
	return Step{Action: ReadCertificates, ID: d.id, Requests: 1}, d.isDue(d.Memory.hosts.next)
}

func (d *decider) readUsage() (Step, bool) {
	return Step{Action: ReadUsage, ID: d.id, Requests: 1}, d.isDue(d.Memory.usage.next)
}

// change returns the step that changes records, or the read that it needs.
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
	if len(a.outcomes) > 0 {
		return Step{Action: ConcludeAdoptions, ID: d.id, Adoptions: a.outcomes}, true
	}
	if (len(a.creates) > 0 || a.full) && d.quotaIsOld() {
		return Step{Action: ReadUsage, ID: d.id, Requests: 1}, true
	}
	if step, ok := d.apply(a); ok {
		return step, true
	}
	return d.readBefore(a)
}

// quotaIsOld reports whether the quota must be read before records are created.
func (d *decider) quotaIsOld() bool {
	usage := d.Memory.usage
	return d.isDue(usage.read.at + quotaInterval)
}

// isFresh reports whether a read was sent for the edit of the name's record, after the last
// change in the zone, and has been answered just now.
func (s *situation) isFresh(name string) bool {
	m := s.Memory.records
	_, found := slices.BinarySearch(m.edits, name)
	return found && s.Uptime-m.answered.at <= maxReadAge
}

// readBefore returns the read that edits or waiting changes need. It reads the names
// concerned alone, if that takes fewer requests than all records.
func (d *decider) readBefore(a *agenda) (Step, bool) {
	edits := slices.Clone(a.unread)
	for _, c := range a.edits {
		edits = append(edits, c.Name)
	}
	var confirmed []string
	if a.confirmAt.IsSet() && d.isDue(a.confirmAt.at) {
		confirmed = a.confirmable()
	}
	requests := min(len(edits)+len(confirmed), d.pages())
	if !d.isReadDue(a, len(confirmed) > 0, time.Duration(requests+1)*editSpacing) {
		return Step{}, false
	}
	if requests < d.pages() {
		return d.readNames(edits, confirmed), true
	}
	step := d.listRecords(count(len(edits) > 0))
	step.edits, step.extra = sortedNames(edits), true
	return step, true
}

// isReadDue reports whether a change needs a read now. interval is the time between reads
// for other edits than deletions.
func (d *decider) isReadDue(a *agenda, confirms bool, interval time.Duration) bool {
	due := (confirms || len(a.unread) > 0) && d.isDueAfter(interval)
	for _, c := range a.edits {
		between := interval
		if c.Operation == Delete {
			between = max(interval, deletionInterval)
		}
		due = d.isDueAfter(between) || due
	}
	return due
}

// isDueAfter reports whether the interval has passed since the last read of this kind, and
// otherwise notes when it has.
func (d *decider) isDueAfter(interval time.Duration) bool {
	last := d.Memory.records.extra
	return !last.IsSet() || d.isDue(last.at+interval)
}

// readNames returns the step that reads the first of the names.
func (d *decider) readNames(edits, confirmed []string) Step {
	edits = edits[:min(len(edits), provider.MaxNames)]
	confirmed = confirmed[:min(len(confirmed), provider.MaxNames-len(edits))]
	names := sortedNames(slices.Concat(edits, confirmed))
	return Step{
		Action: ReadRecords, ID: d.id, Names: names, Requests: len(names) + count(len(edits) > 0), edits: sortedNames(edits), extra: true,
	}
}

// sortedNames returns the names, sorted and without duplicates.
func sortedNames(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	return slices.Compact(sorted)
}

// confirmable returns the names whose records a read can confirm now, sorted.
func (a *agenda) confirmable() []string {
	var names []string
	for name := range a.confirm {
		if set := a.view.set(name); a.Uptime >= set.since.at+propagation {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
