// Package certmanager tests cert-manager and this controller together. cert-manager's
// controllers issue certificates for Gateways and ListenerSets that this controller
// serves, on a real control plane and a simulated Cloudflare. The specs verify what the
// guides say with the guides' own manifests.
package certmanager

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
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
	// issuerNamespace is the namespace for cert-manager and for the Secrets that
	// ClusterIssuers reference.
	issuerNamespace = "cert-manager"
)

var (
	kube       client.WithWatch
	kubeconfig string

	controllerBinary      string
	certManagerBinary     string
	certManagerConfigFile string                  // its configuration file
	certManager           *controllerproc.Process // nil while it is stopped
)

func TestCertManager(t *testing.T) {
	log.SetLogger(logr.Discard())
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "cert-manager")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	controllerBinary = filepath.Join(dir, "tunnel-gateway")
	Expect(controllerproc.Build(ctx, controllerBinary)).To(Succeed())
	certManagerBinary = buildCertManager(ctx, dir)
	startControlPlane(ctx, dir)
	Expect(kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: issuerNamespace}})).To(Succeed())
	certManagerConfigFile = filepath.Join(dir, "cert-manager.yaml")
	Expect(os.WriteFile(certManagerConfigFile, helmConfig(), 0o600)).To(Succeed())
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

// startControlPlane starts a control plane with this controller's and cert-manager's
// CRDs. It needs no conversion webhook, because cert-manager serves a single version of
// each kind.
func startControlPlane(ctx context.Context, dir string) {
	GinkgoHelper()
	controlPlane, err := cluster.Start(ctx, cluster.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(controlPlane.Stop)
	kubeconfig = filepath.Join(dir, "kubeconfig")
	Expect(controlPlane.Kubeconfig(kubeconfig)).To(Succeed())

	_, err = envtest.InstallCRDs(controlPlane.Config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(certManagerSource(ctx), "deploy", "crds")}, ErrorIfPathMissing: true,
	})
	Expect(err).NotTo(HaveOccurred())

	controlPlane.Config.QPS, controlPlane.Config.Burst = 1000, 1000
	kube, err = client.NewWithWatch(controlPlane.Config, client.Options{Scheme: manifest.Scheme()})
	Expect(err).NotTo(HaveOccurred())
}

// certManagerSource returns the directory with cert-manager's source.
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

// helmConfig returns the configuration file that cert-manager's chart renders from
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
