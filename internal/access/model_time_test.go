package access

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

// arrive applies the first late writes of an installation. Cloudflare compares nothing.
func (w *modelWorld) arrive(i int) {
	in := &w.installs[i]
	w.note = "the late writes are applied"
	late := in.late[0]
	in.late = in.late[1:]
	for _, write := range late.writes {
		at := w.cloud.find(write.Last.ID)
		if at >= 0 {
			write.Last = w.cloud.at(at)
		}
		issued := append([]modelGrant(nil), w.cloud.issued(at)...)
		if r := w.cloud.write(write); r.Err != nil {
			w.note += ": " + r.Err.Error()
		} else if write.Operation == Update && late.sent <= in.boot {
			w.cloud.overwrite(at, issued, w.now)
		}
	}
	w.applied = w.now
}

// pass lets time pass: late writes are applied, retiring Tunnels end, and delays end.
func (w *modelWorld) pass(d time.Duration) {
	w.now += d
	for i := range w.count {
		in := &w.installs[i]
		for len(in.late) > 0 && in.late[0].until <= w.now {
			w.arrive(i)
		}
		if in.wake != 0 && in.wake <= w.now {
			w.requeue(i)
		}
		for n := range in.gateways {
			if g := &in.gateways[n]; g.wake != 0 && g.wake <= w.now {
				g.due, g.wake = true, 0
			}
		}
		w.retire(i)
	}
}

// retire deletes the Tunnel objects of retiring Gateways whose applications are gone, or
// which have waited long enough.
func (w *modelWorld) retire(i int) {
	in := &w.installs[i]
	for n := range in.gateways {
		g := &in.gateways[n]
		if in.due || g.due || !g.tunnel || g.known() != ownership.Retiring || in.report == nil {
			continue
		}
		released := in.report.Released[gatewayName(n)]
		if released {
			w.checkReleased(i, n)
		}
		if released || w.now-g.gone >= modelRetirement {
			g.tunnel, g.reported, g.read = false, nil, false
			g.configuration, g.published, g.guards = modelTable{}, modelTable{}, [modelNameCount]modelGuard{}
			g.tunnels++
			w.requeue(i)
		}
	}
}

// nextMoment returns when the next delay ends, or 0.
func (w *modelWorld) nextMoment() time.Duration {
	next := time.Duration(0)
	add := func(at time.Duration) {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for i := range w.count {
		in := &w.installs[i]
		add(in.wake)
		for _, l := range in.late {
			add(l.until)
		}
		for n := range in.gateways {
			g := &in.gateways[n]
			add(g.wake)
			if g.tunnel && g.known() == ownership.Retiring {
				add(max(g.gone+modelRetirement, w.now+time.Second))
			}
		}
	}
	return next
}
