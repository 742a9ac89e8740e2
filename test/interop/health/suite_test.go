// Package health proves how the tools that deploy to a cluster judge the
// objects that tunnel-gateway serves: Argo CD by its own health scripts, Flux
// and Helm by kstatus, Flux by the expressions of the guide too, and kubectl,
// which is linked into the test. They judge every version of every object that
// a real API server ever held. It is a module of its own so that what these
// tools need stays out of ours.
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
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	samples = "../../../config/samples"
	guide   = "../../../docs/guides/deployment-tools.md"
)

// soon is for what has to happen within a second or two, on a machine that does
// much else at the same time.
const soon = 20 * time.Second

// driftInterval is how often the controller looks for foreign edits: the least
// that it takes.
const driftInterval = 10 * time.Second

// controllerBinary is built once for all tests.
var controllerBinary string

func TestMain(m *testing.M) {
	if os.Getenv(kubectlVariable) != "" {
		runKubectl() // does not return
	}
	os.Exit(testAll(m))
}

func testAll(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "health-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of temporary files
	controllerBinary = filepath.Join(dir, "tunnel-gateway")
	if err := controllerproc.Build(context.Background(), controllerBinary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := cluster.Binaries(context.Background(), os.Stderr); err != nil { // what is built now counts for no test's time
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// world is a control plane and a Cloudflare of its own, the judges, and what
// they have to judge.
type world struct {
	t          *testing.T
	g          *WithT
	kube       client.WithWatch
	kubeconfig string
	edge       *simulator.Server
	api        string
	history    *history
	judges     map[string]judge
	controller *controllerproc.Process // that runs now, or nil
}

// newWorld makes one in which no controller runs yet. Tests mostly wait, so they
// run beside each other.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, g: NewWithT(t)}
	w.g.SetDefaultEventuallyTimeout(soon)
	w.g.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	control, err := cluster.Start(t.Context(), cluster.Options{})
	w.g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	})
	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	w.g.Expect(control.Kubeconfig(w.kubeconfig)).To(Succeed())
	config := *control.Config
	config.QPS, config.Burst = 1000, 1000
	w.kube, err = client.NewWithWatch(&config, client.Options{Scheme: manifest.Scheme()})
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(w.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}})).To(Succeed())
	w.startEdge()
	w.judges = newJudges(t)
	w.history = w.watch()
	t.Cleanup(w.stop)
	return w
}

func (w *world) startEdge() {
	w.edge = simulator.New(simulator.Options{})
	server := httptest.NewServer(w.edge.API())
	w.api = server.URL + "/client/v4"
	w.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		w.edge.Close()
	})
}

// start runs the controller.
func (w *world) start() {
	w.t.Helper()
	output, err := os.OpenFile(filepath.Join(w.t.ArtifactDir(), "controller.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	w.g.Expect(err).NotTo(HaveOccurred())
	defer output.Close() //nolint:errcheck // the controller writes to it
	w.controller, err = controllerproc.Start(controllerproc.Options{
		Binary: controllerBinary, Kubeconfig: w.kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "health", Cloudflare: w.api,
		Flags: []string{"--drift-interval=" + driftInterval.String()}, Output: output,
	})
	w.g.Expect(err).NotTo(HaveOccurred())
}

// stop ends the controller as a rollout would, if one runs.
func (w *world) stop() {
	w.t.Helper()
	if w.controller == nil {
		return
	}
	w.g.Expect(w.controller.Stop()).To(Succeed())
	w.controller = nil
}

// kill ends the controller that runs on the spot.
func (w *world) kill() {
	w.controller.Kill()
	w.controller = nil
}

// create creates the objects of the files in their order.
func (w *world) create(files ...string) {
	w.t.Helper()
	for _, object := range w.read(files...) {
		w.createObject(object)
	}
}

func (w *world) createObject(object client.Object) {
	w.t.Helper()
	w.g.Expect(w.kube.Create(context.Background(), object)).To(Succeed())
}

// read returns the objects of the files, which are named relative to
// config/samples, as they stand there.
func (w *world) read(files ...string) []*unstructured.Unstructured {
	w.t.Helper()
	var objects []*unstructured.Unstructured
	for _, name := range files {
		file, err := os.Open(filepath.Join(samples, name))
		w.g.Expect(err).NotTo(HaveOccurred())
		defer file.Close() //nolint:errcheck // it was only read
		decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				w.t.Fatalf("%s: %v", name, err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// change reads the object, changes it and writes it.
func change[T client.Object](w *world, object T, how func(T)) {
	w.t.Helper()
	w.g.Eventually(func() error {
		if err := w.kube.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		how(object)
		return w.kube.Update(context.Background(), object)
	}).Should(Succeed())
}
