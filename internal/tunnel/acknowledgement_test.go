package tunnel

import (
	"testing"
	"time"
)

func TestWriteWaitsUntilEnvoysServeHostnamesOnBothListeners(t *testing.T) {
	write := want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"}
	awaiting := func(d time.Duration) change {
		return combine(withEnvoy, everyPodHasEnvoy, routesChanged, func(f *Facts) {
			f.Envoys.Unsettled, f.Envoys.Acknowledged = true, false
			f.Memory.UnacknowledgedSince = At(f.Uptime - d)
		})
	}
	testDecide(t, []row{
		{"a write waits for an Envoy that has not acknowledged", awaiting(0), waitsForEnvoys(2 * time.Second)},
		{"the first observation starts the wait", combine(awaiting(0), func(f *Facts) { f.Memory.UnacknowledgedSince = Instant{} }), waitsForEnvoys(2 * time.Second)},
		{"the wait goes on while other routes change", awaiting(1500 * time.Millisecond), waitsForEnvoys(500 * time.Millisecond)},
		{"an Envoy that acknowledges nothing delays a write for two seconds", awaiting(2 * time.Second), write},
		{"a write follows the acknowledgement", combine(awaiting(time.Second), func(f *Facts) { f.Envoys.Acknowledged = true }), write},
		{"no write waits for an Envoy that is late", combine(awaiting(time.Second), func(f *Facts) { f.Envoys.Late = true }), write},
		{"no write waits for an Envoy that has rejected its routes", combine(awaiting(time.Second), func(f *Facts) { f.Envoys.Rejected = "bad route" }), write},
		{"no write waits if no hostname changes its listener", combine(awaiting(time.Second), func(f *Facts) { f.Envoys.Unsettled = false }), write},
		{"no write waits for Envoys that are not connected", combine(awaiting(time.Second), func(f *Facts) { f.Envoys.Connected = 0 }), write},
		{"a configuration that is in effect waits for nothing", combine(withEnvoy, everyPodHasEnvoy, func(f *Facts) { f.Envoys.Unsettled, f.Envoys.Acknowledged = true, false }), idle()},
		{"another step does not wait", combine(awaiting(time.Second), func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors}},
	})
}

// After a write, the next one waits again.
func TestEachWriteWaitsForEnvoys(t *testing.T) {
	f := serving()
	combine(withEnvoy, everyPodHasEnvoy, routesChanged)(&f)
	f.Envoys.Unsettled, f.Envoys.Acknowledged = true, false
	f.Memory = Observe(f)
	f.Uptime += maxUnacknowledged
	f.Memory = Observe(f)
	step := Decide(f)
	if step.Action != Configure {
		t.Fatalf("the first step is %s, want %s", step.Action, Configure)
	}
	f.Memory = Conclude(f.Memory, step, Result{Uptime: f.Uptime, Configuration: *step.Configuration, Version: 8})
	f.Memory = Observe(f)
	if got := f.awaitEnvoys().Delay; got != maxUnacknowledged {
		t.Errorf("the second write waits %s, want %s", got, maxUnacknowledged)
	}
}

// waitsForEnvoys is a write's wait for acknowledgements.
func waitsForEnvoys(d time.Duration) want { return want{Action: Wait, Wait: d, AwaitsEnvoys: true} }
