package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

func TestClassAllowsMetadataByPrefix(t *testing.T) {
	// A label or an annotation is set on the connectors only when the GatewayClass allows
	// exactly its key prefix.
	for key, test := range map[string]struct {
		prefixes []string
		allowed  bool
	}{
		"example.com/team":                  {[]string{"other.example", "example.com"}, true},
		"example.com/":                      {[]string{"example.com"}, true},
		"a.example.com/team":                {[]string{"example.com"}, false},
		"com/team":                          {[]string{"example.com"}, false},
		"example.com.evil.example/team":     {[]string{"example.com"}, false},
		"Example.com/team":                  {[]string{"example.com"}, false},
		"none.example/team":                 {nil, false},
		"team":                              {[]string{"team", ""}, false},
		"/team":                             {nil, false},
		"notk8s.io/team":                    {[]string{"notk8s.io"}, true},
		"tunnelgateway.dev/tunnel":          {reservedPrefixes, false},
		"a.tunnelgateway.dev/tunnel":        {[]string{"a.tunnelgateway.dev"}, false},
		"kubernetes.io/os":                  {reservedPrefixes, false},
		"node-role.kubernetes.io/master":    {[]string{"node-role.kubernetes.io"}, false},
		"k8s.io/a":                          {reservedPrefixes, false},
		"pod-security.k8s.io/a":             {[]string{"pod-security.k8s.io"}, false},
		"gateway.networking.k8s.io/a":       {reservedPrefixes, false},
		"x.gateway.networking.k8s.io/level": {[]string{"x.gateway.networking.k8s.io"}, false},
	} {
		t.Run(key, func(t *testing.T) {
			got := allowedMetadata(&gatewayv1.GatewayInfrastructure{
				Labels:      map[gatewayv1.LabelKey]gatewayv1.LabelValue{gatewayv1.LabelKey(key): "l"},
				Annotations: map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{gatewayv1.AnnotationKey(key): "a"},
			}, test.prefixes)
			want := Metadata{Dropped: []string{key}}
			if test.allowed {
				want = Metadata{Labels: map[string]string{key: "l"}, Annotations: map[string]string{key: "a"}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("metadata differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDroppedMetadataIsSorted(t *testing.T) {
	// The dropped keys are sorted and unique. Without a GatewayClass, all keys are
	// dropped.
	g := &gatewayv1.Gateway{Spec: gatewayv1.GatewaySpec{Infrastructure: &gatewayv1.GatewayInfrastructure{
		Labels:      map[gatewayv1.LabelKey]gatewayv1.LabelValue{"z": "1", "a": "2", "example.com/kept": "3"},
		Annotations: map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{"a": "4", "m": "5"},
	}}}
	class := connector(func(c *v1alpha1.Connector) { c.AllowedMetadataPrefixes = []string{"example.com"} })
	in := Input{
		Class: &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: KindTunnelConfiguration, Namespace: new(gatewayv1.Namespace("platform")), Name: "defaults",
		}}},
		ClassConfiguration: &v1alpha1.TunnelConfiguration{Spec: class},
		Gateway:            g,
	}
	s, problem := Resolve(in)
	if problem != nil {
		t.Fatal(problem)
	}
	want := Metadata{Labels: map[string]string{"example.com/kept": "3"}, Dropped: []string{"a", "m", "z"}}
	if diff := cmp.Diff(want, s.Metadata); diff != "" {
		t.Errorf("metadata differs (-want +got):\n%s", diff)
	}
	in.Class, in.ClassConfiguration = nil, nil
	if s, _ := Resolve(in); len(s.Metadata.Labels) > 0 || len(s.Metadata.Dropped) != 4 {
		t.Errorf("without a class, got metadata %+v, want four dropped keys", s.Metadata)
	}
}
