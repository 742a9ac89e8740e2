package plan

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Attempt is an entry that is compared with the request.
type Attempt struct {
	Entry
	// Answers reports whether the entry answers the request.
	Answers bool `json:"answers,omitempty"`
	// Matches reports whether the entry matches the request in one of the schemes.
	Matches bool `json:"matches,omitempty"`
	// Reason explains why the entry does not answer; empty if it does.
	Reason string `json:"reason,omitempty"`
}

func newAttempts(table *routing.Table, found *gateway.Trace) []Attempt {
	tried := table.Attempts(found.Request)
	attempts := make([]Attempt, len(tried))
	for i, a := range tried {
		attempts[i] = Attempt{Entry: newEntry(a.Entry), Answers: a.Reason == "", Matches: a.Matches, Reason: a.Reason}
	}
	return attempts
}

// mismatches returns the entries that do not match.
func (t *Trace) mismatches() []*Attempt {
	var all []*Attempt
	for i := range t.Attempts {
		if a := &t.Attempts[i]; !a.Matches {
			all = append(all, a)
		}
	}
	return all
}
