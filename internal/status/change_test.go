package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

func TestWriterReportsEachChangeOnce(t *testing.T) {
	// The Writer reports each change once, for the object that changed.
	cluster := newFakeCluster(t)
	var got []string
	cluster.writer.Notify = func(object client.Object, change status.Change) {
		kind := "normal"
		if change.Warning {
			kind = "warning"
		}
		got = append(got, object.GetName()+" "+kind+": "+change.Reason)
	}
	write := func(conditions ...metav1.Condition) {
		t.Helper()
		r := report()
		r.Gateway.Conditions = conditions
		if err := cluster.writer.Write(t.Context(), owner, r); err != nil {
			t.Fatal(err)
		}
	}
	rejected := condition("Accepted", metav1.ConditionFalse, 2)
	rejected.Reason = "UnsupportedAddress"
	write(condition("Accepted", isTrue, 2))
	write(rejected)
	write(rejected)
	write(condition("Accepted", isTrue, 2))
	want := []string{gatewayName.Name + " warning: UnsupportedAddress", gatewayName.Name + " normal: " + condition("Accepted", isTrue, 2).Reason}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reported changes differ (-want +got):\n%s", diff)
	}
}
