package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// eventually repeats check until it returns no error.
func eventually(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, errors.Join(last, err))
	}
	return nil
}

// connectorKey returns the key for the Deployment with a Gateway's connectors.
func connectorKey(gateway string) client.ObjectKey {
	return client.ObjectKey{Namespace: release, Name: tunnel.ConnectorName(types.NamespacedName{Namespace: namespace, Name: gateway})}
}

// waitForRollout waits until all pods of the Deployment have its current template and are
// available.
func (b *bed) waitForRollout(ctx context.Context, key client.ObjectKey) error {
	return eventually(ctx, "the rollout of "+key.Name, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := b.kube.Get(ctx, key, d); err != nil {
			return err
		}
		want, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
			return fmt.Errorf("want %d replicas, the status is %+v", want, s)
		}
		return nil
	})
}

// waitForVersion waits until only controllers of the version exist, and are available.
func (b *bed) waitForVersion(ctx context.Context, version string) error {
	if err := b.waitForRollout(ctx, client.ObjectKey{Namespace: release, Name: release}); err != nil {
		return err
	}
	return eventually(ctx, "the end of the other controllers", func(ctx context.Context) error {
		pods, err := b.pods(ctx, isController)
		if err != nil {
			return err
		}
		for i := range pods {
			if image := pods[i].Spec.Containers[0].Image; !strings.HasPrefix(image, repository(version)) {
				return fmt.Errorf("pod %s has the image %s", pods[i].Name, image)
			}
		}
		return nil
	})
}

func isController(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Spec.Containers[0].Image, "upgrade.test/")
}

func isConnector(pod *corev1.Pod) bool { return !isController(pod) }

// pods returns the release's pods that match.
func (b *bed) pods(ctx context.Context, matches func(*corev1.Pod) bool) ([]corev1.Pod, error) {
	var all corev1.PodList
	if err := b.kube.List(ctx, &all, client.InNamespace(release)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return !matches(&p) }), nil
}

// holdConnectors makes new connector pods wait until the returned function is called: the
// node is unschedulable, and the controllers' pods are bound to it regardless.
func (b *bed) holdConnectors(ctx context.Context) (release func() error, err error) {
	if err := b.cordon(ctx, true); err != nil {
		return nil, err
	}
	binding, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for binding.Err() == nil {
			b.bindControllers(binding)
			pause(binding, 100*time.Millisecond)
		}
	}()
	return func() error {
		stop()
		<-done
		return b.cordon(ctx, false)
	}, nil
}

func (b *bed) cordon(ctx context.Context, unschedulable bool) error {
	n := &corev1.Node{}
	if err := b.kube.Get(ctx, client.ObjectKey{Name: "node"}, n); err != nil {
		return err
	}
	before := n.DeepCopy()
	n.Spec.Unschedulable = unschedulable
	return b.kube.Patch(ctx, n, client.MergeFrom(before))
}

// bindControllers binds the controllers' pending pods. Errors do not matter, because it is
// called again.
func (b *bed) bindControllers(ctx context.Context) {
	pods, _ := b.pods(ctx, isController)
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
		binding.Namespace, binding.Name, binding.UID = pod.Namespace, pod.Name, pod.UID
		_ = b.kube.SubResource("binding").Create(ctx, pod, binding)
	}
}

// connectorPods returns the names of the serving connector pods.
func (b *bed) connectorPods(ctx context.Context) ([]string, error) {
	pods, err := b.pods(ctx, isConnector)
	var names []string
	for i := range pods {
		if pods[i].Spec.NodeName != "" && pods[i].DeletionTimestamp == nil {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// printPods prints the pods' states, for a failure.
func (b *bed) printPods(ctx context.Context) {
	if b.node == nil {
		return
	}
	pods, _ := b.pods(ctx, func(*corev1.Pod) bool { return true })
	for i := range pods {
		for _, s := range slices.Concat(pods[i].Status.InitContainerStatuses, pods[i].Status.ContainerStatuses) {
			fmt.Printf("    pod %s, container %s: ready %t, %d restarts, %+v\n", pods[i].Name, s.Name, s.Ready, s.RestartCount, s.State)
		}
	}
}
