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

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
)

// soon is how long anything may take. A namespace with Pods needs ten seconds,
// since its controller looks at it every five; all else about one.
const soon = 30 * time.Second

// What all tests share.
var (
	control   *cluster.Cluster
	runs      *node.Node
	kube      client.Client
	clientset kubernetes.Interface
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "container":
		os.Exit(serve())
	case "doomed":
		os.Exit(doomed())
	default:
		os.Exit(test(m))
	}
}

func test(m *testing.M) int {
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
	if control, err = cluster.Start(ctx, cluster.Options{Progress: os.Stderr}); err != nil {
		return err
	}
	if runs, err = node.Start(ctx, control.Config, node.Options{Images: images()}); err != nil {
		return err
	}
	if kube, err = client.New(control.Config, client.Options{}); err != nil {
		return err
	}
	clientset, err = kubernetes.NewForConfig(control.Config)
	return err
}

func stop() error {
	var errs []error
	if runs != nil {
		errs = append(errs, runs.Stop())
	}
	if control != nil {
		errs = append(errs, control.Stop())
	}
	return errors.Join(errs...)
}

// namespace makes one in which Pods can be made.
func namespace(t *testing.T) string {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, made)
	t.Cleanup(func() {
		if err := kube.Delete(context.Background(), made); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	account := client.ObjectKey{Namespace: made.Name, Name: "default"}
	NewWithT(t).Eventually(func() error {
		return kube.Get(t.Context(), account, &corev1.ServiceAccount{})
	}, soon).Should(Succeed())
	return made.Name
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// echo returns a Pod of our program, which the change may change.
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

// eventually waits until the Pod is as it should be, and leaves it so in pod.
func eventually(t *testing.T, pod *corev1.Pod, should func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(kube.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		should(g)
	}, soon, 20*time.Millisecond).Should(Succeed())
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

// get asks the address, which only the node knows, with a new connection.
func get(ctx context.Context, address, path string) (string, error) {
	transport := &http.Transport{DialContext: runs.Dial, DisableKeepAlives: true}
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

// ask is get on the first port of a Pod that answers.
func ask(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	answer, err := get(t.Context(), net.JoinHostPort(pod.Status.PodIP, "8080"), path)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
