package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// keepsChanging lets somebody else change the document every so often, for three
// hours. It returns how often that was put right, and whether writing stopped.
func (l *life) keepsChanging(every time.Duration) (repairs int, fought bool) {
	l.t.Helper()
	l.must("a.example.com")
	end, write, next := l.clock.Add(3*time.Hour), l.clock.Add(every), l.clock
	for l.clock.Before(end) && !fought {
		if !write.After(next) {
			l.clock, write = write, write.Add(every)
			l.cloud.SetDocument(l.tunnelID(), wants("foreign.example.com"))
			continue
		}
		l.clock = next
		_, again := l.pass("a.example.com")
		next = l.clock.Add(again)
		t := l.of(l.loaded())
		if t.happened.repaired {
			repairs++
		}
		fought, t.happened = t.happened.fought, happened{}
		l.told()
	}
	return repairs, fought
}

// Whoever changes the document every few minutes is fought with; every change of
// somebody slower is put right.
func TestSecondWriter(t *testing.T) {
	for every, want := range map[time.Duration]bool{
		time.Minute: true, 2 * time.Minute: true, 3 * time.Minute: true, 4 * time.Minute: true,
		15 * time.Minute: false, 30 * time.Minute: false,
	} {
		t.Run(every.String(), func(t *testing.T) {
			repairs, fought := newLife(t).keepsChanging(every)
			if fought != want {
				t.Errorf("writing stopped: %t, after %d repairs", fought, repairs)
			}
			if all := int(3 * time.Hour / every); !fought && repairs < all-2 {
				t.Errorf("%d of %d changes were put right", repairs, all)
			}
		})
	}
}

// A change that whoever made it took back is not one that was put right.
func TestChangeThatWasTakenBack(t *testing.T) {
	o := observe(t)
	o.pass()
	ours, _ := o.cloud.Document(o.tunnelID())
	o.cloud.SetDocument(o.tunnelID(), wants("foreign.example.com"))
	o.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: errors.New("reset")})
	o.clock = o.clock.Add(time.Hour)
	o.pass()
	o.cloud.SetDocument(o.tunnelID(), ours)
	o.clock = o.clock.Add(time.Hour)
	o.pass()
	o.route()
	o.clock = o.clock.Add(time.Hour)
	o.pass()
	o.want("after a change of our own", map[string]float64{"drift_repairs_total": 0, "pushes_total": 2})
}
