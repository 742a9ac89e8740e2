package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	// edgeName is the name in the certificate that cloudflared requires for HTTP/2.
	edgeName = "h2.cftunnel.com"
	// probeName is the name with which cloudflared only checks at its start whether it can connect.
	probeName = "probe.cftunnel.com"
	// upgradeHeader selects the edge's streams that are not requests from visitors.
	upgradeHeader = "Cf-Cloudflared-Proxy-Connection-Upgrade"
	// configurationPoll is how often the edge looks for a new configuration.
	configurationPoll = time.Millisecond
)

// cloudflaredEdge is the Cloudflare edge for one real cloudflared: it speaks the protocol
// "http2", in which the connector is the server. The configuration comes from the
// simulator.
type cloudflaredEdge struct {
	simulator *simulator.Server
	tunnel    func() string // its ID, or empty
	// resolve replaces Service names in a configuration by addresses: the namespace has
	// no DNS.
	resolve   func(string) string
	listener  net.Listener
	authority string // path to the certificate

	mu         sync.Mutex
	connection http.RoundTripper // from the connector that registered last
}

// startCloudflaredEdge starts the edge. Its certificate is in the directory.
func startCloudflaredEdge(dir string) (*cloudflaredEdge, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(edgeName, nil, []string{probeName})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	e := &cloudflaredEdge{authority: filepath.Join(dir, "edge.pem")}
	if err := os.WriteFile(e.authority, certificate, 0o600); err != nil {
		return nil, err
	}
	e.listener, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	return e, err
}

// serve accepts connectors until the listener is closed.
func (e *cloudflaredEdge) serve() {
	for {
		connection, err := e.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close() //nolint:errcheck // it has no more data
			if err := e.connect(connection.(*tls.Conn)); err != nil {
				fmt.Fprintln(os.Stderr, "bench: cloudflared:", err)
			}
		}()
	}
}

// connect registers the connector, and sends it every configuration until the connection ends.
func (e *cloudflaredEdge) connect(connection *tls.Conn) error {
	if err := connection.Handshake(); err != nil {
		return err
	}
	if connection.ConnectionState().ServerName == probeName {
		return nil
	}
	client := newClient(connection)
	registered, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- control(client, sync.OnceFunc(func() { close(registered) })) }()
	select {
	case <-registered:
	case err := <-ended:
		return fmt.Errorf("register: %w", err)
	}
	e.mu.Lock()
	e.connection = client
	e.mu.Unlock()
	e.simulator.Connect(e.tunnel(), 1) // the API lists it
	return e.configure(client, ended)
}

// newClient returns an HTTP/2 client on the connection, which already uses TLS.
func newClient(connection net.Conn) http.RoundTripper {
	unused := make(chan net.Conn, 1)
	unused <- connection
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols, DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		select {
		case c := <-unused:
			return c, nil
		default:
			return nil, errors.New("cloudflared has disconnected")
		}
	}}
}

// control serves the control stream until it ends.
func control(client http.RoundTripper, registered func()) error {
	body, writer := io.Pipe()
	request, err := upgrade("control-stream", body)
	if err != nil {
		return err
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	serveRegistration(&stream{response.Body, writer}, registered)
	return nil
}

// stream is both directions of a stream.
type stream struct {
	io.ReadCloser
	writer *io.PipeWriter
}

func (s *stream) Write(p []byte) (int, error) { return s.writer.Write(p) }

func (s *stream) Close() error { return errors.Join(s.writer.Close(), s.ReadCloser.Close()) }

func upgrade(name string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+edgeName+"/", body)
	if err == nil {
		request.Header.Set(upgradeHeader, name)
	}
	return request, err
}

// configure sends every new configuration to the connector.
func (e *cloudflaredEdge) configure(client http.RoundTripper, ended <-chan error) error {
	sent := int64(0)
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(configurationPoll):
		}
		configuration, version := e.simulator.StoredConfiguration(e.tunnel())
		if version == sent {
			continue
		}
		update := map[string]any{"version": version, "config": json.RawMessage(e.resolve(string(configuration)))}
		if err := send(client, update); err != nil {
			return fmt.Errorf("update the configuration: %w", err)
		}
		sent = version
	}
}

// send sends a configuration, and returns an error if the connector rejects it.
func send(client http.RoundTripper, update map[string]any) error {
	body, err := json.Marshal(update)
	if err != nil {
		return err
	}
	request, err := upgrade("update-configuration", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var result struct {
		Err any `json:"err"`
	}
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
		return err
	}
	if result.Err != nil {
		return fmt.Errorf("refused: %v", result.Err)
	}
	return nil
}

// handler returns the data path: it sends visitors' requests through the connector.
func (e *cloudflaredEdge) handler() http.Handler {
	return &httputil.ReverseProxy{
		Transport: e,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", edgeName, r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
}

// RoundTrip sends the request through the connector.
func (e *cloudflaredEdge) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	connection := e.connection
	e.mu.Unlock()
	if connection == nil {
		return nil, errors.New("cloudflared is not connected")
	}
	return connection.RoundTrip(r)
}

// resolver returns a function that replaces Service names by their addresses.
func resolver(addresses map[string]string) func(string) string {
	var pairs []string
	for name, address := range addresses {
		pairs = append(pairs, "http://"+name+":", "http://"+address+":")
	}
	return strings.NewReplacer(pairs...).Replace
}
