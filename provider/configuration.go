package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
)

// Configuration is a tunnel's remote configuration. Calls read and replace it as a whole.
// Its JSON form, without UnknownFields, is the Cloudflare API format.
type Configuration struct {
	// Ingress contains the ingress rules. The connector uses the first rule that matches
	// a request.
	Ingress []IngressRule `json:"ingress"`
	// OriginRequest contains the defaults for all rules.
	OriginRequest OriginRequest `json:"originRequest,omitzero"`
	// UnknownFields contains the configuration's other fields as the API returned them,
	// by name, for instance "warp-routing". A caller that replaces a configuration must
	// include the fields that it read, otherwise they are lost. [Configuration.Hash]
	// ignores them.
	UnknownFields map[string]json.RawMessage `json:"-"`
}

// IngressRule routes the requests that match its hostname and path to a service. (Source:
// cloudflared's ingress rules.)
type IngressRule struct {
	// Hostname matches the request's host exactly; "*.<domain>" matches every
	// subdomain, at any depth. An empty hostname matches every host.
	Hostname string `json:"hostname,omitempty"`
	// Path is an unanchored RE2 expression that is matched against the decoded path.
	// An empty path matches every path.
	Path string `json:"path,omitempty"`
	// Service is the origin's URL without a path, or "http_status:<code>".
	Service string `json:"service"`
	// OriginRequest overrides the configuration's defaults for this rule.
	OriginRequest OriginRequest `json:"originRequest,omitzero"`
}

// OriginRequest contains the connector's settings for requests to an origin. A nil or
// empty field selects the connector's default. Durations are in whole seconds; the
// connector rejects any other unit.
type OriginRequest struct {
	ConnectTimeout         *int64          `json:"connectTimeout,omitempty"`
	TLSTimeout             *int64          `json:"tlsTimeout,omitempty"`
	TCPKeepAlive           *int64          `json:"tcpKeepAlive,omitempty"`
	KeepAliveTimeout       *int64          `json:"keepAliveTimeout,omitempty"`
	KeepAliveConnections   *int64          `json:"keepAliveConnections,omitempty"`
	NoHappyEyeballs        *bool           `json:"noHappyEyeballs,omitempty"`
	MatchSNIToHost         *bool           `json:"matchSNItoHost,omitempty"`
	NoTLSVerify            *bool           `json:"noTLSVerify,omitempty"`
	DisableChunkedEncoding *bool           `json:"disableChunkedEncoding,omitempty"`
	HTTP2Origin            *bool           `json:"http2Origin,omitempty"`
	HTTPHostHeader         string          `json:"httpHostHeader,omitempty"`
	OriginServerName       string          `json:"originServerName,omitempty"`
	CAPool                 string          `json:"caPool,omitempty"`
	ProxyType              string          `json:"proxyType,omitempty"`
	Access                 *AccessSettings `json:"access,omitempty"`
}

// AccessSettings make the connector require a valid Cloudflare Access token. The connector
// enforces it only in a rule's OriginRequest, not in the defaults.
type AccessSettings struct {
	Required bool     `json:"required,omitempty"`
	TeamName string   `json:"teamName,omitempty"`
	AUDTag   []string `json:"audTag,omitempty"`
}

// Hash returns the configuration's SHA-256 without UnknownFields, in hexadecimal.
// Connectors behave the same with two configurations that have the same hash.
func (c Configuration) Hash() string {
	hash := sha256.New()
	c.encode(hash)
	return hex.EncodeToString(hash.Sum(nil))
}

// Size returns how many bytes the configuration has as JSON, without UnknownFields.
func (c Configuration) Size() int {
	var size countingWriter
	c.encode(&size)
	return int(size)
}

// encode writes the configuration as JSON, without UnknownFields. It makes no copy, because a
// configuration can have megabytes.
func (c Configuration) encode(w io.Writer) {
	if c.Ingress == nil {
		c.Ingress = []IngressRule{}
	}
	_ = json.NewEncoder(withoutNewline{w}).Encode(c) // strings, integers and booleans always marshal
}

// withoutNewline removes the newline that ends a JSON value. The value contains no other one.
type withoutNewline struct{ io.Writer }

func (w withoutNewline) Write(p []byte) (int, error) {
	_, err := w.Writer.Write(bytes.TrimSuffix(p, []byte("\n")))
	return len(p), err
}

// countingWriter counts the bytes.
type countingWriter int

func (n *countingWriter) Write(p []byte) (int, error) {
	*n += countingWriter(len(p))
	return len(p), nil
}
