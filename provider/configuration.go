package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Configuration is the remote configuration of a tunnel: one document, read
// and replaced as a whole. Its JSON form is what the API takes.
type Configuration struct {
	// Ingress are the rules, tried from the top; the first match serves.
	Ingress []IngressRule `json:"ingress"`
	// OriginRequest holds the defaults of all rules.
	OriginRequest OriginRequest `json:"originRequest,omitzero"`
	// UnknownFields are the document's other fields as the API returned them, by
	// name, for instance "warp-routing". Whoever replaces a document hands them
	// back, or they are lost. They take no part in [Configuration.Hash].
	UnknownFields map[string]json.RawMessage `json:"-"`
}

// IngressRule sends the requests that match its hostname and path to a
// service.
type IngressRule struct {
	// Hostname is exact, or a suffix when it begins with "*."; every host when
	// empty.
	Hostname string `json:"hostname,omitempty"`
	// Path is an unanchored RE2 expression on the decoded path; every path
	// when empty.
	Path string `json:"path,omitempty"`
	// Service is the origin's URL without a path, or "http_status:<code>".
	Service string `json:"service"`
	// OriginRequest overrides the document's defaults for this rule.
	OriginRequest OriginRequest `json:"originRequest,omitzero"`
}

// OriginRequest says how the connector talks to an origin. A nil or empty
// field leaves the connector's own default. Durations are whole seconds,
// because the connector rejects anything else.
type OriginRequest struct {
	ConnectTimeout         *int64  `json:"connectTimeout,omitempty"`
	TLSTimeout             *int64  `json:"tlsTimeout,omitempty"`
	TCPKeepAlive           *int64  `json:"tcpKeepAlive,omitempty"`
	KeepAliveTimeout       *int64  `json:"keepAliveTimeout,omitempty"`
	KeepAliveConnections   *int64  `json:"keepAliveConnections,omitempty"`
	NoHappyEyeballs        *bool   `json:"noHappyEyeballs,omitempty"`
	MatchSNIToHost         *bool   `json:"matchSNItoHost,omitempty"`
	NoTLSVerify            *bool   `json:"noTLSVerify,omitempty"`
	DisableChunkedEncoding *bool   `json:"disableChunkedEncoding,omitempty"`
	HTTP2Origin            *bool   `json:"http2Origin,omitempty"`
	HTTPHostHeader         string  `json:"httpHostHeader,omitempty"`
	OriginServerName       string  `json:"originServerName,omitempty"`
	CAPool                 string  `json:"caPool,omitempty"`
	ProxyType              string  `json:"proxyType,omitempty"`
	Access                 *Access `json:"access,omitempty"`
}

// Access makes the connector demand a valid Cloudflare Access token. It is
// enforced only in a rule's own OriginRequest.
type Access struct {
	Required bool     `json:"required,omitempty"`
	TeamName string   `json:"teamName,omitempty"`
	AUDTag   []string `json:"audTag,omitempty"`
}

// Hash identifies the modelled part of the document: two configurations with
// the same hash make the connector do the same.
func (c Configuration) Hash() string {
	sum := sha256.Sum256(c.document())
	return hex.EncodeToString(sum[:])
}

// Size returns how many bytes the modelled part of the document has as JSON.
func (c Configuration) Size() int { return len(c.document()) }

// document is the modelled part as JSON.
func (c Configuration) document() []byte {
	if c.Ingress == nil {
		c.Ingress = []IngressRule{}
	}
	document, _ := json.Marshal(c) // strings, integers and booleans always marshal
	return document
}
