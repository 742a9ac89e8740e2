// Package operation requests operations on a Gateway and waits until they are in effect, or
// only waits until the tunnel serves a Gateway as its settings require.
package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Operation is an operation on a Gateway.
type Operation string

// The operations.
const (
	// Reconcile ends the controller's backoffs, and makes it read everything again.
	Reconcile Operation = "reconcile"
	// Pause stops all changes at Cloudflare.
	Pause Operation = "pause"
	// Resume ends a Pause.
	Resume Operation = "resume"
	// RotateToken rotates the token with which the connectors run.
	RotateToken Operation = "rotate-token"
	// Wait changes nothing. It is in effect when the tunnel serves the Gateway with the
	// data plane in its GatewayClass settings, and no data plane change is in progress.
	Wait Operation = "wait"
)

// Target is the Gateway on which an operation works.
type Target struct {
	Client  client.WithWatch
	Gateway types.NamespacedName
	// ControllerName is the controller that must manage the Gateway.
	ControllerName gatewayv1.GatewayController
	// ControllerNamespace is the Tunnels' namespace.
	ControllerNamespace string
}

// String returns the Gateway's kind, namespace and name.
func (t Target) String() string { return "Gateway " + t.Gateway.String() }

// requestTimeout limits an operation that does not wait.
const requestTimeout = 30 * time.Second

// Waiting determines how long to wait for an operation.
type Waiting struct {
	// Timeout is the maximum time to wait; 0 means not to wait.
	Timeout time.Duration
	// Show shows what is outstanding until hide is called.
	Show func(text string) (hide func())
}

// objects are the Gateway and its Tunnel; nil for an object that does not exist or that
// the operation does not need.
type objects struct {
	gateway *gatewayv1.Gateway
	tunnel  *v1alpha1.Tunnel
	// class has the settings of the GatewayClass. Only Wait reads them.
	class classSettings
}

// Run requests the operation and waits until it is in effect. It returns a message about
// the result.
func (t Target) Run(ctx context.Context, o Operation, w Waiting) (string, error) {
	waits, timeout := w.Timeout > 0, cmp.Or(w.Timeout, requestTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	message, err := t.start(ctx, o, waits)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTimeout):
		return "", fmt.Errorf("%s: timed out after %s: %w", t, timeout, err)
	case err != nil || message != "":
		return message, err
	default:
		return t.wait(ctx, o, w)
	}
}

// start requests the operation. It returns a message if there is nothing to wait for.
func (t Target) start(ctx context.Context, o Operation, waits bool) (string, error) {
	found, err := t.find(ctx, o, waits)
	if err != nil {
		return "", err
	}
	if message := o.inEffectAlready(found, waits); message != "" {
		return fmt.Sprintf("%s %s", t, message), nil
	}
	if o == RotateToken && found.tunnel.Spec.Paused {
		return "", fmt.Errorf("%s is paused, so its token cannot be rotated; resume it first", t)
	}
	if o == Wait {
		return "", nil
	}
	if err := t.request(ctx, o, time.Now()); err != nil || waits {
		return "", err
	}
	return fmt.Sprintf("%s: %s requested", t, o), nil
}

// inEffectAlready returns a message if there is nothing to request, or "". waits reports
// whether the Tunnel was read.
func (o Operation) inEffectAlready(found objects, waits bool) string {
	if o != Pause && o != Resume {
		return ""
	}
	requested := v1alpha1.RequestsPause(found.gateway)
	paused := requested
	if waits && found.tunnel != nil {
		paused = found.tunnel.Spec.Paused
	}
	switch {
	case o == Pause && requested && paused:
		return "is already paused"
	case o == Resume && !requested && !paused:
		return "is not paused"
	}
	return ""
}

// request writes the annotations that request the operation. The time makes the values
// differ between two requests.
func (t Target) request(ctx context.Context, o Operation, now time.Time) error {
	value := now.UTC().Format(time.RFC3339Nano)
	switch o {
	case Pause:
		return t.annotate(ctx, &gatewayv1.Gateway{}, t.Gateway, map[string]any{v1alpha1.PausedAnnotation: "true"})
	case Resume:
		return t.annotate(ctx, &gatewayv1.Gateway{}, t.Gateway, map[string]any{v1alpha1.PausedAnnotation: nil})
	case RotateToken:
		// The reconcile shows when the Tunnel's conditions take the request into account.
		return t.annotate(ctx, &v1alpha1.Tunnel{}, t.tunnelKey(), map[string]any{v1alpha1.RotateTokenAnnotation: value, v1alpha1.ReconcileAnnotation: value})
	default:
		return t.annotate(ctx, &v1alpha1.Tunnel{}, t.tunnelKey(), map[string]any{v1alpha1.ReconcileAnnotation: value})
	}
}

// annotate sets an object's annotations. A nil value removes the annotation.
func (t Target) annotate(ctx context.Context, object client.Object, key types.NamespacedName, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return explain("annotate", object, t.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)))
}

// tunnelKey returns the namespace and name of the Gateway's Tunnel.
func (t Target) tunnelKey() types.NamespacedName {
	return types.NamespacedName{Namespace: t.ControllerNamespace, Name: tunnel.ObjectName(t.Gateway)}
}
