package connector_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

// buildSettings builds a Tunnel's objects with these settings.
func buildSettings(t *testing.T, c v1alpha1.Connector) connector.Objects {
	t.Helper()
	in := inputOf("web")
	in.Settings = c
	return build(t, in)
}

// argument returns the value of a cloudflared flag.
func argument(t *testing.T, o connector.Objects, flag string) string {
	t.Helper()
	args := o.Deployment.Spec.Template.Spec.Containers[0].Args
	index := slices.Index(args, flag)
	if index < 0 || index+1 == len(args) {
		t.Fatalf("flag %s not found in %v", flag, args)
	}
	return args[index+1]
}

func TestProtocolDependsOnSettingsGRPCAndEnvoy(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   *v1alpha1.Protocol
		http2 bool
		envoy *connector.Envoy
		want  string
	}{
		{"not set", nil, false, nil, "auto"},
		{"not set, with gRPC", nil, true, nil, "http2"},
		{"not set, with Envoy", nil, false, &connector.Envoy{}, "http2"},
		{"auto", ptr.To(v1alpha1.ProtocolAuto), false, nil, "auto"},
		{"auto, with gRPC", ptr.To(v1alpha1.ProtocolAuto), true, nil, "http2"},
		{"auto, with Envoy", ptr.To(v1alpha1.ProtocolAuto), false, &connector.Envoy{}, "http2"},
		{"quic", ptr.To(v1alpha1.ProtocolQUIC), false, nil, "quic"},
		{"quic, with gRPC", ptr.To(v1alpha1.ProtocolQUIC), true, nil, "quic"},
		{"quic, with Envoy", ptr.To(v1alpha1.ProtocolQUIC), false, &connector.Envoy{}, "quic"},
		{"http2", ptr.To(v1alpha1.ProtocolHTTP2), false, nil, "http2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf("web")
			in.Settings.Protocol, in.HTTP2, in.Envoy = c.set, c.http2, c.envoy
			if got := argument(t, build(t, in), "--protocol"); got != c.want {
				t.Errorf("--protocol %s, want %s", got, c.want)
			}
		})
	}
}

func TestReplicasAreUnsetWithAutoscaling(t *testing.T) {
	by := func(autoscaler v1alpha1.Autoscaler) *v1alpha1.Autoscaling {
		return &v1alpha1.Autoscaling{Autoscaler: &autoscaler}
	}
	for _, c := range []struct {
		name   string
		set    v1alpha1.Connector
		want   *int32
		scaler bool // whether the controller creates an autoscaler
	}{
		{"default", v1alpha1.Connector{}, ptr.To[int32](2), false},
		{"set", v1alpha1.Connector{Replicas: ptr.To[int32](5)}, ptr.To[int32](5), false},
		{"none", v1alpha1.Connector{Replicas: ptr.To[int32](0)}, ptr.To[int32](0), false},
		{"autoscaling", v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}}, nil, true},
		{"both", v1alpha1.Connector{Replicas: ptr.To[int32](5), Autoscaling: &v1alpha1.Autoscaling{}}, nil, true},
		{"managed", v1alpha1.Connector{Autoscaling: by(v1alpha1.AutoscalerManaged)}, nil, true},
		{"external", v1alpha1.Connector{Autoscaling: by(v1alpha1.AutoscalerExternal)}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := buildSettings(t, c.set)
			if diff := cmp.Diff(c.want, o.Deployment.Spec.Replicas); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			if got := o.HorizontalPodAutoscaler != nil; got != c.scaler {
				t.Errorf("autoscaler exists: %t, want %t", got, c.scaler)
			}
		})
	}
}

func TestAutoscalingBoundsHaveDefaults(t *testing.T) {
	for _, c := range []struct {
		name                  string
		set                   v1alpha1.Autoscaling
		minimum, maximum, cpu int32
	}{
		{"defaults", v1alpha1.Autoscaling{}, 2, 25, 80},
		{"all set", v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](3), MaxReplicas: ptr.To[int32](4), TargetCPUUtilizationPercentage: ptr.To[int32](50)}, 3, 4, 50},
		{"maximum below the default minimum", v1alpha1.Autoscaling{MaxReplicas: ptr.To[int32](1)}, 1, 1, 80},
		{"minimum above the maximum", v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](9), MaxReplicas: ptr.To[int32](4)}, 4, 4, 80},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := buildSettings(t, v1alpha1.Connector{Autoscaling: &c.set}).HorizontalPodAutoscaler.Spec
			got := []int32{*spec.MinReplicas, *spec.MaxReplicas, *spec.Metrics[0].Resource.Target.AverageUtilization}
			if diff := cmp.Diff([]int32{c.minimum, c.maximum, c.cpu}, got); diff != "" {
				t.Errorf("minimum, maximum, CPU (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodGracePeriodExceedsThatOfTheConnector(t *testing.T) {
	for _, c := range []struct {
		name     string
		set      *v1alpha1.Duration
		argument string
		pod      int64
	}{
		{"default", nil, "30s", 45},
		{"set", ptr.To[v1alpha1.Duration]("5s"), "5s", 20},
		{"longest", ptr.To[v1alpha1.Duration]("3m"), "180s", 195},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := buildSettings(t, v1alpha1.Connector{GracePeriod: c.set})
			if got := argument(t, o, "--grace-period"); got != c.argument {
				t.Errorf("--grace-period %s, want %s", got, c.argument)
			}
			if got := *o.Deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; got != c.pod {
				t.Errorf("terminationGracePeriodSeconds %d, want %d", got, c.pod)
			}
		})
	}
	in := inputOf("web")
	in.Settings.GracePeriod = ptr.To[v1alpha1.Duration]("soon")
	if o, err := connector.Build(in); err == nil || !strings.Contains(err.Error(), "gracePeriod") || o != (connector.Objects{}) {
		t.Errorf("gracePeriod soon: got %v, %v; want an error that names the field, and no objects", o, err)
	}
}

func TestReadinessIsCheckedAfterTheDelay(t *testing.T) {
	for name, c := range map[string]struct {
		set  v1alpha1.Connector
		want *int32
	}{
		"default":  {v1alpha1.Connector{}, ptr.To[int32](15)},
		"set":      {v1alpha1.Connector{ReadyDelay: ptr.To[v1alpha1.Delay]("1m")}, ptr.To[int32](60)},
		"none":     {v1alpha1.Connector{ReadyDelay: ptr.To[v1alpha1.Delay]("0s")}, nil},
		"loopback": {v1alpha1.Connector{Metrics: ptr.To(v1alpha1.MetricsLoopback)}, ptr.To[int32](15)},
	} {
		t.Run(name, func(t *testing.T) {
			container := buildSettings(t, c.set).Deployment.Spec.Template.Spec.Containers[0]
			if diff := cmp.Diff(c.want, container.ReadinessProbe.InitialDelaySeconds); diff != "" {
				t.Errorf("delay of the readiness probe (-want +got):\n%s", diff)
			}
			if got := container.LivenessProbe.InitialDelaySeconds; got != nil {
				t.Errorf("delay of the liveness probe: %d, want none", *got)
			}
		})
	}
	in := inputOf("web")
	in.Settings.ReadyDelay = ptr.To[v1alpha1.Delay]("soon")
	if _, err := connector.Build(in); err == nil || !strings.Contains(err.Error(), "readyDelay") {
		t.Errorf("readyDelay soon: got %v, want an error that names the field", err)
	}
}

func TestEdgeIPVersionIsThatOfTheSettings(t *testing.T) {
	for want, set := range map[string]*v1alpha1.EdgeIPVersion{
		"auto": nil, "4": ptr.To(v1alpha1.EdgeIPVersion4), "6": ptr.To(v1alpha1.EdgeIPVersion6),
	} {
		if got := argument(t, buildSettings(t, v1alpha1.Connector{EdgeIPVersion: set}), "--edge-ip-version"); got != want {
			t.Errorf("--edge-ip-version %s, want %s", got, want)
		}
	}
}

func TestByDefaultOneConnectorCanBeEvicted(t *testing.T) {
	autoscaled := func(maximum int32) v1alpha1.Connector {
		return v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](1), MaxReplicas: &maximum}}
	}
	for _, c := range []struct {
		name string
		set  v1alpha1.Connector
		want bool
	}{
		{"the default number", v1alpha1.Connector{}, true},
		{"two", v1alpha1.Connector{Replicas: ptr.To[int32](2)}, true},
		{"one", v1alpha1.Connector{Replicas: ptr.To[int32](1)}, false},
		{"none", v1alpha1.Connector{Replicas: ptr.To[int32](0)}, false},
		{"one to two", autoscaled(2), true},
		{"one to one", autoscaled(1), false},
	} {
		budget := buildSettings(t, c.set).PodDisruptionBudget
		if (budget != nil) != c.want {
			t.Errorf("%s: budget %v, want one: %t", c.name, budget, c.want)
		} else if c.want && *budget.Spec.MaxUnavailable != intstr.FromInt32(1) {
			t.Errorf("%s: %v can be unavailable, want 1", c.name, budget.Spec.MaxUnavailable)
		}
	}
}

func TestPodDisruptionBudgetIsThatOfTheSettings(t *testing.T) {
	for _, set := range []v1alpha1.PodDisruptionBudget{
		{MinAvailable: ptr.To(intstr.FromString("50%"))},
		{MaxUnavailable: ptr.To(intstr.FromInt32(0))},
	} {
		spec := buildSettings(t, v1alpha1.Connector{PodDisruptionBudget: &set}).PodDisruptionBudget.Spec
		if diff := cmp.Diff(set, v1alpha1.PodDisruptionBudget{MinAvailable: spec.MinAvailable, MaxUnavailable: spec.MaxUnavailable}); diff != "" {
			t.Errorf("budget (-want +got):\n%s", diff)
		}
	}
}

// TestRollingUpdateStaysWithinTheLimit rounds like the Deployment controller.
func TestRollingUpdateStaysWithinTheLimit(t *testing.T) {
	update := buildSettings(t, v1alpha1.Connector{}).Deployment.Spec.Strategy.RollingUpdate
	for replicas := 1; replicas <= v1alpha1.MaxReplicas; replicas++ {
		missing, err := intstr.GetScaledValueFromIntOrPercent(update.MaxUnavailable, replicas, false)
		if err != nil {
			t.Fatal(err)
		}
		surge, err := intstr.GetScaledValueFromIntOrPercent(update.MaxSurge, replicas, true)
		if err != nil {
			t.Fatal(err)
		}
		full := replicas+surge > v1alpha1.MaxReplicas
		if full != (missing > 0) {
			t.Errorf("%d replicas: surge %d and %d unavailable, want 1 unavailable only if the surge exceeds the limit", replicas, surge, missing)
		}
	}
}

// TestOnlyNecessaryChangesReplaceThePods compares the pod templates before and after a
// change.
func TestOnlyNecessaryChangesReplaceThePods(t *testing.T) {
	template := func(change func(*connector.Input)) any {
		in := read(t, "testdata/everything.in.yaml")
		change(&in)
		return build(t, in).Deployment.Spec.Template
	}
	before := template(func(*connector.Input) {})
	for name, change := range map[string]func(*connector.Input){
		"the Tunnel's status": func(in *connector.Input) {
			in.Tunnel.Generation, in.Tunnel.ResourceVersion = 9, "9"
			in.Tunnel.Status.Phase = v1alpha1.TunnelServing
		},
		"the Tunnel's own metadata": func(in *connector.Input) {
			in.Tunnel.Labels, in.Tunnel.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
		},
		"the Tunnel's UID":             func(in *connector.Input) { in.Tunnel.UID = "2" },
		"the Tunnel's deletion policy": func(in *connector.Input) { in.Tunnel.Spec.DeletionPolicy = "Retain" },
		"replicas":                     func(in *connector.Input) { in.Settings.Autoscaling = nil },
		"the disruption budget":        func(in *connector.Input) { in.Settings.PodDisruptionBudget = nil },
	} {
		if diff := cmp.Diff(before, template(change)); diff != "" {
			t.Errorf("a change of %s replaces the pods (-before +after):\n%s", name, diff)
		}
	}
	for name, change := range map[string]func(*connector.Input){
		"the token":    func(in *connector.Input) { in.TokenVersion = "2" },
		"the protocol": func(in *connector.Input) { in.HTTP2 = false },
		"the image":    func(in *connector.Input) { in.Settings.Image = nil },
	} {
		if cmp.Diff(before, template(change)) == "" {
			t.Errorf("a change of %s does not replace the pods", name)
		}
	}
}

func TestHandoverKeepsTheReplicas(t *testing.T) {
	const manager = "tunnel-gateway"
	autoscaling, fixed := inputOf("web"), inputOf("web")
	autoscaling.Settings.Autoscaling = &v1alpha1.Autoscaling{}
	name := *build(t, fixed).Deployment.Name
	owned := func(manager string, operation metav1.ManagedFieldsOperationType, fields string, replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "tunnel-gateway", Name: name, UID: "2",
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}},
			},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		}
	}
	const replicas, others = `{"f:spec":{"f:replicas":{},"f:template":{}}}`, `{"f:spec":{"f:template":{}}}`
	for _, c := range []struct {
		name string
		in   connector.Input
		d    *appsv1.Deployment
		want bool
	}{
		{"replicas of this manager", autoscaling, owned(manager, metav1.ManagedFieldsOperationApply, replicas, 5), true},
		{"no autoscaler", fixed, owned(manager, metav1.ManagedFieldsOperationApply, replicas, 5), false},
		{"no Deployment", autoscaling, nil, false},
		{"replicas without a manager", autoscaling, owned(manager, metav1.ManagedFieldsOperationApply, others, 5), false},
		{"replicas of another manager", autoscaling, owned("kubectl", metav1.ManagedFieldsOperationApply, replicas, 5), false},
		{"replicas of an update", autoscaling, owned(manager, metav1.ManagedFieldsOperationUpdate, replicas, 5), false},
		{"zero replicas", autoscaling, owned(manager, metav1.ManagedFieldsOperationApply, replicas, 0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := connector.Handover(c.in, c.d, manager)
			if (got != nil) != c.want {
				t.Fatalf("Handover = %v, want a Deployment: %t", got, c.want)
			}
			if got != nil && (*got.Name != name || *got.Namespace != "tunnel-gateway" || *got.UID != "2" || *got.Spec.Replicas != 5) {
				t.Errorf("Handover = %v, want the replicas of the Deployment", got)
			}
		})
	}
}
