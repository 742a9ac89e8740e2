package access

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// NamespaceApplications is how many applications a namespace can have.
const NamespaceApplications = 50

const (
	// accountApplications is how many applications an account can have. (Source:
	// Cloudflare's documentation of the account limits of Zero Trust.) The last twentieth
	// remains free for others.
	accountApplications = 500
	usableApplications  = accountApplications * 95 / 100
	// quotaInterval is how long no application is created after Cloudflare has refused one
	// because of the quota.
	quotaInterval = 10 * time.Minute
	// maxChanges is how many changes of applications a namespace gets in changesInterval.
	maxChanges      = 60
	changesInterval = 5 * time.Minute
	// updateInterval is the time between two updates of one application.
	updateInterval = time.Minute
)

// wanted is a hostname that competes for an application.
type wanted struct {
	name    string
	tenant  limits.Tenant
	created time.Time
	// exists reports whether the hostname has an application.
	exists bool
}

// tenant returns the namespace that competes for the applications. A demand of the
// GatewayClass counts for no namespace's limit, and has a tenant of its own for each
// namespace whose listeners claim hostnames: their number is that namespace's choice, and
// must take no place from others.
func (c *claim) tenant() limits.Tenant {
	if namespace := c.demand.Namespace; namespace != "" {
		return limits.Tenant{Name: namespace}
	}
	return limits.Tenant{Name: c.claimant, Labeled: true}
}

// applyLimits gives the claims of the hostnames for which there is no room a problem. Of equally
// old demands, the ones with an application precede.
func (s *situation) applyLimits() {
	if !s.mayManage() {
		return
	}
	all, fixed := s.competitors()
	slices.SortFunc(all, func(a, b wanted) int {
		return cmp.Or(a.created.Compare(b.created), count(b.exists)-count(a.exists), cmp.Compare(a.name, b.name))
	})
	verdicts := allocate(s.class.Settings.MaxApplications, fixed, all)
	var exceeding []wanted
	missing := 0
	for i, verdict := range verdicts {
		if verdict == limits.Admitted {
			missing += count(!all[i].exists)
			continue
		}
		exceeding = append(exceeding, all[i])
		s.refuseClaims(all[i], verdict)
	}
	if missing > 0 {
		s.evict(exceeding, missing-s.newRoom().installation)
	}
}

// allocate returns the verdict about each hostname: first those beyond the limit of a namespace,
// then those beyond the total.
func allocate(total int, fixed map[limits.Tenant]int, all []wanted) []limits.Verdict {
	ofNamespaces := map[limits.Tenant]int{}
	for tenant, amount := range fixed {
		if !tenant.Labeled {
			ofNamespaces[tenant] = amount
		}
	}
	demands := make([]limits.Demand, len(all))
	for i, w := range all {
		demands[i] = limits.Demand{Tenant: w.tenant, Amount: count(!w.tenant.Labeled)}
	}
	verdicts := limits.Limit{Total: math.MaxInt, PerTenant: NamespaceApplications}.Allocate(ofNamespaces, demands).Verdicts
	for i := range demands {
		demands[i].Amount = count(verdicts[i] == limits.Admitted)
	}
	for i, verdict := range (limits.Limit{Total: total}).Allocate(fixed, demands).Verdicts {
		verdicts[i] = max(verdicts[i], verdict)
	}
	return verdicts
}

// refuseClaims gives the hostname's claims the problem that it exceeds a limit. An
// existing application remains, unless [situation.evict] ends it.
func (s *situation) refuseClaims(w wanted, verdict limits.Verdict) {
	problem := &settings.Problem{Reason: conditions.ReasonLimitExceeded, Message: fmt.Sprintf(
		"the applications of this installation are used up: spec.access.maxApplications is %d. Remove demands, use a wildcard hostname, or ask the platform team to raise the limit.",
		s.class.Settings.MaxApplications)}
	if verdict == limits.AboveTenantLimit {
		problem.Message = fmt.Sprintf("namespace %s already has %d applications, and cannot have more. Remove demands, or use a wildcard hostname.",
			w.tenant.Name, NamespaceApplications)
	}
	for _, c := range s.claims[w.name] {
		if c.problem == nil {
			c.problem = problem
		}
	}
}

// evict ends existing applications of the hostnames that exceed a limit, the youngest first, if
// other namespaces need their places.
func (s *situation) evict(exceeding []wanted, places int) {
	for _, w := range slices.Backward(exceeding) {
		if places <= 0 {
			return
		}
		if !w.exists {
			continue
		}
		places--
		for _, c := range s.claims[w.name] {
			c.ends = true
		}
	}
}

// competitors returns the hostnames that have an application or can get one, and how many
// applications each namespace has besides.
func (s *situation) competitors() (all []wanted, fixed map[limits.Tenant]int) {
	fixed = map[limits.Tenant]int{}
	for _, name := range s.names() {
		switch d := s.decide(name); {
		case d.kind == create || d.kind == update || d.kind == remake:
			all = append(all, wanted{name, d.target.tenant(), d.target.demand.Created, d.app != nil})
		case d.app != nil && d.target != nil:
			fixed[d.target.tenant()]++
		case d.app != nil:
			fixed[limits.Tenant{Name: s.Memory.traces[d.app.key()].namespace}]++
		}
	}
	for _, o := range s.remote.owned {
		if o.name == "" {
			fixed[limits.Tenant{Name: s.Memory.traces[o.key()].namespace}]++
		}
	}
	return all, fixed
}

// room is how many applications can be created.
type room struct {
	// installation and account are the numbers that remain.
	installation, account int
}

func (s *situation) newRoom() room {
	r := room{installation: s.class.Settings.MaxApplications - len(s.remote.owned), account: usableApplications - len(s.remote.byID)}
	if full := s.Memory.full; full.IsSet() && s.Uptime < full.at+quotaInterval {
		r.account = 0
	}
	return r
}

// take takes room for one application, or returns why there is none.
func (r *room) take() *finding {
	switch {
	case r.account <= 0:
		return &finding{conditions.ReasonLimitExceeded, fmt.Sprintf("the Cloudflare account has used 95 %% of its %d applications of Cloudflare Access, counting those of others. "+
			"Remove applications or demands.", accountApplications)}
	case r.installation <= 0:
		return &finding{conditions.ReasonPending, "the controller creates the application when it has deleted another one, because of spec.access.maxApplications."}
	}
	r.installation--
	r.account--
	return nil
}

// changesDue returns the uptime from which the namespace gets another change.
func (s *situation) changesDue(namespace string, planned int) time.Duration {
	if namespace == "" {
		return 0
	}
	recent := recentChanges(s.Memory.changes[namespace], s.Uptime)
	excess := len(recent) + planned - maxChanges
	if excess < 0 {
		return 0
	}
	if excess >= len(recent) {
		return s.Uptime + changesInterval
	}
	return recent[excess] + changesInterval
}

// recentChanges returns the changes within the last changesInterval.
func recentChanges(changes []time.Duration, uptime time.Duration) []time.Duration {
	for i, at := range changes {
		if at+changesInterval > uptime {
			return changes[i:]
		}
	}
	return nil
}
