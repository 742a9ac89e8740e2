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

// The record has whole seconds, so a connector that connects within the second of the
// rotation counts as one with the old token. The token is read only after that second.
func TestARotatedTokenIsReadAfterTheSecondOfTheRotation(t *testing.T) {
	rotated := func(age time.Duration) change {
		return func(f *Facts) {
			f.Object.Status.Token.Phase = v1alpha1.TokenRotating
			f.Clock = f.Clock.Add(400 * time.Millisecond)
			f.Memory.Token.Rotated, f.Memory.Token.Pending = At(f.Uptime-age), true
		}
	}
	testDecide(t, []row{
		{"just after the rotation", rotated(100 * time.Millisecond), waitsFor(600*time.Millisecond, noReason)},
		{"in the next second", rotated(500 * time.Millisecond), want{Action: ReadToken}},
	})
}
