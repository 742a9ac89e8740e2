package provider_test

import (
	"context"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func wantNext(ctx context.Context, t *testing.T, granted, covered bool) {
	t.Helper()
	if gotGranted, gotCovered := provider.ReservationOf(ctx).Next(); gotGranted != granted || gotCovered != covered {
		t.Errorf("granted = %t, covered = %t, want %t, %t", gotGranted, gotCovered, granted, covered)
	}
}

func TestReservationCoversTheReservedRequests(t *testing.T) {
	none := provider.ReservationOf(t.Context())
	none.Grant()
	wantNext(t.Context(), t, false, false)
	if none.Requests() != 1 {
		t.Errorf("a call without a reservation takes %d requests, want 1", none.Requests())
	}

	ctx := provider.WithReservation(t.Context(), 3)
	wantNext(ctx, t, false, false)
	nested := provider.WithReservation(ctx, 7)
	if requests := provider.ReservationOf(nested).Requests(); requests != 3 {
		t.Errorf("a nested reservation has %d requests, want the 3 of the outer reservation", requests)
	}
	provider.ReservationOf(nested).Grant()
	wantNext(ctx, t, true, true)
	wantNext(ctx, t, true, true)
	wantNext(ctx, t, true, false)
	wantNext(provider.WithReservation(t.Context(), 3), t, false, false)
}

func TestReservationBelongsToOnePriority(t *testing.T) {
	// A granted reservation for changes must not let drift reads bypass the budget.
	ctx := provider.WithReservation(t.Context(), 1)
	provider.ReservationOf(ctx).Grant()
	if provider.ReservationOf(provider.WithPriority(ctx, provider.PriorityDrift)) != nil {
		t.Error("a drift call uses the reservation of a change")
	}
	if provider.ReservationOf(provider.WithPriority(ctx, provider.PriorityChange)) == nil {
		t.Error("the reservation is lost although the priority stays the same")
	}
}

func TestCallsWithOneReservationShareASlot(t *testing.T) {
	r, start, assigned := provider.ReservationOf(provider.WithReservation(t.Context(), 2)), time.Now(), 0
	assign := func() time.Time {
		assigned++
		return start.Add(time.Duration(assigned) * time.Minute)
	}
	for at, want := range map[time.Duration]int{0: 1, 59 * time.Second: 1} {
		if got := r.Slot(start.Add(at), assign); got != start.Add(time.Minute) || assigned != want {
			t.Errorf("after %s: the slot is %s after the start, and %d were assigned", at, got.Sub(start), assigned)
		}
	}
	if got := r.Slot(start.Add(time.Minute), assign); got != start.Add(2*time.Minute) {
		t.Errorf("after its slot, a reservation has the slot %s after the start", got.Sub(start))
	}
	var none *provider.Reservation
	if got := none.Slot(start, assign); got != start.Add(3*time.Minute) {
		t.Errorf("a call without a reservation has the slot %s after the start", got.Sub(start))
	}
}
