package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Action is what a step does.
type Action string

const (
	// None does nothing until a fact changes.
	None Action = "None"
	// Wait does nothing until Step.Delay has passed or a fact changes.
	Wait Action = "Wait"
	// Record only writes the step's record.
	Record Action = "Record"
	// Claim creates the Tunnel object or updates its spec. A Claim with a record
	// claims an existing tunnel: it also writes the record, and lists the Tunnels
	// again from the API server.
	Claim Action = "Claim"
	// ReadTunnel reads the tunnel by its ID.
	ReadTunnel Action = "ReadTunnel"
	// FindByName finds the tunnel by its name.
	FindByName Action = "FindByName"
	// Create creates the tunnel.
	Create Action = "Create"
	// ReadConfiguration reads the remote configuration.
	ReadConfiguration Action = "ReadConfiguration"
	// Configure writes the desired configuration, or only revokes rules in the last
	// one.
	Configure Action = "Configure"
	// ReadToken reads the tunnel's token and writes the token Secret.
	ReadToken Action = "ReadToken"
	// RotateToken replaces the tunnel's token at Cloudflare.
	RotateToken Action = "RotateToken"
	// RunConnectors applies the objects that run the connectors.
	RunConnectors Action = "RunConnectors"
	// StopConnectors deletes the objects that run the connectors.
	StopConnectors Action = "StopConnectors"
	// WithdrawStatuses removes this Gateway's status entries from routes and
	// ListenerSets.
	WithdrawStatuses Action = "WithdrawStatuses"
	// ListConnections lists the connectors that Cloudflare reports.
	ListConnections Action = "ListConnections"
	// Disconnect removes one connector's connections.
	Disconnect Action = "Disconnect"
	// Delete deletes the tunnel at Cloudflare.
	Delete Action = "Delete"
	// DeleteObject deletes the Tunnel object.
	DeleteObject Action = "DeleteObject"
)

// Step is a reconcile's next step.
type Step struct {
	Action Action
	// Record is the status to write before the action; nil if the record does not
	// change. Its phase, conditions and other derived fields are copied from the
	// object.
	Record *v1alpha1.TunnelStatus
	// Priority is the action's priority in the API request budget.
	Priority provider.Priority
	// Connector is the connector that Disconnect disconnects.
	Connector provider.ConnectorID
	// Delay is how long a Wait lasts.
	Delay time.Duration
	// AwaitsEnvoys reports whether a Wait is for Envoys that are about to acknowledge their
	// routes: the reconcile continues after it, and has no outcome yet.
	AwaitsEnvoys bool
	// ReadInterval is the time after which to repeat the read.
	ReadInterval time.Duration
	// Configuration is what Configure writes, and Hash is its hash.
	Configuration *provider.Configuration
	Hash          string
	// Limit is the limit from which Configure takes a token.
	Limit UpdateLimit
	// Revokes reports whether Configure writes the last configuration without the rules
	// that the desired one revokes. It then takes its token from the Revocations, on
	// behalf of Namespaces.
	Revokes    bool
	Namespaces []string
	// Unsettled contains hashes of configurations that a previous process may have
	// written and Cloudflare may still apply.
	Unsettled []string
	// ExternalChange is the version of the external change that the step responds to; 0
	// for none.
	ExternalChange provider.Version
	// Event is the event to create for the step; nil for none.
	Event *Event
	// Problem is why the step waits; nil if there is no problem.
	Problem *Problem
}

// Destructive reports whether the step removes something that cannot be restored.
// Before a destructive step, the controller reads the Tunnel and the Gateway live, and
// decides again if they differ from the Facts.
func (s Step) Destructive() bool {
	switch s.Action {
	case StopConnectors, Disconnect, Delete, DeleteObject, WithdrawStatuses:
		return true
	default:
		return false
	}
}

// Ends reports whether the reconcile ends with the step.
func (s Step) Ends() bool { return s.Action == None || s.Action == Wait }

// Result tells how a step ended.
type Result struct {
	// Uptime is the uptime when the step ended.
	Uptime time.Duration
	// Err is nil on success.
	Err error
	// Stale reports whether the record could not be written because the Tunnel had
	// changed. The action was then not executed.
	Stale bool
	// Tunnel is the tunnel that Create, ReadTunnel or FindByName returned.
	Tunnel provider.Tunnel
	// Configuration and Version are the configuration that ReadConfiguration read or
	// Configure wrote, and its version.
	Configuration provider.Configuration
	Version       provider.Version
	// Connectors are the connectors that ListConnections returned.
	Connectors []provider.Connector
}

func waitFor(d time.Duration) Step { return Step{Action: Wait, Delay: max(d, time.Millisecond)} }

// blocked returns the step that waits until a fact changes, because of the problem.
func blocked(p *Problem) Step { return Step{Action: None, Problem: p} }
