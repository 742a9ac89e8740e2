package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workloads replaces Kubernetes controllers in the controller's namespace: it rolls out
// the Pods of Deployments, and deletes objects whose owner is gone. The demo has no
// kube-controller-manager, because most machines would have to build it.
type workloads struct {
	kube      client.Client
	namespace string
}

// run returns when the context is canceled.
func (w *workloads) run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { repeat(ctx, 100*time.Millisecond, w.rollOut) })
	loops.Go(func() { repeat(ctx, time.Second, w.collectGarbage) })
	loops.Wait()
}

// repeat calls the function until the context is canceled, and prints an error that
// differs from the last one.
func repeat(ctx context.Context, interval time.Duration, do func(context.Context) error) {
	var failure string
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := do(ctx); err != nil && ctx.Err() == nil && err.Error() != failure {
			failure = err.Error()
			fmt.Fprintln(os.Stderr, "demo:", err)
		}
	}, interval)
}

// rollOut does the next step for each Deployment.
func (w *workloads) rollOut(ctx context.Context) error {
	var all appsv1.DeploymentList
	err := w.kube.List(ctx, &all, client.InNamespace(w.namespace))
	for i := range all.Items {
		err = errors.Join(err, w.reconcile(ctx, &all.Items[i]))
	}
	return err
}

func (w *workloads) reconcile(ctx context.Context, deployment *appsv1.Deployment) error {
	var pods corev1.PodList
	err := w.kube.List(ctx, &pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	if err != nil {
		return fmt.Errorf("list the Pods of Deployment %s: %w", deployment.Name, err)
	}
	step := newRollout(deployment, ownPods(deployment, pods.Items))
	for range step.create {
		if err := w.kube.Create(ctx, newPod(deployment)); err != nil {
			return fmt.Errorf("create a Pod of Deployment %s: %w", deployment.Name, err)
		}
	}
	for i := range step.remove {
		if err := client.IgnoreNotFound(w.kube.Delete(ctx, &step.remove[i])); err != nil {
			return fmt.Errorf("delete a Pod of Deployment %s: %w", deployment.Name, err)
		}
	}
	step.status.Conditions = deployment.Status.Conditions
	if equality.Semantic.DeepEqual(deployment.Status, step.status) {
		return nil
	}
	deployment.Status = step.status
	err = w.kube.Status().Update(ctx, deployment)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("update the status of Deployment %s: %w", deployment.Name, err)
	}
	return nil
}

// ownPods leaves out the Pods of an earlier Deployment with the same name.
func ownPods(deployment *appsv1.Deployment, pods []corev1.Pod) []corev1.Pod {
	var own []corev1.Pod
	for _, pod := range pods {
		if metav1.IsControlledBy(&pod, deployment) {
			own = append(own, pod)
		}
	}
	return own
}

// newPod returns a Pod from the Deployment's template.
func newPod(deployment *appsv1.Deployment) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = deployment.Namespace, deployment.Name+"-"
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, templateHash(deployment))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	return pod
}
