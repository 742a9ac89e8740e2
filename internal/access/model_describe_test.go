package access

import (
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// describeStep describes a step in a trace.
func describeStep(s Step) string {
	var b strings.Builder
	b.WriteString(string(s.Action))
	if s.Action == Wait {
		fmt.Fprintf(&b, " %s", s.Delay)
	}
	for _, write := range s.Writes {
		fmt.Fprintf(&b, " (%s %s", write.Operation, write.Hostname)
		if write.Last.ID != "" {
			fmt.Fprintf(&b, " %s", write.Last.ID)
		}
		if write.Operation == Create || write.Operation == Update {
			fmt.Fprintf(&b, " for %s: %s", write.Gateway, describeSpec(write.Spec))
		}
		b.WriteString(")")
	}
	for _, a := range s.Adoptions {
		fmt.Fprintf(&b, " [adoption of %s: %s: %s]", a.Hostname, a.Result, a.Message)
	}
	return b.String()
}

func describeSpec(spec provider.ApplicationSpec) string {
	return fmt.Sprintf("%v bypass=%t %s %s", spec.Policies, spec.Bypass, spec.SessionDuration, strings.Join(spec.Tags, ","))
}

// describeApplication describes an application in a trace.
func describeApplication(a provider.Application) string {
	return fmt.Sprintf("%s (%s %s %v bypass=%t %s %s)", strings.Join(a.Domains, " "), a.ID, a.AUDTag, a.Policies, a.Bypass, a.SessionDuration, strings.Join(a.Tags, ","))
}
