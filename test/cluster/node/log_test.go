package node_test

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func logOf(t *testing.T, pod *corev1.Pod, options corev1.PodLogOptions) string {
	t.Helper()
	content, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &options).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestLogs(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	ask(t, pod, "/print?text=one")
	eventuallyLogged(t, pod, "started\none\n")
	// The time is sent in whole seconds, of which the next one is not yet over.
	since := metav1.NewTime(time.Now().Add(time.Second).Truncate(time.Second))
	NewWithT(t).Eventually(time.Now, soon, 10*time.Millisecond).Should(BeTemporally(">", since.Time))
	ask(t, pod, "/print?text=two")
	ask(t, pod, "/print?text=three")
	eventuallyLogged(t, pod, "started\none\ntwo\nthree\n")

	for name, test := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"since a time":          {corev1.PodLogOptions{SinceTime: &since}, "two\nthree\n"},
		"since long":            {corev1.PodLogOptions{SinceSeconds: new(int64(600))}, "started\none\ntwo\nthree\n"},
		"the last":              {corev1.PodLogOptions{TailLines: new(int64(1))}, "three\n"},
		"none":                  {corev1.PodLogOptions{TailLines: new(int64(0))}, ""},
		"the last since a time": {corev1.PodLogOptions{SinceTime: &since, TailLines: new(int64(3))}, "two\nthree\n"},
		"limited":               {corev1.PodLogOptions{LimitBytes: new(int64(10))}, "started\non"},
	} {
		if got := logOf(t, pod, test.options); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	stamped := logOf(t, pod, corev1.PodLogOptions{TailLines: new(int64(1)), Timestamps: true})
	stamp, text, _ := strings.Cut(stamped, " ")
	if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || at.Before(since.Time) || text != "three\n" {
		t.Errorf("with a timestamp it is %q", stamped)
	}
}

func eventuallyLogged(t *testing.T, pod *corev1.Pod, want string) {
	t.Helper()
	NewWithT(t).Eventually(func() string { return logOf(t, pod, corev1.PodLogOptions{}) }, soon, 20*time.Millisecond).Should(Equal(want))
}

// TestFollowedLog: it goes on while the process prints, ends with it, and can be
// read as the previous one afterwards.
func TestFollowedLog(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	stream, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
	next("started")
	ask(t, pod, "/print?text=more")
	next("more")
	_, _ = get(t.Context(), pod.Status.PodIP+":8080", "/crash")
	if lines.Scan() {
		t.Errorf("after the end of the process there is %q", lines.Text())
	}
	eventually(t, pod, func(g Gomega) { g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(Equal(int32(1))) })
	if got := logOf(t, pod, corev1.PodLogOptions{Previous: true}); got != "started\nmore\n" {
		t.Errorf("the previous log is %q", got)
	}
}
