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

func TestStatusIsThatOfARunningPod(t *testing.T) {
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

func TestUnknownImageIsTold(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "other", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "example.com:5000/other:v2" })
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending))
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		waits := pod.Status.ContainerStatuses[0].State.Waiting
		g.Expect(waits).NotTo(BeNil())
		g.Expect(waits.Reason).To(Equal("ErrImagePull"))
		g.Expect(waits.Message).To(And(ContainSubstring("example.com:5000/other,"), ContainSubstring(repository)))
	})
	if ready(pod) {
		t.Error("it is ready")
	}
}

// TestUnknownPortOfProbeIsTold: it would be unready for ever.
func TestUnknownPortOfProbeIsTold(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", func(p *corev1.Pod) { probe(p, intstr.FromInt32(7070)) })
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		waits := pod.Status.ContainerStatuses[0].State.Waiting
		g.Expect(waits).NotTo(BeNil())
		g.Expect(waits.Message).To(And(ContainSubstring("7070"), ContainSubstring("[8080 9090]")))
	})
}

// probe adds a readiness probe that is quick to tell.
func probe(p *corev1.Pod, port intstr.IntOrString) {
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: port}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
}

func TestReadinessFollowsTheProbe(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", func(p *corev1.Pod) { probe(p, intstr.FromString("ready")) })
	create(t, pod, service(pod, nil))
	eventuallyReady(t, pod)
	eventuallyAnswers(t, "echo."+pod.Namespace+".svc:80", "echo")

	ask(t, pod, "/unready?is=true")
	eventually(t, pod, func(g Gomega) { g.Expect(ready(pod)).To(BeFalse()) })
	if pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the Pod is %s, want it to run unready", pod.Status.Phase)
	}
	eventuallyFails(t, "echo."+pod.Namespace+".svc:80", "has no ready endpoint for port 80")

	ask(t, pod, "/unready?is=false")
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
			t.Fatal("it answered, want that it crashes")
		}
		eventually(t, pod, func(g Gomega) {
			container := pod.Status.ContainerStatuses[0]
			g.Expect(container.RestartCount).To(Equal(restarts + 1))
			g.Expect(container.LastTerminationState.Terminated).To(HaveValue(HaveField("ExitCode", int32(3))))
		})
	}
	eventuallyReady(t, pod)
	if answer := ask(t, pod, "/"); answer != "echo" {
		t.Errorf("after its restart it says %q", answer)
	}
}

func TestEndedPodThatIsNotRestarted(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
	create(t, pod)
	eventuallyReady(t, pod)
	_, _ = get(t.Context(), net.JoinHostPort(pod.Status.PodIP, "8080"), "/crash")
	eventually(t, pod, func(g Gomega) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodFailed)) })
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, pod, soon)
}

func eventuallyGone(t *testing.T, object client.Object, limit time.Duration) {
	t.Helper()
	NewWithT(t).Eventually(func() bool {
		return apierrors.IsNotFound(kube.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}, limit, 20*time.Millisecond).Should(BeTrue(), "%s still exists", object.GetName())
}

// TestDeletedPodEndsAtOnce: far sooner than after the grace period of 30
// seconds, for a process that heeds SIGTERM.
func TestDeletedPodEndsAtOnce(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, pod, 10*time.Second)
	if _, err := get(t.Context(), net.JoinHostPort(pod.Status.PodIP, "8080"), "/"); err == nil || !strings.Contains(err.Error(), "no Pod has the address") {
		t.Errorf("dialing its address: got error %v", err)
	}
}

// TestStubbornProcessIsKilled: after the grace period, or when the Pod is gone
// from the API server without one.
func TestStubbornProcessIsKilled(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	for name, grace := range map[string]int64{"grace": 1, "gone": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, address := callee(t)
			pod := echo(in, name, func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "STUBBORN", Value: "yes"}, {Name: "CALL", Value: address}}
			})
			create(t, pod)
			call := accept(t, calls)
			eventuallyReady(t, pod)
			begin := time.Now()
			if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(grace)); err != nil {
				t.Fatal(err)
			}
			eventuallyHangsUp(t, call)
			if took := time.Since(begin); took < time.Duration(grace)*time.Second {
				t.Errorf("it was killed after %s, want %d s of grace", took, grace)
			}
			eventuallyGone(t, pod, soon)
		})
	}
}

// callee listens for processes that call to show that they live.
func callee(t *testing.T) (net.Listener, string) {
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
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	call, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// eventuallyHangsUp waits for the end of the process that has called.
func eventuallyHangsUp(t *testing.T, call net.Conn) {
	t.Helper()
	if err := call.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	_, err := call.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the process still lives")
	}
}

func TestNamespaceWithPodsCanBeDeleted(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	pod := echo(in, "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}}
	if err := kube.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, object, soon)
}

// TestProcessesDieWithTheirParent kills a program that runs a node. It must be
// the only one that runs: its node would take Pods that others make.
func TestProcessesDieWithTheirParent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := control.Kubeconfig(path); err != nil {
		t.Fatal(err)
	}
	in := namespace(t)
	temporary := t.TempDir()
	parent := exec.Command(os.Args[0]) //nolint:gosec // G702: the path is our own
	parent.Env = append(os.Environ(), roleVariable+"=doomed", "TMPDIR="+temporary)
	parent.Stdin, parent.Stderr = bytes.NewReader([]byte(read(path))), os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	calls, address := callee(t)
	pod := echo(in, "orphan", func(p *corev1.Pod) {
		p.Spec.NodeName = "doomed"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CALL", Value: address}}
	})
	create(t, pod)
	call := accept(t, calls)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	eventuallyHangsUp(t, call)
	NewWithT(t).Eventually(func() ([]os.DirEntry, error) { return os.ReadDir(temporary) }, soon).Should(BeEmpty())
	if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err) // nobody else ends it, nor its namespace then
	}
}

func TestProgramMustBeAPath(t *testing.T) {
	_, err := node.Start(t.Context(), control.Config, node.Options{
		Name: "none", Images: map[string]node.Image{"wrong": {Command: []string{"sleep"}}},
	})
	if err == nil || !strings.Contains(err.Error(), "image wrong") {
		t.Errorf("got error %v, want one that names the image", err)
	}
}
