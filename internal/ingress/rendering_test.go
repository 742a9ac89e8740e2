package ingress_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// tableEdits change one part of a table that rules depend on. They change nothing that both
// tables share.
var tableEdits = map[string]func(t *routing.Table, dice *rand.Rand){
	"nothing": func(*routing.Table, *rand.Rand) {},
	"actions": func(t *routing.Table, dice *rand.Rand) {
		editEntries(t, dice, func(e *routing.Entry) { e.Action = failure("", "").Action })
	},
	"backends": func(t *routing.Table, dice *rand.Rand) {
		editEntries(t, dice, func(e *routing.Entry) { e.Action = httpEntry("", "", "other").Action })
	},
	"paths": func(t *routing.Table, dice *rand.Rand) {
		editEntries(t, dice, func(e *routing.Entry) { e.Match = &routing.Match{Path: routing.Path{Value: "/other"}} })
	},
	"the settings of entries": func(t *routing.Table, dice *rand.Rand) {
		editEntries(t, dice, func(e *routing.Entry) { e.OriginRequest = &v1alpha1.OriginRequest{HTTPHostHeader: ptr.To("internal")} })
	},
	"an entry": func(t *routing.Table, _ *rand.Rand) {
		t.Groups[0].Entries = append(t.Groups[0].Entries, new(httpEntry(t.Groups[0].Hostname, "/new", "cart")))
	},
	"a group":            func(t *routing.Table, _ *rand.Rand) { t.Groups = t.Groups[1:] },
	"a group's hostname": func(t *routing.Table, _ *rand.Rand) { t.Groups[0].Hostname = "a.example.net" },
	"a namespace":        func(t *routing.Table, _ *rand.Rand) { t.Groups[0].Namespace = "other" },
	"Access":             func(t *routing.Table, _ *rand.Rand) { t.Access = routing.Access{"": accessTo("c")} },
	"the cluster domain": func(t *routing.Table, _ *rand.Rand) { t.ClusterDomain = "example.internal" },
	"the settings": func(t *routing.Table, _ *rand.Rand) {
		t.OriginRequest = &v1alpha1.OriginRequest{MatchSNIToHost: ptr.To(true)} // excludes HTTP2Origin
	},
}

// editEntries replaces about half of the entries with changed ones.
func editEntries(t *routing.Table, dice *rand.Rand, edit func(*routing.Entry)) {
	for i := range t.Groups {
		entries := slices.Clone(t.Groups[i].Entries)
		for j := range entries {
			if dice.IntN(2) == 0 {
				next := *entries[j]
				edit(&next)
				entries[j] = &next
			}
		}
		t.Groups[i].Entries = entries
	}
}

// An earlier rendering makes the next one faster, and does not affect it.
func TestRenderingIsTheSameWithAnEarlierOne(t *testing.T) {
	for name, edit := range tableEdits {
		t.Run(name, func(t *testing.T) {
			changes := 0
			for seed := range uint64(500) {
				dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test must be reproducible
				table := randomTable(dice)
				if len(table.Groups) < 2 {
					continue
				}
				editEntries(table, dice, func(e *routing.Entry) { e.OriginRequest = &v1alpha1.OriginRequest{HTTP2Origin: ptr.To(true)} })
				last := ingress.Render(v1alpha1.DataPlaneIngressRules, table, nil)
				for range 2 {
					next := *table
					next.Groups = slices.Clone(table.Groups)
					edit(&next, dice)
					want, got := ingress.Render(v1alpha1.DataPlaneIngressRules, &next, nil), ingress.Render(v1alpha1.DataPlaneIngressRules, &next, last)
					if diff := cmp.Diff(want.Configuration(), got.Configuration()); diff != "" {
						t.Fatalf("seed %d: the configuration differs (-want +got):\n%s", seed, diff)
					}
					if changed := want.Digest("infra").ChangedNamespaces(got.Digest("infra")); changed != nil {
						t.Fatalf("seed %d: the digests differ for %q", seed, changed)
					}
					if len(last.Digest("infra").ChangedNamespaces(got.Digest("infra"))) > 0 {
						changes++
					}
					table, last = &next, got
				}
			}
			if (changes > 0) != (name != "nothing") {
				t.Errorf("%d changes have an effect", changes)
			}
		})
	}
}

// Rules whose entries stay are not rendered again.
func TestRenderingTakesOverUnchangedRules(t *testing.T) {
	table := &routing.Table{Groups: []routing.Group{{Hostname: "a.example.com"}}}
	for i := range 100 {
		table.Groups[0].Entries = append(table.Groups[0].Entries, new(httpEntry("a.example.com", fmt.Sprintf("/%d", i), "cart")))
	}
	first := ingress.Render(v1alpha1.DataPlaneIngressRules, table, nil)
	changed := *table.Groups[0].Entries[0]
	changed.Action = httpEntry("", "", "pages").Action
	next := table.Replace(map[*routing.Entry]*routing.Entry{table.Groups[0].Entries[0]: &changed})
	for before, atMost := range map[*ingress.Rendering]float64{first: 20, nil: 1000} {
		got := testing.AllocsPerRun(10, func() { ingress.Render(v1alpha1.DataPlaneIngressRules, next, before) })
		if isFull := got > 200; got > atMost || isFull != (before == nil) {
			t.Errorf("with an earlier rendering: %t, got %v allocations", before != nil, got)
		}
	}
}
