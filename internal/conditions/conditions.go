// Package conditions contains every condition type and reason, and every event that the
// controller reports. catalogue.yaml defines and describes them. `make generate` writes
// this package's variables and docs/conditions.md from it.
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O.
package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:generate go run ../../test/conditiongen

// Reason is a condition's reason. Only this package's variables have a value that is not
// zero, so a misspelt reason does not compile.
type Reason struct{ name string }

// String returns the reason as it is in a condition. It is "" for the zero value.
func (r Reason) String() string { return r.name }

// Is reports whether the condition has the reason. It accepts nil.
func (r Reason) Is(c *metav1.Condition) bool { return c != nil && c.Reason == r.name }

// RequiresAction reports whether a tunnel problem with the reason remains until a user
// acts.
func (r Reason) RequiresAction() bool {
	return slices.ContainsFunc(Problems, func(p Problem) bool { return p.Reason == r && p.RequiresAction })
}

// RequiresAction reports whether the condition's reason is a tunnel problem that remains
// until a user acts. It accepts nil.
func RequiresAction(c *metav1.Condition) bool { return c != nil && Reason{c.Reason}.RequiresAction() }

// Problem describes a reason that is a tunnel problem.
type Problem struct {
	Reason Reason
	// Meaning describes what is wrong, as a sentence.
	Meaning string
	// RequiresAction reports whether the problem remains until a user acts.
	RequiresAction bool
}

// EventReason is the reason of an event that reports neither a condition nor a problem.
// Only this package's variables have a value that is not zero.
type EventReason struct {
	name    string
	warning bool
}

// String returns the reason as it is in an event.
func (e EventReason) String() string { return e.name }

// IsWarning reports whether the event is a warning.
func (e EventReason) IsWarning() bool { return e.warning }

// Type is a condition type. Only this package's variables have a value that is not zero.
type Type struct {
	name            string
	expected        metav1.ConditionStatus
	event, optional bool
}

// String returns the type as it is in a condition.
func (t Type) String() string { return t.name }

// Expected returns the status that reports no problem. It is False for the types that
// report a problem when True.
func (t Type) Expected() metav1.ConditionStatus { return t.expected }

// CausesEvent reports whether the controller reports an event when a condition with the
// type changes.
func (t Type) CausesEvent() bool { return t.event }

// IsOptional reports whether a status without a condition of the type is complete. The
// controller removes such a condition when it no longer reports it.
func (t Type) IsOptional() bool { return t.optional }

// New returns a condition with the type. Only this function creates the controller's
// conditions, so each has a type and a reason from this package.
func (t Type) New(status metav1.ConditionStatus, reason Reason, message string) metav1.Condition {
	return metav1.Condition{Type: t.name, Status: status, Reason: reason.name, Message: message}
}

// Find returns the condition with the type, or nil.
func (t Type) Find(list []metav1.Condition) *metav1.Condition {
	for i := range list {
		if list[i].Type == t.name {
			return &list[i]
		}
	}
	return nil
}

// IsTrue reports whether the list has a condition with the type that is True.
func (t Type) IsTrue(list []metav1.Condition) bool {
	c := t.Find(list)
	return c != nil && c.Status == metav1.ConditionTrue
}
