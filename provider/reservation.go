package provider

import (
	"context"
	"sync"
	"time"
)

// Reservation reserves requests in the API request budget for several calls that belong
// together. The budget grants all reserved requests together. After the grant, the budget
// neither delays nor rejects a call with the reservation, even when the calls send more
// requests than reserved, for instance retries. Otherwise a rejected call would make its
// caller start over, and under load no caller would ever finish. Requests beyond the
// reservation reduce the budget for later calls.
//
// A nil Reservation is valid: it reserves one request and is never granted.
type Reservation struct {
	mu        sync.Mutex
	requests  int // reserved
	granted   bool
	remaining int // reserved requests that were granted and not used yet
	slot      time.Time
}

// Requests returns how many requests are reserved. Only providers call it.
func (r *Reservation) Requests() int {
	if r == nil {
		return 1
	}
	return r.requests
}

// Grant records that the budget has granted the reservation, and uses its first
// request. Only providers call it.
func (r *Reservation) Grant() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted, r.remaining = true, r.requests-1
}

// Next reports whether the reservation is granted, and whether it covers the next
// request. If it does, Next uses that request. Only providers call it.
func (r *Reservation) Next() (granted, covered bool) {
	if r == nil {
		return false, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if covered = r.remaining > 0; covered {
		r.remaining--
	}
	return r.granted, covered
}

// Slot returns when the budget can grant the reservation. It calls assign for that time,
// unless an earlier call has a slot that is after now. So calls that are made at the same time
// share one slot: with one for each, the next reservation would wait behind all of them. Only
// providers call it.
func (r *Reservation) Slot(now time.Time, assign func() time.Time) time.Time {
	if r == nil {
		return assign()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.slot.After(now) {
		r.slot = assign()
	}
	return r.slot
}

type reservationKey struct{}

// WithReservation returns a context whose calls share one reservation of that many
// requests in one provider's budget. If ctx has a reservation already, its calls keep
// that one. A single call needs no reservation for its own requests.
func WithReservation(ctx context.Context, requests int) context.Context {
	if ReservationOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, reservationKey{}, &Reservation{requests: max(requests, 1)})
}

// ReservationOf returns the reservation that calls with ctx share, or nil. Only
// providers call it.
func ReservationOf(ctx context.Context) *Reservation {
	r, _ := ctx.Value(reservationKey{}).(*Reservation)
	return r
}
