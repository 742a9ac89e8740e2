package tunnel

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// writer simulates the executor for one Tunnel whose desired configuration changes.
type writer struct {
	f Facts
	// current is the configuration at Cloudflare.
	current *provider.Configuration
	version provider.Version
	// changed is the time since which the desired configuration is not in effect.
	changed Instant
	// writes are the times of the writes, and waits how long each change waited for its
	// write.
	writes, waits []time.Duration
	// latency and result return how long a write takes and its error.
	latency func() time.Duration
	result  func() error
}

func newWriter(l UpdateLimit) *writer {
	w := &writer{
		f: serving(), version: 7,
		latency: func() time.Duration { return 0 }, result: func() error { return nil },
	}
	w.f.Options.DriftInterval, w.f.Desired.Updates = 24*time.Hour, l
	w.f.Memory.Remote.Configuration.NextRead = uptime + 24*time.Hour
	w.current = w.f.Desired.Configuration
	return w
}

func (w *writer) set(c *provider.Configuration) {
	d := *w.f.Desired
	d.Configuration, d.Hash = c, c.Hash()
	w.f.Desired = &d
	switch {
	case d.Hash == w.current.Hash():
		w.changed = Instant{}
	case !w.changed.IsSet():
		w.changed = At(w.f.Uptime)
	}
}

// reconcile executes steps until the executor must wait, and returns the wait.
func (w *writer) reconcile(t *testing.T) time.Duration {
	t.Helper()
	for range maxSteps {
		w.f.Memory = Observe(w.f)
		s := Decide(w.f)
		if s.Ends() {
			return s.Delay
		}
		if s.Record != nil {
			w.f.Object.Status = *s.Record.DeepCopy()
		}
		r := Result{}
		switch s.Action {
		case Configure:
			r = w.write()
		case ReadConfiguration:
			r.Configuration, r.Version = *w.current, w.version
		case Record:
		default:
			t.Fatalf("unexpected step %s", s.Action)
		}
		r.Uptime = w.f.Uptime
		w.f.Memory = Conclude(w.f.Memory, s, r)
	}
	t.Fatal("too many steps")
	return 0
}

func (w *writer) write() Result {
	w.writes = append(w.writes, w.f.Uptime)
	w.advance(w.latency())
	if err := w.result(); err != nil {
		return Result{Err: err}
	}
	if w.changed.IsSet() {
		w.waits = append(w.waits, w.changed.Since(w.f.Uptime))
	}
	w.current, w.changed = w.f.Desired.Configuration, Instant{}
	w.version++
	return Result{Configuration: *w.current, Version: w.version}
}

func (w *writer) advance(d time.Duration) { w.f.Uptime, w.f.Clock = w.f.Uptime+d, w.f.Clock.Add(d) }

// run reconciles for the duration, and changes the configuration at random times with
// the mean gap.
func (w *writer) run(t *testing.T, random *rand.Rand, duration, gap time.Duration) {
	t.Helper()
	hostnames := []string{"a.example.com", "b.example.com", "c.example.com"}
	next := w.f.Uptime
	for end := w.f.Uptime + duration; w.f.Uptime < end; {
		if w.f.Uptime >= next {
			c := configurationFor(hostnames[random.IntN(len(hostnames))])
			w.set(&c)
			next = w.f.Uptime + time.Duration(random.Int64N(int64(2*gap)))
		}
		w.advance(min(max(w.reconcile(t), time.Millisecond), max(next-w.f.Uptime, time.Millisecond)))
	}
}

// maxWritesWithin returns the largest number of writes within a window.
func maxWritesWithin(writes []time.Duration, window time.Duration) int {
	most, first := 0, 0
	for last := range writes {
		for writes[last]-writes[first] > window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

func TestWritesNeverExceedTheBucket(t *testing.T) {
	// In every window, there are at most as many writes as the burst and one for each
	// interval in the window, whether they succeed or not.
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- not for security
		l := UpdateLimit{Burst: 1 + random.IntN(20), Interval: time.Duration(1+random.IntN(30)) * time.Second}
		w := newWriter(l)
		w.latency = func() time.Duration { return time.Duration(random.Int64N(int64(2 * time.Second))) }
		w.result = func() error {
			return [...]error{nil, nil, nil, errNoResponse, &provider.UnavailableError{Err: errors.New("502")}}[random.IntN(5)]
		}
		w.run(t, random, 20*time.Minute, time.Duration(1+random.IntN(5))*time.Second)
		for _, window := range []time.Duration{0, time.Second, l.Interval - 1, l.Interval, 5 * time.Minute, 10 * time.Minute} {
			if got, most := maxWritesWithin(w.writes, window), l.Burst+int(window/l.Interval); got > most {
				t.Errorf("seed %d, %+v: %d writes within %s, want at most %d", seed, l, got, window, most)
			}
		}
	}
}

func TestChangesWaitAtMostTheInterval(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2)) // #nosec G404 -- not for security
		l := UpdateLimit{Burst: 1 + random.IntN(20), Interval: time.Duration(1+random.IntN(30)) * time.Second}
		w := newWriter(l)
		w.run(t, random, 20*time.Minute, time.Duration(1+random.IntN(5))*time.Second)
		if len(w.waits) == 0 {
			t.Fatal("no change was written")
		}
		for _, wait := range w.waits {
			if most := max(l.Interval, maxGap) + time.Millisecond; wait > most {
				t.Errorf("seed %d, %+v: a change waited %s, want at most %s", seed, l, wait, most)
			}
		}
	}
}

func TestDefaultLimitPermits35WritesInFiveMinutes(t *testing.T) {
	w := newWriter(UpdateLimit{Burst: 20, Interval: 20 * time.Second})
	w.run(t, rand.New(rand.NewPCG(1, 3)), 15*time.Minute, 100*time.Millisecond) // #nosec G404 -- not for security
	if got := maxWritesWithin(w.writes, 5*time.Minute); got != 35 {
		t.Errorf("%d writes within five minutes, want 35", got)
	}
}

func TestChangedLimitTakesEffectImmediately(t *testing.T) {
	last := 5 * time.Second // the time since the last token accrued
	for name, test := range map[string]struct {
		spent int
		limit UpdateLimit
		wait  time.Duration
	}{
		"the same limit":     {20, UpdateLimit{20, 20 * time.Second}, 15 * time.Second},
		"a larger burst":     {20, UpdateLimit{21, 20 * time.Second}, 0},
		"a smaller burst":    {10, UpdateLimit{5, 20 * time.Second}, 15 * time.Second},
		"a shorter interval": {20, UpdateLimit{20, 5 * time.Second}, 0},
		"a longer interval":  {20, UpdateLimit{20, time.Minute}, 55 * time.Second},
		"no limit":           {20, UpdateLimit{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := Bucket{Spent: test.spent, Since: At(uptime - last)}
			if got := b.wait(uptime, test.limit); got != test.wait {
				t.Errorf("the wait is %s, want %s", got, test.wait)
			}
		})
	}
}
