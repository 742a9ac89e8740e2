package byname_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
)

// version is a map and what it must contain.
type version struct {
	got  byname.Map[int]
	want map[types.NamespacedName]int
}

// changed returns a copy with a random change.
func (v version) changed(random *rand.Rand) version {
	want := map[types.NamespacedName]int{}
	maps.Copy(want, v.want)
	v.want = want
	name := types.NamespacedName{Namespace: fmt.Sprint("ns", random.IntN(4)), Name: fmt.Sprint("n", random.IntN(200))}
	switch value := random.IntN(3); random.IntN(5) {
	case 0:
		v.got.Delete(name)
		delete(v.want, name)
	case 1:
		v.got = byname.From(v.want)
	default:
		v.got.Set(name, value)
		v.want[name] = value
	}
	return v
}

// Randomly changed copies behave like Go maps, and differ where their values do.
func TestMapsBehaveLikeGoMaps(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test must be reproducible
		versions := []version{{}}
		for range 300 {
			versions = append(versions, versions[random.IntN(len(versions))].changed(random))
		}
		for _, v := range versions {
			if got := maps.Collect(v.got.All()); !maps.Equal(got, v.want) || v.got.Len() != len(v.want) {
				t.Fatalf("seed %d: the map contains %v, want %v", seed, got, v.want)
			}
			compare(t, v, versions[random.IntN(len(versions))])
		}
	}
}

// compare compares the values for the other version's names, and the differences.
func compare(t *testing.T, v, other version) {
	t.Helper()
	want := map[types.NamespacedName]bool{}
	for name := range v.want {
		if _, ok := other.want[name]; !ok {
			want[name] = true
		}
	}
	for name, value := range other.want {
		expected, exists := v.want[name]
		if got, ok := v.got.Get(name); got != expected || ok != exists || v.got.Value(name) != expected {
			t.Fatalf("%s has the value %d (%t), want %d (%t)", name, got, ok, expected, exists)
		}
		if !exists || expected != value {
			want[name] = true
		}
	}
	got := map[types.NamespacedName]bool{}
	for name := range byname.Differing(v.got, other.got, func(a, b int) bool { return a == b }) {
		if got[name] {
			t.Errorf("%s is among the differences twice", name)
		}
		got[name] = true
	}
	if !maps.Equal(got, want) {
		t.Fatalf("the maps differ in %v, want %v", got, want)
	}
}

// After one value has changed, a comparison reads only a few others.
func TestComparisonsReadOnlyChangedParts(t *testing.T) {
	const count = 10_000
	content := map[types.NamespacedName]int{}
	for i := range count {
		content[types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}] = i
	}
	before := byname.From(content)
	after, compared := before, 0
	after.Set(types.NamespacedName{Namespace: "team", Name: "17"}, -1)
	found := slices.Collect(byname.Differing(before, after, func(a, b int) bool { compared++; return a == b }))
	if len(found) != 1 || compared > count/32 {
		t.Errorf("%d values were compared, and %v differ", compared, found)
	}
}
