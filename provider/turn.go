package provider

import (
	"context"
	"sync"
)

// Reservation is one place in the queue for the API token's budget, for calls that make
// one thing together. The budget gives it as many requests as it is expected to
// take, all at once; and whoever has had it is not kept waiting again, nor turned
// away, by the budget: what is turned away half-way begins again from the start,
// and where many do, none ever ends. What it takes beyond its share, for instance
// to try again, is missing for those who come next.
type Reservation struct {
	mu    sync.Mutex
	share int // requests, before the turn has come
	taken bool
	left  int // of the share
}

// Share is for providers: it returns how many requests the turn is expected to
// take. That of nobody, nil, takes one.
func (t *Reservation) Share() int {
	if t == nil {
		return 1
	}
	return t.share
}

// Grant is for providers: it tells the turn that it has come, and that the first
// request is made.
func (t *Reservation) Grant() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken, t.left = true, t.share-1
}

// Next is for providers: it reports whether the turn has come, and whether the
// next request is one of its share, which it takes then.
func (t *Reservation) Next() (taken, shared bool) {
	if t == nil {
		return false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if shared = t.left > 0; shared {
		t.left--
	}
	return t.taken, shared
}

type turnKey struct{}

// WithReservation returns a context whose calls share one turn in the budget of one
// provider, that of ctx when it has one already. They are expected to take so
// many requests. A single call needs none for its own requests.
func WithReservation(ctx context.Context, requests int) context.Context {
	if ReservationOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, turnKey{}, &Reservation{share: max(requests, 1)})
}

// ReservationOf is for providers: it returns the turn that calls with the context
// share, or nil.
func ReservationOf(ctx context.Context) *Reservation {
	t, _ := ctx.Value(turnKey{}).(*Reservation)
	return t
}
