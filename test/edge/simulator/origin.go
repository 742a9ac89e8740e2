package simulator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// dialFunc opens a connection to an origin.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialer opens connections to origins.
type dialer struct {
	origin dialFunc
	// connector connects to a loopback address in a connector's pod. If it is nil, origin
	// connects to loopback addresses, too.
	connector func(ctx context.Context, connector, network, address string) (net.Conn, error)
}

// seconds is a duration in a configuration. It must be an integer; otherwise the
// configuration is invalid.
type seconds int64

func (s seconds) duration() time.Duration { return time.Duration(s) * time.Second }

// originRequest contains the settings for connecting to an origin. It omits the fields
// that concern only the dialer or the transfer encoding.
type originRequest struct {
	ConnectTimeout       seconds    `json:"connectTimeout"`
	TLSTimeout           seconds    `json:"tlsTimeout"`
	TCPKeepAlive         seconds    `json:"tcpKeepAlive"`
	KeepAliveTimeout     seconds    `json:"keepAliveTimeout"`
	KeepAliveConnections int        `json:"keepAliveConnections"`
	MatchSNIToHost       bool       `json:"matchSNItoHost"`
	NoTLSVerify          bool       `json:"noTLSVerify"`
	HTTP2Origin          bool       `json:"http2Origin"`
	HTTPHostHeader       string     `json:"httpHostHeader"`
	OriginServerName     string     `json:"originServerName"`
	CAPool               string     `json:"caPool"`
	Access               accessRule `json:"access"`
}

type accessRule struct {
	Required bool     `json:"required"`
	TeamName string   `json:"teamName"`
	AUDTag   []string `json:"audTag"`
}

var connectorDefaults = originRequest{
	ConnectTimeout:       30,
	TLSTimeout:           10,
	TCPKeepAlive:         30,
	KeepAliveTimeout:     90,
	KeepAliveConnections: 100,
}

// override returns a rule's settings: the global settings, with each field replaced that
// the rule sets. A rule does not inherit access: the connector enforces access only where
// a rule sets it.
func (o originRequest) override(ruleSettings json.RawMessage) (originRequest, error) {
	o.Access = accessRule{}
	if ruleSettings == nil {
		return o, nil
	}
	if err := json.Unmarshal(ruleSettings, &o); err != nil {
		return originRequest{}, fmt.Errorf("originRequest: %w", err)
	}
	if o.Access.Required && o.Access.TeamName == "" && len(o.Access.AUDTag) > 0 {
		return originRequest{}, errors.New("access has an audTag but no teamName")
	}
	return o, nil
}

// transport returns a new transport for an origin. It fails if the CA pool cannot
// be read.
func (o originRequest) transport(dial dialFunc) (*http.Transport, error) {
	roots, err := o.certificateAuthorities()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext:         o.withConnectTimeout(dial),
		TLSHandshakeTimeout: o.TLSTimeout.duration(),
		IdleConnTimeout:     o.KeepAliveTimeout.duration(),
		MaxIdleConns:        o.KeepAliveConnections,
		MaxIdleConnsPerHost: o.KeepAliveConnections,
		ForceAttemptHTTP2:   o.HTTP2Origin && !o.MatchSNIToHost,
		DisableCompression:  true, // forward bodies unchanged
		TLSClientConfig: &tls.Config{
			RootCAs:            roots,
			ServerName:         o.OriginServerName,
			InsecureSkipVerify: o.NoTLSVerify, //nolint:gosec // the configuration sets it
			MinVersion:         tls.VersionTLS12,
		},
	}
	if o.MatchSNIToHost {
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := transport.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			config := transport.TLSClientConfig.Clone()
			config.ServerName, _ = ctx.Value(hostKey{}).(string)
			return tls.Client(conn, config), nil
		}
	}
	return transport, nil
}

// hostKey is the context key for a request's Host header.
type hostKey struct{}

// withConnectTimeout applies the connect timeout to dial. As in [net.Dialer], zero
// means no timeout.
func (o originRequest) withConnectTimeout(dial dialFunc) dialFunc {
	if o.ConnectTimeout == 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout.duration())
		defer cancel()
		return dial(ctx, network, address)
	}
}

// certificateAuthorities returns the certificate authorities of the system and the CA
// pool. Nil means only the system's.
func (o originRequest) certificateAuthorities() (*x509.CertPool, error) {
	if o.CAPool == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(o.CAPool)
	if err != nil {
		return nil, fmt.Errorf("read caPool: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caPool %s contains no certificate", o.CAPool)
	}
	return pool, nil
}
