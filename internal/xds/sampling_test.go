package xds_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Envoy sends exactly the spans that it tells the backends about, under parallel requests
// and for every percentage.
func TestSampledRequestsHaveOneSpan(t *testing.T) {
	const clients, requests = 8, 50
	for _, test := range []struct {
		percent  int32
		min, max int
	}{
		{0, 0, 0},
		{50, 100, 300}, // a result outside has a probability below 1e-20
		{100, clients * requests, clients * requests},
	} {
		b := newTracedBed(t)
		b.apply(t, b.settings(test.percent, v1alpha1.TraceParentIgnored))
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range requests {
					b.send(t, "/app", traceContexts["sampled"]...)
				}
			})
		}
		all.Wait()
		sampled, other := b.backend.spanIDs()
		if len(sampled)+len(other) != clients*requests || len(sampled) < test.min || len(sampled) > test.max {
			t.Errorf("%d%%: %d requests are sampled and %d are not", test.percent, len(sampled), len(other))
		}
		var got []string
		for _, span := range b.await(t, len(sampled)) {
			got = append(got, hex.EncodeToString(span.SpanId))
		}
		if slices.Sort(got); !slices.Equal(got, sampled) {
			t.Errorf("%d%%: the IDs of the spans differ from the backend's", test.percent)
		}
	}
}

// spanIDs returns the IDs of the parents that the backend got, by whether they are
// sampled.
func (b *rawBackend) spanIDs() (sampled, other []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, request := range b.requests {
		for line := range strings.SplitSeq(request, "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			if !strings.EqualFold(name, "traceparent") {
				continue
			}
			if parts := strings.Split(value, "-"); parts[3] == "01" {
				sampled = append(sampled, parts[2])
			} else {
				other = append(other, parts[2])
			}
		}
	}
	slices.Sort(sampled)
	return sampled, other
}
