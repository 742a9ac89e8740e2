package node_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
)

func TestRunningPodHasACompleteStatus(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	status := pod.Status
	g := NewWithT(t)
	g.Expect(pod.Spec.NodeName).To(Equal("node"))
	g.Expect(status.Phase).To(Equal(corev1.PodRunning))
	g.Expect(status.PodIP).To(HavePrefix("10.244."))
	g.Expect(status.PodIPs).To(Equal([]corev1.PodIP{{IP: status.PodIP}}))
	g.Expect(status.HostIP).To(Equal("127.0.0.1"))
	g.Expect(status.StartTime).NotTo(BeNil())
	for _, c := range status.Conditions {
		g.Expect(c.Status).To(Equal(corev1.ConditionTrue), string(c.Type))
	}
	g.Expect(status.Conditions).To(HaveLen(4))
	g.Expect(status.ContainerStatuses).To(HaveLen(1))
	container := status.ContainerStatuses[0]
	g.Expect(container.Image).To(Equal(pod.Spec.Containers[0].Image))
	g.Expect(container.Ready && *container.Started && container.State.Running != nil).To(BeTrue(), "%+v", container)
	g.Expect(container.RestartCount).To(BeZero())
}

func TestNodeIsReady(t *testing.T) {
	object := &corev1.Node{}
	if err := kube.Get(t.Context(), client.ObjectKey{Name: "node"}, object); err != nil {
		t.Fatal(err)
	}
	g := NewWithT(t)
	g.Expect(object.Spec.Taints).To(BeEmpty())
	g.Expect(object.Status.Conditions).To(ContainElement(And(
		HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
}

func TestUnsupportedImageIsReported(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "other", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "example.com:5000/other:v2" })
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending))
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		g.Expect(waiting).NotTo(BeNil())
		g.Expect(waiting.Reason).To(Equal("ErrImagePull"))
		g.Expect(waiting.Message).To(And(ContainSubstring("example.com:5000/other,"), ContainSubstring(repository)))
	})
	if ready(pod) {
		t.Error("the Pod is ready")
	}
}

func TestProbeOfAnUnknownPortIsReported(t *testing.T) {
	// Without the error, the Pod would never become ready.
	t.Parallel()
	pod := echo(namespace(t), "echo", func(p *corev1.Pod) { probe(p, intstr.FromInt32(7070)) })
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		g.Expect(waiting).NotTo(BeNil())
		g.Expect(waiting.Message).To(And(ContainSubstring("7070"), ContainSubstring("[8080 9090]")))
	})
}

// probe adds a readiness probe with a short period.
func probe(p *corev1.Pod, port intstr.IntOrString) {
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: port}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
}

func TestProbeOfAnUnknownProgramIsReported(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", func(p *corev1.Pod) { probeExec(p, "other", "ready") })
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		g.Expect(waiting).NotTo(BeNil())
		g.Expect(waiting.Message).To(And(ContainSubstring(`["other" "ready"]`), ContainSubstring(`"echo"`)))
	})
}

// probeExec replaces the readiness probe by a command.
func probeExec(p *corev1.Pod, command ...string) {
	probe(p, intstr.IntOrString{})
	p.Spec.Containers[0].ReadinessProbe.ProbeHandler = corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}
	// The command is this test binary, which takes a second to start under the race
	// detector on a busy machine.
	p.Spec.Containers[0].ReadinessProbe.TimeoutSeconds = 10
}

func TestReadinessFollowsTheProbe(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"http": func(p *corev1.Pod) { probe(p, intstr.FromString("ready")) },
		"exec": func(p *corev1.Pod) { probeExec(p, "echo", "ready") },
		"exec with a timeout": func(p *corev1.Pod) {
			probeExec(p, "echo", "ready")
			p.Spec.Containers[0].ReadinessProbe.TimeoutSeconds = 4
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HANG", Value: "yes"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testReadiness(t, change)
		})
	}
}

// testReadiness checks that a Pod becomes ready, unready and ready again.
func testReadiness(t *testing.T, change func(*corev1.Pod)) {
	t.Helper()
	pod := echo(namespace(t), "echo", change)
	create(t, pod, service(pod, nil))
	eventuallyReady(t, pod)
	eventuallyAnswers(t, "echo."+pod.Namespace+".svc:80", "echo")

	getFromPod(t, pod, "/unready?is=true")
	eventually(t, pod, func(g Gomega) { g.Expect(ready(pod)).To(BeFalse()) })
	if pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the Pod is %s, want %s", pod.Status.Phase, corev1.PodRunning)
	}
	eventuallyFails(t, "echo."+pod.Namespace+".svc:80", "has no ready endpoint for port 80")

	getFromPod(t, pod, "/unready?is=false")
	eventuallyReady(t, pod)
	eventuallyAnswers(t, "echo."+pod.Namespace+".svc:80", "echo")
}

func TestCrashedProcessIsRestarted(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	for restarts := range int32(2) {
		eventuallyReady(t, pod)
		if _, err := get(t.Context(), net.JoinHostPort(pod.Status.PodIP, "8080"), "/crash"); err == nil {
			t.Fatal("the process answered, want that it crashes")
		}
		eventually(t, pod, func(g Gomega) {
			container := pod.Status.ContainerStatuses[0]
			g.Expect(container.RestartCount).To(Equal(restarts + 1))
			g.Expect(container.LastTerminationState.Terminated).To(HaveValue(HaveField("ExitCode", int32(3))))
		})
	}
	eventuallyReady(t, pod)
	if answer := getFromPod(t, pod, "/"); answer != "echo" {
		t.Errorf("after the restart: got %q, want echo", answer)
	}
}

func TestPodWithRestartPolicyNeverFails(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
	create(t, pod)
	eventuallyReady(t, pod)
	_, _ = get(t.Context(), net.JoinHostPort(pod.Status.PodIP, "8080"), "/crash")
	eventually(t, pod, func(g Gomega) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodFailed)) })
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, pod, timeout)
}

func eventuallyGone(t *testing.T, object client.Object, limit time.Duration) {
	t.Helper()
	NewWithT(t).Eventually(func() bool {
		return apierrors.IsNotFound(kube.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}, limit, 20*time.Millisecond).Should(BeTrue(), "%s still exists", object.GetName())
}

func TestDeletedPodIsRemovedWhenItsProcessEnds(t *testing.T) {
	// The process handles SIGTERM, so the node does not wait for the whole grace period,
	// 30 seconds.
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, pod, 10*time.Second)
	if _, err := get(t.Context(), net.JoinHostPort(pod.Status.PodIP, "8080"), "/"); err == nil || !strings.Contains(err.Error(), "no Pod has the address") {
		t.Errorf("dial the Pod's address: got error %v, want that no Pod has it", err)
	}
}

func TestProcessThatIgnoresSIGTERMIsKilled(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	for name, grace := range map[string]int64{"after-the-grace-period": 1, "without-a-grace-period": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, address := listenForProcess(t)
			pod := echo(ns, name, func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "IGNORE_SIGTERM", Value: "yes"}, {Name: "CONNECT_TO", Value: address}}
			})
			create(t, pod)
			connection := accept(t, listener)
			eventuallyReady(t, pod)
			start := time.Now()
			if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(grace)); err != nil {
				t.Fatal(err)
			}
			eventuallyEnds(t, connection)
			if elapsed := time.Since(start); elapsed < time.Duration(grace)*time.Second {
				t.Errorf("the process was killed after %s, want a grace period of %d s", elapsed, grace)
			}
			eventuallyGone(t, pod, timeout)
		})
	}
}

// listenForProcess listens for a process that connects to show that it runs.
func listenForProcess(t *testing.T) (net.Listener, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener, listener.Addr().String()
}

func accept(t *testing.T, listener net.Listener) net.Conn {
	t.Helper()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	connection, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// eventuallyEnds waits until the process that opened the connection ends.
func eventuallyEnds(t *testing.T, connection net.Conn) {
	t.Helper()
	if err := connection.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	_, err := connection.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the process still runs")
	}
}

func TestNamespaceWithPodsCanBeDeleted(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	pod := echo(ns, "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := kube.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, object, timeout)
}

// TestProcessesAreKilledWhenTheirParentDies kills a program that runs a node.
func TestProcessesAreKilledWhenTheirParentDies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testCluster.Kubeconfig(path); err != nil {
		t.Fatal(err)
	}
	ns := namespace(t)
	temporary := t.TempDir()
	parent := exec.Command(os.Args[0]) //nolint:gosec // G702: the test binary
	parent.Env = append(os.Environ(), roleVariable+"=node", "TMPDIR="+temporary)
	parent.Stdin, parent.Stderr = bytes.NewReader([]byte(read(path))), os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	listener, address := listenForProcess(t)
	pod := echo(ns, "orphan", func(p *corev1.Pod) {
		p.Spec.NodeName = parentNodeName
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONNECT_TO", Value: address}}
	})
	create(t, pod)
	connection := accept(t, listener)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	eventuallyEnds(t, connection)
	NewWithT(t).Eventually(func() ([]os.DirEntry, error) { return os.ReadDir(temporary) }, timeout).Should(BeEmpty())
	if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err) // without this delete, the Pod and its namespace would remain
	}
}

// TestGlobalSchemeMayChange adds types to client-go's global scheme while a node starts, as
// the Gateway API's conformance suite does.
func TestGlobalSchemeMayChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testCluster.Kubeconfig(path); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0]) //nolint:gosec // G702: the test binary
	command.Env = append(os.Environ(), roleVariable+"=scheme")
	command.Stdin = bytes.NewReader([]byte(read(path)))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestImageRequiresAnAbsolutePath(t *testing.T) {
	_, err := node.Start(t.Context(), testCluster.Config, node.Options{
		Name: "none", Images: map[string]node.Image{"wrong": {Command: []string{"sleep"}}},
	})
	if err == nil || !strings.Contains(err.Error(), "image wrong") {
		t.Errorf("got error %v, want an error that names the image", err)
	}
}
