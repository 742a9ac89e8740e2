package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// fieldOwner is the controller's field manager.
const fieldOwner = client.FieldOwner("tunnel-gateway")

// identities writes the Secrets with the certificates by which a Tunnel's Envoys
// identify themselves. [authority.Authority] implements it.
type identities interface {
	IsCurrent(context.Context, *v1alpha1.Tunnel) (bool, error)
	Write(context.Context, *v1alpha1.Tunnel) error
}

// connectors applies, checks and deletes the connector objects.
type connectors struct {
	client client.Client
	live   client.Reader
	// identities writes Envoy certificates, and xdsHost is the name at which Envoys
	// find the controller.
	identities identities
	xdsHost    string
}

// check returns the state of the Tunnel's connectors. It lists pods only when the next
// decision depends on them. last describes the objects that were last applied, and
// recent is the hash of the objects that this reconcile has applied; the cache may not
// contain them yet.
func (c *connectors) check(ctx context.Context, f tunnel.Facts, s *settings.Settings, last applied, recent string) (tunnel.Connectors, error) {
	deployment, err := c.deployment(ctx, f.Object)
	if err != nil {
		return tunnel.Connectors{}, err
	}
	found := describeDeployment(deployment, f, s)
	if f.Desired != nil && f.Token.State == tunnel.TokenPresent {
		if found.Current, err = c.upToDate(ctx, f, s, last, recent); err != nil {
			return tunnel.Connectors{}, err
		}
	}
	if !tunnel.DependsOnPods(f) {
		return found, nil
	}
	pods, err := c.pods(ctx, f.Object)
	if err != nil {
		return tunnel.Connectors{}, err
	}
	describePods(&found, pods, f.Token.Version)
	if found.RolledOut && recent != "" {
		// A cached Deployment that this reconcile has replaced can still create pods.
		found.RolledOut, err = c.isCached(ctx, f.Object, last)
	}
	return found, err
}

// describePods adds the pods that have not terminated.
func describePods(found *tunnel.Connectors, pods []corev1.Pod, tokenVersion string) {
	found.Pods = len(pods)
	for i := range pods {
		pod := &pods[i]
		found.RolledOut = found.RolledOut && pod.DeletionTimestamp.IsZero() && pod.Annotations[connector.TokenVersionAnnotation] == tokenVersion
		found.GracePeriod = max(found.GracePeriod, seconds(pod.Spec.TerminationGracePeriodSeconds))
		if connector.HasEnvoy(pod) {
			found.WithEnvoy++
		} else {
			found.WithoutEnvoy++
		}
		if problem := connector.PodProblem(pod); problem != "" && (found.NotReady == "" || problem < found.NotReady) {
			found.NotReady = problem
		}
	}
}

// renew writes the certificates of the Tunnel's Envoys if they are due. Their routes change
// while the Gateway is paused, so their certificates must not expire.
func (c *connectors) renew(ctx context.Context, object *v1alpha1.Tunnel) error {
	deployment, err := c.deployment(ctx, object)
	if err != nil || deployment == nil {
		return err
	}
	if current, err := c.identities.IsCurrent(ctx, object); err != nil || current {
		return err
	}
	return c.identities.Write(ctx, object)
}

// describeDeployment returns the connectors as their Deployment reports them.
func describeDeployment(d *appsv1.Deployment, f tunnel.Facts, s *settings.Settings) tunnel.Connectors {
	ready := connector.NewReadiness(d, connectorSettings(s))
	found := tunnel.Connectors{
		Exist: d != nil, Desired: ready.Desired, Ready: ready.Available, RolledOut: ready.RolledOut, Message: ready.Message,
		GracePeriod: gracePeriodOf(d),
	}
	if ready.Status != metav1.ConditionTrue {
		found.Reason = ready.Reason
	}
	if d == nil && f.Desired != nil && !f.Desired.RunConnectors {
		found.Desired, found.Reason, found.Message = 0, conditions.Reason{}, ""
	}
	return found
}

// readiness returns what the Gateway's conditions report about the connectors. It
// returns nil when no connectors exist or are desired.
func (c *connectors) readiness(ctx context.Context, object *v1alpha1.Tunnel, s *settings.Settings) *gateway.Readiness {
	if s == nil || object == nil {
		return nil
	}
	deployment, err := c.deployment(ctx, object)
	if err != nil || deployment == nil && !s.RunsConnectors() {
		return nil
	}
	ready := connector.NewReadiness(deployment, connectorSettings(s))
	return &gateway.Readiness{Status: ready.Status, Reason: ready.Reason, Message: ready.Message, Wanted: ready.Desired, Available: ready.Available}
}

func connectorSettings(s *settings.Settings) v1alpha1.Connector {
	if s == nil {
		return v1alpha1.Connector{}
	}
	return ptr.Deref(s.Spec.Connector, v1alpha1.Connector{})
}

// gracePeriodOf returns the termination grace period of the Deployment's pods.
func gracePeriodOf(d *appsv1.Deployment) time.Duration {
	if d == nil {
		return 0
	}
	return seconds(d.Spec.Template.Spec.TerminationGracePeriodSeconds)
}

// seconds converts a pod's termination grace period. Nil means the Kubernetes default.
func seconds(gracePeriod *int64) time.Duration {
	return time.Duration(ptr.Deref(gracePeriod, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
}

// deployment returns the Tunnel's Deployment from the cache, or nil if it does not exist.
func (c *connectors) deployment(ctx context.Context, object *v1alpha1.Tunnel) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	key := connectorKey(object)
	switch err := c.client.Get(ctx, key, d); {
	case isNotFound(err, key.Name), err == nil && !connector.IsManagedBy(d, object):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Deployment %s: %w", key, err)
	}
	return d, nil
}

// pods returns the Tunnel's connector pods that have not terminated.
func (c *connectors) pods(ctx context.Context, t *v1alpha1.Tunnel) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.live.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingLabels(connector.Selector(t))); err != nil {
		return nil, fmt.Errorf("list the pods of Tunnel %s: %w", t.Name, err)
	}
	var running []corev1.Pod
	for i := range list.Items {
		if !state.HasEnded(&list.Items[i]) {
			running = append(running, list.Items[i])
		}
	}
	return running, nil
}
