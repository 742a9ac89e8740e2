package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// The environment variables that configure the process for a part of the suite.
const (
	kubeconfigVariable           = "INTEGRATION_KUBECONFIG"
	binaryVariable               = "INTEGRATION_BINARY"
	controllerKubeconfigVariable = "INTEGRATION_IDENTITY"
	partVariable                 = "INTEGRATION_PART"
)

// timeout is how long a spec waits for a condition, however busy the machine is. No spec
// uses it to measure the controller. It is shorter than each controller interval that no
// spec shortens, so that a change in time shows that the controller does not wait for
// such an interval.
const timeout = 2 * time.Minute

var (
	kube       client.WithWatch
	kubeconfig = os.Getenv(kubeconfigVariable)
	binary     = os.Getenv(binaryVariable)
	// controllerKubeconfig is the path to the controllers' kubeconfig. They have the
	// permissions in config/rbac.
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
	if err := controllerproc.Build(ctx, binary); err != nil || os.Getenv(raceVariable) == "" {
		return err
	}
	return controllerproc.BuildRacing(ctx, racingBinary())
}

const (
	// raceVariable is set if some controllers have the race detector, as in `make test`.
	raceVariable = "RACE"
	// racingDirectory is below the controller's directory.
	racingDirectory = "racing"
)

// racingBinary returns the path to a controller with the race detector. Its messages begin with
// the same name.
func racingBinary() string {
	return filepath.Join(filepath.Dir(binary), racingDirectory, filepath.Base(binary))
}

// programPath returns the path to a program that the tests run. It is in the controller's
// directory.
func programPath(name string) string {
	directory := filepath.Dir(binary)
	if filepath.Base(directory) == racingDirectory {
		directory = filepath.Dir(directory)
	}
	return filepath.Join(directory, name)
}

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

// uniqueName returns the prefix with a random suffix.
func uniqueName(prefix string) string { return prefix + "-" + rand.String(6) }
