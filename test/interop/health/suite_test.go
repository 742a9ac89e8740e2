// Package health tests how deployment tools assess the health of the objects that the
// controller serves. Argo CD uses its health scripts. Flux and Helm use kstatus, and Flux
// also the expressions in the guide. The tests assess every version of every object on a
// real API server, and run kubectl, which is linked into the test binary.
//
// The package is a separate module, which keeps these tools' dependencies out of the
// product's go.mod.
package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const samples = "../../../config/samples"

// timeout is the timeout for changes that take a second or two on an idle machine.
const timeout = 20 * time.Second

// driftInterval is the shortest interval in which the controller can check for
// external changes.
const driftInterval = 10 * time.Second

// controllerBinary is the path to the controller, which is built once for all tests.
var controllerBinary string

func TestMain(m *testing.M) {
	if os.Getenv(kubectlVariable) != "" {
		runKubectl() // does not return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "health-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the directory is temporary
	controllerBinary = filepath.Join(dir, "tunnel-gateway")
	if err := controllerproc.Build(context.Background(), controllerBinary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Provide the control plane now, so that a download or build does not count as part
	// of a test.
	if _, err := binaries.ControlPlane(context.Background(), os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// environment is a control plane with a simulated Cloudflare, the deployment tools'
// health checks, and the history of the objects that they assess.
type environment struct {
	t          *testing.T
	g          *WithT
	kube       client.WithWatch
	kubeconfig string
	edge       *simulator.Server
	apiURL     string
	history    *history
	checks     map[string]healthCheck
	controller *controllerproc.Process // nil while it is stopped
}

// newEnvironment starts an environment without a controller. Tests mostly wait, so
// they run in parallel.
func newEnvironment(t *testing.T) *environment {
	t.Helper()
	t.Parallel()
	e := &environment{t: t, g: NewWithT(t)}
	e.g.SetDefaultEventuallyTimeout(timeout)
	e.g.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	controlPlane, err := cluster.Start(t.Context(), cluster.Options{})
	e.g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := controlPlane.Stop(); err != nil {
			t.Error(err)
		}
	})
	e.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	e.g.Expect(controlPlane.Kubeconfig(e.kubeconfig)).To(Succeed())
	config := *controlPlane.Config
	config.QPS, config.Burst = 1000, 1000
	e.kube, err = client.NewWithWatch(&config, client.Options{Scheme: manifest.Scheme()})
	e.g.Expect(err).NotTo(HaveOccurred())
	e.g.Expect(e.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}})).To(Succeed())
	e.startEdge()
	e.checks = newHealthChecks(t)
	e.history = e.recordHistory()
	t.Cleanup(e.stopController)
	return e
}

func (e *environment) startEdge() {
	e.edge = simulator.New(simulator.Options{})
	server := httptest.NewServer(e.edge.API())
	e.apiURL = server.URL + "/client/v4"
	e.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		e.edge.Close()
	})
}

// startController starts the controller.
func (e *environment) startController() {
	e.t.Helper()
	output, err := os.OpenFile(filepath.Join(e.t.ArtifactDir(), "controller.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	e.g.Expect(err).NotTo(HaveOccurred())
	defer output.Close() //nolint:errcheck // only the controller writes to it
	e.controller, err = controllerproc.Start(controllerproc.Options{
		Binary: controllerBinary, Kubeconfig: e.kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "health", Cloudflare: e.apiURL,
		Flags: []string{"--drift-interval=" + driftInterval.String()}, Output: output,
	})
	e.g.Expect(err).NotTo(HaveOccurred())
}

// stopController stops the controller like a rollout, if it is running.
func (e *environment) stopController() {
	e.t.Helper()
	if e.controller == nil {
		return
	}
	e.g.Expect(e.controller.Stop()).To(Succeed())
	e.controller = nil
}

// killController kills the controller.
func (e *environment) killController() {
	e.controller.Kill()
	e.controller = nil
}

// create creates the objects in the files in their order.
func (e *environment) create(files ...string) {
	e.t.Helper()
	for _, object := range e.readSamples(files...) {
		e.createObject(object)
	}
}

func (e *environment) createObject(object client.Object) {
	e.t.Helper()
	e.g.Expect(e.kube.Create(context.Background(), object)).To(Succeed())
}

// readSamples returns the objects in the files without changes. The paths are
// relative to config/samples.
func (e *environment) readSamples(files ...string) []*unstructured.Unstructured {
	e.t.Helper()
	var objects []*unstructured.Unstructured
	for _, name := range files {
		file, err := os.Open(filepath.Join(samples, name))
		e.g.Expect(err).NotTo(HaveOccurred())
		defer file.Close() //nolint:errcheck // the file is only read
		decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				e.t.Fatalf("%s: %v", name, err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// change reads the object, mutates it and writes it.
func change[T client.Object](e *environment, object T, mutate func(T)) {
	e.t.Helper()
	e.g.Eventually(func() error {
		if err := e.kube.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		mutate(object)
		return e.kube.Update(context.Background(), object)
	}).Should(Succeed())
}
