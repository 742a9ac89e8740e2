package node_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
)

// envoyNodeName names the node that runs Envoys. It runs only the Pods that name it.
const envoyNodeName = "envoys"

// startEnvoyNode starts a node that runs Envoy as the test program's sidecar, until the
// test ends. controller is the address of the xDS server.
func startEnvoyNode(t *testing.T, name, controller string) *node.Node {
	t.Helper()
	return startEnvoyNodeWith(t, node.Options{Name: name}, controller)
}

// startEnvoyNodeWith is like startEnvoyNode, with further node options.
func startEnvoyNodeWith(t *testing.T, o node.Options, controller string) *node.Node {
	t.Helper()
	program, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(t.TempDir(), "envoy")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", wrapper, "github.com/tunnel-gateway/tunnel-gateway/test/edge/envoy")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the wrapper of Envoy: %v\n%s", err, output)
	}
	images := images()
	images["docker.io/envoyproxy/envoy"] = node.Image{
		Command:     []string{wrapper},
		Environment: []string{"ENVOY=" + program, "XDS_ADDRESS=" + controller, "CA_FILE=" + caFile(t)},
		Ports:       map[int32]string{envoy.PortOpen: "OPEN_PORT", envoy.PortProtected: "PROTECTED_PORT", envoy.PortReady: "READY_PORT"},
	}
	o.OnlyNamed, o.Images = true, images
	n, err := node.Start(t.Context(), testCluster.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// caFile writes a certificate to a file and returns its path.
func caFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	certificate, _ := keyPair(t)
	if err := cert.WriteCert(path, certificate); err != nil {
		t.Fatal(err)
	}
	return path
}

// keyPair returns a certificate for the controller's name, and its key, as PEM.
func keyPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(envoy.ServerName, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// sds are the files that lead Envoy to the PEM files with its identity, as the controller
// writes them.
var sds = map[string]string{
	"sds-cert.yaml": `{"resources":[{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret","name":"client",` +
		`"tlsCertificate":{"certificateChain":{"filename":"/etc/xds/tls.crt"},"privateKey":{"filename":"/etc/xds/tls.key"},"watchedDirectory":{"path":"/etc/xds"}}}]}`,
	"sds-ca.yaml": `{"resources":[{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret","name":"ca",` +
		`"validationContext":{"trustedCa":{"filename":"/etc/xds/ca.crt"},"watchedDirectory":{"path":"/etc/xds"}}}]}`,
}

// identity returns a Secret with a new client certificate that trusts the CA.
func identity(t *testing.T, namespace string, ca []byte) *corev1.Secret {
	t.Helper()
	certificate, key := keyPair(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "identity"},
		Data:       map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": ca},
	}
	for name, content := range sds {
		secret.Data[name] = []byte(content)
	}
	return secret
}

// withEnvoy returns a Pod with Envoy as the test program's sidecar. The liveness probe
// asks Envoy.
func withEnvoy(t *testing.T, namespace, nodeName string, change func(*bootstrapv3.Bootstrap)) *corev1.Pod {
	t.Helper()
	bootstrap := envoy.Bootstrap("tunnel-gateway-xds.tunnel-gateway.svc.cluster.local.")
	if change != nil {
		change(bootstrap)
	}
	text, err := protojson.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	return echo(namespace, "echo", func(p *corev1.Pod) {
		p.Spec.NodeName = nodeName
		liveness := httpProbe(envoy.PortReady)
		liveness.FailureThreshold = 3
		p.Spec.Containers[0].LivenessProbe = liveness
		p.Spec.InitContainers = []corev1.Container{{
			Name: "envoy", Image: "docker.io/envoyproxy/envoy:distroless-v1.40.0", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			Args:         []string{"--config-yaml", string(text), "--concurrency", "1", "--log-level", "warn", "--disable-hot-restart"},
			StartupProbe: httpProbe(envoy.PortReady), ReadinessProbe: httpProbe(envoy.PortReady),
			VolumeMounts: []corev1.VolumeMount{{Name: "identity", MountPath: envoy.CertificatesPath}, {Name: "run", MountPath: "/run/envoy"}},
		}}
		p.Spec.Volumes = []corev1.Volume{
			{Name: "identity", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "identity"}}},
			{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
	})
}

// withoutController removes what Envoy gets from the controller, so that it is ready at
// once.
func withoutController(b *bootstrapv3.Bootstrap) {
	b.DynamicResources = nil
	static := b.StaticResources
	static.Listeners = envoy.Listeners(envoy.ReadyOptions{IPv6: true}, routing.Telemetry{})[2:] // that answers the probes
	static.Clusters = static.Clusters[:1]                                                       // the admin interface
}

func TestContainerWaitsForAnEnvoyWithoutAConfiguration(t *testing.T) {
	t.Parallel()
	listener, address := listenForProcess(t)
	n := startEnvoyNode(t, "waiting-"+envoyNodeName, address)
	ns := namespace(t)
	authority, _ := keyPair(t)
	pod := withEnvoy(t, ns, "waiting-"+envoyNodeName, nil)
	create(t, identity(t, ns, authority), pod)
	_ = accept(t, listener) // Envoy runs, and its controller does not answer
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.InitContainerStatuses).To(HaveLen(1))
		g.Expect(pod.Status.InitContainerStatuses[0].State.Running).NotTo(BeNil())
	})
	g := NewWithT(t)
	g.Expect(*pod.Status.InitContainerStatuses[0].Started).To(BeFalse())
	g.Expect(pod.Status.ContainerStatuses[0].State.Waiting).To(HaveField("Reason", "PodInitializing"))
	for _, port := range []int32{envoy.PortOpen, envoy.PortProtected, envoy.PortReady} {
		if connection, err := n.DialPod(t.Context(), client.ObjectKeyFromObject(pod), port); err == nil {
			_ = connection.Close()
			t.Errorf("Envoy listens on port %d without a configuration", port)
		}
	}
	start := time.Now()
	g.Expect(kube.Delete(t.Context(), pod)).To(Succeed())
	eventuallyGone(t, pod, timeout)
	g.Expect(time.Since(start)).To(BeNumerically("<", 20*time.Second), "the grace period is 30 seconds")
}

func TestKilledEnvoyIsReadyBeforeTheContainerRestarts(t *testing.T) {
	t.Parallel()
	n := startEnvoyNode(t, envoyNodeName, "127.0.0.1:1")
	ns := namespace(t)
	authority, _ := keyPair(t)
	pod := withEnvoy(t, ns, envoyNodeName, withoutController)
	create(t, identity(t, ns, authority), pod)
	eventuallyReady(t, pod)
	key := client.ObjectKeyFromObject(pod)
	g := NewWithT(t)
	g.Expect(n.KillContainer(t.Context(), key, "envoy")).To(Succeed())
	g.Expect(n.KillContainer(t.Context(), key, "echo")).To(Succeed())
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.InitContainerStatuses[0].RestartCount).To(Equal(int32(1)))
		g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(Equal(int32(1)))
		g.Expect(ready(pod)).To(BeTrue())
	})
	envoyStarted := pod.Status.InitContainerStatuses[0].State.Running.StartedAt
	g.Expect(pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time).NotTo(BeTemporally("<", envoyStarted.Time))
}

func TestEnvoyWithAnIPv6AddressAloneIsReady(t *testing.T) {
	t.Parallel()
	const name = "ipv6-" + envoyNodeName
	startEnvoyNodeWith(t, node.Options{Name: name, IPv6: true}, "127.0.0.1:1")
	ns := namespace(t)
	authority, _ := keyPair(t)
	pod := withEnvoy(t, ns, name, withoutController)
	create(t, identity(t, ns, authority), pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.PodIP).To(ContainSubstring(":"))
		g.Expect(pod.Status.InitContainerStatuses).To(HaveEach(HaveField("Ready", true)))
		g.Expect(pod.Status.InitContainerStatuses).NotTo(BeEmpty())
	})
}

// TestEnvoyUsesTheIdentityInTheSecret accepts Envoy's connections as the controller does.
func TestEnvoyUsesTheIdentityInTheSecret(t *testing.T) {
	t.Parallel()
	certificate, key := keyPair(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, address := listenForProcess(t)
	clients := acceptTLS(tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2"},
	}))
	startEnvoyNode(t, "identity-"+envoyNodeName, address)
	ns := namespace(t)
	secret := identity(t, ns, certificate)
	pod := withEnvoy(t, ns, "identity-"+envoyNodeName, nil)
	create(t, secret, pod)
	eventuallyConnects(t, clients, secret)
	renewed := identity(t, ns, certificate)
	if err := kube.Update(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	eventuallyConnects(t, clients, renewed)
}

// acceptTLS closes each connection after its handshake, and returns the clients'
// certificates.
func acceptTLS(listener net.Listener) <-chan *x509.Certificate {
	clients := make(chan *x509.Certificate)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			secure := connection.(*tls.Conn)
			if secure.Handshake() == nil {
				select {
				case clients <- secure.ConnectionState().PeerCertificates[0]:
				default:
				}
			}
			_ = connection.Close()
		}
	}()
	return clients
}

// eventuallyConnects waits for a client with the certificate in the Secret.
func eventuallyConnects(t *testing.T, clients <-chan *x509.Certificate, secret *corev1.Secret) {
	t.Helper()
	want, err := cert.ParseCertsPEM(secret.Data["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(timeout)
	for {
		select {
		case got := <-clients:
			if got.Equal(want[0]) {
				return
			}
		case <-deadline:
			t.Fatal("Envoy did not connect with the certificate in the Secret")
		}
	}
}
