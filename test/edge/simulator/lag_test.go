package simulator_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// endless is a lag that no test waits for, and brief one that a test can wait for.
const (
	endless = time.Hour
	brief   = 50 * time.Millisecond
)

// newLaggingPods is like newPods, for an edge with the lag.
func newLaggingPods(t *testing.T, lag simulator.Lag) *pods {
	t.Helper()
	return newPodsWith(t, answerPod, simulator.Options{Lag: func() simulator.Lag { return lag }})
}

// getUntil sends requests until a response has the status.
func (p *pods) getUntil(t *testing.T, want int) {
	t.Helper()
	for {
		if status, _ := get(t, p.address, "any", "/"); status == want {
			return
		}
	}
}

func TestRequestsReachANewConnectorAfterTheLag(t *testing.T) {
	p := newLaggingPods(t, simulator.Lag{Connected: endless})
	p.start(t, "one")
	p.get(t, 2, "any", 530)
	if got := p.client.connectors(t, p.tunnel); len(got) != 1 {
		t.Errorf("the API lists %d connectors, want 1 without a lag", len(got))
	}

	p = newLaggingPods(t, simulator.Lag{Connected: brief})
	p.start(t, "one")
	p.getUntil(t, http.StatusOK)
}

func TestUnregisteredConnectorCarriesRequestsUntilTheLagEnds(t *testing.T) {
	p := newLaggingPods(t, simulator.Lag{Unregistered: endless})
	one := p.start(t, "one")
	_ = one.body.Close() // unregisters
	p.start(t, "two")
	// The edge may notice that the connector unregisters between two requests, and then
	// begins with the first connector again.
	for inTurn, restarted := 0, false; inTurn < 4; inTurn++ {
		if got := p.get(t, 2, "any", http.StatusOK); got[0] == got[1] {
			if restarted {
				t.Fatalf("%q answered, want both connectors in turn", got)
			}
			inTurn, restarted = -1, true
		}
	}

	p = newLaggingPods(t, simulator.Lag{Unregistered: brief})
	one = p.start(t, "one")
	one.unregister(t) // the edge closes the connection after the lag
	p.get(t, 1, "any", 530)
}

func TestConnectorThatUnregistersBeforeItIsNoticedCarriesNothing(t *testing.T) {
	p := newLaggingPods(t, simulator.Lag{Connected: endless, Unregistered: endless})
	one := p.start(t, "one")
	one.unregister(t)
	p.get(t, 1, "any", 530)
}
