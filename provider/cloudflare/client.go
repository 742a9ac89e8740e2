package cloudflare

import (
	"crypto/sha256"
	"maps"
	"sync"
	"time"
)

// Client opens providers and owns the budgets for their API tokens. A process needs one
// Client, because providers from different Clients do not share a budget. The zero value
// is ready to use, and a Client is safe for concurrent use.
type Client struct {
	mu      sync.Mutex
	budgets map[tokenHash]*usedBudget
}

type tokenHash [sha256.Size]byte

func hashOf(token string) tokenHash { return sha256.Sum256([]byte(token)) }

// usedBudget is a budget and the time when a call last used it.
type usedBudget struct {
	budget  budget
	lastUse time.Time
}

// budgetLifetime is the time after which the Client forgets an unused budget. It is longer
// than a call and the longest block after it together, and a budget is full long before.
// So a new budget permits nothing that the old one would not. The time counts from the last
// call and not from the last provider, so that opening an account again does not renew its
// budget.
const budgetLifetime = time.Hour

// budget returns a token's budget for one call.
func (c *Client) budget(token tokenHash) *budget {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.budgets, func(_ tokenHash, u *usedBudget) bool { return now.Sub(u.lastUse) > budgetLifetime })
	used := c.budgets[token]
	if used == nil {
		if c.budgets == nil {
			c.budgets = map[tokenHash]*usedBudget{}
		}
		used = &usedBudget{}
		c.budgets[token] = used
	}
	used.lastUse = now
	return &used.budget
}
