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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

// settings builds the connectors of a plain Gateway with these settings.
func settings(t *testing.T, c v1alpha1.Connector) connector.Objects {
	t.Helper()
	in := inputOf(gatewayOf("web", "tunnel"))
	in.Settings = c
	return build(t, in)
}

// argument is what follows the flag in the connector's command line.
func argument(t *testing.T, o connector.Objects, flag string) string {
	t.Helper()
	args := o.Deployment.Spec.Template.Spec.Containers[0].Args
	at := slices.Index(args, flag)
	if at < 0 || at+1 == len(args) {
		t.Fatalf("no %s in %v", flag, args)
	}
	return args[at+1]
}

func TestProtocol(t *testing.T) {
	for _, c := range []struct {
		what  string
		set   *v1alpha1.Protocol
		http2 bool
		want  string
	}{
		{"not set", nil, false, "auto"},
		{"not set, with gRPC", nil, true, "http2"},
		{"auto", ptr.To(v1alpha1.ProtocolAuto), false, "auto"},
		{"auto, with gRPC", ptr.To(v1alpha1.ProtocolAuto), true, "http2"},
		{"quic", ptr.To(v1alpha1.ProtocolQUIC), false, "quic"},
		{"quic, with gRPC: it was asked for", ptr.To(v1alpha1.ProtocolQUIC), true, "quic"},
		{"http2", ptr.To(v1alpha1.ProtocolHTTP2), false, "http2"},
	} {
		t.Run(c.what, func(t *testing.T) {
			in := inputOf(gatewayOf("web", "tunnel"))
			in.Settings.Protocol, in.HTTP2 = c.set, c.http2
			if got := argument(t, build(t, in), "--protocol"); got != c.want {
				t.Errorf("--protocol %s, want %s", got, c.want)
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	for _, c := range []struct {
		what string
		set  v1alpha1.Connector
		want *int32
	}{
		{"default", v1alpha1.Connector{}, ptr.To[int32](2)},
		{"set", v1alpha1.Connector{Replicas: ptr.To[int32](5)}, ptr.To[int32](5)},
		{"none", v1alpha1.Connector{Replicas: ptr.To[int32](0)}, ptr.To[int32](0)},
		{"autoscaling", v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}}, nil},
		{"both", v1alpha1.Connector{Replicas: ptr.To[int32](5), Autoscaling: &v1alpha1.Autoscaling{}}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			o := settings(t, c.set)
			if diff := cmp.Diff(c.want, o.Deployment.Spec.Replicas); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			if got, want := o.HorizontalPodAutoscaler != nil, c.want == nil; got != want {
				t.Errorf("there is an autoscaler: %t, want %t", got, want)
			}
		})
	}
}

func TestAutoscaling(t *testing.T) {
	for _, c := range []struct {
		what             string
		set              v1alpha1.Autoscaling
		least, most, cpu int32
	}{
		{"defaults", v1alpha1.Autoscaling{}, 2, 25, 80},
		{"all set", v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](3), MaxReplicas: ptr.To[int32](4), TargetCPUUtilizationPercentage: ptr.To[int32](50)}, 3, 4, 50},
		{"at most one", v1alpha1.Autoscaling{MaxReplicas: ptr.To[int32](1)}, 1, 1, 80},
		{"two levels that disagree", v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](9), MaxReplicas: ptr.To[int32](4)}, 4, 4, 80},
	} {
		t.Run(c.what, func(t *testing.T) {
			spec := settings(t, v1alpha1.Connector{Autoscaling: &c.set}).HorizontalPodAutoscaler.Spec
			got := []int32{*spec.MinReplicas, *spec.MaxReplicas, *spec.Metrics[0].Resource.Target.AverageUtilization}
			if diff := cmp.Diff([]int32{c.least, c.most, c.cpu}, got); diff != "" {
				t.Errorf("least, most, cpu (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGracePeriod(t *testing.T) {
	for _, c := range []struct {
		what     string
		set      *v1alpha1.Duration
		argument string
		pod      int64
	}{
		{"default", nil, "30s", 45},
		{"set", ptr.To[v1alpha1.Duration]("5s"), "5s", 20},
		{"longest", ptr.To[v1alpha1.Duration]("3m"), "180s", 195},
	} {
		t.Run(c.what, func(t *testing.T) {
			o := settings(t, v1alpha1.Connector{GracePeriod: c.set})
			if got := argument(t, o, "--grace-period"); got != c.argument {
				t.Errorf("--grace-period %s, want %s", got, c.argument)
			}
			if got := *o.Deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; got != c.pod {
				t.Errorf("the pod has %d s, want %d s", got, c.pod)
			}
		})
	}
	in := inputOf(gatewayOf("web", "tunnel"))
	in.Settings.GracePeriod = ptr.To[v1alpha1.Duration]("soon")
	if o, err := connector.Build(in); err == nil || !strings.Contains(err.Error(), "gracePeriod") || o != (connector.Objects{}) {
		t.Errorf("gracePeriod soon: %v, %v; want an error that names it, and no objects", o, err)
	}
}

func TestPodDisruptionBudget(t *testing.T) {
	if got := settings(t, v1alpha1.Connector{}).PodDisruptionBudget; got != nil {
		t.Errorf("not set: %v, want none", got)
	}
	for _, set := range []v1alpha1.PodDisruptionBudget{
		{MinAvailable: ptr.To(intstr.FromString("50%"))},
		{MaxUnavailable: ptr.To(intstr.FromInt32(0))},
	} {
		spec := settings(t, v1alpha1.Connector{PodDisruptionBudget: &set}).PodDisruptionBudget.Spec
		if diff := cmp.Diff(set, v1alpha1.PodDisruptionBudget{MinAvailable: spec.MinAvailable, MaxUnavailable: spec.MaxUnavailable}); diff != "" {
			t.Errorf("budget (-want +got):\n%s", diff)
		}
	}
}

// TestRollingUpdateStaysWithinTheLimit counts as the Deployment controller does.
func TestRollingUpdateStaysWithinTheLimit(t *testing.T) {
	update := settings(t, v1alpha1.Connector{}).Deployment.Spec.Strategy.RollingUpdate
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
			t.Errorf("%d replicas: %d more and %d missing; one may be missing only where one more finds no room", replicas, surge, missing)
		}
	}
}

// TestWhatReplacesThePods: nothing but what a connector starts with.
func TestWhatReplacesThePods(t *testing.T) {
	template := func(change func(*connector.Input)) any {
		in := read(t, "testdata/everything.in.yaml")
		change(&in)
		return build(t, in).Deployment.Spec.Template
	}
	before := template(func(*connector.Input) {})
	for what, change := range map[string]func(*connector.Input){
		"routes attached": func(in *connector.Input) {
			in.Gateway.Generation, in.Gateway.ResourceVersion = 9, "9"
			in.Gateway.Status.Listeners = []gatewayv1.ListenerStatus{{Name: "a", AttachedRoutes: 3}}
		},
		"a listener": func(in *connector.Input) { in.Gateway.Spec.Listeners = []gatewayv1.Listener{{Name: "a"}} },
		"an annotation of the Gateway itself": func(in *connector.Input) {
			in.Gateway.Annotations = map[string]string{"a": "b"}
		},
		"replicas":             func(in *connector.Input) { in.Settings.Autoscaling = nil },
		"no disruption budget": func(in *connector.Input) { in.Settings.PodDisruptionBudget = nil },
	} {
		if diff := cmp.Diff(before, template(change)); diff != "" {
			t.Errorf("%s replaces the pods (-before +after):\n%s", what, diff)
		}
	}
	for what, change := range map[string]func(*connector.Input){
		"token":    func(in *connector.Input) { in.TokenVersion = "2" },
		"protocol": func(in *connector.Input) { in.HTTP2 = false },
		"image":    func(in *connector.Input) { in.Settings.Image = nil },
	} {
		if cmp.Diff(before, template(change)) == "" {
			t.Errorf("a change of the %s does not replace the pods", what)
		}
	}
}

func TestHandover(t *testing.T) {
	const us = "tunnel-gateway"
	autoscaling := inputOf(gatewayOf("web", "tunnel"))
	autoscaling.Settings.Autoscaling = &v1alpha1.Autoscaling{}
	owned := func(manager string, operation metav1.ManagedFieldsOperationType, fields string, replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "infra", Name: "web-tunnel", UID: "2",
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}},
			},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		}
	}
	const replicas, others = `{"f:spec":{"f:replicas":{},"f:template":{}}}`, `{"f:spec":{"f:template":{}}}`
	for _, c := range []struct {
		what string
		in   connector.Input
		d    *appsv1.Deployment
		want bool
	}{
		{"ours", autoscaling, owned(us, metav1.ManagedFieldsOperationApply, replicas, 5), true},
		{"no autoscaler", inputOf(gatewayOf("web", "tunnel")), owned(us, metav1.ManagedFieldsOperationApply, replicas, 5), false},
		{"no Deployment", autoscaling, nil, false},
		{"the autoscaler's already", autoscaling, owned(us, metav1.ManagedFieldsOperationApply, others, 5), false},
		{"another's", autoscaling, owned("kubectl", metav1.ManagedFieldsOperationApply, replicas, 5), false},
		{"not applied", autoscaling, owned(us, metav1.ManagedFieldsOperationUpdate, replicas, 5), false},
		{"zero would stay", autoscaling, owned(us, metav1.ManagedFieldsOperationApply, replicas, 0), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := connector.Handover(c.in, c.d, us)
			if (got != nil) != c.want {
				t.Fatalf("Handover = %v, want one: %t", got, c.want)
			}
			if got != nil && (*got.Name != "web-tunnel" || *got.Namespace != "infra" || *got.UID != "2" || *got.Spec.Replicas != 5) {
				t.Errorf("Handover = %v", got)
			}
		})
	}
}
