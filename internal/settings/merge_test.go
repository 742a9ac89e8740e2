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

// fieldPath is a field of the spec that is merged as a whole. The list of them is
// made from the types, so that a new field cannot be forgotten.
type fieldPath struct {
	path  string
	steps []int // field numbers; those of a list lead into its one entry
}

// atomicTypes are the structs that are leaves although they have fields.
var atomicTypes = map[reflect.Type]bool{
	reflect.TypeFor[v1alpha1.Account]():                true,
	reflect.TypeFor[v1alpha1.Limits]():                 true,
	reflect.TypeFor[v1alpha1.PodDisruptionBudget]():    true,
	reflect.TypeFor[corev1.NodeSelector]():             true,
	reflect.TypeFor[corev1.TopologySpreadConstraint](): true,
}

func fieldPaths(t reflect.Type, path string, steps []int) []fieldPath {
	for t.Kind() == reflect.Pointer || t == reflect.TypeFor[[]v1alpha1.ListenerConfiguration]() {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || atomicTypes[t] {
		return []fieldPath{{strings.TrimPrefix(path, "."), steps}}
	}
	var all []fieldPath
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Name == "ProtocolPort" || field.Name == "Hostname" {
			continue // the key of an entry
		}
		all = append(all, fieldPaths(field.Type, path+"."+field.Name, append(append([]int{}, steps...), i))...)
	}
	return all
}

// specFieldPaths are all but mergingMode, which decides.
func specFieldPaths(t *testing.T) []fieldPath {
	t.Helper()
	var all []fieldPath
	for _, l := range fieldPaths(reflect.TypeFor[v1alpha1.TunnelConfigurationSpec](), "", nil) {
		if l.path != "MergingMode" {
			all = append(all, l)
		}
	}
	if len(all) < 55 {
		t.Fatalf("there are only %d leaves", len(all))
	}
	return all
}

// spec returns one in which nothing is set but the leaf; with variant 0 the
// blocks around it only.
func (l fieldPath) spec(variant int) v1alpha1.TunnelConfigurationSpec {
	var spec v1alpha1.TunnelConfigurationSpec
	value := reflect.ValueOf(&spec).Elem()
	for _, step := range l.steps {
		value = enter(value).Field(step)
	}
	if variant != 0 {
		set(value, variant)
	}
	return spec
}

// enter makes the block that a pointer or a list of entries leads to.
func enter(value reflect.Value) reflect.Value {
	switch entry := (v1alpha1.ListenerConfiguration{ProtocolPort: "HTTPS:443", Hostname: "a.example.com"}); {
	case value.Kind() == reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return value.Elem()
	case value.Kind() == reflect.Slice:
		value.Set(reflect.ValueOf([]v1alpha1.ListenerConfiguration{entry}))
		return value.Index(0)
	default:
		return value
	}
}

// set fills all that is in the value.
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
		constraint.TopologyKey, constraint.WhenUnsatisfiable = "zone", corev1.DoNotSchedule // the key
	}
}

var modes = map[string]*v1alpha1.MergingMode{
	"no mode":            nil,
	"PreferGatewayClass": new(v1alpha1.MergingModePreferGatewayClass),
	"PreferGateway":      new(v1alpha1.MergingModePreferGateway),
}

// "Merged when both exist, governed by spec.mergingMode of the class's object
// [...], field by field".
func TestMergeEveryField(t *testing.T) {
	for _, l := range specFieldPaths(t) {
		for name, mode := range modes {
			t.Run(l.path+"/"+name, func(t *testing.T) {
				class, own, none := l.spec(1), l.spec(2), l.spec(0)
				if l.path == "ListenerConfigurations.Access.Required" {
					none = v1alpha1.TunnelConfigurationSpec{} // a block always says it
				}
				winner := class
				if name == "PreferGateway" {
					winner = own
				}
				for what, test := range map[string]struct {
					class, own, want v1alpha1.TunnelConfigurationSpec
				}{
					"both set it":            {class, own, winner},
					"only the class does":    {class, none, class},
					"only the Gateway does":  {none, own, own},
					"the Gateway's is empty": {class, v1alpha1.TunnelConfigurationSpec{}, class},
					"the class's is empty":   {v1alpha1.TunnelConfigurationSpec{}, own, own},
				} {
					test.class.MergingMode, test.want.MergingMode = mode, mode
					before := test.class.DeepCopy()
					ownBefore := test.own.DeepCopy()
					if diff := cmp.Diff(test.want, mergeLevels(&test.class, &test.own)); diff != "" {
						t.Errorf("%s: (-want +got):\n%s", what, diff)
					}
					if !reflect.DeepEqual(*before, test.class) || !reflect.DeepEqual(*ownBefore, test.own) {
						t.Errorf("%s: the input was changed", what)
					}
				}
			})
		}
	}
}

// fullSpec sets every field of a spec.
func fullSpec(variant int) v1alpha1.TunnelConfigurationSpec {
	var spec v1alpha1.TunnelConfigurationSpec
	set(reflect.ValueOf(&spec).Elem(), variant)
	spec.MergingMode = nil
	return spec
}

// A level that sets nothing changes nothing.
func TestMergeWithEmptyLevel(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			full, class, empty := fullSpec(1), fullSpec(1), v1alpha1.TunnelConfigurationSpec{MergingMode: mode}
			class.MergingMode = mode
			for what, got := range map[string]v1alpha1.TunnelConfigurationSpec{
				"the class's alone":   mergeLevels(&class, &v1alpha1.TunnelConfigurationSpec{}),
				"the Gateway's alone": mergeLevels(&empty, &full),
			} {
				got.MergingMode = nil
				if diff := cmp.Diff(full, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

func TestMergeDoesNotChangeItsInput(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			class, own := fullSpec(1), fullSpec(2)
			class.MergingMode = mode
			class.Connector.NodeSelector["class"], own.Connector.NodeSelector["own"] = "1", "2"
			own.ListenerConfigurations = append(own.ListenerConfigurations, v1alpha1.ListenerConfiguration{ProtocolPort: "HTTP:80"})
			before, ownBefore := *class.DeepCopy(), *own.DeepCopy()
			mergeLevels(&class, &own)
			if diff := cmp.Diff([]v1alpha1.TunnelConfigurationSpec{before, ownBefore}, []v1alpha1.TunnelConfigurationSpec{class, own}); diff != "" {
				t.Errorf("the input was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// What cannot be told from one field: keys, and fields that exclude each other.
func TestMergeKeysAndExclusiveFields(t *testing.T) {
	entry := func(protocolPort, hostname string, access *v1alpha1.Access) v1alpha1.ListenerConfiguration {
		return v1alpha1.ListenerConfiguration{ProtocolPort: protocolPort, Hostname: hostname, Access: access}
	}
	entries := func(list ...v1alpha1.ListenerConfiguration) spec { return spec{ListenerConfigurations: list} }
	connector := func(c v1alpha1.Connector) spec { return spec{Connector: &c} }
	spread := func(key string, skew int32) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: skew}
	}
	origin := func(o v1alpha1.OriginRequest) spec { return spec{OriginRequest: &o} }
	demanded := &v1alpha1.Access{Required: true, TeamName: new("a"), AUDTags: []v1alpha1.AUDTag{"a1"}}
	lifted := &v1alpha1.Access{}
	for name, test := range map[string]struct{ first, second, want spec }{
		"maps by key": {
			connector(v1alpha1.Connector{NodeSelector: map[string]string{"a": "1", "b": "1"}}),
			connector(v1alpha1.Connector{NodeSelector: map[string]string{"b": "2", "c": "2"}}),
			connector(v1alpha1.Connector{NodeSelector: map[string]string{"a": "1", "b": "1", "c": "2"}}),
		},
		"constraints by key": {
			connector(v1alpha1.Connector{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread("host", 1)}}),
			connector(v1alpha1.Connector{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread("zone", 2), spread("host", 2)}}),
			connector(v1alpha1.Connector{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread("host", 1), spread("zone", 2)}}),
		},
		"tolerations as a whole": {
			connector(v1alpha1.Connector{Tolerations: []corev1.Toleration{{Key: "a"}}}),
			connector(v1alpha1.Connector{Tolerations: []corev1.Toleration{{Key: "b"}}}),
			connector(v1alpha1.Connector{Tolerations: []corev1.Toleration{{Key: "a"}}}),
		},
		"replicas take autoscaling away": {
			connector(v1alpha1.Connector{Replicas: new(int32(3))}),
			connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}, LogLevel: new(v1alpha1.LogLevelWarn)}),
			connector(v1alpha1.Connector{Replicas: new(int32(3)), LogLevel: new(v1alpha1.LogLevelWarn)}),
		},
		"autoscaling takes replicas away": {
			connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}}),
			connector(v1alpha1.Connector{Replicas: new(int32(3))}),
			connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}}),
		},
		"takeover alone goes with any tunnel": {
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{Takeover: new(true)}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "b"}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "b", Takeover: new(true)}}},
		},
		"takeover beside an id goes with that tunnel": {
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a"}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "b", Takeover: new(true)}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a"}}},
		},
		"takeover beside the same id": {
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a"}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a", Takeover: new(true)}}},
			spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: "a", Takeover: new(true)}}},
		},
		"matching the SNI takes HTTP/2 away": {
			origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true)}), origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}),
			origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true)}),
		},
		"HTTP/2 takes matching the SNI away": {
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}), origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true)}),
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}),
		},
		"HTTP/2 leaves it that the SNI is not matched": {
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true)}), origin(v1alpha1.OriginRequest{MatchSNIToHost: new(false)}),
			origin(v1alpha1.OriginRequest{HTTP2Origin: new(true), MatchSNIToHost: new(false)}),
		},
		"entries by key": {
			entries(entry("HTTPS:443", "a", demanded)), entries(entry("HTTPS:443", "b", lifted), entry("HTTPS:443", "a", lifted), entry("HTTP:80", "", nil)),
			entries(entry("HTTPS:443", "a", demanded), entry("HTTPS:443", "b", lifted), entry("HTTP:80", "", nil)),
		},
		"one hostname does not lift what the other level demands of all": {
			entries(entry("HTTPS:443", "", demanded)), entries(entry("HTTPS:443", "a", lifted), entry("HTTP:80", "a", lifted)),
			entries(entry("HTTPS:443", "", demanded), entry("HTTPS:443", "a", demanded), entry("HTTP:80", "a", lifted)),
		},
		"one hostname is exempt where the same level demands it of all": {
			entries(entry("HTTPS:443", "", demanded), entry("HTTPS:443", "a", lifted)), entries(entry("HTTPS:443", "b", lifted), entry("HTTPS:443", "a", demanded)),
			entries(entry("HTTPS:443", "", demanded), entry("HTTPS:443", "a", &v1alpha1.Access{TeamName: new("a"), AUDTags: []v1alpha1.AUDTag{"a1"}}), entry("HTTPS:443", "b", demanded)),
		},
		"a tag more would admit more": {
			entries(entry("HTTPS:443", "", demanded)),
			entries(entry("HTTPS:443", "", &v1alpha1.Access{Required: true, TeamName: new("b"), AUDTags: []v1alpha1.AUDTag{"b1"}})),
			entries(entry("HTTPS:443", "", demanded)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, mergeLevels(&test.first, &test.second)); diff != "" {
				t.Errorf("by default the class's (-want +got):\n%s", diff)
			}
			prefer := test.second
			prefer.MergingMode, test.want.MergingMode = modes["PreferGateway"], modes["PreferGateway"]
			if diff := cmp.Diff(test.want, mergeLevels(&prefer, &test.first)); diff != "" {
				t.Errorf("PreferGateway (-want +got):\n%s", diff)
			}
		})
	}
}
