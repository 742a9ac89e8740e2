package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// bind binds the Pod to the node, as the scheduler does. It does not bind a Pod with
// scheduling gates. While the Node is unschedulable, the Pod waits.
func (n *Node) bind(ctx context.Context, cache client.Reader, object *corev1.Pod) error {
	if !n.binds || object.DeletionTimestamp != nil || len(object.Spec.SchedulingGates) > 0 {
		return nil
	}
	node := &corev1.Node{}
	if err := cache.Get(ctx, client.ObjectKey{Name: n.name}, node); err != nil {
		return err
	}
	if node.Spec.Unschedulable {
		return n.reportUnschedulable(ctx, object)
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: n.name}}
	binding.Namespace, binding.Name, binding.UID = object.Namespace, object.Name, object.UID
	err := n.kube.SubResource("binding").Create(ctx, object, binding)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the cache is stale; its next event triggers a reconcile
	}
	return err
}

// reportUnschedulable writes the condition that the scheduler writes.
func (n *Node) reportUnschedulable(ctx context.Context, object *corev1.Pod) error {
	after := object.DeepCopy()
	setCondition(&after.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/1 nodes are available: 1 node(s) were unschedulable.",
	})
	if equality.Semantic.DeepEqual(object.Status, after.Status) {
		return nil
	}
	return client.IgnoreNotFound(n.kube.Status().Patch(ctx, after, client.StrategicMergeFrom(object)))
}

// unboundPods returns the Pods without a node when a Node changes.
func unboundPods(cache client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		var pods corev1.PodList
		if cache.List(ctx, &pods) != nil {
			return nil
		}
		var requests []reconcile.Request
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Spec.NodeName == "" {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
			}
		}
		return requests
	}
}
