package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/images"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
)

// serviceCIDR is the range for ClusterIPs. On Linux, its addresses belong to the machine,
// so that the backends can listen on them, and Envoy can connect to them.
const serviceCIDR = "127.96.0.0/16"

// findEnvoy returns the path to Envoy. The error says what the data plane Envoy lacks on
// this machine.
func findEnvoy(ctx context.Context) (path string, err error) {
	listener, err := net.Listen("tcp", "127.96.0.1:0")
	if err != nil {
		return "", fmt.Errorf("addresses in %s, which belong to every Linux machine: %w", serviceCIDR, err)
	}
	_ = listener.Close() // it has accepted nothing
	return binaries.Envoy(ctx, os.Stderr)
}

// nodeImages returns the programs that replace the images in the connector pods.
// connectors is the edge address for connectors, and xds the controller's address.
func (d *demo) nodeImages(connectors, xds string) (map[string]node.Image, error) {
	directory, err := filepath.Abs(d.images)
	if err != nil {
		return nil, err
	}
	programs := map[string]node.Image{images.Connector: images.StandIn(filepath.Join(directory, "connector"), "http://"+connectors)}
	if d.envoy == "" {
		return programs, nil
	}
	authorities := filepath.Join(d.dir, "ca.pem") // for backends with TLS, which the demo has not
	if err := os.WriteFile(authorities, d.control.Config.CAData, 0o600); err != nil {
		return nil, err
	}
	programs[images.Envoy] = images.Sidecar{
		Program: filepath.Join(directory, "envoy"), Envoy: d.envoy, XDS: xds, Authorities: authorities,
	}.Image()
	return programs, nil
}
