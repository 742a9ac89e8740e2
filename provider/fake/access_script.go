package fake

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The methods of [provider.Access].
const (
	OpApplications      Op = "Applications"
	OpCreateApplication Op = "Create"
	OpUpdateApplication Op = "Update"
	OpDeleteApplication Op = "Delete"
	OpRevokeTokens      Op = "RevokeTokens"
	OpPolicies          Op = "Policies"
	OpEnsureTag         Op = "EnsureTag"
)

// The permissions for applications, with the names in Cloudflare's dashboard.
const (
	accessRead = "Access: Apps and Policies Read"
	accessEdit = "Access: Apps and Policies Edit"
)

// AccessCall is one call to an [Access] and its outcome.
type AccessCall struct {
	Op Op
	// Priority comes from the call's context.
	Priority provider.Priority
	// Last is the application that the call updates or deletes, or only the ID of the one
	// whose tokens it revokes.
	Last provider.Application
	// Spec is what the call creates or writes.
	Spec provider.ApplicationSpec
	// Tag is the argument to EnsureTag.
	Tag string
	// Err is the call's error, without the wrapping operation.
	Err error
}

// Restrict limits the API token to the permissions, which have the names in Cloudflare's
// dashboard.
func (a *Access) Restrict(permissions ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.permissions = append([]string{}, permissions...)
}

// isPermitted reports whether the API token has the permission for a method.
func (a *Access) isPermitted(op Op) bool {
	reads := op == OpApplications || op == OpPolicies
	return a.permissions == nil || slices.Contains(a.permissions, accessEdit) ||
		reads && slices.Contains(a.permissions, accessRead)
}

// Fail makes the next calls to op return errs, one error per call, without any other
// effect. A nil error lets the call succeed.
func (a *Access) Fail(op Op, errs ...error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scripted.add(op, false, errs)
}

// FailAfter is like [Access.Fail], but the calls take effect before they return their error,
// as if the response was lost.
func (a *Access) FailAfter(op Op, errs ...error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scripted.add(op, true, errs)
}

// Calls returns the recorded calls in order. If ops are given, it returns only calls to
// these methods.
func (a *Access) Calls(ops ...Op) []AccessCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.calls), func(c AccessCall) bool {
		return len(ops) > 0 && !slices.Contains(ops, c.Op)
	})
}
