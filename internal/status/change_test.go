package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// Each step is told once, on the object that it is about.
func TestWriterReportsEachChangeOnce(t *testing.T) {
	w := newFakeCluster(t)
	var told []string
	w.writer.Notify = func(object client.Object, change status.Change) {
		kind := "better"
		if change.Warning {
			kind = "worse"
		}
		told = append(told, object.GetName()+" "+kind+": "+change.Reason)
	}
	write := func(conditions ...metav1.Condition) {
		t.Helper()
		r := report()
		r.Gateway.Conditions = conditions
		if err := w.writer.Write(t.Context(), gatewayName, r); err != nil {
			t.Fatal(err)
		}
	}
	bad := condition("Accepted", metav1.ConditionFalse, 2)
	bad.Reason = "UnsupportedAddress"
	write(condition("Accepted", isTrue, 2))
	write(bad)
	write(bad)
	write(condition("Accepted", isTrue, 2))
	want := []string{gatewayName.Name + " worse: UnsupportedAddress", gatewayName.Name + " better: " + condition("Accepted", isTrue, 2).Reason}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told steps differ (-want +got):\n%s", diff)
	}
}
