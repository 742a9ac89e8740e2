package provider

import "context"

// Priority says how soon a call should get its share of the API token's budget
// of requests. Calls of a later priority leave a reserve to all earlier ones,
// so that however many they are, an earlier one does not wait for them.
type Priority int

// The priorities, in the order in which they get the budget.
const (
	// PriorityChange is for what somebody changed and waits for. It is what a
	// call has when nobody said otherwise.
	PriorityChange Priority = iota
	// PriorityDeletion is for letting go of a tunnel.
	PriorityDeletion
	// PriorityStart is for reading back what the API holds when the process
	// begins. It neither waits for the budget nor is it tried again: one that
	// is turned away has a slot, [RateLimitedError.RetryAfter] from then. Who
	// asks earlier gets another slot behind all others, and who needs several
	// calls keeps what the first ones brought, because each has its own turn.
	PriorityStart
	// PriorityDrift is for reading back, now and then, what nobody is known to
	// have changed. It is like PriorityStart, and never uses more than a small
	// part of the budget.
	PriorityDrift
)

type priorityKey struct{}

// WithPriority returns a context whose calls have the priority. A [Reservation] of
// another one is not theirs.
func WithPriority(ctx context.Context, p Priority) context.Context {
	if PriorityOf(ctx) != p {
		ctx = context.WithValue(ctx, turnKey{}, (*Reservation)(nil))
	}
	return context.WithValue(ctx, priorityKey{}, p)
}

// PriorityOf returns the priority of calls with the context.
func PriorityOf(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}
