// Package dns decides which DNS records in a zone the controller creates, changes and
// deletes, and what a zone's records mean for the hostnames that Gateways serve.
//
// The unit is the zone: batches, quotas and API limits are per zone. The controller gathers
// the [Facts], calls [Observe] and [Decide], executes the [Step], and passes its [Result] to
// [Conclude], until the step is to wait. [NewReport] then returns what each Gateway reports,
// and [Assemble] collects it for one Gateway.
//
// docs/guides/dns.md describes the rules. The golden tables contain one row for each rule,
// and an exhaustive exploration checks that the rules work together. A decision has these
// stages:
//
//	situation.go  who wants which hostname, and the state of each Gateway in the zone
//	zoneview.go   the records, and what a lookup finds
//	verdict.go    what the records mean for a hostname
//	trace.go      since when records are unused, and which namespace held them
//	change.go     the change that each name needs, ignoring limits and other names
//	agenda.go     the changes that can be made now: within the limits (fairness.go), and
//	              without ending another hostname's wildcard (wildcards.go)
//	decide.go     the next request
//	batch.go      the batch
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O.
package dns

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Facts contains everything that a decision about one zone depends on.
type Facts struct {
	// Uptime is the time since this process started, on its monotonic clock. All delays
	// use it.
	Uptime time.Duration
	// Clock is the wall clock time. Only the age of adoption requests depends on it.
	Clock   time.Time
	Options Options
	// Zone is the zone name, and Account the Cloudflare account in which it is expected.
	Zone, Account string
	// Classes are the GatewayClasses that list the zone for the account, in any order.
	Classes []Class
	// Gateways are the Gateways of the Classes, and all Gateways that have a Tunnel in the
	// account, in any order. It includes Gateways that are gone but have a Tunnel.
	Gateways []Gateway
	// GatewaysKnown reports whether Gateways is complete: every Gateway and every Tunnel
	// that existed when the process started is in it.
	GatewaysKnown bool
	// Adoptions are the requests to adopt records in the zone.
	Adoptions []Adoption
	// TokenVersion changes with the API token; it is empty while there is no token, and
	// TokenMessage says why.
	TokenVersion, TokenMessage string
	// Memory is what only this process knows.
	Memory Memory
}

// Options identify the installation, whose key signs the comments of records. Without a
// key, the controller changes nothing.
type Options ownership.Identity

// Class is a GatewayClass that lists the zone.
type Class struct {
	Name string
	// Created is when the GatewayClass was created. If the settings of two classes do not
	// agree, those of the older one count.
	Created  time.Time
	Settings settings.DNS
}

// Gateway is what the decision about a Gateway says about its hostnames.
type Gateway struct {
	types.NamespacedName
	// Created is when the Gateway was created. Among Gateways that want a free hostname,
	// the older one gets it.
	Created time.Time
	// Class is the name of its GatewayClass; empty if the Gateway is gone.
	Class string
	State ownership.State
	// Tunnel is the tunnel of the Gateway; empty if it has none.
	Tunnel provider.TunnelID
	// Connected reports whether a connector has ever been connected to the tunnel.
	Connected bool
	// Hostnames are the hostnames that the Gateway publishes or keeps, in any zone, sorted by
	// name.
	Hostnames []Hostname
}

// Hostname is a hostname that a Gateway publishes or keeps.
type Hostname struct {
	// Name is an exact hostname or a wildcard such as "*.example.com".
	Name string
	// Namespace is the namespace of the claiming listener's owner.
	Namespace string
	// Created is when the claiming listener's owner was created. The youngest hostnames
	// exceed a limit.
	Created time.Time
	// Served reports whether the data plane in effect serves a route for the hostname.
	// Otherwise an existing record is kept, and none is created.
	Served bool
	// Permitted reports whether the annotation of the namespace permits the hostname. It
	// counts only if the GatewayClass requires permission.
	Permitted bool
}

// Adoption is a request to adopt a record.
type Adoption struct {
	v1alpha1.RecordAdoption
	// Gateway is the Gateway of the Tunnel that has the request.
	Gateway types.NamespacedName
}

// AdoptionOutcome is how a request ended.
type AdoptionOutcome struct {
	Adoption
	Result  v1alpha1.AdoptionResult
	Message string
}
