package ui

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// demo is what `make demo` runs, after its checks.
type demo struct {
	kubeconfig string
	kube       client.Client
}

// startDemo starts the demo and waits until its samples are served.
func startDemo(t *testing.T) *demo {
	t.Helper()
	images := filepath.Join(programs, "images") + string(filepath.Separator)
	build := exec.CommandContext(t.Context(), "go", "build", "-C", root, "-trimpath", "-buildvcs=false", "-o", images, "./test/edge/connector", "./test/edge/envoy")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, output)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"DEMO_PORT=" + port}, "demo", "-controller", filepath.Join(programs, "tunnel-gateway"), "-images", images)
	d := &demo{kubeconfig: p.find(`export KUBECONFIG=(\S+)`, 3*time.Minute)}
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if d.kube, err = client.New(config, client.Options{Scheme: manifest.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return d
}

// environment selects the demo's cluster.
func (d *demo) environment() []string { return []string{"KUBECONFIG=" + d.kubeconfig} }

// planned is the part that the tests compare from `plan -o json`.
type planned struct {
	Gateways []struct {
		Namespace, Name, DataPlane string
		Listeners                  []struct {
			Owner                  struct{ Kind, Namespace, Name string }
			Name, Hostname, Reason string
			Port                   int
		}
		Access []struct{ Hostname, State string }
		Limits []struct {
			Name, Tenant string
			Used, Limit  int
		}
	}
}

// plan runs `plan -o json` for the demo's cluster.
func (d *demo) plan(t *testing.T, arguments ...string) (result planned) {
	t.Helper()
	out := output(t, d.environment(), "tunnel-gateway", append([]string{"plan", "-o", "json"}, arguments...)...)
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// freePort returns a port on which no program listens.
func freePort() (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), listener.Close()
}
