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

func TestLogOptionsSelectLogLines(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	getFromPod(t, pod, "/print?text=one")
	eventuallyLogged(t, pod, "started\none\n")
	// The API sends the time in whole seconds, so the test waits for the next second.
	since := metav1.NewTime(time.Now().Add(time.Second).Truncate(time.Second))
	NewWithT(t).Eventually(time.Now, timeout, 10*time.Millisecond).Should(BeTemporally(">", since.Time))
	getFromPod(t, pod, "/print?text=two")
	getFromPod(t, pod, "/print?text=three")
	eventuallyLogged(t, pod, "started\none\ntwo\nthree\n")

	for name, test := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"since a time":            {corev1.PodLogOptions{SinceTime: &since}, "two\nthree\n"},
		"for the last minutes":    {corev1.PodLogOptions{SinceSeconds: new(int64(600))}, "started\none\ntwo\nthree\n"},
		"last line":               {corev1.PodLogOptions{TailLines: new(int64(1))}, "three\n"},
		"no lines":                {corev1.PodLogOptions{TailLines: new(int64(0))}, ""},
		"last lines since a time": {corev1.PodLogOptions{SinceTime: &since, TailLines: new(int64(3))}, "two\nthree\n"},
		"limited bytes":           {corev1.PodLogOptions{LimitBytes: new(int64(10))}, "started\non"},
	} {
		if got := logOf(t, pod, test.options); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	stamped := logOf(t, pod, corev1.PodLogOptions{TailLines: new(int64(1)), Timestamps: true})
	stamp, text, _ := strings.Cut(stamped, " ")
	if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || at.Before(since.Time) || text != "three\n" {
		t.Errorf("log with timestamps: got %q", stamped)
	}
}

func eventuallyLogged(t *testing.T, pod *corev1.Pod, want string) {
	t.Helper()
	NewWithT(t).Eventually(func() string { return logOf(t, pod, corev1.PodLogOptions{}) }, timeout, 20*time.Millisecond).Should(Equal(want))
}

func TestFollowedLogEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
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
	getFromPod(t, pod, "/print?text=more")
	next("more")
	_, _ = get(t.Context(), pod.Status.PodIP+":8080", "/crash")
	if lines.Scan() {
		t.Errorf("the log continues after the end of the process: %q", lines.Text())
	}
	eventually(t, pod, func(g Gomega) { g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(Equal(int32(1))) })
	if got := logOf(t, pod, corev1.PodLogOptions{Previous: true}); got != "started\nmore\n" {
		t.Errorf("previous log: got %q", got)
	}
}
