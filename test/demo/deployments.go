package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployments replaces the Kubernetes controllers for connector Deployments: it creates
// each Deployment's Pods, and reports in the status how many are ready. It neither
// replaces nor deletes Pods. The demo has no kube-controller-manager, because most
// machines would have to build it.
type deployments struct {
	kube      client.Client
	namespace string
	failure   string // the last failure that was printed
}

// run returns when the context is canceled.
func (d *deployments) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		var all appsv1.DeploymentList
		err := d.kube.List(ctx, &all, client.InNamespace(d.namespace))
		for i := range all.Items {
			err = errors.Join(err, d.reconcile(ctx, &all.Items[i]))
		}
		if err != nil && ctx.Err() == nil && err.Error() != d.failure {
			d.failure = err.Error()
			fmt.Fprintln(os.Stderr, "demo:", err)
		}
	}, 100*time.Millisecond)
}

func (d *deployments) reconcile(ctx context.Context, deployment *appsv1.Deployment) error {
	var pods corev1.PodList
	err := d.kube.List(ctx, &pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	if err != nil {
		return fmt.Errorf("list the Pods of Deployment %s: %w", deployment.Name, err)
	}
	replicas, existing := ptr.Deref(deployment.Spec.Replicas, 1), int32(len(pods.Items)) // #nosec G115 -- few Pods
	for ; existing < replicas; existing++ {
		if err := d.kube.Create(ctx, newPod(deployment)); err != nil {
			return fmt.Errorf("create a Pod of Deployment %s: %w", deployment.Name, err)
		}
	}
	ready := int32(0)
	for _, pod := range pods.Items {
		if isReady(pod) {
			ready++
		}
	}
	status := appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           existing, UpdatedReplicas: existing, ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: existing - ready,
	}
	if statusEquals(deployment.Status, status) {
		return nil
	}
	deployment.Status = status
	if err := client.IgnoreNotFound(d.kube.Status().Update(ctx, deployment)); err != nil {
		return fmt.Errorf("update the status of Deployment %s: %w", deployment.Name, err)
	}
	return nil
}

func statusEquals(a, b appsv1.DeploymentStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Replicas == b.Replicas && a.ReadyReplicas == b.ReadyReplicas
}

// newPod returns a Pod from the Deployment's template.
func newPod(deployment *appsv1.Deployment) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = deployment.Namespace, deployment.Name+"-"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	return pod
}

func isReady(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
