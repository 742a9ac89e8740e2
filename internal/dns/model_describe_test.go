package dns

import (
	"fmt"
	"strings"
)

// describeStep describes a step in a trace.
func describeStep(s Step) string {
	var b strings.Builder
	b.WriteString(string(s.Action))
	if s.Action == Wait {
		fmt.Fprintf(&b, " %s", s.Delay)
	}
	if len(s.Names) > 0 {
		fmt.Fprintf(&b, " %s", strings.Join(s.Names, " "))
	}
	for _, id := range s.Batch.Deletes {
		fmt.Fprintf(&b, " -%s", id)
	}
	for _, p := range s.Batch.Patches {
		fmt.Fprintf(&b, " ~%s", p.ID)
	}
	for _, p := range s.Batch.Puts {
		fmt.Fprintf(&b, " =%s", p.ID)
	}
	for _, c := range s.Batch.Creates {
		fmt.Fprintf(&b, " +%s %s", c.Name, strings.TrimSuffix(c.Target, ".cfargotunnel.com"))
	}
	for _, c := range s.Changes {
		fmt.Fprintf(&b, " (%s %s)", c.Operation, c.Name)
	}
	for _, a := range s.Adoptions {
		fmt.Fprintf(&b, " [adoption of %s: %s: %s]", a.Name, a.Result, a.Message)
	}
	return b.String()
}
