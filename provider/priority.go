package provider

import "context"

// Priority is a call's priority in the API request budget. Calls with a later priority
// leave a reserve to calls with all earlier ones, so an earlier priority does not wait
// for a later one.
type Priority int

// The priorities, from the first to the last.
const (
	// PriorityChange is for changes that a user made and waits for. It is the default for
	// a context without a priority.
	PriorityChange Priority = iota
	// PriorityDeletion is for deleting a tunnel.
	PriorityDeletion
	// PriorityStart is for reading the state of tunnels after the process has started.
	// Such a call neither waits for the budget nor is it retried: when the budget has no
	// request for it, the call is assigned a slot and returns a [*RateLimitedError] with
	// the time until that slot. A call that is repeated before its slot gets another
	// slot, behind all slots assigned so far.
	PriorityStart
	// PriorityDrift is for the periodic reads that detect external changes. Its calls
	// behave like calls with PriorityStart and never use more than a small part of the
	// budget.
	PriorityDrift
	// PriorityAccess is for all calls of an [Access]. They behave like calls with
	// PriorityDrift, and use at most 600 requests in five minutes.
	PriorityAccess
	// PriorityDNS is for all calls of a [DNS]. They behave like calls with
	// PriorityDrift, and use at most 240 requests in five minutes on average.
	PriorityDNS
)

type priorityKey struct{}

// WithPriority returns a context whose calls have priority p. A [Reservation]
// belongs to one priority: if ctx has a reservation for another priority, the
// returned context has none.
func WithPriority(ctx context.Context, p Priority) context.Context {
	if PriorityOf(ctx) != p {
		ctx = context.WithValue(ctx, reservationKey{}, (*Reservation)(nil))
	}
	return context.WithValue(ctx, priorityKey{}, p)
}

// PriorityOf returns the priority that calls with ctx have; [PriorityChange] by default.
func PriorityOf(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}
