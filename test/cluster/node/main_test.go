package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// timeout is how long a test waits. Deleting a namespace with Pods takes ten seconds,
// because its controller checks the Pods every five seconds. Everything else takes about
// a second.
const timeout = 30 * time.Second

// All tests share one cluster with one node.
var (
	testCluster *cluster.Cluster
	testNode    *node.Node
	kube        client.Client
	clientset   kubernetes.Interface
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "container":
		os.Exit(runContainer())
	case "node":
		os.Exit(runNode())
	case "scheme":
		os.Exit(runWithChangingScheme())
	default:
		os.Exit(netns.Run(prepare, func() int { return runTests(m) }))
	}
}

// prepare downloads the programs, which is impossible in the network namespace.
func prepare() error {
	ctx := context.Background()
	_, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager)
	if err == nil {
		_, err = binaries.Envoy(ctx, os.Stderr)
	}
	return err
}

func runTests(m *testing.M) int {
	log.SetLogger(logr.Discard())
	if err := start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, stop()))
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func start(ctx context.Context) (err error) {
	if testCluster, err = cluster.Start(ctx, cluster.Options{Progress: os.Stderr}); err != nil {
		return err
	}
	if testNode, err = node.Start(ctx, testCluster.Config, node.Options{Images: images(), ServeAddresses: true}); err != nil {
		return err
	}
	if kube, err = client.New(testCluster.Config, client.Options{}); err != nil {
		return err
	}
	clientset, err = kubernetes.NewForConfig(testCluster.Config)
	return err
}

func stop() error {
	var errs []error
	if testNode != nil {
		errs = append(errs, testNode.Stop())
	}
	if testCluster != nil {
		errs = append(errs, testCluster.Stop())
	}
	return errors.Join(errs...)
}

// namespace creates a namespace, waits until Pods can be created in it, and
// returns its name.
func namespace(t *testing.T) string {
	t.Helper()
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, created)
	t.Cleanup(func() {
		if err := kube.Delete(context.Background(), created); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	account := client.ObjectKey{Namespace: created.Name, Name: "default"}
	NewWithT(t).Eventually(func() error {
		return kube.Get(t.Context(), account, &corev1.ServiceAccount{})
	}, timeout).Should(Succeed())
	return created.Name
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// echo returns a Pod that runs the test program. change may modify it.
func echo(namespace, name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "echo", Image: "docker.io/" + repository + ":v1@sha256:0000000000000000000000000000000000000000000000000000000000000000",
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "ready", ContainerPort: 9090}},
		}}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

// eventually reads the Pod into pod until the assertions succeed.
func eventually(t *testing.T, pod *corev1.Pod, assert func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(kube.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		assert(g)
	}, timeout, 20*time.Millisecond).Should(Succeed())
}

func eventuallyReady(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventually(t, pod, func(g Gomega) { g.Expect(ready(pod)).To(BeTrue(), "%+v", pod.Status) })
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// get sends a request to an address in the cluster, with a new connection.
func get(ctx context.Context, address, path string) (string, error) {
	transport := &http.Transport{DialContext: testNode.Dial, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// getFromPod sends a request to the Pod's port 8080. The Pod must respond.
func getFromPod(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	answer, err := get(t.Context(), net.JoinHostPort(pod.Status.PodIP, "8080"), path)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
