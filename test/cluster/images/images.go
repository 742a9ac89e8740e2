// Package images describes the programs that replace the images in a connector pod: the
// stand-in for cloudflared or cloudflared itself, and the real Envoy behind
// test/edge/envoy.
package images

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
)

// The repositories of the images.
const (
	Connector = "docker.io/cloudflare/cloudflared"
	Envoy     = "docker.io/envoyproxy/envoy"
)

// StandIn returns the program that replaces cloudflared and connects to the simulator's
// edge. program is the path of the built test/edge/connector, and edge the edge's URL.
func StandIn(program, edge string) node.Image {
	return node.Image{
		Command: []string{program}, Program: "cloudflared",
		Environment: []string{"TUNNEL_EDGE=" + edge}, Ports: map[int32]string{2000: "METRICS_PORT"},
	}
}

// wrapper replaces the metrics port in the arguments, and executes cloudflared.
const wrapper = `#!/bin/sh
for argument; do
	shift
	case $argument in *:2000) argument=${argument%:2000}:$METRICS_PORT ;; esac
	set -- "$@" "$argument"
done
exec "$CLOUDFLARED" "$@"
`

// Cloudflared returns the real cloudflared, with additional environment variables.
// program is its path. The function writes a script to the directory.
func Cloudflared(dir, program string, environment ...string) (node.Image, error) {
	script := filepath.Join(dir, "cloudflared")
	if err := os.WriteFile(script, []byte(wrapper), 0o700); err != nil { // #nosec G306 -- a program
		return node.Image{}, fmt.Errorf("write the script that starts cloudflared: %w", err)
	}
	return node.Image{
		Command: []string{script}, Program: "cloudflared",
		Environment: append([]string{"CLOUDFLARED=" + program}, environment...), Ports: map[int32]string{2000: "METRICS_PORT"},
	}, nil
}

// FindCloudflared returns the absolute path of the program that the environment variable
// CLOUDFLARED names, or an empty path if it is not set.
func FindCloudflared() (string, error) {
	name := os.Getenv("CLOUDFLARED")
	if name == "" {
		return "", nil
	}
	path, err := filepath.EvalSymlinks(name)
	if err == nil {
		path, err = exec.LookPath(path)
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the program in CLOUDFLARED: %w", err)
	}
	return path, nil
}

// Sidecar configures Envoys.
type Sidecar struct {
	// Program is the path of the built test/edge/envoy, and Envoy the path of Envoy.
	Program, Envoy string
	// XDS is the controller's address, as host:port.
	XDS string
	// Authorities is the path of the file with the certificate authorities for backends.
	Authorities string
	// FixedPorts makes all Envoys share the ports in the tunnel's configuration, to which
	// the real cloudflared connects. Otherwise, each Envoy has its own ports.
	FixedPorts bool
	// Outbound, if set, runs each Envoy in a network namespace of its own, with the
	// controller's listeners. These are the ports to which it connects: the controller's and
	// the backends'.
	Outbound []int
}

// Image returns the program that replaces the Envoy image.
func (s Sidecar) Image() node.Image {
	image := node.Image{
		Command:     []string{s.Program},
		Environment: []string{"ENVOY=" + s.Envoy, "XDS_ADDRESS=" + s.XDS, "CA_FILE=" + s.Authorities},
		Ports:       map[int32]string{envoy.PortOpen: "OPEN_PORT", envoy.PortProtected: "PROTECTED_PORT", envoy.PortReady: "READY_PORT"},
	}
	if s.FixedPorts {
		image.Environment = append(image.Environment, fmt.Sprintf("OPEN_PORT=%d", envoy.PortOpen), fmt.Sprintf("PROTECTED_PORT=%d", envoy.PortProtected))
	}
	if len(s.Outbound) > 0 {
		ports := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Outbound), " ", ","), "[]")
		image.Environment = append(image.Environment, "OUTBOUND_PORTS="+ports)
	}
	return image
}
