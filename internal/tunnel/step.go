package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Action is what a step does.
type Action string

// The actions.
const (
	// None: there is nothing to do until something changes.
	None Action = "None"
	// Wait: there is nothing to do until the time of the step has passed.
	Wait Action = "Wait"
	// Record writes the record of the step and nothing else.
	Record Action = "Record"
	// Claim creates the Tunnel object or brings its spec up to date. Where the
	// step has a record, it claims an existing tunnel: the record is written as
	// well, and the Tunnels are listed again from the API server.
	Claim Action = "Claim"
	// ReadTunnel reads the tunnel by its ID.
	ReadTunnel Action = "ReadTunnel"
	// FindByName looks for the tunnel by its name.
	FindByName Action = "FindByName"
	// Create creates the tunnel.
	Create Action = "Create"
	// ReadConfiguration reads the remote configuration.
	ReadConfiguration Action = "ReadConfiguration"
	// Configure writes the desired configuration.
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
	// Disconnect removes the connections of one connector.
	Disconnect Action = "Disconnect"
	// Delete deletes the tunnel at Cloudflare.
	Delete Action = "Delete"
	// DeleteObject deletes the Tunnel object.
	DeleteObject Action = "DeleteObject"
)

// Step is the next thing to do.
type Step struct {
	Action Action
	// Record is the status to write before the action; nil when the record stays.
	// Its phase, conditions and other derived fields are those of the object.
	Record *v1alpha1.TunnelStatus
	// Priority is that of the action's request in the request budget.
	Priority provider.Priority
	// Connector is the one to disconnect.
	Connector provider.ConnectorID
	// For is how long to wait.
	For time.Duration
	// Interval is after which time what is read now is to be read again.
	Interval time.Duration
	// Hash is that of the configuration to write.
	Hash string
	// Unsettled are the hashes of configurations that an earlier process may have
	// had under way.
	Unsettled []string
	// ExternalChange is the version of the external change that the step
	// responds to; 0 for none.
	ExternalChange provider.Version
	// Event tells people what is about to happen; nil for nothing.
	Event *Event
	// Problem is why nothing is done; nil when all is well.
	Problem *Problem
}

// Destructive reports whether the step takes something away that cannot be
// brought back. The controller reads Tunnel and Gateway live before it, and
// decides again when they are not as the Facts say.
func (s Step) Destructive() bool {
	switch s.Action {
	case StopConnectors, Disconnect, Delete, DeleteObject, WithdrawStatuses:
		return true
	default:
		return false
	}
}

// Ends reports whether the loop of decisions ends with the step.
func (s Step) Ends() bool { return s.Action == None || s.Action == Wait }

// Result is what came of a step.
type Result struct {
	// Uptime is when the step ended.
	Uptime time.Duration
	// Err is why the step failed; nil when it succeeded.
	Err error
	// Stale is whether the record could not be written because the Tunnel had
	// changed. The action was not executed then.
	Stale bool
	// Tunnel is what Create, ReadTunnel or FindByName found.
	Tunnel provider.Tunnel
	// Configuration and Version are what ReadConfiguration read, and what Configure
	// wrote.
	Configuration provider.Configuration
	Version       provider.Version
	// Connectors are what ListConnections listed.
	Connectors []provider.Connector
}

func waitFor(d time.Duration) Step { return Step{Action: Wait, For: max(d, time.Millisecond)} }

// blocked waits for a person.
func blocked(p *Problem) Step { return Step{Action: None, Problem: p} }
