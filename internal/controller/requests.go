package controller

import (
	"context"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// requests maps each priority to a context. Calls with the same context share one slot
// in the API request budget.
type requests map[provider.Priority]context.Context

// requestsPerDeletion counts the requests that delete a tunnel: reading it, listing its
// connections and deleting it.
const requestsPerDeletion = 3

// context returns the context for calls with the priority.
func (r requests) context(ctx context.Context, p provider.Priority) context.Context {
	if r[p] == nil {
		count := 1
		if p == provider.PriorityDeletion {
			count = requestsPerDeletion
		}
		r[p] = provider.WithReservation(provider.WithPriority(ctx, p), count)
	}
	return r[p]
}
