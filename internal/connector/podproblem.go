package connector

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// HasEnvoy reports whether a connector pod has an Envoy.
func HasEnvoy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == envoyName })
}

// maxCauseLength limits the cause in a message about a pod, in bytes.
const maxCauseLength = 200

// PodProblem returns a sentence that names the pod and why it is not ready. It returns
// "" for a pod that is ready or terminating.
func PodProblem(pod *corev1.Pod) string {
	if !pod.DeletionTimestamp.IsZero() || isTrue(pod, corev1.PodReady) {
		return ""
	}
	cause := strings.ToValidUTF8(podCause(pod), "")
	if len(cause) > maxCauseLength {
		cause = strings.ToValidUTF8(cause[:maxCauseLength], "") + "…"
	}
	if cause == "" {
		return fmt.Sprintf("Pod %s is not ready yet.", pod.Name)
	}
	return fmt.Sprintf("Pod %s is not ready: %s.", pod.Name, strings.TrimSuffix(cause, "."))
}

// podCause returns why the pod is not ready, or "" if its status does not give the
// cause. The text does not change while the cause remains.
func podCause(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return strings.TrimSpace(c.Reason + " " + inParentheses(c.Message))
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := c.State.Waiting; waiting != nil && !isStarting(waiting.Reason) {
			return fmt.Sprintf("container %s is waiting (%s)", c.Name, waiting.Reason)
		}
	}
	return ""
}

// isStarting reports whether a container with the reason starts as usual.
func isStarting(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}

// inParentheses returns the message in parentheses, or "" for an empty message.
func inParentheses(message string) string {
	if message == "" {
		return ""
	}
	return "(" + strings.TrimSuffix(message, ".") + ")"
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}
