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
	before.UID = "" // the patch then contains the UID, and fails for a newer Pod of that name
	err := p.node.kube.Status().Patch(ctx, after.DeepCopy(), client.StrategicMergeFrom(before))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Pod was deleted
	}
	if err == nil {
		p.object.Status = after.Status
	}
	return err
}

// setStatus sets the fields of the status that the kubelet writes. It keeps other
// fields and conditions.
func (p *pod) setStatus(status *corev1.PodStatus) {
	status.HostIP, status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	status.PodIP, status.PodIPs = p.ip.String(), []corev1.PodIP{{IP: p.ip.String()}}
	status.StartTime = &p.started
	status.ContainerStatuses = nil
	var unready []string
	for _, c := range p.containers {
		container := c.status()
		status.ContainerStatuses = append(status.ContainerStatuses, container)
		if !container.Ready {
			unready = append(unready, container.Name)
		}
	}
	status.Phase = phase(status.ContainerStatuses)
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized} {
		setCondition(status, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue})
	}
	ready := corev1.PodCondition{Status: corev1.ConditionTrue}
	if len(unready) > 0 {
		ready = corev1.PodCondition{
			Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
			Message: "containers with unready status: [" + strings.Join(unready, " ") + "]",
		}
	}
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		ready.Type = t
		setCondition(status, ready)
	}
}

// phase returns the phase of a Pod, as the section "Pod phase" of the Kubernetes
// documentation of the Pod lifecycle defines it. The Pod is pending until each
// container has started, and succeeds or fails only when all containers have
// ended.
func phase(containers []corev1.ContainerStatus) corev1.PodPhase {
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
	case ended < len(containers):
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
