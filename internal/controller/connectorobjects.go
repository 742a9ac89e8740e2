package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// applied is what was applied for a Tunnel.
type applied struct {
	// hash identifies the desired objects.
	hash string
	// versions are those of the objects in the order of connector.Kinds, as the API
	// server answered; "" for one that the Tunnel does not have.
	versions []string
}

// connectorInput returns what the connectors depend on.
func connectorInput(f tunnel.Facts, result *gateway.Result) connector.Input {
	metadata := result.Settings.Metadata
	return connector.Input{
		Tunnel: f.Object, Labels: metadata.Labels, Annotations: metadata.Annotations,
		Settings: connectorSettings(result), TokenVersion: f.Token.Version, HTTP2: f.Object.Status.HTTP2,
	}
}

// hashObjects returns a hash of the objects. Applying an object replaces it by what
// the API server answers, so the hash is that of objects that were just built.
func hashObjects(objects connector.Objects) (string, error) {
	text, err := json.Marshal(objects)
	if err != nil {
		return "", fmt.Errorf("marshalling the connectors: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// upToDate reports whether the objects are as they were after they were applied
// last, and nothing else is desired. Recent identifies objects that were applied
// a moment ago, which the cache may not have yet.
func (c *connectors) upToDate(ctx context.Context, f tunnel.Facts, result *gateway.Result, recent string) (bool, error) {
	objects, err := connector.Build(connectorInput(f, result))
	if err != nil {
		return false, nil // RunConnectors reports it
	}
	desired, err := hashObjects(objects)
	if err != nil || desired == recent {
		return err == nil, err
	}
	last := c.lastApplied(f.Object.Name)
	if last.hash != desired {
		return false, nil
	}
	versions, err := c.versions(ctx, f.Object)
	return slices.Equal(versions, last.versions), err
}

func (c *connectors) lastApplied(name string) applied {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied[name]
}

// apply makes the objects the desired ones, and returns what identifies them.
func (c *connectors) apply(ctx context.Context, f tunnel.Facts, result *gateway.Result) (string, error) {
	in := connectorInput(f, result)
	objects, err := connector.Build(in)
	if err != nil {
		return "", err
	}
	desired, err := hashObjects(objects)
	if err != nil {
		return "", err
	}
	if err := c.transferReplicas(ctx, in); err != nil {
		return "", err
	}
	var versions []string
	for _, kind := range connector.Kinds() {
		version, err := c.applyObject(ctx, f.Object, kind, objects)
		if err != nil {
			return "", err
		}
		versions = append(versions, version)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied[f.Object.Name] = applied{hash: desired, versions: versions}
	return desired, nil
}

// versions returns the versions of the Tunnel's objects in the cache.
func (c *connectors) versions(ctx context.Context, t *v1alpha1.Tunnel) ([]string, error) {
	var versions []string
	key := connectorKey(t)
	for _, kind := range connector.Kinds() {
		object := kind.New()
		err := c.client.Get(ctx, key, object)
		switch {
		case isNotFound(err, key.Name), err == nil && !isManagedBy(object, t):
			versions = append(versions, "")
		case err != nil:
			return nil, fmt.Errorf("reading %T %s: %w", object, key, err)
		default:
			versions = append(versions, versionOf(object))
		}
	}
	return versions, nil
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

// applyObject applies the object of the kind, or deletes it when it is not desired.
// It returns the object's version. An object that does not belong to the Tunnel
// is left alone.
func (c *connectors) applyObject(ctx context.Context, t *v1alpha1.Tunnel, kind connector.Kind, objects connector.Objects) (string, error) {
	key, object, desired := connectorKey(t), kind.New(), kind.Select(objects)
	err := c.live.Get(ctx, key, object)
	switch {
	case err != nil && !isNotFound(err, key.Name):
		return "", fmt.Errorf("reading %T %s: %w", object, key, err)
	case desired == nil && (err != nil || !isManagedBy(object, t)):
		return "", nil
	case desired == nil:
		return "", c.remove(ctx, object)
	case err == nil && !isManagedBy(object, t):
		return "", &tunnel.Failure{Reason: tunnel.ReasonObjectTaken, Err: fmt.Errorf("%T %s exists and does not belong to Tunnel %s; delete or rename it", object, key, t.Name)}
	}
	if err := c.client.Apply(ctx, desired, fieldOwner, client.ForceOwnership); err != nil {
		return "", fmt.Errorf("applying %T %s: %w", object, key, err)
	}
	answer := kind.New()
	if err := convert(desired, answer); err != nil {
		return "", fmt.Errorf("reading the answer about %T %s: %w", object, key, err)
	}
	return versionOf(answer), nil
}

// convert turns an apply configuration into an object.
func convert(from runtime.ApplyConfiguration, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// transferReplicas keeps the number of connectors while an autoscaler takes over.
func (c *connectors) transferReplicas(ctx context.Context, in connector.Input) error {
	key := connectorKey(in.Tunnel)
	deployment := &appsv1.Deployment{}
	if err := c.live.Get(ctx, key, deployment); err != nil {
		return client.IgnoreNotFound(err)
	}
	held := connector.Handover(in, deployment, string(fieldOwner))
	if held == nil || !isManagedBy(deployment, in.Tunnel) {
		return nil
	}
	if err := c.client.Apply(ctx, held, fieldOwner+"-handover"); err != nil {
		return fmt.Errorf("handing the replicas of Deployment %s over to its autoscaler: %w", key, err)
	}
	return nil
}

// stop deletes the objects, so that the pods end. What confines the pods goes
// with the Tunnel.
func (c *connectors) stop(ctx context.Context, t *v1alpha1.Tunnel) error {
	c.mu.Lock()
	delete(c.applied, t.Name)
	c.mu.Unlock()
	for _, kind := range connector.Kinds() {
		if kind.OutlivesPods {
			continue
		}
		object, key := kind.New(), connectorKey(t)
		err := c.live.Get(ctx, key, object)
		switch {
		case isNotFound(err, key.Name):
			continue
		case err != nil:
			return fmt.Errorf("reading %T %s: %w", object, key, err)
		case !isManagedBy(object, t):
			continue
		}
		if err := c.remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (c *connectors) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// connectorKey returns the name of every object that runs the connectors.
func connectorKey(t *v1alpha1.Tunnel) types.NamespacedName {
	gateway := types.NamespacedName{Namespace: t.Spec.Gateway.Namespace, Name: t.Spec.Gateway.Name}
	return types.NamespacedName{Namespace: t.Namespace, Name: tunnel.ConnectorName(gateway)}
}

// isManagedBy reports whether the object belongs to the Tunnel, or to one of its
// name that was deleted: its garbage collection has then begun, and applying the
// object again gives it its new owner.
func isManagedBy(object metav1.Object, t *v1alpha1.Tunnel) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == tunnelKind && owner.APIVersion == v1alpha1.GroupVersion.String() && owner.Name == t.Name
}

const tunnelKind = "Tunnel"
