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
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// applied describes the connector objects that were last applied for a Tunnel.
type applied struct {
	hash string
	// versions are the object versions that the API server returned, in the order of
	// connector.Kinds. The version is "" for a kind that the Tunnel does not have.
	versions []string
}

// connectorInput returns the input from which the connector objects are built.
// Connectors with Envoy run until the ingress rules serve the Gateway, even if the
// settings no longer ask for connectors.
func (c *connectors) connectorInput(f tunnel.Facts, s *settings.Settings) connector.Input {
	metadata := s.Metadata
	in := connector.Input{
		Tunnel: f.Object, Labels: metadata.Labels, Annotations: metadata.Annotations,
		Settings: connectorSettings(s), TokenVersion: f.Token.Version, HTTP2: f.Object.Status.HTTP2,
	}
	if tunnel.RunsEnvoy(f.Object) {
		in.Envoy = &connector.Envoy{Controller: c.xdsHost}
		in.Settings.Enabled = nil // true
	}
	return in
}

// hashObjects hashes newly built objects. It must be called before the objects are
// applied: Apply replaces each object with the API server's response.
func hashObjects(objects connector.Objects) (string, error) {
	text, err := json.Marshal(objects)
	if err != nil {
		return "", fmt.Errorf("marshal the connectors: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// upToDate reports whether the objects in the cache match the desired objects. Recent
// is the hash of the objects that this reconcile has applied; the cache may not contain
// them yet.
func (c *connectors) upToDate(ctx context.Context, f tunnel.Facts, s *settings.Settings, last applied, recent string) (bool, error) {
	objects, err := connector.Build(c.connectorInput(f, s))
	if err != nil {
		return false, nil // RunConnectors reports the error
	}
	desired, err := hashObjects(objects)
	if err != nil || desired == recent {
		return err == nil, err
	}
	if last.hash != desired {
		return false, nil
	}
	cached, err := c.isCached(ctx, f.Object, last)
	if err != nil || !cached || !needsIdentity(f.Object, objects) {
		return cached, err
	}
	return c.identities.IsCurrent(ctx, f.Object)
}

// needsIdentity reports whether the connectors' Envoys need a certificate.
func needsIdentity(t *v1alpha1.Tunnel, objects connector.Objects) bool {
	return tunnel.UsesIdentity(t) && objects.Deployment != nil
}

// isCached reports whether the cache contains the objects that were last applied.
func (c *connectors) isCached(ctx context.Context, t *v1alpha1.Tunnel, last applied) (bool, error) {
	versions, err := c.versions(ctx, t)
	return err == nil && slices.Equal(versions, last.versions), err
}

// apply creates, updates and deletes the connector objects as desired. It returns their
// hash and versions.
func (c *connectors) apply(ctx context.Context, f tunnel.Facts, s *settings.Settings) (applied, error) {
	in := c.connectorInput(f, s)
	objects, err := connector.Build(in)
	if err != nil {
		return applied{}, err
	}
	desired, err := hashObjects(objects)
	if err != nil {
		return applied{}, err
	}
	if err := c.prepareDeployment(ctx, in); err != nil {
		return applied{}, err
	}
	if needsIdentity(f.Object, objects) { // a pod does not start without its Secret
		if err := c.identities.Write(ctx, f.Object); err != nil {
			return applied{}, err
		}
	}
	var versions []string
	for _, kind := range connector.Kinds() {
		version, err := c.applyObject(ctx, f.Object, kind, objects)
		if err != nil {
			return applied{}, err
		}
		versions = append(versions, version)
	}
	return applied{hash: desired, versions: versions}, nil
}

// versions returns the versions of the Tunnel's connector objects in the cache.
func (c *connectors) versions(ctx context.Context, t *v1alpha1.Tunnel) ([]string, error) {
	var versions []string
	key := connectorKey(t)
	for _, kind := range connector.Kinds() {
		object := kind.New()
		err := c.client.Get(ctx, key, object)
		switch {
		case isNotFound(err, key.Name), err == nil && !connector.IsManagedBy(object, t):
			versions = append(versions, "")
		case err != nil:
			return nil, fmt.Errorf("read %s %s: %w", typeName(object), key, err)
		default:
			versions = append(versions, versionOf(object))
		}
	}
	return versions, nil
}

// versionOf returns a version that changes with the object's spec but not with its
// status.
func versionOf(object client.Object) string {
	scaler, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	switch {
	case ok: // the API server sets no generation for this kind
		spec, _ := json.Marshal(scaler.Spec) // cannot fail: the spec has only numbers and strings
		return string(scaler.UID) + string(spec)
	case object.GetGeneration() > 0:
		return fmt.Sprintf("%s %d", object.GetUID(), object.GetGeneration())
	default:
		return object.GetResourceVersion()
	}
}

// applyObject applies the object of the kind, or deletes it when it is not desired. It
// returns the object's version. It does not change an object that does not belong to
// the Tunnel.
func (c *connectors) applyObject(ctx context.Context, t *v1alpha1.Tunnel, kind connector.Kind, objects connector.Objects) (string, error) {
	key, object, desired := connectorKey(t), kind.New(), kind.Select(objects)
	err := c.live.Get(ctx, key, object)
	switch {
	case err != nil && !isNotFound(err, key.Name):
		return "", fmt.Errorf("read %s %s: %w", typeName(object), key, err)
	case desired == nil && (err != nil || !connector.IsManagedBy(object, t)):
		return "", nil
	case desired == nil:
		return "", c.remove(ctx, object)
	case err == nil && !connector.IsManagedBy(object, t):
		return "", tunnel.ObjectTaken(t, typeName(object), key)
	}
	if err := c.client.Apply(ctx, desired, fieldOwner, client.ForceOwnership); err != nil {
		return "", fmt.Errorf("apply %s %s: %w", typeName(object), key, err)
	}
	response := kind.New()
	if err := convert(desired, response); err != nil {
		return "", fmt.Errorf("decode the applied %s %s: %w", typeName(object), key, err)
	}
	return versionOf(response), nil
}

// convert decodes an apply configuration into an object.
func convert(configuration runtime.ApplyConfiguration, target any) error {
	text, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, target)
}

// prepareDeployment changes what server-side apply cannot change in the Deployment: it
// makes the autoscaler own the replica count, without changing the count, and removes
// an Envoy that another client owns, too.
func (c *connectors) prepareDeployment(ctx context.Context, in connector.Input) error {
	key := connectorKey(in.Tunnel)
	deployment := &appsv1.Deployment{}
	if err := c.live.Get(ctx, key, deployment); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !connector.IsManagedBy(deployment, in.Tunnel) {
		return nil
	}
	if replicas := connector.Handover(in, deployment, string(fieldOwner)); replicas != nil {
		if err := c.client.Apply(ctx, replicas, fieldOwner+"-handover"); err != nil {
			return fmt.Errorf("transfer the replicas of Deployment %s to its autoscaler: %w", key, err)
		}
	}
	if patch := connector.EnvoyRemoval(in, deployment, string(fieldOwner)); patch != nil {
		if err := c.client.Patch(ctx, deployment, client.RawPatch(types.JSONPatchType, patch), fieldOwner); err != nil {
			return fmt.Errorf("remove Envoy from Deployment %s: %w", key, err)
		}
	}
	return nil
}

// stop deletes the objects that run the pods. The objects that confine the pods, such
// as the NetworkPolicy, stay until Kubernetes deletes them with the Tunnel.
func (c *connectors) stop(ctx context.Context, t *v1alpha1.Tunnel) error {
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
			return fmt.Errorf("read %s %s: %w", typeName(object), key, err)
		case !connector.IsManagedBy(object, t):
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
		return fmt.Errorf("delete %s %s: %w", typeName(object), client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// connectorKey returns the key that all the Tunnel's connector objects have.
func connectorKey(t *v1alpha1.Tunnel) types.NamespacedName {
	gateway := types.NamespacedName{Namespace: t.Spec.Gateway.Namespace, Name: t.Spec.Gateway.Name}
	return types.NamespacedName{Namespace: t.Namespace, Name: tunnel.ConnectorName(gateway)}
}
