package tunnel

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The settings can stop the connectors while a rotation waits for them. A Deployment
// that does not exist is not rolled out.
func TestRotationEndsWithoutConnectors(t *testing.T) {
	stopped := func(f *Facts) {
		f.Object.Status.Token = v1alpha1.TokenStatus{Phase: v1alpha1.TokenRolling, RotatedAt: timeAt(-time.Minute)}
		f.Desired.RunConnectors, f.Connectors = false, Connectors{Current: true}
		connections(time.Second)(f)
	}
	testDecide(t, []row{
		{"a rotation continues without connectors", stopped, want{Action: Record, Record: "token.phase=Disconnecting"}},
		{"a rotation waits for the pods of stopped connectors", combine(stopped, func(f *Facts) { f.Connectors.Pods = 1 }), waitsFor(rolloutInterval, noReason)},
	})
}
