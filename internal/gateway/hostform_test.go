package gateway_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The table treats a host in another letter case, or with a dot at its end, as the
// connector does, and requires the same Access settings. The trace has the same answer.
func TestHostFormMattersAsForTheConnector(t *testing.T) {
	answered, missed := 0, 0
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		result := gateway.Build(s, randomOptions)
		configuration := rulesConfiguration(result.Table)
		if configuration == nil {
			return
		}
		rules, dice := compile(t, configuration), rand.New(rand.NewPCG(seed, 10)) //nolint:gosec // the test must be reproducible
		for _, request := range requestsFor(s, seed, false, 60) {
			request.Host, _, _ = strings.Cut(otherForm(dice, request.Host).sent, ":")
			index, want, _ := rules.Match(request.Host, request.Path)
			trace := result.Trace(request)
			if got := serviceOf(trace.Answer); got != want {
				t.Errorf("request %q %q: rule %d answers with %s, the trace with %s", request.Host, request.Path, index, want, got)
			}
			missed += len(trace.Missed)
			if trace.Answer == nil || trace.Answer.Action.Forward == nil {
				continue
			}
			answered++
			if got, want := result.Table.Access.Of(request.Host), accessOf(configuration.Ingress[index]); !got.Equal(want) {
				t.Errorf("request %q %q: the table requires %+v, rule %d %+v", request.Host, request.Path, got, index, want)
			}
		}
	})
	if answered == 0 || missed == 0 {
		t.Errorf("the requests do not have every case: %d answered, %d missed hostnames", answered, missed)
	}
}
