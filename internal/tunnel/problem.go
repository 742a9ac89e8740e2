package tunnel

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Problem describes why a tunnel is not in the desired state.
type Problem struct {
	Reason conditions.Reason
	// Message describes what is wrong, where, and what to do.
	Message string
	// RequiresAction reports whether the problem remains until a user acts.
	RequiresAction bool
}

// problem returns a problem with the reason and the message.
func problem(reason conditions.Reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...), RequiresAction: reason.RequiresAction()}
}
