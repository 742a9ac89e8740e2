package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// The environment variables that configure the process of a part of the suite.
const (
	kubeconfigVariable           = "INTEGRATION_KUBECONFIG"
	binaryVariable               = "INTEGRATION_BINARY"
	controllerKubeconfigVariable = "INTEGRATION_IDENTITY"
)

// shortTimeout is the timeout for changes that take less than a second on a
// machine without other load.
const shortTimeout = 4 * time.Second

var (
	// slow is the label of specs that take long, mostly because they wait.
	slow = Label("slow")
	// lifecycle is the label of specs about the creation and deletion of
	// tunnels and connectors.
	lifecycle = Label("lifecycle")
	// withEnvoy is the label of specs that run Envoys. They share the port of the xDS
	// server and the node, so they run in one process.
	withEnvoy = Label("envoy")
)

// parts are label filters. Each part of the suite runs in a separate process with
// a separate control plane. They run concurrently because most specs wait most of
// the time, and one part does not affect the counters of another.
var parts = []string{"slow && !envoy", "lifecycle && !slow && !envoy", "!lifecycle && !slow && !envoy", "envoy"}

var (
	kube       client.WithWatch
	kubeconfig = os.Getenv(kubeconfigVariable)
	binary     = os.Getenv(binaryVariable)
	// controllerKubeconfig is the path of the kubeconfig of the controllers,
	// which have the permissions of config/rbac.
	controllerKubeconfig = os.Getenv(controllerKubeconfigVariable)
)

func TestIntegration(t *testing.T) {
	ctrllog.SetLogger(logr.Discard()) // for the clients in this process; the controller runs in a separate process
	if kubeconfig == "" {
		runParts(t)
		return
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "integration")
}

var _ = BeforeSuite(func() {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 1000, 1000
	kube, err = client.NewWithWatch(config, client.Options{Scheme: manifest.Scheme()})
	Expect(err).NotTo(HaveOccurred())
})

// runParts runs all parts concurrently.
func runParts(t *testing.T) {
	program := build(t, t.TempDir())
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { runPart(t, part, program) })
	}
	running.Wait()
}

func runPart(t *testing.T, part, program string) {
	dir := t.TempDir()
	log, audited, err := cluster.Audit(dir)
	if err != nil {
		t.Errorf("part %q: %v", part, err)
		return
	}
	control, err := cluster.Start(t.Context(), cluster.Options{APIServer: audited})
	if err != nil {
		t.Errorf("part %q: %v", part, err)
		return
	}
	defer func() {
		if err := control.Stop(); err != nil {
			t.Errorf("part %q: %v", part, err)
		}
	}()
	config, identity := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "identity")
	user, err := cluster.ControllerIdentity(t.Context(), control.Config, "../../config/rbac", identity)
	if err := errors.Join(err, control.Kubeconfig(config)); err != nil {
		t.Errorf("part %q: %v", part, err)
		return
	}
	arguments := append(os.Args[1:], "-test.run=^TestIntegration$", "-ginkgo.label-filter="+part)
	run := exec.CommandContext(t.Context(), os.Args[0], arguments...) // #nosec G702 -- the path of this test program
	run.Env = append(os.Environ(), kubeconfigVariable+"="+config, controllerKubeconfigVariable+"="+identity, binaryVariable+"="+program)
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	out, err := run.CombinedOutput()
	report(t, part, string(out), err)
	if !strings.Contains(string(out), "Ran 0 of") { // with a focus on a spec of another part
		checkAudit(t, part, log, user)
	}
}

// report logs the whole output of a part that failed. For a part that passed, it
// logs only the number of specs and the measurements.
func report(t *testing.T, part, out string, err error) {
	if err == nil {
		for line := range strings.Lines(out) {
			if strings.Contains(line, "Passed") || strings.Contains(line, "Ran ") || strings.Contains(line, "measured: ") {
				t.Logf("%s: %s", part, strings.TrimSpace(line))
			}
		}
		return
	}
	// Without the indentation, go test reads the lines as results of this process.
	t.Errorf("part %q: %v\n%s", part, err, "  "+strings.ReplaceAll(out, "\n", "\n  "))
}

// build builds the controller in the directory and returns the path of the binary.
func build(t *testing.T, dir string) string {
	path := filepath.Join(dir, "tunnel-gateway")
	if err := controllerproc.Build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// uniqueName returns the prefix with a random suffix.
func uniqueName(prefix string) string { return prefix + "-" + rand.String(6) }
