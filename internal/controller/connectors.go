package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// fieldOwner is the manager of the fields that we apply.
const fieldOwner = client.FieldOwner("tunnel-gateway")

// stopInterval is how often it is looked whether connectors have ended.
const stopInterval = 2 * time.Second

// connectors applies what runs the connectors of Gateways.
type connectors struct {
	client client.Client
	live   client.Reader

	mu sync.Mutex
	// applied is what was applied last for each Gateway, and over what.
	applied map[state.Key]string
}

// ConnectorObjects returns an empty object of each kind that connectors are
// made of, in the order in which they are applied.
func ConnectorObjects() []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}, &appsv1.Deployment{},
		&policyv1.PodDisruptionBudget{}, &autoscalingv2.HorizontalPodAutoscaler{},
	}
}

// apply makes the objects the wanted ones, unless they are as they were after
// the last time.
func (c *connectors) apply(ctx context.Context, in connector.Input) error {
	objects, err := connector.Build(in)
	if err != nil {
		return err
	}
	wanted := objects.ByKind()
	now, err := c.fingerprint(ctx, in.Gateway, wanted)
	if err != nil {
		return err
	}
	key := loadedKey(in.Gateway)
	c.mu.Lock()
	last := c.applied[key]
	c.mu.Unlock()
	if last == now {
		return nil
	}
	if err := c.handOver(ctx, in); err != nil {
		return err
	}
	for i, object := range ConnectorObjects() {
		if err := c.applyOne(ctx, in.Gateway, object, wanted[i]); err != nil {
			return err
		}
		if err := c.deleteRenamed(ctx, in.Gateway, object); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied[key] = now
	return nil
}

// fingerprint identifies what is wanted and what is there: the generation of each
// object, or the version of one that has none.
func (c *connectors) fingerprint(ctx context.Context, g *gatewayv1.Gateway, wanted []runtime.ApplyConfiguration) (string, error) {
	there := make([]string, len(wanted))
	for i, object := range ConnectorObjects() {
		err := c.client.Get(ctx, objectKey(g), object)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", fmt.Errorf("reading %T %s: %w", object, objectKey(g), err)
		default:
			there[i] = versionOf(object)
		}
	}
	document, err := json.Marshal([]any{wanted, there, g.UID})
	if err != nil {
		return "", fmt.Errorf("marshalling the connectors of %s: %w", objectKey(g), err)
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:]), nil
}

// versionOf changes with what the object asks for, and not with its status.
func versionOf(object client.Object) string {
	scaler, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	switch {
	case ok: // the API counts no generations of them
		spec, _ := json.Marshal(scaler.Spec) // numbers and strings always marshal
		return string(scaler.UID) + string(spec)
	case object.GetGeneration() > 0:
		return fmt.Sprintf("%s %d", object.GetUID(), object.GetGeneration())
	default:
		return object.GetResourceVersion()
	}
}

// applyOne applies the object, or deletes it when it is not wanted; and those
// of the kind that the Gateway had under another name. What is not the
// Gateway's is left alone.
func (c *connectors) applyOne(ctx context.Context, g *gatewayv1.Gateway, object client.Object, wanted runtime.ApplyConfiguration) error {
	key := objectKey(g)
	if err := c.live.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %T %s: %w", object, key, err)
	} else if err == nil && !metav1.IsControlledBy(object, g) {
		if wanted == nil {
			return nil
		}
		return &objectTakenError{object: fmt.Sprintf("%T %s", object, key)}
	}
	if wanted == nil {
		return c.deleteObject(ctx, g, object)
	}
	if err := c.client.Apply(ctx, wanted, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %T %s: %w", object, key, err)
	}
	return nil
}

// handOver keeps the number of connectors while an autoscaler takes over.
func (c *connectors) handOver(ctx context.Context, in connector.Input) error {
	deployment := &appsv1.Deployment{}
	if err := c.live.Get(ctx, objectKey(in.Gateway), deployment); err != nil {
		return client.IgnoreNotFound(err)
	}
	held := connector.Handover(in, deployment, string(fieldOwner))
	if held == nil || !metav1.IsControlledBy(deployment, in.Gateway) {
		return nil
	}
	if err := c.client.Apply(ctx, held, fieldOwner+"-handover"); err != nil {
		return fmt.Errorf("handing the replicas of Deployment %s over to its autoscaler: %w", objectKey(in.Gateway), err)
	}
	return nil
}

// deleteRenamed deletes what the Gateway had under another name: the name of its
// class is part of it.
func (c *connectors) deleteRenamed(ctx context.Context, g *gatewayv1.Gateway, object client.Object) error {
	all, err := c.made(ctx, g, object)
	if err != nil {
		return err
	}
	for _, former := range all {
		if former.GetName() == connector.Name(g) {
			continue
		}
		if err := c.deleteObject(ctx, g, former); err != nil {
			return err
		}
	}
	return nil
}

// made returns what there is of the object's kind for the Gateway, under
// whatever name.
func (c *connectors) made(ctx context.Context, g *gatewayv1.Gateway, object client.Object) ([]client.Object, error) {
	kind, err := c.client.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.live.List(ctx, list, client.InNamespace(g.Namespace), client.MatchingLabels(connector.Selector(g))); err != nil {
		return nil, fmt.Errorf("listing %s objects of the connectors: %w", kind.Kind, err)
	}
	var all []client.Object
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], g) {
			list.Items[i].SetGroupVersionKind(kind)
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

// objectKey is the name of each object.
func objectKey(g *gatewayv1.Gateway) client.ObjectKey {
	return client.ObjectKey{Namespace: g.Namespace, Name: connector.Name(g)}
}

func (c *connectors) deleteObject(ctx context.Context, g *gatewayv1.Gateway, object client.Object) error {
	if object.GetUID() == "" || !metav1.IsControlledBy(object, g) { // not there, or not the Gateway's
		return nil
	}
	uid := object.GetUID()
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// ready says how ready the Gateway's connectors are; nil when it has none and
// none are wanted. While there is no Deployment, so many are missing.
func (c *connectors) ready(ctx context.Context, g *gatewayv1.Gateway, wanted bool, missing int32) (*gateway.Readiness, error) {
	deployment := &appsv1.Deployment{}
	err := c.client.Get(ctx, objectKey(g), deployment)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(deployment, g) {
		if !wanted {
			return nil, nil
		}
		deployment, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", objectKey(g), err)
	}
	status, reason, message := connector.Ready(deployment)
	ready := &gateway.Readiness{Status: status, Reason: reason, Message: message, Wanted: missing}
	if deployment != nil {
		ready.Wanted, ready.Available = ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status.AvailableReplicas
	}
	return ready, nil
}

// stop ends the Gateway's connectors. When it is to wait, it returns a
// stoppingError until the last one is gone: only then are the tunnel's
// connections no more. A pod that failed has none.
func (c *connectors) stop(ctx context.Context, g *gatewayv1.Gateway, wait bool) error {
	c.mu.Lock()
	delete(c.applied, loadedKey(g))
	c.mu.Unlock()
	for _, object := range []client.Object{&autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.Deployment{}} {
		if err := c.deleteMade(ctx, g, object); err != nil {
			return err
		}
	}
	if n, err := c.running(ctx, g); err != nil {
		return err
	} else if n > 0 && wait {
		return &stoppingError{pods: n}
	}
	for _, object := range ConnectorObjects() {
		if err := c.deleteMade(ctx, g, object); err != nil {
			return err
		}
	}
	return nil
}

// running counts the pods that may have connections.
func (c *connectors) running(ctx context.Context, g *gatewayv1.Gateway) (int, error) {
	var pods corev1.PodList
	if err := c.live.List(ctx, &pods, client.InNamespace(g.Namespace), client.MatchingLabels(connector.Selector(g))); err != nil {
		return 0, fmt.Errorf("listing the connectors' pods: %w", err)
	}
	n := 0
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase != corev1.PodFailed && phase != corev1.PodSucceeded {
			n++
		}
	}
	return n, nil
}

func (c *connectors) deleteMade(ctx context.Context, g *gatewayv1.Gateway, object client.Object) error {
	all, err := c.made(ctx, g, object)
	if err != nil {
		return err
	}
	for _, object := range all {
		if err := c.deleteObject(ctx, g, object); err != nil {
			return err
		}
	}
	return nil
}

// stoppingError: connectors are told to end and have not ended yet.
type stoppingError struct{ pods int }

func (e *stoppingError) Error() string {
	return fmt.Sprintf("%d of its connectors have not ended yet", e.pods)
}

// objectTakenError: an object of the name is there and is not the Gateway's.
type objectTakenError struct{ object string }

func (e *objectTakenError) Error() string {
	return fmt.Sprintf("%s exists and does not belong to the Gateway; delete or rename it", e.object)
}
