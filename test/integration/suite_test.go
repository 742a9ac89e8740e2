package integration

import (
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
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// What a part of the suite is told by its environment.
const (
	kubeconfigVariable = "INTEGRATION_KUBECONFIG"
	binaryVariable     = "INTEGRATION_BINARY"
	identityVariable   = "INTEGRATION_IDENTITY"
)

// soonEnough is for what has to happen within a second, on a machine that does
// much else at the same time.
const soonEnough = 4 * time.Second

var (
	// slow is the label of specs that mostly wait.
	slow = Label("slow")
	// lifecycle is that of specs about how tunnels and connectors come and go.
	lifecycle = Label("lifecycle")
)

// parts are label filters: each part of the suite is a process of its own, with
// a control plane of its own, since most specs wait most of the time. What is
// counted in one is not disturbed by the others.
var parts = []string{"slow", "lifecycle && !slow", "!lifecycle && !slow"}

var (
	kube       client.WithWatch
	kubeconfig = os.Getenv(kubeconfigVariable)
	binary     = os.Getenv(binaryVariable)
	// identity is the kubeconfig of the controllers: config/rbac says what they
	// may do.
	identity = os.Getenv(identityVariable)
)

func TestIntegration(t *testing.T) {
	ctrllog.SetLogger(logr.Discard()) // of the clients here; the controller is a process of its own
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

// runParts runs all parts at once.
func runParts(t *testing.T) {
	program := build(t, t.TempDir())
	if _, err := cluster.Binaries(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
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
	run := exec.CommandContext(t.Context(), os.Args[0], arguments...) // #nosec G702 -- this very program
	run.Env = append(os.Environ(), kubeconfigVariable+"="+config, identityVariable+"="+identity, binaryVariable+"="+program)
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	out, err := run.CombinedOutput()
	report(t, part, string(out), err)
	if !strings.Contains(string(out), "Ran 0 of") { // as a focus elsewhere does
		checkAudit(t, part, log, user)
	}
}

// report logs all of a part that failed, and of another one how many specs it
// had and what they measured.
func report(t *testing.T, part, out string, err error) {
	if err == nil {
		for line := range strings.Lines(out) {
			if strings.Contains(line, "Passed") || strings.Contains(line, "Ran ") || strings.Contains(line, "measured: ") {
				t.Logf("%s: %s", part, strings.TrimSpace(line))
			}
		}
		return
	}
	// Lines of go test would be taken for the results of this process.
	t.Errorf("part %q: %v\n%s", part, err, "  "+strings.ReplaceAll(out, "\n", "\n  "))
}

// build builds the controller in the directory, and returns its path.
func build(t *testing.T, dir string) string {
	path := filepath.Join(dir, "tunnel-gateway")
	if err := controllerproc.Build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

func unique(prefix string) string {
	return fmt.Sprintf("%s-%s", prefix, randomSuffix())
}
