package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/images"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// place is where the scenario runs: at Cloudflare, or in the simulator.
type place struct {
	account
	visitors *visitors
	// connector replaces the cloudflared image.
	connector node.Image
	// simulator and zones are nil at Cloudflare.
	simulator *simulator.Server
	zones     *zones.Database
	// sharesPorts is true if the Envoys beside all connectors have the same ports, because
	// the real cloudflared connects to the ports in the tunnel's configuration.
	sharesPorts bool
	// node runs the connectors. The simulator connects to their pods.
	node  *node.Node
	stops []func() error
}

// patience is the time that a step waits for a condition.
func (p *place) patience() time.Duration {
	if p.simulator != nil {
		return time.Minute
	}
	return 5 * time.Minute
}

func (p *place) stop() {
	for i := len(p.stops) - 1; i >= 0; i-- {
		_ = p.stops[i]() // it no longer serves anything
	}
}

// newCloudflare returns Cloudflare, with the account in the environment. cloudflared is
// started with a script in the directory.
func newCloudflare(ctx context.Context, dir string) (*place, error) {
	p := &place{account: accountFromEnvironment(), sharesPorts: true}
	if err := p.check(); err != nil {
		return nil, err
	}
	program, err := images.FindCloudflared()
	if err != nil {
		return nil, err
	}
	if program == "" {
		return nil, errors.New("CLOUDFLARED is not set; download cloudflared from https://github.com/cloudflare/cloudflared/releases and set CLOUDFLARED to its path")
	}
	if err := checkPorts(); err != nil {
		return nil, err
	}
	if p.connector, err = images.Cloudflared(dir, program); err != nil {
		return nil, err
	}
	resolver, err := nameservers(ctx, p.zone)
	p.visitors = &visitors{resolver: resolver}
	return p, err
}

// checkPorts returns an error if another program uses a port to which cloudflared connects.
func checkPorts() error {
	for _, port := range []int{envoy.PortOpen, envoy.PortProtected} {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("listen on a port that Envoy needs: %w", err)
		}
		_ = listener.Close() // it has accepted nothing
	}
	return nil
}

func accountFromEnvironment() account {
	return account{
		api: os.Getenv("CLOUDFLARE_BASE_URL"), id: os.Getenv("CLOUDFLARE_ACCOUNT_ID"), token: os.Getenv("CLOUDFLARE_API_TOKEN"), zone: os.Getenv("CLOUDFLARE_ZONE"),
	}
}

// check returns an error if a variable is missing.
func (a account) check() error {
	for name, value := range map[string]string{
		"CLOUDFLARE_API_TOKEN": a.token, "CLOUDFLARE_ACCOUNT_ID": a.id, "CLOUDFLARE_ZONE": a.zone,
	} {
		if value == "" {
			return fmt.Errorf("%s is not set; set the API token, the account ID and the name of a zone in CLOUDFLARE_API_TOKEN, CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_ZONE, or use -simulator", name)
		}
	}
	return nil
}

// newSimulator starts the simulator. program is the path to the stand-in for cloudflared.
func newSimulator(program string, h hooks) (*place, error) {
	p := &place{sharesPorts: h.sharePorts, account: account{id: "0123456789abcdef0123456789abcdef", token: "simulated", zone: "example.com"}}
	p.zones = zones.New(zones.Options{})
	p.zones.Add(zones.Zone{Name: p.zone, Account: p.id, CertificatePacks: []zones.CertificatePack{
		{ID: "universal", Type: "universal", Hosts: []string{p.zone, "*." + p.zone}, Status: "active"},
	}})
	o := simulator.Options{AccountID: p.id, Token: p.token, Zones: p.zones}
	if !p.sharesPorts {
		o.DialConnector = p.dialConnector
	}
	p.simulator = simulator.New(o)
	p.stops = append(p.stops, func() error {
		p.simulator.Close()
		return nil
	})
	api, err := p.serve(p.simulator.API(), nil)
	if err != nil {
		return p, err
	}
	connectors, err := p.serve(p.simulator.Edge(), nil)
	if err != nil {
		return p, err
	}
	p.api, p.connector = "http://"+api+"/client/v4", images.StandIn(program, "http://"+connectors)
	handler := p.simulator.Visitors()
	if h.visitors != nil {
		handler = h.visitors(handler)
	}
	return p, p.serveVisitors(handler)
}

// serveVisitors serves visitors with and without TLS, as the edge does.
func (p *place) serveVisitors(handler http.Handler) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("*."+p.zone, nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	p.visitors = &visitors{roots: x509.NewCertPool(), addresses: map[string]string{}}
	p.visitors.roots.AppendCertsFromPEM(certificate)
	if p.visitors.addresses["80"], err = p.serve(handler, nil); err != nil {
		return err
	}
	p.visitors.addresses["443"], err = p.serve(handler, &tls.Config{
		Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	})
	return err
}

// serve serves the handler on a free port until the place stops, and returns its address.
func (p *place) serve(handler http.Handler, secure *tls.Config) (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, TLSConfig: secure, ReadHeaderTimeout: time.Minute}
	go func() {
		if secure == nil {
			_ = server.Serve(listener) // until it is closed
			return
		}
		_ = server.ServeTLS(listener, "", "")
	}()
	p.stops = append(p.stops, server.Close)
	return listener.Addr().String(), nil
}

// dialConnector connects to a loopback address in a connector's pod.
func (p *place) dialConnector(ctx context.Context, connector, _, address string) (net.Conn, error) {
	return p.node.DialLoopback(ctx, types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: connector}, address)
}

// images returns the programs that replace the images in connector pods. xds is the
// controller's address, and dir the directory for temporary files.
func (p *place) images(programs, dir, envoyPath, xds string, authorities []byte) (map[string]node.Image, error) {
	file := filepath.Join(dir, "ca.pem") // no backend has TLS
	if err := os.WriteFile(file, authorities, 0o600); err != nil {
		return nil, err
	}
	sidecar := images.Sidecar{Program: filepath.Join(programs, "envoy"), Envoy: envoyPath, XDS: xds, Authorities: file, FixedPorts: p.sharesPorts}
	return map[string]node.Image{images.Connector: p.connector, images.Envoy: sidecar.Image()}, nil
}
