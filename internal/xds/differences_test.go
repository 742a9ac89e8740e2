package xds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// The differences that a subscription follows from change to change are those of a full
// comparison.
func TestDifferencesEqualAFullComparison(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		w := &comparison{Rand: random, t: t, latest: newSet(resources{})}
		w.start()
		for range 60 {
			w.step()
			w.check(fmt.Sprintf("seed %d", seed))
		}
	}
}

// comparison changes a set and a subscription at random.
type comparison struct {
	*rand.Rand
	t      *testing.T
	sub    subscription
	latest *set
}

func (w *comparison) name() string { return fmt.Sprint("r", w.IntN(12)) }

func (w *comparison) version() string { return fmt.Sprint("v", 1+w.IntN(3)) }

func (w *comparison) start() {
	w.t.Helper()
	r := &discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: map[string]string{w.name(): w.version(), w.name(): w.version()}}
	k := clusters
	if w.IntN(2) == 0 {
		k, r.ResourceNamesSubscribe = endpoints, []string{w.name(), w.name()}
	}
	if err := w.sub.start(k, r); err != nil {
		w.t.Fatal(err)
	}
	w.update(r, true)
}

func (w *comparison) update(r *discoveryv3.DeltaDiscoveryRequest, isFirst bool) {
	w.t.Helper()
	if err := w.sub.update(r, isFirst); err != nil {
		w.t.Fatal(err)
	}
}

func (w *comparison) resources() resources {
	all := resources{}
	for range 1 + w.IntN(3) {
		name := w.name()
		all[name] = &resource{Name: name, Version: w.version()}
	}
	return all
}

// step does one thing that can happen to a subscription.
func (w *comparison) step() {
	w.t.Helper()
	switch w.IntN(9) {
	case 0:
		w.latest = newSet(w.resources()) // for example after a rejection
	case 1, 2, 3:
		w.derive()
	case 4:
		w.sub.send(&response{nonce: "1", added: slices.Collect(maps.Values(w.resources()))}) // from another set
	case 5:
		w.sub.send(&response{nonce: "1", added: w.sub.missing(w.latest)})
	case 6:
		if r := w.sub.take("1"); r != nil && w.IntN(2) == 0 {
			w.sub.revert(r)
			w.sub.refuse(r)
		}
	case 7:
		w.update(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{w.name()}, ResourceNamesUnsubscribe: []string{w.name()}}, false)
	default:
		if held := slices.Sorted(maps.Keys(w.sub.held)); len(held) > 0 {
			w.sub.send(&response{nonce: "1", removed: held[:1]})
		}
	}
}

// derive adds some resources and may remove one.
func (w *comparison) derive() {
	w.t.Helper()
	var removed []string
	if name := w.name(); w.IntN(2) == 0 && w.latest.has(name) {
		removed = []string{name}
	}
	added := w.resources()
	for _, name := range removed {
		delete(added, name)
	}
	w.latest = w.latest.derive(added, removed)
}

// check compares with a subscription that has the same state and has compared nothing.
func (w *comparison) check(description string) {
	w.t.Helper()
	if w.IntN(3) == 0 {
		return // several changes precede the next comparison
	}
	full := w.sub
	full.compared, full.differing = nil, map[string]struct{}{}
	if got, want := namesIn(w.sub.missing(w.latest)), namesIn(full.missing(w.latest)); !slices.Equal(got, want) {
		w.t.Fatalf("%s: missing are %v, want %v", description, got, want)
	}
	if got, want := w.sub.heldBeyond(w.latest), full.heldBeyond(w.latest); !slices.Equal(got, want) {
		w.t.Fatalf("%s: held beyond are %v, want %v", description, got, want)
	}
	if got, want := w.sub.hasAll(w.latest), full.hasAll(w.latest); got != want {
		w.t.Fatalf("%s: has all is %t, want %t", description, got, want)
	}
	w.checkMissing(description, &full)
}

// checkMissing compares the missing resources with what the subscription holds.
func (w *comparison) checkMissing(description string, full *subscription) {
	w.t.Helper()
	for _, r := range full.missing(w.latest) {
		if full.held[r.Name] == r.Version || full.refused[r.Name] == r.Version || !full.wants(r.Name) {
			w.t.Fatalf("%s: %s is missing", description, r.Name)
		}
	}
	for name, r := range w.latest.each() {
		isMissing := full.wants(name) && full.held[name] != r.Version && full.refused[name] != r.Version
		if isMissing && !slices.Contains(namesIn(full.missing(w.latest)), name+" "+r.Version) {
			w.t.Fatalf("%s: %s is not missing", description, name)
		}
	}
}

func namesIn(all []*resource) []string {
	var names []string
	for _, r := range all {
		names = append(names, r.Name+" "+r.Version)
	}
	return names
}

// A derived set has what was added and lacks what was removed, and is the same set if nothing
// has changed.
func TestDerivedSetsEqualNewOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	last := newSet(resources{})
	for range 500 {
		added, removed := resources{}, []string(nil)
		for i := range 5 {
			name := fmt.Sprint("r", i)
			switch random.IntN(3) {
			case 0:
				added[name] = &resource{Name: name, Version: fmt.Sprint("v", random.IntN(3))}
			case 1:
				if last.has(name) {
					removed = append(removed, name)
				}
			default:
			}
		}
		want := maps.Clone(last.all)
		maps.Copy(want, added)
		for _, name := range removed {
			delete(want, name)
		}
		next := last.derive(added, removed)
		isEqual := func(a, b *resource) bool { return a.Version == b.Version }
		if !maps.EqualFunc(next.all, want, isEqual) {
			t.Fatalf("got %v, want %v", next.all, want)
		}
		if isSame := maps.EqualFunc(last.all, next.all, isEqual); isSame != (next == last) {
			t.Fatalf("the sets are equal: %t, and the same: %t", isSame, next == last)
		}
		last = next
	}
}
