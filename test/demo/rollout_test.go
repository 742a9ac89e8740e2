package main

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// simulation is a Deployment whose Pods become ready one after the other.
type simulation struct {
	deployment *appsv1.Deployment
	pods       []corev1.Pod
	created    int
}

func newSimulation(replicas int32, surge, unavailable intstr.IntOrString) *simulation {
	d := &appsv1.Deployment{}
	d.Spec.Replicas = &replicas
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
	return &simulation{deployment: d}
}

// settle repeats steps until nothing changes, and returns the last status. It checks that
// at least minReady Pods remain ready and at most maxPods exist.
func (s *simulation) settle(t *testing.T, minReady, maxPods int) appsv1.DeploymentStatus {
	t.Helper()
	for range 100 {
		r := newRollout(s.deployment, s.pods)
		for range r.create {
			s.created++
			pod := newPod(s.deployment)
			pod.UID, pod.Name = types.UID(fmt.Sprint(s.created)), fmt.Sprint(s.created)
			s.pods = append(s.pods, *pod)
		}
		for _, removed := range r.remove {
			s.pods = slices.DeleteFunc(s.pods, func(p corev1.Pod) bool { return p.UID == removed.UID })
		}
		if ready := s.ready(); ready < minReady || len(s.pods) > maxPods {
			t.Errorf("%d Pods, %d ready; want at most %d, and at least %d ready", len(s.pods), ready, maxPods, minReady)
		}
		becomesReady := slices.IndexFunc(s.pods, func(p corev1.Pod) bool { return !isReady(p) })
		if r.create == 0 && len(r.remove) == 0 && becomesReady < 0 {
			return r.status
		}
		if becomesReady >= 0 {
			s.pods[becomesReady].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
	}
	t.Fatalf("the rollout does not end: %v", newRollout(s.deployment, s.pods))
	return appsv1.DeploymentStatus{}
}

func (s *simulation) ready() int {
	n := 0
	for _, pod := range s.pods {
		if isReady(pod) {
			n++
		}
	}
	return n
}

func TestARolloutReplacesPodsWithinTheBoundsOfTheStrategy(t *testing.T) {
	for _, test := range []struct {
		replicas           int32
		surge, unavailable intstr.IntOrString
		minReady, maxPods  int
	}{
		{2, intstr.FromInt32(1), intstr.FromString("4%"), 2, 3},
		{1, intstr.FromInt32(1), intstr.FromString("4%"), 1, 2},
		{25, intstr.FromInt32(1), intstr.FromString("4%"), 24, 26},
		{3, intstr.FromInt32(0), intstr.FromInt32(0), 2, 3},
	} {
		s := newSimulation(test.replicas, test.surge, test.unavailable)
		s.settle(t, 0, test.maxPods)
		before := slices.Clone(s.pods)
		s.deployment.Spec.Template.Annotations = map[string]string{"token": "new"}
		s.deployment.Generation = 2
		status := s.settle(t, test.minReady, test.maxPods)
		want := appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: test.replicas, UpdatedReplicas: test.replicas, ReadyReplicas: test.replicas, AvailableReplicas: test.replicas,
		}
		if status.String() != want.String() {
			t.Errorf("%d replicas: the status is %v, want %v", test.replicas, status, want)
		}
		for _, old := range before {
			if slices.ContainsFunc(s.pods, func(p corev1.Pod) bool { return p.UID == old.UID }) {
				t.Errorf("%d replicas: Pod %s was not replaced", test.replicas, old.Name)
			}
		}
	}
}

func TestARolloutReportsOutdatedPods(t *testing.T) {
	s := newSimulation(2, intstr.FromInt32(1), intstr.FromInt32(0))
	s.settle(t, 0, 3)
	s.deployment.Spec.Template.Annotations = map[string]string{"token": "new"}
	if status := newRollout(s.deployment, s.pods).status; status.UpdatedReplicas != 0 || status.Replicas != 2 || status.ReadyReplicas != 2 {
		t.Errorf("the status is %v, want no updated Pods", status)
	}
}

func TestADeploymentIsScaledDown(t *testing.T) {
	s := newSimulation(3, intstr.FromInt32(1), intstr.FromInt32(0))
	s.settle(t, 0, 4)
	*s.deployment.Spec.Replicas = 0
	if status := s.settle(t, 0, 4); status.Replicas != 0 {
		t.Errorf("the status is %v, want no Pods", status)
	}
}

// A Pod that terminates does not count, so that its replacement starts at once.
func TestATerminatingPodIsReplaced(t *testing.T) {
	s := newSimulation(1, intstr.FromInt32(1), intstr.FromInt32(0))
	s.settle(t, 0, 2)
	s.pods[0].DeletionTimestamp = &metav1.Time{}
	if r := newRollout(s.deployment, s.pods); r.create != 1 || r.status.Replicas != 0 {
		t.Errorf("%d new Pods, status %v; want one, and no Pod in the status", r.create, r.status)
	}
}
