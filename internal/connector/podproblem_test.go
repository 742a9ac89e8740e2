package connector_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

func TestPodProblemNamesThePodAndTheCause(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: kind, Status: status, Reason: reason, Message: message}}}
	}
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "envoy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	now := metav1.Now()
	for name, test := range map[string]struct {
		status  corev1.PodStatus
		deleted *metav1.Time
		want    string
	}{
		"ready":         {status: condition(corev1.PodReady, corev1.ConditionTrue, "", "")},
		"terminating":   {status: condition(corev1.PodReady, corev1.ConditionFalse, "", ""), deleted: &now},
		"starting":      {status: corev1.PodStatus{InitContainerStatuses: waiting("PodInitializing")}, want: "Pod web-1 is not ready yet."},
		"unschedulable": {status: condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available."), want: "Pod web-1 is not ready: Unschedulable (0/3 nodes are available)."},
		"no image":      {status: corev1.PodStatus{InitContainerStatuses: waiting("ImagePullBackOff")}, want: "Pod web-1 is not ready: container envoy is waiting (ImagePullBackOff)."},
		"crashing":      {status: corev1.PodStatus{ContainerStatuses: waiting("CrashLoopBackOff")}, want: "Pod web-1 is not ready: container envoy is waiting (CrashLoopBackOff)."},
		"a long message": {
			status: condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", strings.Repeat("é", 300)),
			want:   "Pod web-1 is not ready: Unschedulable (" + strings.Repeat("é", 92) + "….",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", DeletionTimestamp: test.deleted}, Status: test.status}
			if got := connector.PodProblem(pod); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
