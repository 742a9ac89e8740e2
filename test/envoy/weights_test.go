package envoy

import "testing"

func TestWeights(t *testing.T) {
	b := start(t)
	const requests = 2000
	for path, want := range map[string]map[string][2]int{
		"/split":      {"200 one": {1300, 1500}, "200 two": {400, 600}, "200 three": {50, 160}},
		"/default":    {"200 one": {880, 1120}, "200 two": {880, 1120}},
		"/large":      {"200 one": {880, 1120}, "200 two": {880, 1120}},
		"/unresolved": {"200 one": {1400, 1600}, "500": {400, 600}},
	} {
		t.Run(path, func(t *testing.T) {
			counts := b.sendMany(t, "weights.example.com", path, requests)
			for result, bounds := range want {
				if n := counts[result]; n < bounds[0] || n > bounds[1] {
					t.Errorf("%d of %d requests: %s, want between %d and %d", n, requests, result, bounds[0], bounds[1])
				}
				delete(counts, result)
			}
			if len(counts) > 0 {
				t.Errorf("other responses: %v", counts)
			}
		})
	}
}

func TestRulesWithoutAWeight(t *testing.T) {
	run(t, []row{
		{"GET weights.example.com/none", "500"},
		{"GET weights.example.com/all-unresolved", "500"},
		{"GET weights.example.com/repeated", "200 one GET /repeated"},
	})
}

// TestFiltersOfWeightedBackends shows that each backend receives its own changes, after
// the rule's changes.
func TestFiltersOfWeightedBackends(t *testing.T) {
	b := start(t)
	want := map[string]string{
		"one": "200 one GET /filters\n> Host: one.example.org\n> x-forwarded-host: weights.example.com\n> x-backend: rule\n> x-backend: one",
		"two": "200 two GET /filters\n> x-backend: rule\n> x-backend: two",
	}
	seen := map[string]bool{}
	for i := 0; len(seen) < len(want) && i < 100; i++ {
		r := parseRequest("GET weights.example.com/filters")
		o := send(t, b.open, r.text())
		if o.arrival == nil || o.describe(r) != want[o.arrival.Backend] {
			t.Fatalf("unexpected outcome: %s", o.describe(r))
		}
		seen[o.arrival.Backend] = true
	}
	if len(seen) < len(want) {
		t.Errorf("only %v answered", seen)
	}
}
