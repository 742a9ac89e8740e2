package provider_test

import (
	"context"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func wantNext(ctx context.Context, t *testing.T, taken, shared bool) {
	t.Helper()
	if gotTaken, gotShared := provider.ReservationOf(ctx).Next(); gotTaken != taken || gotShared != shared {
		t.Errorf("the turn has come: %t, for a request of its share: %t; want %t, %t", gotTaken, gotShared, taken, shared)
	}
}

func TestTurn(t *testing.T) {
	nobodys := provider.ReservationOf(t.Context())
	nobodys.Grant()
	wantNext(t.Context(), t, false, false)
	if nobodys.Share() != 1 {
		t.Errorf("a call without a turn takes %d requests", nobodys.Share())
	}

	ctx := provider.WithReservation(t.Context(), 3)
	wantNext(ctx, t, false, false)
	within := provider.WithReservation(ctx, 7)
	if share := provider.ReservationOf(within).Share(); share != 3 {
		t.Errorf("a turn within a turn is another one, of %d requests", share)
	}
	provider.ReservationOf(within).Grant()
	wantNext(ctx, t, true, true)
	wantNext(ctx, t, true, true)
	wantNext(ctx, t, true, false)
	wantNext(provider.WithReservation(t.Context(), 3), t, false, false)
}

// A turn is of one priority: what has had it as a change is not let in as
// something else.
func TestTurnIsOfOnePriority(t *testing.T) {
	ctx := provider.WithReservation(t.Context(), 1)
	provider.ReservationOf(ctx).Grant()
	if provider.ReservationOf(provider.WithPriority(ctx, provider.PriorityDrift)) != nil {
		t.Error("the turn of a change is one of drift, too")
	}
	if provider.ReservationOf(provider.WithPriority(ctx, provider.PriorityChange)) == nil {
		t.Error("the turn ends although the priority stays")
	}
}
