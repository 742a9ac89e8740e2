package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// conditionList collects conditions for one object, or for one listener.
type conditionList struct {
	generation int64
	list       []metav1.Condition
}

// set adds a condition without a transition time. Package status sets the time. A message
// has at most [message.MaxSize] bytes.
func (c *conditionList) set(t conditions.Type, status bool, reason conditions.Reason, text string) {
	value := metav1.ConditionFalse
	if status {
		value = metav1.ConditionTrue
	}
	c.add(t, value, reason, text)
}

// add adds a condition with any status.
func (c *conditionList) add(t conditions.Type, value metav1.ConditionStatus, reason conditions.Reason, text string) {
	condition := t.New(value, reason, message.Cut(text, message.MaxSize))
	condition.ObservedGeneration = c.generation
	c.list = append(c.list, condition)
}

// check adds a condition that is False with the problem, or True with the reason
// and the message when there is no problem.
func (c *conditionList) check(t conditions.Type, problem *Problem, reason conditions.Reason, text string) {
	if problem != nil {
		c.set(t, false, problem.Reason, problem.Message)
		return
	}
	c.set(t, true, reason, text)
}

// PushState says how far the last attempt to write the tunnel configuration has come.
type PushState int

const (
	// PushOutstanding means that the attempt has not ended.
	PushOutstanding PushState = iota
	// PushDelayed means that the attempt has not begun, because the configuration
	// changes too often. The tunnel keeps its last configuration.
	PushDelayed
	// PushFailed means that the attempt failed. The tunnel keeps its last
	// configuration.
	PushFailed
	// PushSucceeded means that the tunnel has the configuration.
	PushSucceeded
	// pushUnacknowledged means that the tunnel has the configuration, and that it is not
	// known whether every connected Envoy has its first configuration.
	pushUnacknowledged
)

// Push is the last attempt to write the tunnel configuration.
type Push struct {
	State PushState
	// Message explains the state to the user. For a failed or delayed attempt, it is
	// never empty: it states the cause, and when the controller retries or what the user
	// must do.
	Message string
	// Reason is the reason for the Programmed condition of the Gateway after a failed
	// attempt. Zero means Pending. Listeners always have the reason Pending.
	Reason conditions.Reason
}

// forTenants returns the attempt without the details that only the Gateway owner needs.
// ListenerSet owners cannot fix a failed attempt.
func (p Push) forTenants() Push {
	switch p.State {
	case PushDelayed:
		// When one tenant makes frequent changes, not every status may be written each
		// time.
		return Push{State: PushOutstanding, Message: p.Message}
	case PushFailed:
		return Push{State: PushFailed, Message: "The controller cannot update the tunnel, which keeps its last configuration. See the Gateway's status."}
	case pushUnacknowledged:
		return Push{State: p.State, Message: messageConfigurationPending}
	default:
		return Push{State: p.State}
	}
}

// setProgrammed adds the Programmed condition to a valid object or listener. current are
// the conditions in its status: while an attempt is outstanding, the previous result
// remains.
func (c *conditionList) setProgrammed(push Push, current []metav1.Condition) {
	switch {
	case push.State == PushSucceeded:
		c.set(conditions.TypeProgrammed, true, conditions.ReasonProgrammed, strings.TrimSpace(messageProgrammed+" "+push.Message))
	case push.State == PushFailed:
		c.set(conditions.TypeProgrammed, false, cmp.Or(push.Reason, conditions.ReasonPending), push.Message)
	case c.keepProgrammed(current, push):
	default:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonPending, cmp.Or(push.Message, messageConfigurationPending))
	}
}

const (
	messageProgrammed           = "The tunnel's configuration is in effect."
	messageProgrammedBefore     = "The tunnel's last configuration is in effect."
	messageConfigurationPending = "The controller is updating the tunnel's configuration."
)

// keepProgrammed adds the current condition if it comes from an attempt for this
// generation. It reports whether it has added the condition. A delayed attempt's message
// replaces the current message, and so does the message that Envoy has not acknowledged
// its configuration, unless the tunnel is programmed.
func (c *conditionList) keepProgrammed(current []metav1.Condition, push Push) bool {
	existing := conditions.TypeProgrammed.Find(current)
	if existing == nil || existing.ObservedGeneration != c.generation {
		return false
	}
	programmed := existing.Status == metav1.ConditionTrue && conditions.ReasonProgrammed.Is(existing)
	failed := existing.Status == metav1.ConditionFalse && (conditions.ReasonPending.Is(existing) || conditions.ReasonEnvoyRejected.Is(existing))
	if !programmed && !failed {
		return false
	}
	kept := *existing
	kept.LastTransitionTime, kept.Message = metav1.Time{}, message.Cut(keptMessage(existing.Message, programmed, push), message.MaxSize)
	c.list = append(c.list, kept)
	return true
}

// keptMessage returns the message for a Programmed condition that is kept.
func keptMessage(existing string, programmed bool, push Push) string {
	switch {
	case push.State == PushDelayed && programmed:
		return messageProgrammedBefore + " " + push.Message
	case push.State == PushDelayed, push.State == pushUnacknowledged && !programmed:
		return push.Message
	default:
		return existing
	}
}

// listenerConditions returns the conditions of a listener. parent is why the Gateway is
// not accepted, or nil.
func listenerConditions(l *Listener, generation int64, parent *Problem, push Push, current []metav1.Condition) []metav1.Condition {
	c := conditionList{generation: generation, list: make([]metav1.Condition, 0, 4)}
	c.check(conditions.TypeAccepted, l.Rejected, conditions.ReasonAccepted, l.acceptedMessage())
	if l.Conflicted() {
		c.set(conditions.TypeConflicted, true, l.Rejected.Reason, l.Rejected.Message)
	} else {
		c.set(conditions.TypeConflicted, false, conditions.ReasonNoConflicts, "The listener has no conflicts.")
	}
	c.check(conditions.TypeResolvedRefs, l.Unresolved, conditions.ReasonResolvedRefs, messageResolvedRefs+l.certificateWarnings)
	switch {
	case l.Conflicted() || l.Rejected != nil && slices.Contains(programmedReasons, l.Rejected.Reason):
		c.set(conditions.TypeProgrammed, false, l.Rejected.Reason, l.Rejected.Message)
	case l.Rejected != nil:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonInvalid, "The listener is not accepted. See its Accepted condition.")
	case l.Unresolved != nil:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonInvalid, "One of the listener's references is not resolved. See its ResolvedRefs condition.")
	case parent != nil:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonInvalid, messageGatewayNotAccepted)
	default:
		push.Reason = conditions.Reason{}
		c.setProgrammed(push, current)
	}
	return c.list
}

// programmedReasons are the Accepted reasons that a listener's Programmed condition
// repeats.
var programmedReasons = []conditions.Reason{
	conditions.ReasonPortUnavailable, conditions.ReasonUnsupportedValue, conditions.ReasonHostnameNotPermitted, conditions.ReasonLimitExceeded,
}

const (
	messageResolvedRefs       = "All references are resolved."
	messageSetNotAllowed      = "The ListenerSet is not allowed. See its Accepted condition."
	messageGatewayNotAccepted = "The Gateway is not accepted, so the controller does not change the tunnel."
)

func (l *Listener) acceptedMessage() string {
	if l.sharedPorts == "" {
		return "The listener is accepted."
	}
	return fmt.Sprintf("The listener is accepted. It shares its routes with the listeners for the same hostname on other ports (%s), because a tunnel serves a hostname on all ports.", l.sharedPorts)
}

// describeItems returns the message that lists the items.
func describeItems(list message.List, items []string) string {
	for _, item := range items {
		list.Add("%s", item)
	}
	return list.String()
}

// describeInvalid lists the listeners that are not served, with the reasons, for a
// message to their owner. It returns "" when all listeners are served. The list leaves
// half of the message to other problems.
func describeInvalid(listeners []*Listener) string {
	list := message.List{MaxSize: message.MaxSize / 2}
	for _, l := range listeners {
		if problem := cmp.Or(l.Rejected, l.Unresolved); problem != nil {
			list.Add("listener %q (%s)", l.Spec.Name, problem.Reason)
		}
	}
	return list.String()
}
