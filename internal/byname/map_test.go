package byname_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
)

// Random copies of maps behave like copies of Go maps, and the differences between any two of them are
// those between their contents.
func TestMapsBehaveLikeGoMaps(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test must be reproducible
		type version struct {
			got  byname.Map[int]
			want map[types.NamespacedName]int
		}
		versions := []version{{}}
		for range 300 {
			next := versions[random.IntN(len(versions))]
			next.want = maps.Clone(next.want)
			if next.want == nil {
				next.want = map[types.NamespacedName]int{}
			}
			name := types.NamespacedName{Namespace: fmt.Sprint("ns", random.IntN(4)), Name: fmt.Sprint("n", random.IntN(200))}
			switch value := random.IntN(3); random.IntN(5) {
			case 0:
				next.got.Delete(name)
				delete(next.want, name)
			case 1:
				next.got = byname.Of(next.want)
			default:
				next.got.Set(name, value)
				next.want[name] = value
			}
			versions = append(versions, next)
		}
		for _, v := range versions {
			if got := maps.Collect(v.got.All()); !maps.Equal(got, v.want) || v.got.Len() != len(v.want) {
				t.Fatalf("seed %d: the map contains %v, want %v", seed, got, v.want)
			}
			other := versions[random.IntN(len(versions))]
			for name := range other.want {
				got, ok := v.got.Get(name)
				if want, exists := v.want[name]; got != want || ok != exists || v.got.Value(name) != want {
					t.Fatalf("seed %d: %s has the value %d (%t), want %d (%t)", seed, name, got, ok, want, exists)
				}
			}
			compareDifferences(t, v.got, other.got, v.want, other.want)
		}
	}
}

func compareDifferences(t *testing.T, a, b byname.Map[int], wantA, wantB map[types.NamespacedName]int) {
	t.Helper()
	var want []types.NamespacedName
	both := maps.Clone(wantA)
	if both == nil {
		both = map[types.NamespacedName]int{}
	}
	maps.Copy(both, wantB)
	for name := range both {
		x, inA := wantA[name]
		if y, inB := wantB[name]; inA != inB || x != y {
			want = append(want, name)
		}
	}
	got := slices.Collect(byname.Differing(a, b, func(x, y int) bool { return x == y }))
	compare := func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(got, compare)
	slices.SortFunc(want, compare)
	if !slices.Equal(got, want) {
		t.Fatalf("the maps differ in %v, want %v", got, want)
	}
}

// After a change of one value, a comparison does not read the others.
func TestComparisonsReadOnlyChangedParts(t *testing.T) {
	const count = 10_000
	var before byname.Map[int]
	content := map[types.NamespacedName]int{}
	for i := range count {
		content[types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}] = i
	}
	before = byname.Of(content)
	after, compared := before, 0
	after.Set(types.NamespacedName{Namespace: "team", Name: "17"}, -1)
	for range byname.Differing(before, after, func(a, b int) bool { compared++; return a == b }) { //nolint:revive // only counts
	}
	if compared == 0 || compared > count/32 {
		t.Errorf("%d of %d values were compared", compared, count)
	}
}
