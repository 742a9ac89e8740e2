package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// The search for a suggestion compares a missing parent with all parents that exist.
func TestSuggestionsForMissingParentsAreLimited(t *testing.T) {
	p := &parents{exists: map[gateway.Owner]bool{}, missing: map[gateway.Owner]string{}, live: true}
	p.add(state.GatewayKey("infra", "shared"))
	suggestions := 0
	for i := range 300 {
		// Only the parent with this name in another namespace has a similar name.
		problem := p.existenceProblem(state.GatewayKey(fmt.Sprintf("team-%d", i), "shared"))
		if strings.Contains(problem, "did you mean Gateway infra/shared?") {
			suggestions++
		}
	}
	if suggestions != 100 {
		t.Errorf("300 missing parents have %d suggestions, want 100", suggestions)
	}
}
