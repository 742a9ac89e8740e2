package gateway

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

//go:generate go run ../../test/conditiontable

// Condition types and reasons are the same words for Gateways, ListenerSets
// and their listeners; the API's constants differ in type only.
const (
	typeAccepted     = string(gatewayv1.GatewayConditionAccepted)
	typeProgrammed   = string(gatewayv1.GatewayConditionProgrammed)
	typeConflicted   = string(gatewayv1.ListenerConditionConflicted)
	typeResolvedRefs = string(gatewayv1.ListenerConditionResolvedRefs)

	reasonAccepted     = string(gatewayv1.GatewayReasonAccepted)
	reasonProgrammed   = string(gatewayv1.GatewayReasonProgrammed)
	reasonPending      = string(gatewayv1.GatewayReasonPending)
	reasonInvalid      = string(gatewayv1.GatewayReasonInvalid)
	reasonNotValid     = string(gatewayv1.GatewayReasonListenersNotValid)
	reasonNoConflicts  = string(gatewayv1.ListenerReasonNoConflicts)
	reasonResolvedRefs = string(gatewayv1.ListenerReasonResolvedRefs)

	reasonNotAllowed        = string(gatewayv1.ListenerSetReasonNotAllowed)
	reasonParentNotAccepted = string(gatewayv1.ListenerSetReasonParentNotAccepted)
	// reasonParentNotProgrammed has no constant in the API; its documentation of
	// ListenerSetConditionProgrammed names it.
	reasonParentNotProgrammed = "ParentNotProgrammed"
)

// ExpectedStatus returns the status that a condition of the type has when all is
// well: some of them say that something is wrong.
func ExpectedStatus(kind string) metav1.ConditionStatus {
	switch kind {
	case typeConflicted, string(gatewayv1.RouteConditionPartiallyInvalid), TypeHostnameShared:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionTrue
	}
}

// conditions are those of one object, or of one of its listeners.
type conditions struct {
	generation int64
	list       []metav1.Condition
}

// set adds a condition. Its transition time is left to whoever writes it.
func (c *conditions) set(kind string, status bool, reason, message string) {
	value := metav1.ConditionFalse
	if status {
		value = metav1.ConditionTrue
	}
	c.list = append(c.list, metav1.Condition{
		Type: kind, Status: value, ObservedGeneration: c.generation, Reason: reason, Message: truncateMessage(message),
	})
}

// maxMessageLength is well below what the API takes: a route can have more
// mistakes than anybody reads.
const maxMessageLength = 4096

func truncateMessage(message string) string {
	if len(message) <= maxMessageLength {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessageLength], "") + "…"
}

// check adds a condition that is true with the given reason and message unless
// there is a problem.
func (c *conditions) check(kind string, problem *Problem, reason, message string) {
	if problem != nil {
		c.set(kind, false, problem.Reason, problem.Message)
		return
	}
	c.set(kind, true, reason, message)
}

// PushState is how far an attempt to put the document into effect has come.
type PushState int

// The states of an attempt.
const (
	// PushOutstanding: it has not ended.
	PushOutstanding PushState = iota
	// PushFailed: it ended with an error; the last document stays in force.
	PushFailed
	// PushSucceeded: the document is in effect, just now or since earlier.
	PushSucceeded
)

// Push is the attempt to put the document into effect, as statuses tell it.
type Push struct {
	State PushState
	// Message says what happened, and when it is tried again or what to do: of
	// an attempt that failed always, of another one where there is something to
	// say.
	Message string
	// Reason is that of the Gateway's condition Programmed when the attempt failed;
	// Pending when empty. Listeners always have Pending.
	Reason string
}

// forTenants is the attempt as those may read of it who only attach to the
// Gateway: they can do nothing about it.
func (p Push) forTenants() Push {
	p.Message, p.Reason = "", ""
	if p.State == PushFailed {
		p.Message = "The tunnel is not up to date; the status of the Gateway says why. It keeps its last configuration."
	}
	return p
}

// setProgrammed adds the condition Programmed for something that is valid.
// current are its conditions as they stand: while an attempt is outstanding,
// the outcome of the one before still counts.
func (c *conditions) setProgrammed(push Push, current []metav1.Condition) {
	switch {
	case push.State == PushSucceeded:
		c.set(typeProgrammed, true, reasonProgrammed, strings.TrimSpace(messageProgrammed+" "+push.Message))
	case push.State == PushFailed:
		c.set(typeProgrammed, false, cmp.Or(push.Reason, reasonPending), push.Message)
	case c.keepProgrammed(current):
	default:
		c.set(typeProgrammed, false, reasonPending, cmp.Or(push.Message, messageConfigurationPending))
	}
}

const (
	messageProgrammed           = "The tunnel's configuration is in effect."
	messageConfigurationPending = "The tunnel's configuration is being written."
)

// keepProgrammed adds the condition as it stands, when it is the outcome of an
// attempt for this generation.
func (c *conditions) keepProgrammed(current []metav1.Condition) bool {
	existing := meta.FindStatusCondition(current, typeProgrammed)
	if existing == nil || existing.ObservedGeneration != c.generation || existing.Message == messageParentNotAccepted {
		return false
	}
	programmed := existing.Status == metav1.ConditionTrue && existing.Reason == reasonProgrammed
	pending := existing.Status == metav1.ConditionFalse && existing.Reason == reasonPending
	if programmed || pending {
		c.set(typeProgrammed, programmed, existing.Reason, existing.Message)
	}
	return programmed || pending
}

// listenerConditions are those of a row of the hostname table. parent is why
// the Gateway is not accepted, or nil.
func listenerConditions(l *Listener, generation int64, parent *Problem, push Push, current []metav1.Condition) []metav1.Condition {
	c := conditions{generation: generation, list: make([]metav1.Condition, 0, 4)}
	c.check(typeAccepted, l.Rejected, reasonAccepted, l.acceptedMessage())
	if l.Conflicted() {
		c.set(typeConflicted, true, l.Rejected.Reason, l.Rejected.Message)
	} else {
		c.set(typeConflicted, false, reasonNoConflicts, "No other listener is in the way.")
	}
	c.check(typeResolvedRefs, l.Unresolved, reasonResolvedRefs, "Every reference resolves."+l.certificateWarnings)
	switch {
	case l.Conflicted() || l.Rejected != nil && l.Rejected.Reason == string(gatewayv1.ListenerReasonPortUnavailable):
		c.set(typeProgrammed, false, l.Rejected.Reason, l.Rejected.Message)
	case l.Rejected != nil:
		c.set(typeProgrammed, false, reasonInvalid, "The listener is not accepted.")
	case l.Unresolved != nil:
		c.set(typeProgrammed, false, reasonInvalid, "What the listener refers to does not resolve.")
	case parent != nil:
		c.set(typeProgrammed, false, reasonPending, messageParentNotAccepted)
	default:
		push.Reason = ""
		c.setProgrammed(push, current)
	}
	return c.list
}

const messageParentNotAccepted = "The Gateway is not accepted; nothing is changed at the tunnel until it is."

func (l *Listener) acceptedMessage() string {
	if l.sharedPorts == "" {
		return "The listener is accepted."
	}
	return fmt.Sprintf("The listener is accepted. Its hostname is used on port %s too: a tunnel serves a hostname on every port at once, so they share their routes.", l.sharedPorts)
}

// describeInvalid names the listeners that do not serve, with the reason, for
// the message of their owner; "" when all of them serve.
func describeInvalid(listeners []*Listener) string {
	var parts []string
	for _, l := range listeners {
		switch {
		case l.Rejected != nil:
			parts = append(parts, fmt.Sprintf("listener %q: %s", l.Spec.Name, l.Rejected.Reason))
		case l.Unresolved != nil:
			parts = append(parts, fmt.Sprintf("listener %q: %s", l.Spec.Name, l.Unresolved.Reason))
		}
	}
	return strings.Join(parts, ", ")
}
