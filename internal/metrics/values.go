package metrics

import (
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// Operation says what a provider call does.
type Operation string

// Provider operations.
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
	FindZone           Operation = "find_zone"
	ListRecords        Operation = "list_records"
	ChangeRecords      Operation = "change_records"
	ReadQuota          Operation = "read_quota"
	ListCertificates   Operation = "list_certificates"
	ListApplications   Operation = "list_applications"
	CreateApplication  Operation = "create_application"
	UpdateApplication  Operation = "update_application"
	DeleteApplication  Operation = "delete_application"
	RevokeTokens       Operation = "revoke_tokens"
	ListPolicies       Operation = "list_policies"
	EnsureTag          Operation = "ensure_tag"
)

// ListenerState summarizes a listener's conditions.
type ListenerState string

// Listener states.
const (
	ListenerProgrammed ListenerState = "programmed"
	ListenerPending    ListenerState = "pending"
	ListenerConflicted ListenerState = "conflicted"
	ListenerUnresolved ListenerState = "unresolved"
	ListenerRejected   ListenerState = "rejected"
)

// ListenerSetState summarizes the conditions on a ListenerSet.
type ListenerSetState string

// ListenerSet states.
const (
	ListenerSetProgrammed ListenerSetState = "programmed"
	ListenerSetPending    ListenerSetState = "pending"
	ListenerSetRejected   ListenerSetState = "rejected"
)

// RouteState summarizes a route's conditions for all its parents that belong to one
// Gateway.
type RouteState string

// Route states.
const (
	RouteAccepted         RouteState = "accepted"
	RoutePartiallyInvalid RouteState = "partially_invalid"
	RouteUnresolved       RouteState = "unresolved"
	RouteRejected         RouteState = "rejected"
)

// LimitedKind is an object kind that a limit can reject.
type LimitedKind string

// Limited kinds.
const (
	LimitedRoute    LimitedKind = "route"
	LimitedListener LimitedKind = "listener"
)

// XDSResources is the resource type in an xDS response.
type XDSResources string

// xDS resource types.
const (
	XDSClusters  XDSResources = "clusters"
	XDSEndpoints XDSResources = "endpoints"
	XDSListeners XDSResources = "listeners"
	XDSScopes    XDSResources = "scopes"
	XDSRoutes    XDSResources = "routes"
	XDSSecrets   XDSResources = "secrets"
	XDSLimits    XDSResources = "limits"
)

// Label is a metric label.
type Label struct {
	Name string
	// Help describes the label.
	Help string
	// Values contains the possible values; empty if the values are not predefined.
	Values []Value
}

// Value is a label value and its description.
type Value struct{ Name, Help string }

// The labels. No label may be named like a label that Prometheus adds to scraped targets,
// such as "namespace", because Prometheus would rename it.
var (
	labelNamespace = Label{Name: "gateway_namespace", Help: "the Gateway's namespace"}
	labelGateway   = Label{Name: "gateway", Help: "the Gateway's name"}

	labelSourceNamespace = Label{Name: "source_namespace", Help: "the namespace in which routes or listeners changed, or _other for all namespaces after a Gateway's first 100"}

	labelAccount   = Label{Name: "account", Help: "the Cloudflare account ID"}
	labelOperation = Label{Name: "operation", Help: "what the call does", Values: []Value{
		{string(FindTunnel), "find a tunnel by its name"},
		{string(ReadTunnel), "read a tunnel by its ID"},
		{string(ListTunnels), "list all tunnels in an account"},
		{string(CreateTunnel), "create a tunnel"},
		{string(ReadConfiguration), "read a tunnel's configuration"},
		{string(WriteConfiguration), "write a tunnel's configuration (a push)"},
		{string(ReadToken), "read a tunnel's token"},
		{string(RotateToken), "replace a tunnel's token"},
		{string(ListConnections), "list a tunnel's connectors"},
		{string(Disconnect), "remove one connector's connections"},
		{string(DeleteTunnel), "delete a tunnel"},
		{string(FindZone), "find a DNS zone by its name"},
		{string(ListRecords), "list the records in a zone"},
		{string(ChangeRecords), "apply a batch of changes to the records in a zone"},
		{string(ReadQuota), "read the number of records in a zone, and its quota"},
		{string(ListCertificates), "list the edge certificates of a zone"},
		{string(ListApplications), "list the account's applications of Cloudflare Access"},
		{string(CreateApplication), "create an application"},
		{string(UpdateApplication), "change an application"},
		{string(DeleteApplication), "delete an application"},
		{string(RevokeTokens), "revoke the tokens of an application"},
		{string(ListPolicies), "list the account's reusable policies of Cloudflare Access"},
		{string(EnsureTag), "make a tag for applications, unless it exists"},
	}}
	labelResult = Label{Name: "result", Help: "how the call ended", Values: []Value{
		{string(ResultSuccess), "the call succeeded"},
		{string(ResultNotFound), "the tunnel or the application does not exist; this can be the expected result"},
		{string(ResultUnauthorized), "the Cloudflare API rejected the token"},
		{string(ResultRateLimited), "the Cloudflare API returned status 429, or the controller waits after such a response"},
		{string(ResultDeferred), "the API request budget is exhausted; the controller sent no request and retries the call at its slot"},
		{string(ResultUnavailable), "connection failure, timeout, or status 500 or higher"},
		{string(ResultInvalid), "the configuration is not valid for the Cloudflare API or the connector"},
		{string(ResultNameExists), "a tunnel with the same name exists"},
		{string(ResultConnected), "the tunnel cannot be deleted because it has connections"},
		{string(ResultRoutes), "the tunnel cannot be deleted because it has private network routes"},
		{string(ResultLocallyManaged), "the tunnel is locally managed"},
		{string(ResultForbidden), "the API token lacks a permission; it can lack SSL and Certificates Read"},
		{string(ResultRecordExists), "a record with the name exists"},
		{string(ResultRecordMissing), "a record to change or delete does not exist"},
		{string(ResultQuotaExceeded), "the zone would have too many records, or the account too many applications"},
		{string(ResultApplicationExists), "another application has exactly this hostname"},
		{string(ResultPolicyMissing), "a policy of the application does not exist"},
		{string(ResultNoZone), "the account has no zone for the hostname"},
		{string(ResultTagMissing), "a tag of the application does not exist"},
		{string(ResultChanged), "the application was changed since the controller has last read it; the controller reads it again"},
		{string(ResultInvalidRecord), "the Cloudflare API rejected a record"},
		{string(ResultCanceled), "the controller canceled the call, or its time limit expired"},
		{string(ResultError), "any other error"},
	}}
	labelPriority = Label{Name: "priority", Help: "why the controller makes the call; calls receive the request budget in this order", Values: []Value{
		{"change", "a change in the cluster"},
		{"deletion", "deleting a tunnel"},
		{"start", "reading the configuration after a start"},
		{"drift", "periodic drift checks and inventories"},
		{"access", "applications of Cloudflare Access"},
		{"dns", "DNS zones and records"},
	}}
	labelWait = Label{Name: "wait", Help: "where the call waits", Values: []Value{
		{waitCall, "within the call, before the request was sent"},
		{waitQueue, "in the work queue: the call was deferred, and the value is the delay until its slot"},
	}}
	labelListenerState = Label{Name: "state", Help: "the state that the listener's conditions report", Values: []Value{
		{string(ListenerProgrammed), "its rules are in effect at the tunnel"},
		{string(ListenerPending), "accepted, but its current rules are not in effect at the tunnel"},
		{string(ListenerConflicted), "another listener claims its hostname"},
		{string(ListenerUnresolved), "a reference does not resolve"},
		{string(ListenerRejected), "not accepted for any other reason"},
	}}
	labelListenerSetState = Label{Name: "state", Help: "the state that the ListenerSet's conditions report", Values: []Value{
		{string(ListenerSetProgrammed), "accepted, and in effect at the tunnel"},
		{string(ListenerSetPending), "accepted, but not in effect at the tunnel"},
		{string(ListenerSetRejected), "not allowed by the Gateway, or without an accepted listener"},
	}}
	labelRouteState = Label{Name: "state", Help: "the worst state that the route's conditions report for the Gateway and its ListenerSets", Values: []Value{
		{string(RouteAccepted), "accepted completely"},
		{string(RoutePartiallyInvalid), "accepted, but some matches or rules are not supported"},
		{string(RouteUnresolved), "accepted, but a backend reference does not resolve"},
		{string(RouteRejected), "not accepted by the Gateway or a ListenerSet"},
	}}
	labelLimit = Label{Name: "limit", Help: "the limit", Values: limitValues()}
	labelKind  = Label{Name: "kind", Help: "the object kind", Values: []Value{
		{string(LimitedRoute), "HTTPRoutes and GRPCRoutes"},
		{string(LimitedListener), "listeners in ListenerSets"},
	}}
	labelXDSResources = Label{Name: "resources", Help: "the xDS resource type", Values: []Value{
		{string(XDSClusters), "clusters, without their endpoints"},
		{string(XDSEndpoints), "the endpoints for clusters that follow EndpointSlices"},
		{string(XDSListeners), "the listeners for requests, and the listener for probes and metrics"},
		{string(XDSScopes), "which routes serve which hostnames"},
		{string(XDSRoutes), "the routes for the two request listeners"},
		{string(XDSSecrets), "the client certificate for backends"},
		{string(XDSLimits), "the rate limit for the access log"},
	}}
	labelCertificate = Label{Name: "certificate", Help: "the certificate", Values: []Value{
		{certificateEnvoy, "the Envoy client certificate that expires first"},
		{certificateAuthority, "the certificate authority that signs certificates"},
	}}
	labelReason = Label{Name: "reason", Help: "why the step failed, as in the conditions", Values: reasons()}
)

// describedLimits are the limits and their descriptions, in series order.
var describedLimits = []struct {
	name limits.Name
	help string
}{
	{limits.RulesPerTunnel, "limits.rulesPerTunnel: the Gateway's ingress rules"},
	{limits.RulesPerNamespace, "limits.rulesPerNamespace, if it is set: ingress rules of the tenant with the most rules"},
	{limits.RoutesPerHostname, "with Envoy, limits.routesPerHostname: Envoy routes of the hostname with the most routes"},
	{limits.ListenersPerNamespace, "limits.listenersPerNamespace: listeners of the tenant with the most listeners"},
	{limits.ExpressionsPerNamespace, "regular expression instructions of the tenant with the most instructions"},
	{limits.ExpressionsPerTunnel, "instructions in all the Gateway's regular expressions"},
	{limits.RepeatedPerTunnel, "with Envoy: wildcard rules that are repeated for other tenants' hostnames"},
}

// limitValues returns the limits as label values.
func limitValues() []Value {
	values := make([]Value, len(describedLimits))
	for i, limit := range describedLimits {
		values[i] = Value{limit.name.Label(), limit.help}
	}
	return values
}

// reasons returns the reasons in the problem catalogue as label values.
func reasons() []Value {
	var values []Value
	for _, entry := range conditions.Problems {
		values = append(values, Value{entry.Reason.String(), strings.TrimSuffix(entry.Meaning, ".")})
	}
	return values
}
