package tunnel

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// newEvent returns an event with the reason and the message.
func newEvent(reason conditions.EventReason, format string, args ...any) *Event {
	return &Event{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Event is an event about a tunnel. Its object is the Gateway, or the Tunnel if the Gateway
// is gone.
type Event struct {
	Reason  conditions.EventReason
	Message string
}
