package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcile binds, starts or terminates the Pod with that name, or updates its volumes,
// depending on its state in the cache. It kills the Pod's processes if the Pod no longer
// exists.
func (n *Node) reconcile(ctx context.Context, cache client.Reader, key types.NamespacedName) error {
	object := &corev1.Pod{}
	if err := cache.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
		return err
	}
	n.killStalePods(key, object.UID) // the UID is empty if the Pod does not exist
	switch {
	case object.UID == "":
		return nil
	case object.Spec.NodeName == "":
		return n.bind(ctx, cache, object)
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
	case running != nil:
		return running.updateVolumes(ctx)
	}
	return nil
}

// remove deletes the Pod object after the Pod has ended.
func (n *Node) remove(ctx context.Context, object *corev1.Pod) error {
	err := n.kube.Delete(ctx, object, client.GracePeriodSeconds(0), client.Preconditions{UID: &object.UID})
	if apierrors.IsConflict(err) {
		return nil // a newer Pod has the same name
	}
	return client.IgnoreNotFound(err)
}

func hasEnded(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}

// pod returns the running Pod with that UID, or nil.
func (n *Node) pod(uid types.UID) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[uid]
}

// runningPod returns the running Pod with that name, or nil.
func (n *Node) runningPod(key types.NamespacedName) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if client.ObjectKeyFromObject(p.object) == key && p.killed.Err() == nil {
			return p
		}
	}
	return nil
}

// killStalePods kills the Pods with that name that the API server has deleted: all Pods
// with a UID other than current.
func (n *Node) killStalePods(key types.NamespacedName, current types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, p := range n.pods {
		if uid != current && client.ObjectKeyFromObject(p.object) == key {
			p.kill()
		}
	}
}

// startPod starts to run the Pod.
func (n *Node) startPod(object *corev1.Pod) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return n.ctx.Err() // Stop would not wait for the Pod
	}
	ip, err := n.network.allocateIP(object.Namespace + "/" + object.Name)
	if err != nil {
		return fmt.Errorf("allocate an address for Pod %s/%s: %w", object.Namespace, object.Name, err)
	}
	n.podCount++
	p := newPod(n, object, n.podCount, ip)
	n.pods[object.UID] = p
	n.podGroup.Go(func() {
		p.run()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.pods, object.UID)
	})
	return nil
}
