package node

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// report writes the status if it has changed since the last write.
func (p *pod) report(ctx context.Context) error {
	after := p.object.DeepCopy()
	p.setStatus(&after.Status)
	if equality.Semantic.DeepEqual(p.object.Status, after.Status) {
		return nil
	}
	before := p.object.DeepCopy()
	before.UID = "" // the patch then contains the UID, and fails for a newer Pod with that name
	err := p.node.kube.Status().Patch(ctx, after.DeepCopy(), client.StrategicMergeFrom(before))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Pod was deleted
	}
	if err == nil {
		p.object.Status = after.Status
	}
	return err
}

// setStatus sets the status fields that the kubelet writes. It keeps other fields and
// conditions.
func (p *pod) setStatus(status *corev1.PodStatus) {
	status.HostIP, status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	status.PodIP, status.PodIPs = p.ip.String(), []corev1.PodIP{{IP: p.ip.String()}}
	status.StartTime = &p.started
	status.InitContainerStatuses, status.ContainerStatuses = statuses(p.sidecars), statuses(p.containers)
	status.Phase = phase(status.InitContainerStatuses, status.ContainerStatuses)
	setCondition(status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	setCondition(status, initialized(status))
	// As the Kubernetes page about sidecar containers specifies, a sidecar must be ready
	// for its Pod to be ready.
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	unready := names(all, func(c corev1.ContainerStatus) bool { return !c.Ready })
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(status, condition(t, "ContainersNotReady", "containers with unready status", unready))
	}
}

func statuses(containers []*container) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for _, c := range containers {
		all = append(all, c.status())
	}
	return all
}

// initialized returns the condition Initialized. It does not change when a sidecar
// restarts while another container runs.
func initialized(status *corev1.PodStatus) corev1.PodCondition {
	var incomplete []string
	if !slices.ContainsFunc(status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }) {
		incomplete = names(status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return !*c.Started })
	}
	return condition(corev1.PodInitialized, "ContainersNotInitialized", "containers with incomplete status", incomplete)
}

// names returns the names of the containers that match.
func names(containers []corev1.ContainerStatus, matches func(corev1.ContainerStatus) bool) []string {
	var found []string
	for _, c := range containers {
		if matches(c) {
			found = append(found, c.Name)
		}
	}
	return found
}

// condition returns a condition that is true if there are no containers. Otherwise, it
// has the reason, and a message with the container names.
func condition(t corev1.PodConditionType, reason, message string, containers []string) corev1.PodCondition {
	if len(containers) == 0 {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message + ": [" + strings.Join(containers, " ") + "]",
	}
}

// phase returns a Pod's phase, as Kubernetes defines it under "Pod phase" on its page
// about the Pod lifecycle. The Pod is pending until each container has started, and
// succeeds or fails only when all containers have ended. The sidecars' results do not
// count.
func phase(sidecars, containers []corev1.ContainerStatus) corev1.PodPhase {
	ended, failed := 0, false
	for _, c := range containers {
		switch {
		case c.State.Terminated != nil:
			ended++
			failed = failed || c.State.Terminated.ExitCode != 0
		case c.State.Running == nil && c.LastTerminationState.Terminated == nil:
			return corev1.PodPending
		}
	}
	switch {
	case ended < len(containers), slices.ContainsFunc(sidecars, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }):
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

// setCondition sets a condition. It keeps the transition time if the status does
// not change.
func setCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	condition.LastTransitionTime = now()
	i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	old := &status.Conditions[i]
	if old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	condition.ObservedGeneration = old.ObservedGeneration
	*old = condition
}
