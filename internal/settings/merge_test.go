package settings

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// fieldPath identifies a spec field that is merged as a whole. The tests derive all paths
// from the types, so that they include every new field.
type fieldPath struct {
	path  string
	steps []int // field indexes
}

// atomicTypes are the structs that are merged as a whole.
var atomicTypes = map[reflect.Type]bool{
	reflect.TypeFor[v1alpha1.Account]():                true,
	reflect.TypeFor[v1alpha1.Limits]():                 true,
	reflect.TypeFor[v1alpha1.Hostnames]():              true,
	reflect.TypeFor[v1alpha1.DNS]():                    true,
	reflect.TypeFor[v1alpha1.AccessApplications]():     true,
	reflect.TypeFor[v1alpha1.EnvoyProxy]():             true,
	reflect.TypeFor[v1alpha1.PodDisruptionBudget]():    true,
	reflect.TypeFor[corev1.NodeSelector]():             true,
	reflect.TypeFor[corev1.TopologySpreadConstraint](): true,
}

func fieldPaths(t reflect.Type, path string, steps []int) []fieldPath {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || atomicTypes[t] {
		return []fieldPath{{strings.TrimPrefix(path, "."), steps}}
	}
	var all []fieldPath
	for i := range t.NumField() {
		field := t.Field(i)
		all = append(all, fieldPaths(field.Type, path+"."+field.Name, append(append([]int{}, steps...), i))...)
	}
	return all
}

// specFieldPaths returns the paths for all fields except mergingMode, which controls the
// merge, and listenerConfigurations, which stay separate.
func specFieldPaths(t *testing.T) []fieldPath {
	t.Helper()
	var all []fieldPath
	for _, l := range fieldPaths(reflect.TypeFor[v1alpha1.TunnelConfigurationSpec](), "", nil) {
		if l.path != "MergingMode" && l.path != "ListenerConfigurations" {
			all = append(all, l)
		}
	}
	if len(all) < 35 {
		t.Fatalf("got %d field paths, want at least 35", len(all))
	}
	return all
}

// spec returns a spec in which only the field is set. With variant 0, it sets only
// the blocks that contain the field.
func (l fieldPath) spec(variant int) v1alpha1.TunnelConfigurationSpec {
	var spec v1alpha1.TunnelConfigurationSpec
	value := reflect.ValueOf(&spec).Elem()
	for _, step := range l.steps {
		value = newBlock(value).Field(step)
	}
	if variant != 0 {
		set(value, variant)
	}
	return spec
}

// newBlock sets a pointer to a new block and returns the block.
func newBlock(value reflect.Value) reflect.Value {
	if value.Kind() != reflect.Pointer {
		return value
	}
	value.Set(reflect.New(value.Type().Elem()))
	return value.Elem()
}

// set fills the value and all its fields.
func set(value reflect.Value, variant int) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		set(value.Elem(), variant)
	case reflect.Struct:
		setStruct(value, variant)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		set(value.Index(0), variant)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		key.SetString("cpu")
		set(element, variant)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.String:
		value.SetString(fmt.Sprintf("%ds", variant))
	case reflect.Bool:
		value.SetBool(variant == 1)
	default:
		value.Set(reflect.ValueOf(variant).Convert(value.Type()))
	}
}

func setStruct(value reflect.Value, variant int) {
	switch value.Addr().Interface().(type) {
	case *resource.Quantity:
		value.Set(reflect.ValueOf(*resource.NewQuantity(int64(variant), resource.DecimalSI)))
		return
	}
	for i := range value.NumField() {
		set(value.Field(i), variant)
	}
	if constraint, ok := value.Addr().Interface().(*corev1.TopologySpreadConstraint); ok {
		constraint.TopologyKey, constraint.WhenUnsatisfiable = "zone", corev1.DoNotSchedule // the constraint's key
	}
}

var modes = map[string]*v1alpha1.MergingMode{
	"no mode":            nil,
	"PreferGatewayClass": new(v1alpha1.MergingModePreferGatewayClass),
	"PreferGateway":      new(v1alpha1.MergingModePreferGateway),
}

func TestEveryFieldIsMergedByMode(t *testing.T) {
	// The settings are merged field by field, and spec.mergingMode on the GatewayClass
	// decides which level takes precedence.
	for _, l := range specFieldPaths(t) {
		for name, mode := range modes {
			t.Run(l.path+"/"+name, func(t *testing.T) {
				class, gateway, unset := l.spec(1), l.spec(2), l.spec(0)
				preferred := class
				if name == "PreferGateway" {
					preferred = gateway
				}
				for description, test := range map[string]struct {
					class, gateway, want v1alpha1.TunnelConfigurationSpec
				}{
					"both levels set the field":       {class, gateway, preferred},
					"only the class sets the field":   {class, unset, class},
					"only the Gateway sets the field": {unset, gateway, gateway},
					"the Gateway sets nothing":        {class, v1alpha1.TunnelConfigurationSpec{}, class},
					"the class sets nothing":          {v1alpha1.TunnelConfigurationSpec{}, gateway, gateway},
				} {
					test.class.MergingMode, test.want.MergingMode = mode, mode
					classBefore, gatewayBefore := test.class.DeepCopy(), test.gateway.DeepCopy()
					if diff := cmp.Diff(test.want, mergeLevels(&test.class, &test.gateway)); diff != "" {
						t.Errorf("%s: the merged spec differs (-want +got):\n%s", description, diff)
					}
					if !reflect.DeepEqual(*classBefore, test.class) || !reflect.DeepEqual(*gatewayBefore, test.gateway) {
						t.Errorf("%s: the input has changed", description)
					}
				}
			})
		}
	}
}

// fullSpec returns a spec in which every field is set, except mergingMode and
// listenerConfigurations.
func fullSpec(variant int) v1alpha1.TunnelConfigurationSpec {
	var spec v1alpha1.TunnelConfigurationSpec
	set(reflect.ValueOf(&spec).Elem(), variant)
	spec.MergingMode, spec.ListenerConfigurations = nil, nil
	return spec
}

func TestEmptyLevelDoesNotChangeTheSettings(t *testing.T) {
	// A level without settings does not change the settings on the other level.
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			full, class, empty := fullSpec(1), fullSpec(1), v1alpha1.TunnelConfigurationSpec{MergingMode: mode}
			class.MergingMode = mode
			for description, got := range map[string]v1alpha1.TunnelConfigurationSpec{
				"only the class has settings":   mergeLevels(&class, &v1alpha1.TunnelConfigurationSpec{}),
				"only the Gateway has settings": mergeLevels(&empty, &full),
			} {
				got.MergingMode = nil
				if diff := cmp.Diff(full, got); diff != "" {
					t.Errorf("%s: the merged spec differs (-want +got):\n%s", description, diff)
				}
			}
		})
	}
}

func TestMergeDoesNotChangeItsInput(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			class, gateway := fullSpec(1), fullSpec(2)
			class.MergingMode = mode
			class.Connector.NodeSelector["class"], gateway.Connector.NodeSelector["gateway"] = "1", "2"
			classBefore, gatewayBefore := *class.DeepCopy(), *gateway.DeepCopy()
			mergeLevels(&class, &gateway)
			if diff := cmp.Diff([]v1alpha1.TunnelConfigurationSpec{classBefore, gatewayBefore}, []v1alpha1.TunnelConfigurationSpec{class, gateway}); diff != "" {
				t.Errorf("the input has changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestMergeKeysAndExclusiveFields(t *testing.T) {
	// These cases need more than one field: map keys, list keys, and exclusive fields.
	connector := func(c v1alpha1.Connector) spec { return spec{Connector: &c} }
	spread := func(key string, skew int32) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: skew}
	}
	origin := func(o v1alpha1.OriginRequest) spec { return spec{OriginRequest: &o} }
	for name, test := range map[string]struct{ first, second, want spec }{
		"maps are merged by key": {
			connector(v1alpha1.Connector{NodeSelector: map[string]string{"a": "1", "b": "1"}}),
			connector(v1alpha1.Connector{NodeSelector: map[string]string{"b": "2", "c": "2"}}),
			connector(v1alpha1.Connector{NodeSelector: map[string]string{"a": "1", "b": "1", "c": "2"}}),
		},
		"topologySpreadConstraints are merged by key": {
			connector(v1alpha1.Connector{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread("host", 1)}}),
			connector(v1alpha1.Connector{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread("zone", 2), spread("host", 2)}}),
			connector(v1alpha1.Connector{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread("host", 1), spread("zone", 2)}}),
		},
		"tolerations are not merged": {
			connector(v1alpha1.Connector{Tolerations: []corev1.Toleration{{Key: "a"}}}),
			connector(v1alpha1.Connector{Tolerations: []corev1.Toleration{{Key: "b"}}}),
			connector(v1alpha1.Connector{Tolerations: []corev1.Toleration{{Key: "a"}}}),
		},
		"replicas exclude autoscaling": {
			connector(v1alpha1.Connector{Replicas: new(int32(3))}),
			connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}, LogLevel: new(v1alpha1.LogLevelWarn)}),
			connector(v1alpha1.Connector{Replicas: new(int32(3)), LogLevel: new(v1alpha1.LogLevelWarn)}),
		},
		"autoscaling excludes replicas": {
			connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}}),
			connector(v1alpha1.Connector{Replicas: new(int32(3))}),
			connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}}),
		},
		"takeover without an id applies to every tunnel": {
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{Takeover: new(true)}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "b"}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "b", Takeover: new(true)}}},
		},
		"takeover with an id applies only to that tunnel": {
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a"}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "b", Takeover: new(true)}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a"}}},
		},
		"takeover with the id of the other level applies": {
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a"}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a", Takeover: new(true)}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a", Takeover: new(true)}}},
		},
		"matchSNItoHost excludes http2Origin": {
			origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true)}), origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}),
			origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true)}),
		},
		"http2Origin excludes matchSNItoHost": {
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}), origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true)}),
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}),
		},
		"http2Origin does not exclude a false matchSNItoHost": {
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}), origin(v1alpha1.OriginRequest{MatchSNIToHost: new(false)}),
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true), MatchSNIToHost: new(false)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, mergeLevels(&test.first, &test.second)); diff != "" {
				t.Errorf("default mode: the merged spec differs (-want +got):\n%s", diff)
			}
			class := test.second
			class.MergingMode, test.want.MergingMode = modes["PreferGateway"], modes["PreferGateway"]
			if diff := cmp.Diff(test.want, mergeLevels(&class, &test.first)); diff != "" {
				t.Errorf("PreferGateway: the merged spec differs (-want +got):\n%s", diff)
			}
		})
	}
}
