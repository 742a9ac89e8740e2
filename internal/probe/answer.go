package probe

import "time"

// Responder is the component that answered a request.
type Responder string

// The responders.
const (
	Edge        Responder = "edge"        // Cloudflare
	Cloudflared Responder = "cloudflared" // a connector
	Envoy       Responder = "envoy"       // one of this product's Envoys
	Backend     Responder = "backend"     // everything behind the tunnel's data path
	Access      Responder = "access"      // Cloudflare Access
	Unknown     Responder = "unknown"     // a server that is not Cloudflare's
)

// Answer is the answer to a request.
type Answer struct {
	// Status is the HTTP status, or 0 if there is no answer.
	Status int `json:"status,omitempty"`
	// Location is where a redirect leads, which was not followed.
	Location string `json:"location,omitempty"`
	// Ray is the header CF-Ray, which identifies the request in Cloudflare's logs.
	Ray      string        `json:"ray,omitempty"`
	Duration time.Duration `json:"-"`
	// Responder is empty without an answer.
	Responder Responder `json:"responder,omitempty"`
	// Code is the error in the responder's words: Cloudflare's number, for example "1033",
	// or the error in Envoy's header Proxy-Status, for example "connection_refused".
	Code string `json:"code,omitempty"`
	// GRPCStatus is the gRPC status as a number; empty for other answers.
	GRPCStatus string `json:"grpcStatus,omitempty"`
	// Bare reports whether an error has neither a body nor its type. A rule of a tunnel's
	// configuration and a connector without a configuration answer so.
	Bare bool `json:"-"`
	// Meaning says what the answer means, and Advice what to do. Both can be empty.
	Meaning string `json:"meaning,omitempty"`
	Advice  string `json:"-"`
	// Failure and Err say why there is no answer.
	Failure Failure `json:"failure,omitempty"`
	Err     error   `json:"-"`
}
