package controller

import (
	"testing"
	"time"
)

// "The first change goes out at once; then at least 300 ms between two PUTs of
// one tunnel, growing to 1 s while changes keep coming."
func TestPace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p pace
	for i, step := range []struct {
		after, want time.Duration
	}{
		{0, 0},
		{0, 300 * time.Millisecond},
		{300 * time.Millisecond, 600 * time.Millisecond},
		{600 * time.Millisecond, time.Second},
		{time.Second, time.Second},
		{1500 * time.Millisecond, time.Second},
		{2 * time.Second, 300 * time.Millisecond},
		{300 * time.Millisecond, 600 * time.Millisecond},
	} {
		now = now.Add(step.after)
		if i > 0 {
			p.pushed(now)
		}
		if got := p.wait(now); got != step.want {
			t.Errorf("push %d: the next one waits %s, want %s", i, got, step.want)
		}
	}
	if got := p.wait(now.Add(100 * time.Millisecond)); got != 500*time.Millisecond {
		t.Errorf("after 100ms it waits %s more, want 500ms", got)
	}
	if got := p.wait(now.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour it waits %s, want none", got)
	}
}
