package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hostIP is where the node and its log server listen. Kubernetes allows this address for
// Nodes but not in EndpointSlices.
const hostIP = "127.0.0.1"

// register creates the Node object, or updates the existing one with that name.
func (n *Node) register(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.name, Labels: map[string]string{corev1.LabelHostname: n.name},
	}}
	if err := n.kube.Create(ctx, node); apierrors.IsAlreadyExists(err) {
		err := n.kube.Get(ctx, client.ObjectKeyFromObject(node), node)
		if err != nil {
			return fmt.Errorf("read the Node: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("create the Node: %w", err)
	}
	// The API server adds the not-ready taint to a new Node. The controller that
	// would remove the taint does not run.
	before := node.DeepCopy()
	node.Spec.Taints = nil
	if err := n.kube.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("remove the Node's taints: %w", err)
	}
	before = node.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostIP}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = n.logs.port
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "NodeReady", Message: "Pods run as processes.",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if err := n.kube.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write the Node's status: %w", err)
	}
	return nil
}
