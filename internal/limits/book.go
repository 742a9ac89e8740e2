package limits

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
)

// book has an account for each tenant.
type book struct {
	limit    Limit
	demands  []Demand
	verdicts []Verdict
	accounts []*account // by tenant, in alphabetical order
	total    int
}

// account is what one tenant uses.
type account struct {
	tenant Tenant
	// limit is the tenant's maximum.
	limit int
	// verdict is the verdict for demands above limit.
	verdict Verdict
	// used is the fixed amount and the admitted demands.
	used int
	// admitted are the indexes of the admitted demands, the youngest last. A demand for
	// nothing is always admitted and not listed.
	admitted []int
	lost     []int
	// excess is how much the fixed amount exceeds the tenant's maximum.
	excess int
}

func (l Limit) newBook(fixed map[Tenant]int, demands []Demand) *book {
	b := &book{limit: l, demands: demands, verdicts: make([]Verdict, len(demands))}
	byTenant := map[Tenant]*account{}
	find := func(t Tenant) *account {
		a := byTenant[t]
		if a == nil {
			a = l.newAccount(t)
			byTenant[t] = a
		}
		return a
	}
	for tenant, amount := range fixed {
		find(tenant).used += amount
		b.total += amount
	}
	for i, d := range demands {
		if d.Amount == 0 {
			continue
		}
		a := find(d.Tenant)
		a.used += d.Amount
		a.admitted = append(a.admitted, i)
		b.total += d.Amount
	}
	b.accounts = slices.SortedFunc(maps.Values(byTenant), func(x, y *account) int { return x.tenant.Compare(y.tenant) })
	return b
}

func (l Limit) newAccount(t Tenant) *account {
	a := &account{tenant: t, limit: l.Maximum(t), verdict: AboveTenantLimit}
	if t == l.First {
		a.verdict = AboveTotal
	}
	return a
}

// lose takes away the tenant's youngest demand, or part of its fixed amount when it has
// no demand.
func (b *book) lose(a *account, v Verdict) {
	amount := 1 // taken from the fixed amount
	if last := len(a.admitted) - 1; last >= 0 {
		i := a.admitted[last]
		a.admitted, a.lost = a.admitted[:last], append(a.lost, i)
		b.verdicts[i], amount = v, b.demands[i].Amount
	} else {
		a.excess++
	}
	a.used, b.total = a.used-amount, b.total-amount
}

func (b *book) admit(a *account, i int) {
	b.verdicts[i] = Admitted
	a.used, b.total = a.used+b.demands[i].Amount, b.total+b.demands[i].Amount
}

// enforceTenantLimit takes demands from a tenant until its limit holds. It then admits
// lost demands that fit again, the smallest first, so that the result for the tenant does
// not depend on other tenants.
func (b *book) enforceTenantLimit(a *account) {
	if a.used <= a.limit {
		return
	}
	for a.used > a.limit {
		b.lose(a, a.verdict)
	}
	b.sortLost(a)
	for len(a.lost) > 0 && a.used+b.demands[a.lost[0]].Amount <= a.limit {
		b.admit(a, a.lost[0])
		a.admitted, a.lost = append(a.admitted, a.lost[0]), a.lost[1:]
	}
	slices.Sort(a.admitted)
}

// sortLost orders the lost demands of a tenant: the smallest first, then the oldest.
func (b *book) sortLost(a *account) {
	slices.SortFunc(a.lost, func(i, j int) int {
		return cmp.Or(cmp.Compare(b.demands[i].Amount, b.demands[j].Amount), cmp.Compare(i, j))
	})
}

// enforceTotal takes demands from the largest consumers until the total limit holds. The
// tenant that is served first keeps its demands, which do not exceed the limit alone.
func (b *book) enforceTotal() {
	if b.total <= b.limit.Total {
		return
	}
	most := queue{before: func(x, y *account) bool {
		return cmp.Or(cmp.Compare(y.used, x.used), x.tenant.Compare(y.tenant)) < 0
	}}
	for _, a := range b.accounts {
		if a.tenant != b.limit.First {
			most.accounts = append(most.accounts, a)
		}
	}
	heap.Init(&most)
	for b.total > b.limit.Total {
		b.lose(most.accounts[0], AboveTotal)
		heap.Fix(&most, 0)
	}
}

// readmit admits lost demands that fit, always from the tenant that then uses the least.
func (b *book) readmit() {
	next := queue{before: func(x, y *account) bool {
		return cmp.Or(cmp.Compare(b.usedWithNext(x), b.usedWithNext(y)), x.tenant.Compare(y.tenant)) < 0
	}}
	for _, a := range b.accounts {
		if b.sortLost(a); len(a.lost) > 0 {
			next.accounts = append(next.accounts, a)
		}
	}
	heap.Init(&next)
	for next.Len() > 0 {
		a := next.accounts[0]
		// The tenant's other lost demands are not smaller, so they do not fit either.
		if !b.fits(a) {
			heap.Pop(&next)
			continue
		}
		b.admit(a, a.lost[0])
		if a.lost = a.lost[1:]; len(a.lost) == 0 {
			heap.Pop(&next)
		} else {
			heap.Fix(&next, 0)
		}
	}
}

func (b *book) usedWithNext(a *account) int { return a.used + b.demands[a.lost[0]].Amount }

func (b *book) fits(a *account) bool {
	amount := b.demands[a.lost[0]].Amount
	return b.total+amount <= b.limit.Total && a.used+amount <= a.limit
}

func (b *book) allocation() Allocation {
	result := Allocation{Verdicts: b.verdicts, Used: make(map[Tenant]int, len(b.accounts))}
	for _, a := range b.accounts {
		result.Used[a.tenant] = a.used
		if a.excess == 0 {
			continue
		}
		if result.Excess == nil {
			result.Excess = map[Tenant]int{}
		}
		result.Excess[a.tenant] = a.excess
	}
	return result
}

// queue is a heap of accounts.
type queue struct {
	accounts []*account
	before   func(x, y *account) bool
}

// Len implements [heap.Interface].
func (q *queue) Len() int { return len(q.accounts) }

// Less implements [heap.Interface].
func (q *queue) Less(i, j int) bool { return q.before(q.accounts[i], q.accounts[j]) }

// Swap implements [heap.Interface].
func (q *queue) Swap(i, j int) { q.accounts[i], q.accounts[j] = q.accounts[j], q.accounts[i] }

// Push implements [heap.Interface].
func (q *queue) Push(x any) { q.accounts = append(q.accounts, x.(*account)) }

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := len(q.accounts) - 1
	popped := q.accounts[last]
	q.accounts = q.accounts[:last]
	return popped
}
