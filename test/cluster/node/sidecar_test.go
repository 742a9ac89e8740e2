package node_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recorder records process events in their order: "<container> start", "stop" when the
// process gets SIGTERM, and "end".
type recorder struct {
	mu      sync.Mutex
	events  []string
	held    map[string]chan struct{}
	address string
}

// hold makes the process wait in the event until the channel is closed.
func (r *recorder) hold(event string) chan<- struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[event] = make(chan struct{})
	return r.held[event]
}

// record returns a channel that is closed when the process may continue. It is nil if the
// process need not wait.
func (r *recorder) record(event string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
	return r.held[event]
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{held: map[string]chan struct{}{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		released := r.record(strings.ReplaceAll(strings.TrimPrefix(request.URL.Path, "/"), "/", " "))
		if released != nil {
			<-released
		}
	}))
	t.Cleanup(server.Close)
	r.address = server.Listener.Addr().String()
	return r
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// withSidecars returns a Pod with the container "main" and the sidecars. The first
// sidecar's startup probe asks its second port, 9091.
func withSidecars(t *testing.T, r *recorder, sidecars ...string) *corev1.Pod {
	t.Helper()
	return echo(namespace(t), "echo", func(p *corev1.Pod) {
		main := &p.Spec.Containers[0]
		main.Name, main.Env = "main", environment(r, "main")
		for i, name := range sidecars {
			c := corev1.Container{
				Name: name, Image: sidecarRepositories[i], Env: environment(r, name), RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			}
			if i == 0 {
				c.StartupProbe = httpProbe(9091)
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	})
}

func environment(r *recorder, name string) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "NAME", Value: name}, {Name: "RECORD_TO", Value: r.address}}
}

func httpProbe(port int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(port)}},
		PeriodSeconds: 1, FailureThreshold: 600,
	}
}

// setUnready changes the response from the first sidecar's second port, by way of its
// first port, 8081.
func setUnready(t *testing.T, pod *corev1.Pod, unready string) {
	t.Helper()
	connection, err := testNode.DialPod(t.Context(), client.ObjectKeyFromObject(pod), 8081)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck // the answer was read
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://pod/unready?is="+unready, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	if err := request.Write(connection); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Fatalf("got %q, %v", answer, err)
	}
}

// dialable reports whether the Pod has a process with the port.
func dialable(t *testing.T, pod types.NamespacedName, port int32) bool {
	t.Helper()
	connection, err := testNode.DialPod(t.Context(), pod, port)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return corev1.PodCondition{}
}

func TestContainersStartAfterASidecarsStartupProbe(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := withSidecars(t, r, "first", "second")
	first := &pod.Spec.InitContainers[0]
	first.Env = append(first.Env, corev1.EnvVar{Name: "UNREADY", Value: "yes"})
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.InitContainerStatuses).To(HaveLen(2))
		g.Expect(pod.Status.InitContainerStatuses[0].State.Running).NotTo(BeNil())
		g.Expect(dialable(t, client.ObjectKeyFromObject(pod), 8081)).To(BeTrue())
	})
	g := NewWithT(t)
	g.Expect(*pod.Status.InitContainerStatuses[0].Started).To(BeFalse())
	g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending))
	g.Expect(pod.Status.ContainerStatuses[0].State.Waiting).To(HaveField("Reason", "PodInitializing"))
	initialized := condition(pod, corev1.PodInitialized)
	g.Expect(initialized.Reason).To(Equal("ContainersNotInitialized"))
	g.Expect(initialized.Message).To(Equal("containers with incomplete status: [first second]"))
	g.Expect(r.all()).To(Equal([]string{"first start"}))

	setUnready(t, pod, "false")
	eventuallyReady(t, pod)
	g.Expect(r.all()[0]).To(Equal("first start"))
	g.Expect(r.all()).To(ConsistOf("first start", "second start", "main start"))
	g.Expect(condition(pod, corev1.PodInitialized).Status).To(Equal(corev1.ConditionTrue))
	g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
}

func TestSidecarsStopAfterTheContainersInReverseOrder(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	release := r.hold("main stop")
	pod := withSidecars(t, r, "first", "second")
	create(t, pod)
	eventuallyReady(t, pod)
	started := len(r.all())
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(r.all, timeout).Should(ContainElement("main stop"))
	NewWithT(t).Consistently(r.all, "300ms").Should(HaveLen(started + 1))
	close(release)
	eventuallyGone(t, pod, timeout)
	NewWithT(t).Expect(r.all()[started:]).To(Equal([]string{
		"main stop", "main end", "second stop", "second end", "first stop", "first end",
	}))
}

func TestSidecarsAreKilledAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := withSidecars(t, r, "first")
	for _, c := range []*corev1.Container{&pod.Spec.InitContainers[0], &pod.Spec.Containers[0]} {
		c.Env = append(c.Env, corev1.EnvVar{Name: "HANG_ON_SIGTERM", Value: "yes"})
	}
	create(t, pod)
	eventuallyReady(t, pod)
	if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(1)); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, pod, timeout)
	events := r.all()
	g := NewWithT(t)
	g.Expect(events).To(ContainElement("main stop"))
	g.Expect(events).NotTo(ContainElement("main end"))
	g.Expect(events).NotTo(ContainElement("first end"))
}

func TestKilledSidecarRestartsWhileTheContainerRuns(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := withSidecars(t, r, "first")
	create(t, pod)
	eventuallyReady(t, pod)
	if err := testNode.KillContainer(t.Context(), client.ObjectKeyFromObject(pod), "first"); err != nil {
		t.Fatal(err)
	}
	eventually(t, pod, func(g Gomega) {
		status := pod.Status.InitContainerStatuses[0]
		g.Expect(status.RestartCount).To(Equal(int32(1)))
		g.Expect(status.LastTerminationState.Terminated).To(HaveField("ExitCode", int32(137)))
		g.Expect(ready(pod)).To(BeTrue())
	})
	g := NewWithT(t)
	g.Expect(r.all()).To(Equal([]string{"first start", "main start", "first start"}))
	g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero())
}

// TestContainerRestartsAfterARestartedSidecarsStartupProbe kills both processes while
// the sidecar's startup probe fails.
func TestContainerRestartsAfterARestartedSidecarsStartupProbe(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := withSidecars(t, r, "first")
	first := &pod.Spec.InitContainers[0]
	first.Env = append(first.Env, corev1.EnvVar{Name: "UNREADY", Value: "yes"})
	key := client.ObjectKeyFromObject(pod)
	create(t, pod)
	NewWithT(t).Eventually(func() bool { return dialable(t, key, 8081) }, timeout).Should(BeTrue())
	setUnready(t, pod, "false")
	eventuallyReady(t, pod)
	for _, container := range []string{"first", "main"} {
		if err := testNode.KillContainer(t.Context(), key, container); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.InitContainerStatuses[0].RestartCount).To(Equal(int32(1)))
		g.Expect(pod.Status.ContainerStatuses[0].State.Waiting).To(HaveField("Reason", "CrashLoopBackOff"))
		g.Expect(dialable(t, key, 8081)).To(BeTrue())
	})
	NewWithT(t).Expect(condition(pod, corev1.PodInitialized).Status).To(Equal(corev1.ConditionFalse))
	setUnready(t, pod, "false")
	eventuallyReady(t, pod)
	NewWithT(t).Expect(r.all()).To(Equal([]string{"first start", "main start", "first start", "main start"}))
	NewWithT(t).Expect(pod.Status.ContainerStatuses[0].RestartCount).To(Equal(int32(1)))
}

func TestLivenessProbeOnASidecarsPortRestartsTheContainer(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := withSidecars(t, r, "first")
	liveness := httpProbe(9091)
	liveness.FailureThreshold = 1
	pod.Spec.Containers[0].LivenessProbe = liveness
	create(t, pod)
	eventuallyReady(t, pod)
	setUnready(t, pod, "true")
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeNumerically(">", 0))
	})
	g := NewWithT(t)
	g.Expect(r.all()[:4]).To(Equal([]string{"first start", "main start", "main stop", "main end"}))
	g.Expect(pod.Status.InitContainerStatuses[0].RestartCount).To(BeZero())
}

func TestFailedStartupProbeRestartsTheSidecar(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := withSidecars(t, r, "first")
	first := &pod.Spec.InitContainers[0]
	first.Env = append(first.Env, corev1.EnvVar{Name: "UNREADY", Value: "yes"})
	first.StartupProbe.FailureThreshold = 1
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.InitContainerStatuses).To(HaveLen(1))
		g.Expect(pod.Status.InitContainerStatuses[0].RestartCount).To(BeNumerically(">", 0))
	})
	NewWithT(t).Expect(r.all()).NotTo(ContainElement("main start"))
}

func TestReadinessOfASidecarCountsForThePod(t *testing.T) {
	t.Parallel()
	pod := withSidecars(t, newRecorder(t), "first")
	pod.Spec.InitContainers[0].ReadinessProbe = httpProbe(9091)
	pod.Spec.InitContainers[0].ReadinessProbe.FailureThreshold = 1
	create(t, pod)
	eventuallyReady(t, pod)
	setUnready(t, pod, "true")
	eventually(t, pod, func(g Gomega) { g.Expect(ready(pod)).To(BeFalse()) })
	NewWithT(t).Expect(condition(pod, corev1.PodReady).Message).To(Equal("containers with unready status: [first]"))
}

func TestSidecarEndsWithAPodThatDoesNotRestart(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := withSidecars(t, r, "first")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	create(t, pod)
	eventuallyReady(t, pod)
	_, _ = get(t.Context(), pod.Status.PodIP+":8080", "/crash")
	eventually(t, pod, func(g Gomega) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodFailed)) })
	NewWithT(t).Expect(r.all()).To(Equal([]string{"first start", "main start", "first stop", "first end"}))
}

func TestOrdinaryInitContainerIsReported(t *testing.T) {
	t.Parallel()
	pod := withSidecars(t, newRecorder(t), "first")
	pod.Spec.InitContainers[0].RestartPolicy, pod.Spec.InitContainers[0].StartupProbe = nil, nil
	create(t, pod)
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.InitContainerStatuses).To(HaveLen(1))
		g.Expect(pod.Status.InitContainerStatuses[0].State.Waiting).To(HaveField("Message", ContainSubstring("restartPolicy Always, which first does not have")))
	})
}
