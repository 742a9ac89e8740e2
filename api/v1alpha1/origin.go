package v1alpha1

import (
	"fmt"
	"time"
)

// OriginRequest configures how a connector connects to a backend. The fields and their
// defaults are the same as in cloudflared's originRequest. A listener inherits the
// tunnel's value for each field that it does not set.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.matchSNItoHost) && self.matchSNItoHost && has(self.http2Origin) && self.http2Origin)",message="originRequest has both matchSNItoHost and http2Origin: cloudflared cannot use HTTP/2 to the backend with matchSNItoHost, so set one of them to false"
type OriginRequest struct {
	// ConnectTimeout is the timeout for establishing a TCP connection to the
	// backend, for example 30s. Default: 30s.
	//
	// +optional
	ConnectTimeout *Duration `json:"connectTimeout,omitempty"`

	// TLSTimeout is the timeout for a TLS handshake with the backend. Default: 10s.
	//
	// +optional
	TLSTimeout *Duration `json:"tlsTimeout,omitempty"`

	// TCPKeepAlive is the interval between keep-alive packets on a connection to
	// the backend. Default: 30s.
	//
	// +optional
	TCPKeepAlive *Duration `json:"tcpKeepAlive,omitempty"`

	// KeepAliveTimeout is the time after which a connector closes an idle
	// connection to the backend. Default: 1m30s, and 4s with dataPlane Envoy.
	//
	// +optional
	KeepAliveTimeout *Duration `json:"keepAliveTimeout,omitempty"`

	// KeepAliveConnections is the maximum number of idle connections to backends
	// that a connector keeps open. Default: 100.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	KeepAliveConnections *int32 `json:"keepAliveConnections,omitempty"`

	// NoHappyEyeballs disables the "happy eyeballs" algorithm, with which a
	// connector tries IPv4 and IPv6 in parallel. Default: false.
	//
	// +optional
	NoHappyEyeballs *bool `json:"noHappyEyeballs,omitempty"`

	// MatchSNIToHost makes connectors send the request's host as the server name (SNI)
	// in the TLS handshake with the backend. It disables http2Origin. Default: false.
	//
	// +optional
	MatchSNIToHost *bool `json:"matchSNItoHost,omitempty"`

	// NoTLSVerify disables certificate verification for the backend. Default: false.
	//
	// +optional
	NoTLSVerify *bool `json:"noTLSVerify,omitempty"`

	// DisableChunkedEncoding disables chunked transfer encoding for requests to the
	// backend. Some WSGI servers require it. Default: false.
	//
	// +optional
	DisableChunkedEncoding *bool `json:"disableChunkedEncoding,omitempty"`

	// HTTP2Origin makes connectors use HTTP/2 to a backend with TLS. Rules from
	// GRPCRoutes always use HTTP/2, because gRPC requires it. Default: false.
	//
	// +optional
	HTTP2Origin *bool `json:"http2Origin,omitempty"`

	// HTTPHostHeader is the Host header that the backend receives. Default: the empty
	// string, which keeps the request's Host header.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z._:\\\\[\\\\]-]*$')",message="must be a host with an optional port, such as internal.example.com:8443"
	HTTPHostHeader *string `json:"httpHostHeader,omitempty"`

	// OriginServerName is the name for which the backend certificate must be valid.
	// Connectors also send it as the server name (SNI). Default: the empty string,
	// which means the backend hostname.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?([.][0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?)*)?$')",message="must be a hostname without a port, such as internal.example.com"
	OriginServerName *string `json:"originServerName,omitempty"`

	// CAPool is the absolute path, in the connector's container, to a file with the
	// certificate authorities that verify backends. Only a GatewayClass's
	// TunnelConfiguration may set it, because connectors read the whole file. Default:
	// the empty string, which means the system certificate authorities in the
	// container.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self == '' || self.startsWith('/')",message="must be an absolute path in the connector's container, such as /etc/backend-ca/ca.crt"
	CAPool *string `json:"caPool,omitempty"`

	// ProxyType is the kind of proxy that a connector runs for TCP: socks for SOCKS5,
	// or the empty string for a regular proxy. Default: the empty string.
	//
	// +optional
	ProxyType *ProxyType `json:"proxyType,omitempty"`
}

// ProxyType is the kind of proxy that a connector runs for TCP.
//
// +kubebuilder:validation:Enum="";socks
type ProxyType string

const (
	// ProxyTypeNone is cloudflared's regular proxy.
	ProxyTypeNone ProxyType = ""
	// ProxyTypeSOCKS is a SOCKS5 proxy.
	ProxyTypeSOCKS ProxyType = "socks"
)

// Duration is a positive number of whole seconds, written in hours, minutes and
// seconds, for example 30s or 1m30s. cloudflared rejects a configuration with
// fractions of a second.
//
// It is a string, so that the controller can decode every stored object, even an object
// from before the validation changed.
//
// +kubebuilder:validation:MaxLength=18
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}[hms]){1,3}$') && duration(self) > duration('0s')",message="must be a positive number of whole seconds, written in hours, minutes and seconds, such as 30s or 1m30s"
type Duration string

// Seconds returns the duration in seconds. It returns an error if the duration is not
// valid, which the CustomResourceDefinition's validation prevents.
func (d Duration) Seconds() (int64, error) {
	seconds, err := Delay(d).Seconds()
	if err == nil && seconds == 0 {
		err = fmt.Errorf("parse duration: %q is not positive", string(d))
	}
	return seconds, err
}

// Delay is a number of whole seconds like a [Duration], and can be 0s.
//
// +kubebuilder:validation:MaxLength=18
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}[hms]){1,3}$')",message="must be a number of whole seconds, written in hours, minutes and seconds, such as 0s, 15s or 1m30s"
type Delay string

// Seconds returns the delay in seconds. It returns an error if the delay is not valid,
// which the CustomResourceDefinition's validation prevents.
func (d Delay) Seconds() (int64, error) {
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("parse duration: %w", err)
	}
	if parsed < 0 || parsed%time.Second != 0 {
		return 0, fmt.Errorf("parse duration: %q is not a number of whole seconds", string(d))
	}
	return int64(parsed / time.Second), nil
}
