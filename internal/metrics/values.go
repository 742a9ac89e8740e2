package metrics

import (
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Operation is a method of the provider.
type Operation string

// The operations.
const (
	FindTunnel         Operation = "find_tunnel"
	ReadTunnel         Operation = "read_tunnel"
	ListTunnels        Operation = "list_tunnels"
	CreateTunnel       Operation = "create_tunnel"
	ReadConfiguration  Operation = "read_configuration"
	WriteConfiguration Operation = "write_configuration"
	ReadToken          Operation = "read_token"
	RotateToken        Operation = "rotate_token"
	ListConnections    Operation = "list_connections"
	Disconnect         Operation = "disconnect"
	DeleteTunnel       Operation = "delete_tunnel"
)

// ListenerState is what a listener's conditions come to.
type ListenerState string

// The states of listeners.
const (
	ListenerProgrammed ListenerState = "programmed"
	ListenerPending    ListenerState = "pending"
	ListenerConflicted ListenerState = "conflicted"
	ListenerUnresolved ListenerState = "unresolved"
	ListenerRejected   ListenerState = "rejected"
)

// SetState is what the conditions of a ListenerSet come to.
type SetState string

// The states of ListenerSets.
const (
	SetProgrammed SetState = "programmed"
	SetPending    SetState = "pending"
	SetRejected   SetState = "rejected"
)

// RouteState is what the conditions of a route come to, over all of its parents
// at one Gateway.
type RouteState string

// The states of routes.
const (
	RouteAccepted   RouteState = "accepted"
	RoutePartial    RouteState = "partially_invalid"
	RouteUnresolved RouteState = "unresolved"
	RouteRejected   RouteState = "rejected"
)

// Label is a label of a metric.
type Label struct {
	Name string
	// Help says what its values are.
	Help string
	// Values are those that it can have, where they are few, with what each of
	// them means.
	Values []Value
}

// Value is one value of a label.
type Value struct{ Name, Help string }

// The labels. None has a name that Prometheus itself gives to what it scrapes in
// a cluster, such as "namespace": ours would be renamed.
var (
	labelNamespace = Label{Name: "gateway_namespace", Help: "the namespace of the Gateway"}
	labelGateway   = Label{Name: "gateway", Help: "the name of the Gateway"}

	// An account is known by its ID: each has the budget of its token, and blocks of
	// its own.
	labelAccount   = Label{Name: "account", Help: "the ID of the Cloudflare account"}
	labelOperation = Label{Name: "operation", Help: "what the provider was asked for", Values: []Value{
		{string(FindTunnel), "look up a tunnel by its name"},
		{string(ReadTunnel), "look up a tunnel by its ID"},
		{string(ListTunnels), "list all tunnels of an account"},
		{string(CreateTunnel), "create a tunnel"},
		{string(ReadConfiguration), "read a tunnel's configuration"},
		{string(WriteConfiguration), "replace a tunnel's configuration: a push"},
		{string(ReadToken), "read the token with which connectors run"},
		{string(RotateToken), "replace that token"},
		{string(ListConnections), "list the connectors of a tunnel"},
		{string(Disconnect), "remove the connections of one connector"},
		{string(DeleteTunnel), "delete a tunnel"},
	}}
	labelResult = Label{Name: "result", Help: "what came of it", Values: []Value{
		{string(ResultSuccess), "it was done"},
		{string(ResultNotFound), "there is no such tunnel, which can be the answer that was hoped for"},
		{string(ResultUnauthorized), "the API refuses the token"},
		{string(ResultRateLimited), "the API answered 429, or calls are held back after it did"},
		{string(ResultDeferred), "the token's own budget of requests is spent: nothing was sent, and the call comes back at its turn"},
		{string(ResultUnavailable), "no connection, no answer in time, or a status of 500 and above"},
		{string(ResultInvalid), "the API, or the connector, would reject the document"},
		{string(ResultNameExists), "a tunnel of that name exists"},
		{string(ResultConnected), "the tunnel cannot be deleted because it has connections"},
		{string(ResultRoutes), "the tunnel cannot be deleted because it has private network routes"},
		{string(ResultLocal), "the tunnel takes its configuration from a file"},
		{string(ResultCanceled), "the controller ended, or gave the call up"},
		{string(ResultError), "anything else that the API declined"},
	}}
	labelPriority = Label{Name: "priority", Help: "what the calls are for, in the order in which they get the budget", Values: []Value{
		{"change", "something that somebody changed and waits for"},
		{"deletion", "deleting a tunnel"},
		{"start", "reading back what the API holds after a start"},
		{"drift", "reading back, now and then, what nobody is known to have changed"},
	}}
	labelWait = Label{Name: "wait", Help: "where the wait was spent", Values: []Value{
		{waitCall, "in the call, which was made then"},
		{waitQueue, "in the queue: the call was turned away, and the time is what it was told to wait"},
	}}
	labelListenerState = Label{Name: "state", Help: "what its conditions come to", Values: []Value{
		{string(ListenerProgrammed), "in effect at the tunnel"},
		{string(ListenerPending), "valid, and not in effect yet, or not any more as it should be"},
		{string(ListenerConflicted), "another listener holds its hostname"},
		{string(ListenerUnresolved), "what it refers to does not resolve"},
		{string(ListenerRejected), "not accepted for another reason"},
	}}
	labelSetState = Label{Name: "state", Help: "what its conditions come to", Values: []Value{
		{string(SetProgrammed), "at least one of its listeners serves, and is in effect"},
		{string(SetPending), "accepted, and not in effect yet, or not any more as it should be"},
		{string(SetRejected), "not allowed, or none of its listeners serves"},
	}}
	labelRouteState = Label{Name: "state", Help: "the worst of what its conditions say about the Gateway and its ListenerSets", Values: []Value{
		{string(RouteAccepted), "accepted as it is"},
		{string(RoutePartial), "accepted, but for matches that a tunnel cannot express"},
		{string(RouteUnresolved), "accepted, but a backend does not resolve"},
		{string(RouteRejected), "not accepted by one of them"},
	}}
	labelReason = Label{Name: "reason", Help: "why, as in the conditions", Values: reasons()}
)

// reasons returns the reasons of the catalogue of problems.
func reasons() []Value {
	var values []Value
	for _, entry := range tunnel.Catalogue {
		values = append(values, Value{string(entry.Reason), strings.TrimSuffix(entry.Meaning, ".")})
	}
	return values
}
