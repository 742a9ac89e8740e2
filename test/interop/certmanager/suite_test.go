// Package certmanager proves that cert-manager and this controller work
// together: cert-manager's own controllers issue certificates for Gateways and
// ListenerSets that the real controller serves, on a real control plane, with
// the simulator in Cloudflare's place. What the guides say is proven here, with
// the manifests that they show.
package certmanager

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

const (
	repository = "../../.."
	samples    = repository + "/config/samples"
	// controllersModule is the module that runs cert-manager's controllers.
	controllersModule = "controllers"
	// issuerNamespace is where cert-manager runs, and looks for what
	// ClusterIssuers refer to.
	issuerNamespace = "cert-manager"
)

var (
	kube       client.WithWatch
	kubeconfig string

	gatewayProgram     string // this controller
	certManagerProgram string
	certManagerConfig  string                  // file
	certManager        *controllerproc.Process // nil while it is stopped
)

func TestCertManager(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "cert-manager")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	gatewayProgram = filepath.Join(dir, "tunnel-gateway")
	Expect(controllerproc.Build(ctx, gatewayProgram)).To(Succeed())
	certManagerProgram = buildCertManager(ctx, dir)
	startControlPlane(ctx, dir)
	Expect(kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: issuerNamespace}})).To(Succeed())
	certManagerConfig = filepath.Join(dir, "cert-manager.yaml")
	Expect(os.WriteFile(certManagerConfig, helmConfig(), 0o600)).To(Succeed())
	startCertManager()
	DeferCleanup(stopCertManager)
}, NodeTimeout(30*time.Minute))

func buildCertManager(ctx context.Context, dir string) string {
	GinkgoHelper()
	path := filepath.Join(dir, "cert-manager")
	command := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	command.Dir = controllersModule
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return path
}

// startControlPlane starts Kubernetes with cert-manager's CRDs besides ours. It
// has no webhook of cert-manager: one version of its kinds is served, so nothing
// needs converting.
func startControlPlane(ctx context.Context, dir string) {
	GinkgoHelper()
	control, err := cluster.Start(ctx, cluster.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(control.Stop)
	kubeconfig = filepath.Join(dir, "kubeconfig")
	Expect(control.Kubeconfig(kubeconfig)).To(Succeed())

	_, err = envtest.InstallCRDs(control.Config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(certManagerSource(ctx), "deploy", "crds")}, ErrorIfPathMissing: true,
	})
	Expect(err).NotTo(HaveOccurred())

	control.Config.QPS, control.Config.Burst = 1000, 1000
	kube, err = client.NewWithWatch(control.Config, client.Options{Scheme: manifest.Scheme()})
	Expect(err).NotTo(HaveOccurred())
}

// certManagerSource returns where the source of cert-manager is.
func certManagerSource(ctx context.Context) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/cert-manager/cert-manager")
	command.Dir = controllersModule
	command.Stderr = os.Stderr
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	var module struct{ Dir string }
	Expect(json.Unmarshal(out, &module)).To(Succeed())
	return module.Dir
}

// helmConfig returns the configuration file that cert-manager's chart makes of
// the values in the guide.
func helmConfig() []byte {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(samples, helmValues))
	Expect(err).NotTo(HaveOccurred())
	var values struct {
		Config map[string]any `json:"config"`
	}
	Expect(yaml.Unmarshal(text, &values)).To(Succeed())
	config, err := yaml.Marshal(values.Config)
	Expect(err).NotTo(HaveOccurred())
	return config
}
