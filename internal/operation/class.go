package operation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// classSettings are the GatewayClass settings that [Wait] compares with the Tunnel. The
// Tunnel's status does not show whether the controller has read the latest settings.
type classSettings struct {
	// dataPlane is the data plane in the settings.
	dataPlane v1alpha1.DataPlane
	// problem describes why the settings are not valid, or is empty.
	problem string
}

// readClass reads the Gateway's GatewayClass. It also returns the reason why the
// controller does not manage the Gateway, or "". Only [Wait] requires the permission to
// read the GatewayClass: other operations skip the check without it.
func (t Target) readClass(ctx context.Context, o Operation, g *gatewayv1.Gateway) (*gatewayv1.GatewayClass, string, error) {
	class := &gatewayv1.GatewayClass{}
	exists, err := t.read(ctx, types.NamespacedName{Name: string(g.Spec.GatewayClassName)}, class)
	switch {
	case apierrors.IsForbidden(err) && o != Wait:
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case !exists:
		return nil, fmt.Sprintf("GatewayClass %q not found", g.Spec.GatewayClassName), nil
	case class.Spec.ControllerName != t.ControllerName:
		return nil, fmt.Sprintf("GatewayClass %q belongs to controller %s; set --controller-name to use that controller", class.Name, class.Spec.ControllerName), nil
	}
	return class, "", nil
}

// readSettings reads the TunnelConfiguration for the GatewayClass.
func (t Target) readSettings(ctx context.Context, class *gatewayv1.GatewayClass) (classSettings, error) {
	var configuration *v1alpha1.TunnelConfiguration
	if name, ok := settings.ClassParameters(class); ok {
		object := &v1alpha1.TunnelConfiguration{}
		exists, err := t.read(ctx, name, object)
		if err != nil {
			return classSettings{}, err
		}
		if exists {
			configuration = object
		}
	}
	if p := settings.ClassProblem(class, configuration, t.ControllerNamespace); p != nil {
		return classSettings{problem: fmt.Sprintf("GatewayClass %s is not accepted: %s", class.Name, sentence(p.Message))}, nil
	}
	return classSettings{dataPlane: settings.ClassDataPlane(class, configuration, t.ControllerNamespace)}, nil
}
