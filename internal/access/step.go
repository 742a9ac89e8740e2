package access

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Action is what a step does.
type Action string

const (
	// None does nothing until a fact changes.
	None Action = "None"
	// Wait does nothing until Step.Delay has passed or a fact changes.
	Wait Action = "Wait"
	// ReadApplications lists the account's applications.
	ReadApplications Action = "ReadApplications"
	// ReadPolicies lists the account's reusable policies.
	ReadPolicies Action = "ReadPolicies"
	// Apply executes Step.Writes, all at the same time.
	Apply Action = "Apply"
	// ConcludeAdoptions ends adoption requests without an API request.
	ConcludeAdoptions Action = "ConcludeAdoptions"
)

// Step is the next step for an account.
type Step struct {
	Action Action
	// Writes are at most [MaxWrites], about different applications.
	Writes []Write
	// Adoptions end with the step if it succeeds.
	Adoptions []AdoptionOutcome
	// Delay is how long a Wait lasts.
	Delay time.Duration
	// Requests is how many API requests the step sends, for the reservation.
	Requests int
	// changes describe Writes, unless they make tags. Only [Conclude] uses them.
	changes []*change
}

// MaxWrites is how many writes are sent at the same time.
const MaxWrites = 8

// Ends reports whether the reconcile ends with the step.
func (s Step) Ends() bool { return s.Action == None || s.Action == Wait }

// Operation is what a write does.
type Operation string

const (
	// EnsureTag makes the tag Write.Tag.
	EnsureTag Operation = "tag"
	// Create creates an application.
	Create Operation = "create"
	// Update changes an application, hands it over to another Gateway, or adopts it.
	Update Operation = "update"
	// Revoke revokes the tokens of an application.
	Revoke Operation = "revoke"
	// Delete deletes an application.
	Delete Operation = "delete"
)

// Write is one request that changes something.
type Write struct {
	Operation Operation
	// Hostname is the application's hostname, for logs and metrics, and Gateway the
	// Gateway for which the write is made.
	Hostname string
	Gateway  types.NamespacedName
	// Tag is what EnsureTag makes.
	Tag string
	// Last is the application before an Update, a Revoke or a Delete.
	Last provider.Application
	// Spec is what Create and Update write.
	Spec provider.ApplicationSpec
}

// Result tells how a step ended.
type Result struct {
	// Sent is the uptime when the step began, and Uptime when it ended.
	Sent, Uptime time.Duration
	// Err is nil on success. For Apply, it is nil, and Writes has the errors.
	Err error
	// Applications are what ReadApplications read.
	Applications []provider.Application
	// Policies are what ReadPolicies read.
	Policies []provider.AccessPolicy
	// Writes has one result for each write of Apply, in the same order.
	Writes []WriteResult
}

// WriteResult tells how a write ended.
type WriteResult struct {
	Err error
	// Application is what Create or Update returned.
	Application provider.Application
}
