package limits_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

var (
	platform = limits.Tenant{Name: "platform"}
	blue     = limits.Tenant{Name: "blue"}
	green    = limits.Tenant{Name: "green"}
	red      = limits.Tenant{Name: "red"}
)

const (
	in         = limits.Admitted
	aboveOwn   = limits.AboveTenantLimit
	aboveTotal = limits.AboveTotal
)

func TestAllocate(t *testing.T) {
	for name, test := range map[string]struct {
		total, perTenant int
		fixed            map[limits.Tenant]int
		demands          []limits.Demand
		want             []limits.Verdict
		excess           map[limits.Tenant]int
	}{
		"everything fits": {
			total:   10,
			demands: []limits.Demand{{blue, 4}, {green, 6}},
			want:    []limits.Verdict{in, in},
		},
		"the tenant that uses the most loses its youngest demand": {
			total:   10,
			demands: []limits.Demand{{blue, 4}, {green, 2}, {blue, 4}, {green, 2}},
			want:    []limits.Verdict{in, in, aboveTotal, in},
		},
		"among equals the first by name loses": {
			total:   10,
			demands: []limits.Demand{{green, 6}, {blue, 6}},
			want:    []limits.Verdict{in, aboveTotal},
		},
		"a tenant above its own limit loses its youngest demands": {
			total: 100, perTenant: 10,
			demands: []limits.Demand{{blue, 6}, {blue, 4}, {blue, 1}, {green, 10}},
			want:    []limits.Verdict{in, in, aboveOwn, in},
		},
		"a lost demand below the tenant's limit returns": {
			total: 100, perTenant: 10,
			demands: []limits.Demand{{blue, 6}, {blue, 20}, {blue, 3}},
			want:    []limits.Verdict{in, aboveOwn, in},
		},
		"a lost demand returns, first for the smallest tenant": {
			total:   10,
			demands: []limits.Demand{{blue, 1}, {blue, 8}, {green, 2}, {green, 7}, {red, 1}},
			want:    []limits.Verdict{in, aboveTotal, in, aboveTotal, in},
		},
		"the owner of the Gateway is served first": {
			total: 10, perTenant: 5,
			demands: []limits.Demand{{blue, 5}, {platform, 8}},
			want:    []limits.Verdict{aboveTotal, in},
		},
		"the owner of the Gateway loses what does not fit alone": {
			total:   10,
			demands: []limits.Demand{{platform, 6}, {platform, 7}, {platform, 2}, {blue, 3}, {blue, 2}},
			want:    []limits.Verdict{in, aboveTotal, in, aboveTotal, in},
		},
		"fixed amounts count for their tenant": {
			total:   10,
			fixed:   map[limits.Tenant]int{blue: 4},
			demands: []limits.Demand{{blue, 3}, {green, 5}},
			want:    []limits.Verdict{aboveTotal, in},
		},
		"a fixed amount above the tenant's limit is an excess": {
			total: 100, perTenant: 10,
			fixed:   map[limits.Tenant]int{blue: 12},
			demands: []limits.Demand{{blue, 1}},
			want:    []limits.Verdict{aboveOwn},
			excess:  map[limits.Tenant]int{blue: 2},
		},
		"a fixed amount above the share is an excess": {
			total:   10,
			fixed:   map[limits.Tenant]int{blue: 12},
			demands: []limits.Demand{{green, 4}},
			want:    []limits.Verdict{in},
			excess:  map[limits.Tenant]int{blue: 6},
		},
		"a label and a same-named namespace are two tenants": {
			total: 100, perTenant: 10,
			demands: []limits.Demand{{blue, 8}, {limits.Tenant{Name: "blue", Labeled: true}, 8}},
			want:    []limits.Verdict{in, in},
		},
		"a demand of nothing is admitted": {
			total:   1,
			demands: []limits.Demand{{blue, 2}, {blue, 0}},
			want:    []limits.Verdict{aboveTotal, in},
		},
	} {
		t.Run(name, func(t *testing.T) {
			limit := limits.Limit{Total: test.total, PerTenant: test.perTenant, First: platform}
			got := limit.Allocate(test.fixed, test.demands)
			if diff := cmp.Diff(test.want, got.Verdicts); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.excess, got.Excess); diff != "" {
				t.Errorf("excess (-want +got):\n%s", diff)
			}
		})
	}
}

// randomCase returns a random limit, with fixed amounts and demands for up to six
// tenants.
func randomCase(seed uint64) (limits.Limit, map[limits.Tenant]int, []limits.Demand) {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test must be reproducible
	tenants := []limits.Tenant{platform, blue, green, red, {Name: "blue", Labeled: true}, {Name: "yellow"}}[:1+r.IntN(6)]
	limit := limits.Limit{Total: r.IntN(60), First: platform}
	if r.IntN(2) == 0 {
		limit.PerTenant = 1 + r.IntN(20)
	}
	fixed := map[limits.Tenant]int{}
	for range r.IntN(4) {
		fixed[tenants[r.IntN(len(tenants))]] += r.IntN(4)
	}
	demands := make([]limits.Demand, r.IntN(20))
	for i := range demands {
		demands[i] = limits.Demand{Tenant: tenants[r.IntN(len(tenants))], Amount: r.IntN(12)}
	}
	return limit, fixed, demands
}

func forEachCase(t *testing.T, check func(t *testing.T, limit limits.Limit, fixed map[limits.Tenant]int, demands []limits.Demand)) {
	for seed := range uint64(5000) {
		limit, fixed, demands := randomCase(seed)
		check(t, limit, fixed, demands)
		if t.Failed() {
			t.Fatalf("seed %d: %+v, fixed %v, demands %v", seed, limit, fixed, demands)
		}
	}
}

func TestAllocationStaysWithinTheLimits(t *testing.T) {
	forEachCase(t, func(t *testing.T, limit limits.Limit, fixed map[limits.Tenant]int, demands []limits.Demand) {
		got := limit.Allocate(fixed, demands)
		total, used := 0, maps.Clone(fixed)
		for i, d := range demands {
			if got.Verdicts[i] == limits.Admitted {
				used[d.Tenant] += d.Amount
			}
		}
		for tenant, amount := range used {
			amount -= got.Excess[tenant]
			total += amount
			if amount != got.Used[tenant] {
				t.Errorf("%v uses %d, the allocation says %d", tenant, amount, got.Used[tenant])
			}
			if tenant != limit.First && limit.PerTenant > 0 && amount > limit.PerTenant {
				t.Errorf("%v uses %d of %d", tenant, amount, limit.PerTenant)
			}
		}
		if total > limit.Total {
			t.Errorf("the tenants use %d of %d", total, limit.Total)
		}
	})
}

// A tenant below its share keeps everything that its own limit permits. The other tenants'
// demands do not matter.
func TestTenantBelowItsShareLosesNothing(t *testing.T) {
	compared := 0
	forEachCase(t, func(t *testing.T, limit limits.Limit, fixed map[limits.Tenant]int, demands []limits.Demand) {
		got := limit.Allocate(fixed, demands)
		tenants := map[limits.Tenant]bool{}
		for _, d := range demands {
			tenants[d.Tenant] = true
		}
		for tenant := range fixed {
			tenants[tenant] = true
		}
		delete(tenants, limit.First)
		for tenant := range tenants {
			alone := allocateAlone(limit, tenant, fixed, demands)
			share := (limit.Total - got.Used[limit.First]) / len(tenants)
			if alone.Used[tenant] > share {
				continue
			}
			compared++
			for i, d := range demands {
				if d.Tenant == tenant && got.Verdicts[i] != limits.Admitted && alone.Verdicts[i] == limits.Admitted {
					t.Errorf("%v loses demand %d, although it uses %d of its share %d", tenant, i, alone.Used[tenant], share)
				}
			}
		}
	})
	if compared < 3000 {
		t.Errorf("only %d tenants were below their share", compared)
	}
}

// allocateAlone allocates to one tenant, without the others and without a total limit.
func allocateAlone(limit limits.Limit, tenant limits.Tenant, fixed map[limits.Tenant]int, demands []limits.Demand) limits.Allocation {
	own := slices.Clone(demands)
	for i := range own {
		if own[i].Tenant != tenant {
			own[i].Amount = 0
		}
	}
	limit.Total = 1 << 30
	return limit.Allocate(map[limits.Tenant]int{tenant: fixed[tenant]}, own)
}

// The reference follows the rules step by step, and searches all tenants and demands
// in each step.
func TestAllocateFollowsTheReference(t *testing.T) {
	forEachCase(t, func(t *testing.T, limit limits.Limit, fixed map[limits.Tenant]int, demands []limits.Demand) {
		want := newReference(limit, fixed, demands)
		want.run()
		if diff := cmp.Diff(want.admitted, admitted(limit.Allocate(fixed, demands))); diff != "" {
			t.Errorf("admitted (-want +got):\n%s", diff)
		}
	})
}

func admitted(a limits.Allocation) []bool {
	result := make([]bool, len(a.Verdicts))
	for i, v := range a.Verdicts {
		result[i] = v == limits.Admitted
	}
	return result
}

type reference struct {
	limits.Limit
	fixed    map[limits.Tenant]int
	demands  []limits.Demand
	admitted []bool
}

func newReference(limit limits.Limit, fixed map[limits.Tenant]int, demands []limits.Demand) *reference {
	r := &reference{Limit: limit, fixed: maps.Clone(fixed), demands: demands, admitted: make([]bool, len(demands))}
	for i, d := range demands {
		r.admitted[i] = true
		r.fixed[d.Tenant] += 0
	}
	return r
}

func (r *reference) used(tenant limits.Tenant) int {
	sum := r.fixed[tenant]
	for i, d := range r.demands {
		if r.admitted[i] && d.Tenant == tenant {
			sum += d.Amount
		}
	}
	return sum
}

func (r *reference) total() (sum int) {
	for tenant := range r.fixed {
		sum += r.used(tenant)
	}
	return sum
}

func (r *reference) tenants() []limits.Tenant {
	return slices.SortedFunc(maps.Keys(r.fixed), func(a, b limits.Tenant) int {
		key := func(t limits.Tenant) string { return fmt.Sprintf("%s/%v", t.Name, !t.Labeled) }
		return strings.Compare(key(a), key(b))
	})
}

func (r *reference) mayUse(tenant limits.Tenant, amount int) bool {
	if tenant == r.First {
		return amount <= r.Total
	}
	return r.PerTenant == 0 || amount <= r.PerTenant
}

func (r *reference) loseYoungest(tenant limits.Tenant) {
	for i := len(r.demands) - 1; i >= 0; i-- {
		if r.admitted[i] && r.demands[i].Tenant == tenant && r.demands[i].Amount > 0 {
			r.admitted[i] = false
			return
		}
	}
	r.fixed[tenant]--
}

// readmit admits the lost demand that fits and gives its tenant the smallest total. It
// returns false when none fits.
func (r *reference) readmit(total int, candidate func(limits.Tenant) bool) bool {
	best, bestUse := -1, 0
	for _, tenant := range r.tenants() {
		for i, d := range r.demands {
			use := r.used(tenant) + d.Amount
			if d.Tenant == tenant && candidate(tenant) && !r.admitted[i] && r.total()+d.Amount <= total && r.mayUse(tenant, use) && (best < 0 || use < bestUse) {
				best, bestUse = i, use
			}
		}
	}
	if best >= 0 {
		r.admitted[best] = true
	}
	return best >= 0
}

func (r *reference) run() {
	for _, tenant := range r.tenants() {
		for !r.mayUse(tenant, r.used(tenant)) {
			r.loseYoungest(tenant)
		}
		for r.readmit(math.MaxInt, func(t limits.Tenant) bool { return t == tenant }) {
		}
	}
	for r.total() > r.Total {
		var loser limits.Tenant
		most := 0
		for _, tenant := range r.tenants() {
			if tenant != r.First && r.used(tenant) > most {
				loser, most = tenant, r.used(tenant)
			}
		}
		r.loseYoungest(loser)
	}
	for r.readmit(r.Total, func(limits.Tenant) bool { return true }) {
	}
}

func BenchmarkAllocate(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("demands=%d", n), func(b *testing.B) {
			demands := make([]limits.Demand, n)
			for i := range demands {
				demands[i] = limits.Demand{Tenant: limits.Tenant{Name: fmt.Sprintf("team-%03d", i*i%211)}, Amount: 1 + i%17}
			}
			b.ReportAllocs()
			for b.Loop() {
				limits.Limit{Total: 1000, PerTenant: 500}.Allocate(nil, demands)
			}
		})
	}
}
