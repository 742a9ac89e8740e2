package dns

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
	// ReadZone finds the zone by its name.
	ReadZone Action = "ReadZone"
	// ReadUsage reads the zone's quota.
	ReadUsage Action = "ReadUsage"
	// ReadCertificates lists the hosts of the zone's certificates.
	ReadCertificates Action = "ReadCertificates"
	// ReadRecords lists the zone's records, or those with Step.Names.
	ReadRecords Action = "ReadRecords"
	// Apply applies Step.Batch.
	Apply Action = "Apply"
	// ConcludeAdoptions ends adoption requests without an API request.
	ConcludeAdoptions Action = "ConcludeAdoptions"
)

// Step is the next step for a zone.
type Step struct {
	Action Action
	// ID is the zone's ID, for all actions but ReadZone, for which it is the ID in the
	// settings or empty.
	ID provider.ZoneID
	// Names restrict ReadRecords; empty reads all records.
	Names []string
	// Batch is what Apply applies, and Changes describes its operations.
	Batch   provider.Batch
	Changes []Change
	// Adoptions end with the step if it succeeds.
	Adoptions []AdoptionOutcome
	// Delay is how long a Wait lasts.
	Delay time.Duration
	// Requests is how many API requests the step sends, for the reservation. It includes
	// those of the step that follows a read at once.
	Requests int
	// changes describe Batch, and edits are the names that ReadRecords reads because a
	// batch is to edit their records. extra reports whether ReadRecords is neither the first
	// read nor a periodic one. Only [Conclude] uses them.
	changes []change
	edits   []string
	extra   bool
}

// Ends reports whether the reconcile ends with the step.
func (s Step) Ends() bool { return s.Action == None || s.Action == Wait }

// Operation is what a change does to a record.
type Operation string

const (
	// Create creates a record.
	Create Operation = "create"
	// Repair makes a record proxied again.
	Repair Operation = "repair"
	// Move leads a record to another Gateway's tunnel.
	Move Operation = "move"
	// Adopt marks a record that the controller did not create, or replaces it.
	Adopt Operation = "adopt"
	// Release removes the mark from an excluded record.
	Release Operation = "release"
	// Delete deletes a record.
	Delete Operation = "delete"
)

// Change is one operation, for logs and metrics.
type Change struct {
	Operation Operation
	Name      string
	// Gateway is the Gateway that the record leads to afterwards, or did before a Delete
	// or Release.
	Gateway types.NamespacedName
}

// Result tells how a step ended.
type Result struct {
	// Uptime is the uptime when the step ended, and Sent when it began.
	Sent, Uptime time.Duration
	// Err is nil on success.
	Err error
	// Zones are what ReadZone found.
	Zones []provider.Zone
	// Usage is what ReadUsage read.
	Usage provider.Usage
	// Hosts are what ReadCertificates read.
	Hosts []string
	// Records are what ReadRecords read, or what Apply changed and created.
	Records []provider.Record
}
