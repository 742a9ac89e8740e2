package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// find reads the Gateway and, if the operation needs it, the Tunnel. It returns an error if
// the controller does not do the operation. The Gateway is nil if only its Tunnel is left.
func (t Target) find(ctx context.Context, o Operation, waits bool) (objects, error) {
	var found objects
	var err error
	if found.gateway, err = t.findGateway(ctx, o); err != nil {
		return found, err
	}
	if found.tunnel, err = t.findTunnel(ctx, o, waits); err != nil {
		return found, err
	}
	switch {
	case found.gateway == nil && (o != Reconcile || found.tunnel == nil):
		return found, t.notFound(ctx)
	case found.tunnel == nil && (o == Reconcile || o == RotateToken || o == Pause && waits):
		return found, t.noTunnel(found.gateway)
	}
	return found, nil
}

// read reads an object, and reports whether it exists.
func (t Target) read(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	err := t.Client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return err == nil, explain("read", object, err)
}

// findGateway reads the Gateway and checks that the controller manages it. It returns nil
// if the Gateway does not exist.
func (t Target) findGateway(ctx context.Context, o Operation) (*gatewayv1.Gateway, error) {
	g := &gatewayv1.Gateway{}
	if exists, err := t.read(ctx, t.Gateway, g); err != nil || !exists {
		return nil, err
	}
	if !g.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("%s is being deleted", t)
	}
	_, problem, err := t.readClass(ctx, o, g)
	if problem != "" {
		err = fmt.Errorf("%s: %s", t, problem)
	}
	return g, err
}

// findTunnel reads the Tunnel, unless the operation does not need it.
func (t Target) findTunnel(ctx context.Context, o Operation, waits bool) (*v1alpha1.Tunnel, error) {
	if !waits && (o == Pause || o == Resume) {
		return nil, nil
	}
	object := &v1alpha1.Tunnel{}
	if exists, err := t.read(ctx, t.tunnelKey(), object); err != nil || !exists {
		return nil, err
	}
	if problem := t.tunnelProblem(object); problem != "" {
		return nil, errors.New(problem)
	}
	return object, nil
}

// tunnelProblem returns why the Tunnel does not belong to the Gateway, or "".
func (t Target) tunnelProblem(object *v1alpha1.Tunnel) string {
	spec := object.Spec
	if spec.ControllerName == string(t.ControllerName) && spec.Gateway == (v1alpha1.GatewayReference{Namespace: t.Gateway.Namespace, Name: t.Gateway.Name}) {
		return ""
	}
	return fmt.Sprintf("Tunnel %s belongs to Gateway %s/%s of controller %s, so %[5]s cannot use it; see the Programmed condition of %[5]s",
		t.tunnelKey(), spec.Gateway.Namespace, spec.Gateway.Name, spec.ControllerName, t)
}

// noTunnel returns the error about a Gateway without a Tunnel.
func (t Target) noTunnel(g *gatewayv1.Gateway) error {
	text := fmt.Sprintf("%s has no Tunnel in namespace %s yet", t, t.ControllerNamespace)
	for _, required := range []conditions.Type{conditions.TypeAccepted, conditions.TypeProgrammed} {
		if c := required.Find(g.Status.Conditions); c != nil && c.Status == metav1.ConditionFalse && c.Message != "" {
			return fmt.Errorf("%s: %s", text, strings.TrimSuffix(c.Message, "."))
		}
	}
	return fmt.Errorf("%s; set --controller-namespace if the controller runs in another namespace", text)
}

// An error lists at most maxNames Gateways.
const maxNames = 10

// notFound returns the error about a Gateway that does not exist, with a Gateway that the
// user may have meant.
func (t Target) notFound(ctx context.Context) error {
	text := fmt.Sprintf("%s: not found", t)
	cluster := state.Cluster{Live: t.Client, ControllerName: t.ControllerName, ControllerNamespace: t.ControllerNamespace}
	gateways, err := cluster.GatewayNames(ctx)
	if err != nil {
		return fmt.Errorf("%s", text) // the user may not list the Gateways
	}
	var names []string
	for _, g := range gateways {
		names = append(names, g.String())
	}
	slices.Sort(names)
	same := slices.IndexFunc(gateways, func(g types.NamespacedName) bool { return g.Name == t.Gateway.Name })
	closest := suggest.Closest(t.Gateway.String(), names)
	switch {
	case closest == "" && same >= 0:
		closest = gateways[same].String()
		fallthrough
	case closest != "":
		return errors.New(suggest.DidYouMean(text, closest))
	case len(names) == 0:
		return fmt.Errorf("%s; no Gateway uses this controller", text)
	case len(names) > maxNames:
		names = append(names[:maxNames], fmt.Sprintf("and %d more", len(names)-maxNames))
	}
	return fmt.Errorf("%s; Gateways of this controller: %s", text, strings.Join(names, ", "))
}

// explain adds what was attempted to an error from the API server. For a missing
// permission, the API server's error names the user, the verb and the resource.
func explain(attempted string, object client.Object, err error) error {
	if err == nil {
		return nil
	}
	kind := state.KindOf(object)
	name := strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s %s %s: %w; docs/commands.md contains the required role", attempted, kind, name, err)
	}
	return fmt.Errorf("%s %s %s: %w", attempted, kind, name, err)
}
