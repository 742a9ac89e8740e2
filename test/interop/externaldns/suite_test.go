package externaldns

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	root    = "../../.."
	samples = root + "/config/samples"
	// accountID is the account of the tunnels and the zones.
	accountID = "0123456789abcdef0123456789abcdef"
	// clusterID is the prefix in tunnel names.
	clusterID = "interop"
)

var (
	config *rest.Config
	kube   client.Client
	edge   *simulator.Server
	// database contains the zones in the simulator.
	database *zones.Database
	// apiURL is the URL of the simulated API.
	apiURL string
	// binary is the path to external-dns, and controllerBinary to the controller.
	binary, controllerBinary string
	// adminKubeconfig is the path to the administrator's kubeconfig.
	adminKubeconfig string
	// kubeconfig is the path to a kubeconfig for the sample's ServiceAccount.
	kubeconfig string
	// sampleArguments are the arguments in the sample's Deployment.
	sampleArguments []string
)

func TestExternalDNS(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrllog.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "external-dns")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	binary, err = Binary(ctx, os.Stderr)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	controllerBinary = filepath.Join(dir, "tunnel-gateway")
	Expect(controllerproc.Build(ctx, controllerBinary)).To(Succeed())
	controlPlane, err := cluster.Start(ctx, cluster.Options{Progress: os.Stderr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(controlPlane.Stop)
	controlPlane.Config.QPS, controlPlane.Config.Burst = 1000, 1000
	scheme := manifest.Scheme()
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(rbacv1.AddToScheme(scheme))
	kube, err = client.New(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	adminKubeconfig = filepath.Join(dir, "admin.kubeconfig")
	Expect(controlPlane.Kubeconfig(adminKubeconfig)).To(Succeed())
	Expect(kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}})).To(Succeed())
	startController(adminKubeconfig)
	startSecondInstallation(ctx, adminKubeconfig)

	applyFile(ctx, samples+"/external-dns/00-external-dns.yaml")
	deployment := &appsv1.Deployment{}
	Expect(kube.Get(ctx, client.ObjectKey{Namespace: programName, Name: programName}, deployment)).To(Succeed())
	sampleArguments = deployment.Spec.Template.Spec.Containers[0].Args
	config = controlPlane.Config
	kubeconfig = serviceAccountKubeconfig(ctx, programName)
}, NodeTimeout(13*time.Minute))

// startController starts the controller with a simulated Cloudflare.
func startController(kubeconfig string) {
	GinkgoHelper()
	database = zones.New(zones.Options{Delay: nextDelay})
	edge = simulator.New(simulator.Options{Zones: database, AccountID: accountID})
	server := httptest.NewServer(edge.API())
	DeferCleanup(server.Close)
	apiURL = server.URL + "/client/v4"
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: controllerBinary, Kubeconfig: kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: clusterID, Cloudflare: apiURL,
		AccountID: accountID, Output: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Stop)
}

// serviceAccountKubeconfig writes a kubeconfig for a ServiceAccount in the sample's
// namespace and returns its path.
func serviceAccountKubeconfig(ctx context.Context, account string) string {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	token, err := clientset.CoreV1().ServiceAccounts(programName).
		CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	file := clientcmdapi.NewConfig()
	file.Clusters["cluster"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	file.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	file.CurrentContext = "context"
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*file, path)).To(Succeed())
	return path
}
