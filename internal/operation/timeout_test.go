package operation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// silentCluster returns a cluster whose API server never responds.
func silentCluster() *cluster {
	c := clusterWith()
	c.WithWatch = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	return c
}

// An API server that accepts connections may never answer.
func TestTimeoutAppliesToEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := silentCluster()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got := c.run(ctx, Reconcile, nil)
		want := "Gateway infra/shared: timed out after 1m0s: read Gateway infra/shared: context deadline exceeded"
		if got.took != time.Minute || got.err == nil || got.err.Error() != want {
			t.Errorf("got %+v, want %s after a minute", got, want)
		}
	})
}

func TestRequestWithoutWaitingHasATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := silentCluster().target().Run(ctx, Reconcile, Waiting{})
		want := "Gateway infra/shared: timed out after 30s: read Gateway infra/shared: context deadline exceeded"
		if took := time.Since(start); took != 30*time.Second || err == nil || err.Error() != want {
			t.Errorf("got %v after %s, want %s", err, took, want)
		}
	})
}
