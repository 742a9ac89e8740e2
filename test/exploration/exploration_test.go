package exploration_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/exploration"
)

// tank is a tank that is filled to full, one liter a minute. A fault adds liters.
type tank struct {
	Liters int
	Faults map[string]bool
	Filled time.Duration
	now    time.Duration
}

const (
	full = 3
	fill = "fill"
	wait = "wait"
)

// tankModel is a model of a tank. A fault adds as many liters as it says. With drains, the
// tank drains what is above full.
type tankModel struct {
	fault, burst int
	drains       bool
}

func (m tankModel) Root() *tank { return &tank{now: time.Hour} }

func (m tankModel) Key(w *tank) [2]uint64 {
	var h exploration.Hasher
	h.Value(reflect.ValueOf(*w), "", func(to *exploration.Hasher, v reflect.Value, field string) bool {
		if field == "Filled" {
			to.Recent(time.Duration(v.Int()), w.now, time.Minute)
		}
		return field == "Filled" || field == "now"
	})
	h.When(w.now+time.Hour, w.now, time.Minute)
	return h.Key()
}

func (m tankModel) Violation(w *tank) string {
	if w.Liters >= m.burst {
		return "the tank bursts"
	}
	return ""
}

func (m tankModel) Expand(w *tank, cost int, visit func(next *tank, l string)) {
	label := fmt.Sprintf("add %d", m.fault)
	if cost == 0 {
		label, _ = m.Next(w)
	}
	next := *w
	m.Apply(&next, label)
	visit(&next, label)
}

func (m tankModel) Quiet(*tank) bool { return false }

func (m tankModel) Next(w *tank) (string, bool) {
	switch {
	case w.Liters < full:
		return fill, true
	case w.Liters > full && m.drains:
		return "drain", true
	default:
		return wait, true
	}
}

func (m tankModel) Apply(w *tank, l string) string {
	switch l {
	case fill:
		w.Liters++
	case "drain":
		w.Liters = full
	case wait:
		w.Filled = w.now
	default:
		w.Liters += m.fault
		w.Faults = map[string]bool{l: true}
	}
	w.now += time.Minute
	return l
}

func (m tankModel) Now(w *tank) time.Duration { return w.now }

func (m tankModel) Describe(w *tank) string { return fmt.Sprintf("%d liters", w.Liters) }

func (m tankModel) Verdict(w *tank, _ time.Duration) string {
	if w.Liters != full {
		return "the tank is not just full"
	}
	return ""
}

var limits = exploration.Limits{Faults: 1, States: 1000, Enough: 1, Settled: time.Hour, Steps: 100}

func TestACorrectModelHasNoViolation(t *testing.T) {
	x := exploration.Explore(tankModel{fault: 2, burst: 6, drains: true}, limits)
	cycles, longest := x.Settle()
	x.Report(t)
	if x.States() < 2*full || cycles == 0 || longest < full {
		t.Errorf("got %d states, %d cycles, and %d transitions at most", x.States(), cycles, longest)
	}
}

func TestViolationsAreFoundWithATrace(t *testing.T) {
	for name, c := range map[string]struct {
		model tankModel
		text  string
		trace []string
	}{
		"an invariant":  {tankModel{fault: 9, burst: 9, drains: true}, "bursts", []string{"0 liters", "add 9", "9 liters"}},
		"a final state": {tankModel{fault: 2, burst: 6}, "not just full", []string{"add 2", "then repeatedly", wait}},
	} {
		t.Run(name, func(t *testing.T) {
			trace := exploration.Explore(c.model, limits).Find(t, c.text)
			for _, want := range c.trace {
				if !strings.Contains(trace, want) {
					t.Errorf("the trace lacks %q:\n%s", want, trace)
				}
			}
		})
	}
}
