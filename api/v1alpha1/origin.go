package v1alpha1

import (
	"fmt"
	"time"
)

// OriginRequest says how a connector talks to a backend. The fields and their
// defaults are those of cloudflared's originRequest; what is unset is left to
// cloudflared, or to the tunnel's own where a listener's is unset.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.matchSNItoHost) && self.matchSNItoHost && has(self.http2Origin) && self.http2Origin)",message="originRequest has both matchSNItoHost and http2Origin on: cloudflared talks no HTTP/2 to a backend when it matches the SNI, so set one of them to false"
type OriginRequest struct {
	// ConnectTimeout is the time within which a TCP connection to the backend must
	// be there, as in 30s. Default: 30s.
	//
	// +optional
	ConnectTimeout *Duration `json:"connectTimeout,omitempty"`

	// TLSTimeout is the time within which a TLS handshake with the backend must be
	// done. Default: 10s.
	//
	// +optional
	TLSTimeout *Duration `json:"tlsTimeout,omitempty"`

	// TCPKeepAlive is the time between two keep-alive packets on a connection to
	// the backend. Default: 30s.
	//
	// +optional
	TCPKeepAlive *Duration `json:"tcpKeepAlive,omitempty"`

	// KeepAliveTimeout is the time after which an idle connection to the backend
	// is closed. Default: 1m30s.
	//
	// +optional
	KeepAliveTimeout *Duration `json:"keepAliveTimeout,omitempty"`

	// KeepAliveConnections is the number of idle connections to backends that a
	// connector keeps open. Default: 100.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	KeepAliveConnections *int32 `json:"keepAliveConnections,omitempty"`

	// NoHappyEyeballs switches off that a connector tries IPv4 and IPv6 at the
	// same time. Default: false.
	//
	// +optional
	NoHappyEyeballs *bool `json:"noHappyEyeballs,omitempty"`

	// MatchSNIToHost sends the request's host as the server name of the TLS
	// handshake with the backend. It switches http2Origin off. Default: false.
	//
	// +optional
	MatchSNIToHost *bool `json:"matchSNItoHost,omitempty"`

	// NoTLSVerify accepts any certificate of the backend. Default: false.
	//
	// +optional
	NoTLSVerify *bool `json:"noTLSVerify,omitempty"`

	// DisableChunkedEncoding sends no chunked requests to the backend, for WSGI
	// servers. Default: false.
	//
	// +optional
	DisableChunkedEncoding *bool `json:"disableChunkedEncoding,omitempty"`

	// HTTP2Origin talks HTTP/2 to a backend with TLS. The rules of GRPCRoutes
	// have it whatever stands here, because gRPC needs it. Default: false.
	//
	// +optional
	HTTP2Origin *bool `json:"http2Origin,omitempty"`

	// HTTPHostHeader is the Host header that the backend gets. Default, also when
	// it is the empty string: the request's own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z._:\\\\[\\\\]-]*$')",message="must be a host, with a port where it needs one, as in internal.example.com:8443"
	HTTPHostHeader *string `json:"httpHostHeader,omitempty"`

	// OriginServerName is the name that the backend's certificate must be for, and
	// that is sent as the server name. Default, also when it is the empty string:
	// the backend's own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?([.][0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?)*)?$')",message="must be a host name without a port, as in internal.example.com"
	OriginServerName *string `json:"originServerName,omitempty"`

	// CAPool is the absolute path, in the connector's container, of the file with
	// the certificate authorities that backends are verified with. Default, also
	// when it is the empty string: the system's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self == '' || self.startsWith('/')",message="must be an absolute path in the connector's container, as in /etc/backend-ca/ca.crt"
	CAPool *string `json:"caPool,omitempty"`

	// ProxyType is the kind of proxy that a connector is for TCP: socks for SOCKS5,
	// the empty string for none. Default: the empty string.
	//
	// +optional
	ProxyType *ProxyType `json:"proxyType,omitempty"`
}

// ProxyType is a kind of proxy.
//
// +kubebuilder:validation:Enum="";socks
type ProxyType string

const (
	// ProxyTypeNone is no proxy.
	ProxyTypeNone ProxyType = ""
	// ProxyTypeSOCKS is a SOCKS5 proxy.
	ProxyTypeSOCKS ProxyType = "socks"
)

// Duration is a positive time in whole seconds, written in hours, minutes and
// seconds, as in 30s or 1m30s. It is text, not a number of nanoseconds, so that
// an object that got past the validation can still be read; and it has whole
// seconds, because cloudflared rejects a configuration with anything else.
//
// +kubebuilder:validation:MaxLength=18
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}[hms]){1,3}$') && duration(self) > duration('0s')",message="must be a positive time in whole seconds, written in hours, minutes and seconds, as in 30s or 1m30s"
type Duration string

// Seconds returns the time in whole seconds. An error means that the text is no
// such time, which the validation of the CustomResourceDefinition refuses.
func (d Duration) Seconds() (int64, error) {
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("read a duration: %w", err)
	}
	if parsed <= 0 || parsed%time.Second != 0 {
		return 0, fmt.Errorf("read a duration: %q is not a positive number of whole seconds", string(d))
	}
	return int64(parsed / time.Second), nil
}
