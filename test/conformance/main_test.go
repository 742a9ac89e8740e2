package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// TestMain runs the tests in a network namespace, so that Envoys can connect to Pods and
// Services. A run against an existing cluster needs the machine's network.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	flag.Parse()
	if *existing {
		os.Exit(m.Run())
	}
	os.Exit(runInNamespace(m))
}

func runInNamespace(m *testing.M) int {
	if programDirectory() == "" {
		dir, err := os.MkdirTemp("", "tunnel-gateway-conformance-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
		if err := os.Setenv(programsVariable, dir); err != nil {
			panic(err) // the name is valid
		}
	}
	return netns.Run(func() error { return preparePrograms(context.Background()) }, m.Run)
}
