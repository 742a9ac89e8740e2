package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcile does what the Pod of that name asks for, as cache has it: it is
// bound, begun, ended, or killed when there is none any more.
func (n *Node) reconcile(ctx context.Context, cache client.Reader, key types.NamespacedName) error {
	object := &corev1.Pod{}
	if err := cache.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
		return err
	}
	n.killStalePods(key, object.UID) // a UID is empty if there is no Pod
	switch {
	case object.UID == "":
		return nil
	case object.Spec.NodeName == "":
		return n.bind(ctx, object)
	case object.Spec.NodeName != n.name:
		return nil
	}
	running := n.pod(object.UID)
	switch {
	case object.DeletionTimestamp != nil && running == nil:
		return n.remove(ctx, object)
	case object.DeletionTimestamp != nil:
		running.terminate(time.Duration(ptr.Deref(object.DeletionGracePeriodSeconds, 0)) * time.Second)
	case running == nil && !hasEnded(object):
		return n.startPod(object)
	}
	return nil
}

// bind plays the scheduler. A Pod that has gates waits for them.
func (n *Node) bind(ctx context.Context, object *corev1.Pod) error {
	if object.DeletionTimestamp != nil || len(object.Spec.SchedulingGates) > 0 {
		return nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: object.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: n.name},
	}
	err := n.kube.SubResource("binding").Create(ctx, object, binding)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the cache is about to tell of another state
	}
	return err
}

// remove deletes the object of a Pod that has ended.
func (n *Node) remove(ctx context.Context, object *corev1.Pod) error {
	err := n.kube.Delete(ctx, object, client.GracePeriodSeconds(0), client.Preconditions{UID: &object.UID})
	if apierrors.IsConflict(err) {
		return nil // another Pod has its name
	}
	return client.IgnoreNotFound(err)
}

func hasEnded(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}

// pod returns the one that runs with that UID, nil if there is none.
func (n *Node) pod(uid types.UID) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[uid]
}

// killStalePods kills the Pods of that name that the API server has no more.
func (n *Node) killStalePods(key types.NamespacedName, alive types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, p := range n.pods {
		if uid != alive && client.ObjectKeyFromObject(p.object) == key {
			p.kill()
		}
	}
}

// startPod runs the Pod until it is ended or killed.
func (n *Node) startPod(object *corev1.Pod) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return n.ctx.Err() // nobody would wait for it
	}
	ip, err := n.network.allocateIP(object.Namespace + "/" + object.Name)
	if err != nil {
		return fmt.Errorf("giving Pod %s/%s an address: %w", object.Namespace, object.Name, err)
	}
	p := newPod(n, object, ip)
	n.pods[object.UID] = p
	n.podGroup.Go(func() {
		p.run()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.pods, object.UID)
	})
	return nil
}
