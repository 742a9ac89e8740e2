package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
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
	images := map[string]node.Image{"docker.io/cloudflare/cloudflared": {
		Command: []string{filepath.Join(directory, "connector")}, Program: "cloudflared",
		Environment: []string{"TUNNEL_EDGE=http://" + connectors}, Ports: map[int32]string{2000: "METRICS_PORT"},
	}}
	if d.envoy == "" {
		return images, nil
	}
	authorities := filepath.Join(d.dir, "ca.pem") // for backends with TLS, which the demo has not
	if err := os.WriteFile(authorities, d.control.Config.CAData, 0o600); err != nil {
		return nil, err
	}
	images["docker.io/envoyproxy/envoy"] = node.Image{
		Command:     []string{filepath.Join(directory, "envoy")},
		Environment: []string{"ENVOY=" + d.envoy, "XDS_ADDRESS=" + xds, "CA_FILE=" + authorities},
		Ports:       map[int32]string{envoy.PortOpen: "OPEN_PORT", envoy.PortProtected: "PROTECTED_PORT", envoy.PortReady: "READY_PORT"},
	}
	return images, nil
}
