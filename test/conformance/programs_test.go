package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// programsVariable names the environment variable with the directory for the programs,
// which a run's processes share.
const programsVariable = "CONFORMANCE_PROGRAMS"

// xdsAddress is where the controller serves Envoys, in the run's network namespace.
const xdsAddress = "127.0.0.1:18000"

// programs are the programs that run on the node, by binary name.
var programs = map[string]struct{ module, pkg string }{
	"connector":  {root, root + "/test/edge/connector"},
	"envoy":      {root, root + "/test/edge/envoy"},
	"echo-basic": {root + "/test/conformance", "sigs.k8s.io/gateway-api/conformance/echo-basic"},
}

func programDirectory() string { return os.Getenv(programsVariable) }

func programPath(name string) string { return filepath.Join(programDirectory(), name) }

// preparePrograms builds and downloads all programs, which may be impossible in the
// network namespace.
func preparePrograms(ctx context.Context) error {
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		return err
	}
	if _, err := binaries.Envoy(ctx, os.Stderr); err != nil {
		return err
	}
	for name, program := range programs {
		if err := build(ctx, programPath(name), program.module, program.pkg); err != nil {
			return err
		}
	}
	return controllerproc.Build(ctx, programPath("tunnel-gateway"))
}

// build builds a package with the dependencies of a module.
func build(ctx context.Context, out, module, pkg string) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("find module %s: %w", module, err)
	}
	command := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(dir)), "-trimpath", "-o", out, pkg) // #nosec G204 -- constants
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, output)
	}
	return nil
}

// images returns the programs that replace the images in the suite's Deployments,
// cloudflared and Envoy. The file authorities contains certificate authorities.
func images(envoy, edge, authorities string) map[string]node.Image {
	return map[string]node.Image{
		"registry.k8s.io/gateway-api/echo-basic": {
			// As a TCP server, the program reads its ports from other variables.
			Command: []string{"/bin/sh", "-c", `TCP_PORT=$HTTP_PORT TLS_PORT=$HTTPS_PORT exec "$0" "$@"`, programPath("echo-basic")},
			Ports:   map[int32]string{3000: "HTTP_PORT", 3001: "H2C_PORT", 8443: "HTTPS_PORT"},
		},
		// A DNS server that only the UDPRoute tests use.
		"registry.k8s.io/coredns/coredns": {Command: []string{"/bin/sh", "-c", "exec sleep infinity"}},
		"docker.io/cloudflare/cloudflared": {
			Command:     []string{programPath("connector")},
			Program:     "cloudflared",
			Environment: []string{"TUNNEL_EDGE=" + edge},
			Ports:       map[int32]string{2000: "METRICS_PORT"},
		},
		"docker.io/envoyproxy/envoy": {
			Command:     []string{programPath("envoy")},
			Environment: []string{"ENVOY=" + envoy, "XDS_ADDRESS=" + xdsAddress, "CA_FILE=" + authorities},
			Ports:       map[int32]string{10080: "OPEN_PORT", 10081: "PROTECTED_PORT", 2001: "READY_PORT"},
		},
	}
}
