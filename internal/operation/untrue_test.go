package operation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// expectedToFail fails the test if check succeeds.
func expectedToFail(t *testing.T, reason string, check func() string) {
	t.Helper()
	if check() == "" {
		t.Errorf("the check succeeds, although %s", reason)
	}
}

// isNotDone returns an error message if the operation counts as in effect.
func isNotDone(o Operation, changes ...func(*objects)) func() string {
	return func() string { return o.effect(serving(changes...)).done }
}

func TestLostRequestIsNotInEffect(t *testing.T) {
	// A Tunnel that was deleted and created again has neither the annotations nor the record.
	recreated := func(f *objects) {
		f.tunnel.Annotations, f.tunnel.Status.Reconciled, f.tunnel.Status.Token.Requested = nil, "", ""
	}
	for _, o := range []Operation{Reconcile, RotateToken} {
		expectedToFail(t, "an annotation that is gone equals a record that is empty", isNotDone(o, recreated))
	}
	expectedToFail(t, "only the Tunnel is considered", isNotDone(Pause, paused))
	expectedToFail(t, "only the Tunnel is considered", isNotDone(Resume, func(f *objects) {
		f.gateway.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
	}))
}

func TestConditionsOfAnOlderGenerationOfTheGatewayDoNotCount(t *testing.T) {
	for _, o := range []Operation{Reconcile, Resume, RotateToken} {
		expectedToFail(t, "an outdated condition counts as True", isNotDone(o, func(f *objects) { f.gateway.Generation++ }))
	}
}

// An API server that accepts connections may never answer.
func TestTimeoutAppliesToEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clusterWith()
		c.WithWatch = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
			Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got := c.run(ctx, Reconcile, nil)
		want := "Gateway infra/shared: timed out after 1m0s: read Gateway infra/shared: context deadline exceeded"
		if got.took != time.Minute || got.err == nil || got.err.Error() != want {
			t.Errorf("got %+v, want %s after a minute", got, want)
		}
	})
}
