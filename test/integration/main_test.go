package integration

import (
	"context"
	"os"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// TestMain runs the tests in a network namespace, in which Envoy can connect to the addresses of
// Pods and Services.
func TestMain(m *testing.M) { os.Exit(netns.Run(findPrograms, m.Run)) }

// findPrograms downloads or builds the programs that the tests run, which is not possible inside the
// namespace.
func findPrograms() error {
	ctx := context.Background()
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		return err
	}
	_, err := binaries.Envoy(ctx, os.Stderr)
	return err
}
