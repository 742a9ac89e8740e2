package integration

import (
	"context"
	"errors"
	"fmt"
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
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// The environment variables that configure the process of a part of the suite.
const (
	kubeconfigVariable           = "INTEGRATION_KUBECONFIG"
	binaryVariable               = "INTEGRATION_BINARY"
	controllerKubeconfigVariable = "INTEGRATION_IDENTITY"
)

// timeout is the time for which a spec waits for a condition, however busy the machine is. No
// spec uses it to measure the controller. It is shorter than the intervals of the controller
// that no spec shortens, so that a change in time shows that the controller does not wait for
// one of them.
const timeout = 2 * time.Minute

// The labels divide the specs into parts of similar duration. Each spec has at most one.
var (
	// slow is the label of specs that take long, mostly because they wait.
	slow = Label("slow")
	// crashes is the label of specs in which the controller crashes or Cloudflare's API fails
	// during every call.
	crashes = Label("crashes")
	// lifecycle is the label of specs about the creation and deletion of
	// tunnels and connectors.
	lifecycle = Label("lifecycle")
	// ownership is the label of specs about which Gateway or program a tunnel belongs to.
	ownership = Label("ownership")
	// withEnvoy is the label of specs that run Envoys. They share the port of the xDS
	// server and the node, so they run in one process.
	withEnvoy = Label("envoy")
	// users is the label of specs about guides and commands.
	users = Label("users")
)

// parts are label filters. Each part of the suite runs in a separate process with
// a separate control plane. They run concurrently because most specs wait most of
// the time, and one part does not affect the counters of another.
var parts = []string{
	"envoy", "slow", "crashes", "lifecycle", "ownership", "users",
	"!envoy && !slow && !crashes && !lifecycle && !ownership && !users",
}

var (
	kube       client.WithWatch
	kubeconfig = os.Getenv(kubeconfigVariable)
	binary     = os.Getenv(binaryVariable)
	// controllerKubeconfig is the path of the kubeconfig of the controllers,
	// which have the permissions of config/rbac.
	controllerKubeconfig = os.Getenv(controllerKubeconfigVariable)
)

// TestMain runs the suite in a network namespace, so that Envoys can connect to Pods and
// Services.
func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // for the clients in this process; the controller runs in a separate process
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if binary == "" {
		dir, err := os.MkdirTemp("", "tunnel-gateway-integration-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
		binary = filepath.Join(dir, "tunnel-gateway")
		if err := os.Setenv(binaryVariable, binary); err != nil {
			panic(err) // the name is valid
		}
	}
	return netns.Run(prepare, m.Run)
}

// prepare builds and downloads the programs, which may be impossible in the network
// namespace.
func prepare() error {
	ctx := context.Background()
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		return err
	}
	if _, err := binaries.Envoy(ctx, os.Stderr); err != nil {
		return err
	}
	for _, program := range []string{"connector", "envoy"} {
		if output, err := exec.CommandContext(ctx, "go", "build", "-o", programPath(program), "../edge/"+program).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, output)
		}
	}
	return controllerproc.Build(ctx, binary)
}

// programPath returns the path of a program that the tests run. It is in the directory of the
// controller.
func programPath(name string) string { return filepath.Join(filepath.Dir(binary), name) }

func TestIntegration(t *testing.T) {
	if kubeconfig == "" {
		runParts(t)
		return
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(timeout)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "integration")
}

var _ = BeforeSuite(func() {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 1000, 1000
	kube, err = client.NewWithWatch(config, client.Options{Scheme: newScheme()})
	Expect(err).NotTo(HaveOccurred())
})

// newScheme returns a scheme with all types that the specs use. A scheme must not change
// while a client uses it.
func newScheme() *runtime.Scheme {
	scheme := manifest.Scheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	return scheme
}

// runParts runs all parts concurrently.
func runParts(t *testing.T) {
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { runPart(t, part) })
	}
	running.Wait()
}

func runPart(t *testing.T, part string) {
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
	run.Env = append(os.Environ(), kubeconfigVariable+"="+config, controllerKubeconfigVariable+"="+identity)
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

// uniqueName returns the prefix with a random suffix.
func uniqueName(prefix string) string { return prefix + "-" + rand.String(6) }
