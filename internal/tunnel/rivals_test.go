package tunnel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

func TestRivalsRecordOrRequestTheSameTunnel(t *testing.T) {
	created := func(name string, day int, change func(*v1alpha1.Tunnel)) v1alpha1.Tunnel {
		object := v1alpha1.Tunnel{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC))},
			Spec:       v1alpha1.TunnelSpec{ControllerName: "example.com/c"},
		}
		change(&object)
		return object
	}
	records := func(id string) func(*v1alpha1.Tunnel) {
		return func(o *v1alpha1.Tunnel) { o.Status.TunnelID = id }
	}
	requests := func(id string) func(*v1alpha1.Tunnel) {
		return func(o *v1alpha1.Tunnel) { o.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: id} }
	}
	all := []v1alpha1.Tunnel{
		created("infra.self", 2, requests("t")),
		created("infra.recorded", 1, records("t")),
		created("infra.younger", 3, requests("t")),
		created("infra.a", 2, requests("t")),
		created("infra.z", 2, requests("t")),
		created("infra.moved", 1, func(o *v1alpha1.Tunnel) { requests("t")(o); records("other")(o) }),
		created("infra.other", 1, func(o *v1alpha1.Tunnel) { requests("t")(o); o.Spec.ControllerName = "example.com/other" }),
		created("infra.new", 1, func(*v1alpha1.Tunnel) {}),
	}
	want := []tunnel.Rival{
		{Object: "infra.recorded", Recorded: true, Older: true, HasGatewayName: true},
		{Object: "infra.younger"},
		{Object: "infra.a", Older: true},
		{Object: "infra.z"},
		{Object: "infra.other", Older: true, OtherController: true},
	}
	if diff := cmp.Diff(want, tunnel.Rivals(&all[0], all)); diff != "" {
		t.Errorf("the rivals differ (-want +got):\n%s", diff)
	}
	if got := tunnel.Rivals(&all[len(all)-1], all); got != nil {
		t.Errorf("a Tunnel without a claim has rivals %+v, want none", got)
	}
}
