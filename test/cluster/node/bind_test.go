package node_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The test runs before the parallel tests, whose Pods could not start meanwhile.
func TestPodWaitsWhileTheNodeIsUnschedulable(t *testing.T) {
	cordon := func(unschedulable bool) {
		t.Helper()
		object := &corev1.Node{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "node"}, object); err != nil {
			t.Fatal(err)
		}
		object.Spec.Unschedulable = unschedulable
		if err := kube.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	ns := namespace(t)
	cordon(true)
	// The node's cache can be behind, so that the node still binds a Pod.
	for attempt := 0; ; attempt++ {
		pod := echo(ns, "echo", func(p *corev1.Pod) { p.Name, p.GenerateName = "", "echo-" })
		create(t, pod)
		eventually(t, pod, func(g Gomega) { g.Expect(pod.Status.Conditions).NotTo(BeEmpty()) })
		scheduled := pod.Status.Conditions[0]
		if scheduled.Status == corev1.ConditionTrue && attempt < 10 {
			continue
		}
		g := NewWithT(t)
		g.Expect(scheduled.Reason).To(Equal(corev1.PodReasonUnschedulable))
		g.Expect(scheduled.Message).To(Equal("0/1 nodes are available: 1 node(s) were unschedulable."))
		cordon(false)
		eventuallyReady(t, pod)
		return
	}
}

func TestRestartDelay(t *testing.T) {
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	const delay = time.Second
	testNode.SetRestartDelay(delay)
	defer testNode.SetRestartDelay(0)
	killed := time.Now()
	if err := testNode.KillContainer(t.Context(), client.ObjectKeyFromObject(pod), "echo"); err != nil {
		t.Fatal(err)
	}
	eventually(t, pod, func(g Gomega) { g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1)) })
	if took := time.Since(killed); took < delay {
		t.Errorf("the container was restarted after %s, want at least %s", took, delay)
	}
}
