package ui

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// demo is what `make demo` runs, after its checks.
type demo struct {
	kubeconfig string
	config     *rest.Config
	kube       client.Client

	unchanged sync.Mutex // held by a test that changes the cluster, or does not work if it changes
}

// sharedDemo is the only demo, for all tests.
var sharedDemo struct {
	sync.Once
	demo *demo
	err  error
	stop func()
}

// theDemo returns the demo, which the first test that needs it starts.
func theDemo(t *testing.T) *demo {
	t.Helper()
	sharedDemo.Do(func() { sharedDemo.demo, sharedDemo.err = startDemo() })
	if sharedDemo.err != nil {
		t.Fatal(sharedDemo.err)
	}
	return sharedDemo.demo
}

func stopSharedDemo() {
	if sharedDemo.stop != nil {
		sharedDemo.stop()
	}
}

// startDemo starts the demo and waits until its samples are served.
func startDemo() (*demo, error) {
	images := filepath.Join(programs, "images") + string(filepath.Separator)
	if err := buildTo(context.Background(), images, "./test/edge/connector", "./test/edge/envoy"); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := startProgram([]string{"DEMO_PORT=" + port}, "demo", "-controller", filepath.Join(programs, "tunnel-gateway"), "-images", images)
	if err != nil {
		return nil, err
	}
	sharedDemo.stop = p.stop
	d := &demo{}
	if d.kubeconfig, err = p.await(`export KUBECONFIG=(\S+)`, 3*time.Minute); err != nil {
		return nil, err
	}
	if d.config, err = clientcmd.BuildConfigFromFlags("", d.kubeconfig); err != nil {
		return nil, err
	}
	d.kube, err = client.New(d.config, client.Options{Scheme: manifest.Scheme()})
	return d, err
}

// environment selects the demo's cluster.
func (d *demo) environment() []string { return []string{"KUBECONFIG=" + d.kubeconfig} }

// freePort returns a port on which no program listens.
func freePort() (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), listener.Close()
}
