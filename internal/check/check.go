// Package check checks whether a hostname works, and reports which step fails and what to do.
// It reads the cluster, DNS and the caller's zones, and sends one request as a visitor does. It
// changes nothing.
package check

import (
	"net/http"
	"net/url"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// Result is the result of a step.
type Result string

// The results of a step.
const (
	OK      Result = "ok"
	Warning Result = "warning"
	Failed  Result = "failed"
	// Unknown means that the step could not find out, for example without a permission.
	Unknown Result = "unknown"
)

// Request is the request to check.
type Request struct {
	URL *url.URL
	// Method is the method that the caller chose. If it is empty, the request is a GET, or
	// a gRPC request if a GRPCRoute answers it.
	Method string
	// Header is sent to the URL's host only, and never printed.
	Header http.Header
	// NoRequest omits the requests through the edge.
	NoRequest bool
	// ConnectTo is the address to which the [probe.Network] connects instead of the host's
	// addresses in DNS; empty if it uses DNS.
	ConnectTo string
}

// Step is one thing that must work so that a request reaches its backend.
type Step struct {
	// Name is the step's stable name, for example "decision".
	Name string `json:"name"`
	// Result is the worst result of the findings.
	Result Result `json:"result"`
	// Findings are what the step found, in the order in which a reader needs them.
	Findings []Finding `json:"findings"`
	// Answer is the answer to the request, in the step "request" only.
	Answer *probe.Answer `json:"answer,omitempty"`
}

// Finding is one fact about the request.
type Finding struct {
	Result Result `json:"result"`
	// Message describes the fact, and where it applies.
	Message string `json:"message"`
	// Advice says what to do; empty if nothing needs to be done.
	Advice string `json:"advice,omitempty"`
}

// Report is the result of all steps, in their order. Its JSON encoding is stable.
type Report struct {
	URL string `json:"url"`
	// Result is the worst result of the steps.
	Result Result `json:"result"`
	Steps  []Step `json:"steps"`
}

// Expectation is what the cluster says about the request. The steps outside the cluster compare
// it with what they find.
type Expectation struct {
	// Gateways are the Gateways that serve the host, in the plan's order. DNS selects one.
	Gateways []ServingGateway
	// Incomplete reports whether objects that could not be read may change the answer.
	Incomplete bool
	// Unlisted reports whether Gateways or ListenerSets that could not be listed may claim the
	// host.
	Unlisted bool
}

// ServingGateway is a Gateway that serves the host.
type ServingGateway struct {
	Namespace, Name string
	// Address is the tunnel's address, <tunnel ID>.cfargotunnel.com; empty if it is not known.
	Address string
	// AccountID is the account of the tunnel; empty if it is not known.
	AccountID string
	// ManagesDNS reports whether the controller manages the record of the host, and
	// ObservesDNS whether it at least compares it. DNSMessage is its verdict in words; empty
	// without one.
	ManagesDNS, ObservesDNS bool
	DNSMessage              string
	// DNSResult is the result of the verdict.
	DNSResult Result
	// UsesEnvoy reports whether Envoy routes the requests.
	UsesEnvoy bool
	// ForwardsProxyStatus reports whether the header Proxy-Status is always a backend's: no
	// Envoy routes the requests, or Envoy does not mark its answers.
	ForwardsProxyStatus bool
	// Protected reports whether the request needs a token of Cloudflare Access.
	Protected bool
	// Closed reports whether the host must be protected by a managed application of
	// Cloudflare Access, and is closed because it is not.
	Closed bool
	// AccessResult is what the statuses say about the managed application; empty without
	// one. AccessMessage explains another result than OK.
	AccessResult  Result
	AccessMessage string
	// GRPC reports whether a GRPCRoute answers the request.
	GRPC bool
	// Status is the status that the routing table answers by itself; 0 if a backend answers.
	Status int
}
