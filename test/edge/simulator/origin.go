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

// seconds is how the document writes durations: integers, or the document is
// rejected.
type seconds int64

func (s seconds) duration() time.Duration { return time.Duration(s) * time.Second }

// originRequest is how the connector talks to an origin. The fields of the
// document that concern only the dialer or the transfer encoding are not here.
type originRequest struct {
	ConnectTimeout       seconds `json:"connectTimeout"`
	TLSTimeout           seconds `json:"tlsTimeout"`
	TCPKeepAlive         seconds `json:"tcpKeepAlive"`
	KeepAliveTimeout     seconds `json:"keepAliveTimeout"`
	KeepAliveConnections int     `json:"keepAliveConnections"`
	MatchSNIToHost       bool    `json:"matchSNItoHost"`
	NoTLSVerify          bool    `json:"noTLSVerify"`
	HTTP2Origin          bool    `json:"http2Origin"`
	HTTPHostHeader       string  `json:"httpHostHeader"`
	OriginServerName     string  `json:"originServerName"`
	CAPool               string  `json:"caPool"`
	Access               access  `json:"access"`
}

type access struct {
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

// override returns the settings of a rule: the document's own, replaced field
// by field by those of the rule. Access is not inherited: the connector
// enforces only a rule's own block.
func (o originRequest) override(own json.RawMessage) (originRequest, error) {
	o.Access = access{}
	if own == nil {
		return o, nil
	}
	if err := json.Unmarshal(own, &o); err != nil {
		return originRequest{}, fmt.Errorf("originRequest: %w", err)
	}
	if o.Access.Required && o.Access.TeamName == "" && len(o.Access.AUDTag) > 0 {
		return originRequest{}, errors.New("access has an audTag and no teamName")
	}
	return o, nil
}

// transport returns a round tripper with connections of its own. It fails when
// the CA pool cannot be read.
func (o originRequest) transport(dial dialFunc) (*http.Transport, error) {
	roots, err := o.roots()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext:         o.limit(dial),
		TLSHandshakeTimeout: o.TLSTimeout.duration(),
		IdleConnTimeout:     o.KeepAliveTimeout.duration(),
		MaxIdleConns:        o.KeepAliveConnections,
		MaxIdleConnsPerHost: o.KeepAliveConnections,
		ForceAttemptHTTP2:   o.HTTP2Origin && !o.MatchSNIToHost,
		DisableCompression:  true, // bodies pass as they are
		TLSClientConfig: &tls.Config{
			RootCAs:            roots,
			ServerName:         o.OriginServerName,
			InsecureSkipVerify: o.NoTLSVerify, //nolint:gosec // the document asks for it
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

// hostKey is the context key of the host that a request is sent with.
type hostKey struct{}

// limit applies the connect timeout to dial; zero is none, as in [net.Dialer].
func (o originRequest) limit(dial dialFunc) dialFunc {
	if o.ConnectTimeout == 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout.duration())
		defer cancel()
		return dial(ctx, network, address)
	}
}

// roots returns the system's authorities and those of the CA pool.
func (o originRequest) roots() (*x509.CertPool, error) {
	if o.CAPool == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(o.CAPool)
	if err != nil {
		return nil, fmt.Errorf("read caPool: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's authorities: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caPool %s holds no certificate", o.CAPool)
	}
	return pool, nil
}
