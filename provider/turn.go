package provider

import (
	"context"
	"sync/atomic"
)

// Turn is one place in the queue for the API token's budget. Whoever has had it
// is not kept waiting again, nor turned away, by the budget: what is turned away
// half-way begins again from the start, and where many do, none ever ends. What
// is taken beyond the budget by that is missing for those who come next.
type Turn struct{ taken atomic.Bool }

// Taken is for providers: it reports whether the turn has come. That of nobody,
// nil, has not.
func (t *Turn) Taken() bool { return t != nil && t.taken.Load() }

// Take is for providers: it tells the turn that it has come.
func (t *Turn) Take() {
	if t != nil {
		t.taken.Store(true)
	}
}

type turnKey struct{}

// WithTurn returns a context whose calls share one turn in the budget, that of
// ctx when it has one already. A single call needs none for its own requests.
func WithTurn(ctx context.Context) context.Context {
	if TurnOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, turnKey{}, &Turn{})
}

// TurnOf is for providers: it returns the turn that calls with the context
// share, or nil.
func TurnOf(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}
