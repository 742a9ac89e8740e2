package state

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// ClassConfiguration reads the TunnelConfiguration that the GatewayClass refers to. It
// returns nil if the GatewayClass has no such reference or the object does not exist.
func ClassConfiguration(ctx context.Context, r client.Reader, class *gatewayv1.GatewayClass) (*v1alpha1.TunnelConfiguration, error) {
	name, ok := settings.ClassParameters(class)
	return loadConfiguration(ctx, r, name, ok)
}

// loadConfiguration reads a TunnelConfiguration, or returns nil if there is no reference
// to one.
func loadConfiguration(ctx context.Context, r client.Reader, name types.NamespacedName, hasReference bool) (*v1alpha1.TunnelConfiguration, error) {
	if !hasReference {
		return nil, nil
	}
	return get(ctx, r, name, &v1alpha1.TunnelConfiguration{})
}

// loadConfigurations reads the TunnelConfigurations of the GatewayClass and the
// Gateway.
func (l Loader) loadConfigurations(ctx context.Context, s *gateway.Snapshot) error {
	var err error
	if s.ClassConfiguration, err = ClassConfiguration(ctx, l.Reader, s.Class); err != nil {
		return err
	}
	name, ok := settings.GatewayParameters(s.Gateway)
	s.GatewayConfiguration, err = loadConfiguration(ctx, l.Reader, name, ok)
	return err
}

// parametersIndexes returns the indexes for references to TunnelConfigurations.
func parametersIndexes() []Index {
	return []Index{
		{&gatewayv1.GatewayClass{}, IndexParameters, func(o client.Object) []string {
			return indexValues(settings.ClassParameters(o.(*gatewayv1.GatewayClass)))
		}},
		{&gatewayv1.Gateway{}, IndexParameters, func(o client.Object) []string {
			return indexValues(settings.GatewayParameters(o.(*gatewayv1.Gateway)))
		}},
	}
}

// indexValues returns the name as an index's only value, or no value.
func indexValues(name types.NamespacedName, ok bool) []string {
	if !ok {
		return nil
	}
	return []string{name.String()}
}
