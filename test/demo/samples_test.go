package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

func TestTheClassesInTheSamplesManageTheDemosZoneAndApplications(t *testing.T) {
	for _, dir := range []string{"../../config/samples", "../../config/samples/envoy"} {
		set, err := manifest.Read([]string{dir}, manifest.Options{Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		objects := withDemoSettings(set.Objects)
		settings := map[client.ObjectKey]*v1alpha1.TunnelConfiguration{}
		for _, object := range objects {
			if c, ok := object.(*v1alpha1.TunnelConfiguration); ok {
				settings[client.ObjectKeyFromObject(c)] = c
			}
		}
		classes := 0
		for _, object := range objects {
			class, ok := object.(*gatewayv1.GatewayClass)
			if !ok {
				continue
			}
			classes++
			reference := class.Spec.ParametersRef
			c := settings[client.ObjectKey{Namespace: string(*reference.Namespace), Name: reference.Name}]
			if c == nil {
				t.Errorf("%s: the settings of GatewayClass %s do not exist", dir, class.Name)
			} else if difference := cmp.Diff(newDNS(), c.Spec.DNS); difference != "" {
				t.Errorf("%s: GatewayClass %s has other DNS settings than the demo (-want +got):\n%s", dir, class.Name, difference)
			} else if difference := cmp.Diff(newAccess(), c.Spec.Access); difference != "" {
				t.Errorf("%s: GatewayClass %s has other settings for Access than the demo (-want +got):\n%s", dir, class.Name, difference)
			}
		}
		if classes != 1 {
			t.Errorf("%s has %d GatewayClasses, want 1", dir, classes)
		}
	}
}
