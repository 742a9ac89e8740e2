package status_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

var errPolicy = errors.New("refused by a policy")

// refuseRoutes is an updateError that refuses route statuses.
func refuseRoutes(o client.Object) error {
	if kindOf(o) == gateway.KindHTTPRoute {
		return errPolicy
	}
	return nil
}

// withRetries runs a test with the fake clock from testing/synctest while the Writer
// retries failed writes.
func withRetries(t *testing.T, test func(*testing.T, *fakeCluster)) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster(t)
		go func() { _ = cluster.writer.Start(t.Context()) }()
		synctest.Wait()
		test(t, cluster)
	})
}

// advance advances the fake clock.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// reportFor returns the report with another reason in the route's condition.
func reportFor(reason string) gateway.Report {
	r := report()
	conditions := slices.Clone(r.Routes[0].Parents[0].Conditions)
	conditions[0].Reason = reason
	r.Routes[0].Parents[0].Conditions = conditions
	return r
}

// routeReason returns the reason in the route's status, or "".
func (cluster *fakeCluster) routeReason(t *testing.T) string {
	t.Helper()
	parents := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{}).Status.Parents
	if len(parents) == 0 {
		return ""
	}
	return parents[0].Conditions[0].Reason
}

// failUpdates sets the function that returns the error for a status update.
func (cluster *fakeCluster) failUpdates(updateError func(client.Object) error) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.updateError = updateError
}

// block makes the API server not respond to an object's status updates.
func (cluster *fakeCluster) block(name types.NamespacedName) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.stuck = name
}

func (cluster *fakeCluster) unwrittenCount() int {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	return cluster.unwritten
}

func (cluster *fakeCluster) writeCount() int {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	return len(cluster.writes)
}

func TestRefusedStatusIsRetriedUntilItSucceeds(t *testing.T) {
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		cluster.failUpdates(refuseRoutes)
		if err := cluster.writer.Write(t.Context(), owner, reportFor("One"), nil); !errors.Is(err, errPolicy) {
			t.Errorf("Write returned %v, want %v", err, errPolicy)
		}
		cluster.wantAttempts(t, "HTTPRoute", "ListenerSet", "Gateway")
		advance(10 * time.Minute)
		if cluster.unwrittenCount() != 1 || cluster.routeReason(t) != "" {
			t.Errorf("%d statuses are unwritten, want 1", cluster.unwrittenCount())
		}
		if got := cluster.writeCount(); got < 15 || got > 30 {
			t.Errorf("%d writes within ten minutes, want a backoff of at most a minute", got)
		}
		wantCalls(t, "notified", cluster.failures, "HTTPRoute")
		cluster.failUpdates(nil)
		advance(time.Minute)
		if got := cluster.routeReason(t); got != "One" || cluster.unwrittenCount() != 0 {
			t.Errorf("the route has reason %q, and %d statuses are unwritten; want reason One and none", got, cluster.unwrittenCount())
		}
		before := cluster.writeCount()
		advance(time.Hour)
		if got := cluster.writeCount(); got != before {
			t.Errorf("%d writes after the status was written", got-before)
		}
	})
}

func TestRetryWritesTheNewestReport(t *testing.T) {
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		cluster.failUpdates(refuseRoutes)
		_ = cluster.writer.Write(t.Context(), owner, reportFor("Old"), nil)
		advance(time.Minute)
		cluster.failUpdates(nil)
		// A changed report is retried immediately.
		if err := cluster.writer.Write(t.Context(), owner, reportFor("New"), nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := cluster.routeReason(t); got != "New" || cluster.unwrittenCount() != 0 {
			t.Errorf("the route has reason %q, want New", got)
		}
	})
}

func TestRunningRetryDoesNotOverwriteANewerReport(t *testing.T) {
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		cluster.failUpdates(refuseRoutes)
		_ = cluster.writer.Write(t.Context(), owner, reportFor("Old"), nil)
		release := make(chan struct{})
		cluster.failUpdates(func(o client.Object) error {
			if kindOf(o) == gateway.KindHTTPRoute {
				<-release // the old report's retry
			}
			return nil
		})
		advance(5 * time.Second)
		if err := cluster.writer.Write(t.Context(), owner, reportFor("New"), nil); err != nil {
			t.Error(err)
		}
		close(release)
		advance(time.Second)
		if got := cluster.routeReason(t); got != "New" || cluster.unwrittenCount() != 0 {
			t.Errorf("the route has reason %q, want New", got)
		}
	})
}

func TestOutdatedRetryStopsAfterAConflict(t *testing.T) {
	// A retry of an old report finds a conflict after the owner no longer reports the
	// status. It must not overwrite the current status.
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		cluster.failUpdates(refuseRoutes)
		_ = cluster.writer.Write(t.Context(), owner, reportFor("Old"), nil)
		release := make(chan struct{})
		cluster.failUpdates(func(o client.Object) error {
			if kindOf(o) == gateway.KindHTTPRoute {
				<-release
				return conflict(o)
			}
			return nil
		})
		advance(5 * time.Second)
		cluster.writer.Forget(owner)
		close(release)
		cluster.failUpdates(nil)
		advance(time.Hour)
		if got := cluster.routeReason(t); got != "" || cluster.unwrittenCount() != 0 {
			t.Errorf("the route has reason %q, want no status", got)
		}
	})
}

func TestRetriesStop(t *testing.T) {
	for description, stop := range map[string]func(*testing.T, *fakeCluster){
		"when the object is deleted": func(t *testing.T, cluster *fakeCluster) {
			if err := cluster.server.Delete(t.Context(), named(&gatewayv1.HTTPRoute{}, routeName)); err != nil {
				t.Error(err)
			}
		},
		"when the newest report omits the object": func(t *testing.T, cluster *fakeCluster) {
			r := report()
			r.Routes = nil
			if err := cluster.writer.Write(t.Context(), owner, r, nil); err != nil {
				t.Error(err)
			}
		},
		"when the owner is forgotten": func(_ *testing.T, cluster *fakeCluster) { cluster.writer.Forget(owner) },
	} {
		t.Run(description, func(t *testing.T) {
			withRetries(t, func(t *testing.T, cluster *fakeCluster) {
				cluster.failUpdates(refuseRoutes)
				_ = cluster.writer.Write(t.Context(), owner, report(), nil)
				advance(10 * time.Second)
				stop(t, cluster)
				advance(time.Minute)
				before := cluster.writeCount()
				advance(time.Hour)
				if got := cluster.writeCount(); got != before || cluster.unwrittenCount() != 0 {
					t.Errorf("%d more writes, and %d unwritten statuses, want none", got-before, cluster.unwrittenCount())
				}
			})
		})
	}
}

func TestChangedObjectIsRetriedAtTheNextReport(t *testing.T) {
	// The user has made the object smaller, for example. That changes neither its
	// generation nor the report.
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		cluster.failUpdates(refuseRoutes)
		_ = cluster.writer.Write(t.Context(), owner, report(), nil)
		advance(10 * time.Minute)
		before := cluster.writeCount()
		_ = cluster.writer.Write(t.Context(), owner, report(), nil)
		synctest.Wait()
		if got := cluster.writeCount(); got != before {
			t.Errorf("an unchanged object was retried %d times before its backoff ended", got-before)
		}
		cluster.failUpdates(nil)
		route := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{})
		metav1.SetMetaDataAnnotation(&route.ObjectMeta, "size", "small")
		if err := cluster.server.Update(t.Context(), route); err != nil {
			t.Fatal(err)
		}
		_ = cluster.writer.Write(t.Context(), owner, report(), nil)
		synctest.Wait()
		if cluster.unwrittenCount() != 0 {
			t.Errorf("%d statuses are unwritten, want none", cluster.unwrittenCount())
		}
	})
}

func TestStatusesFailedBeforeTheStartAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster(t)
		cluster.failUpdates(refuseRoutes)
		_ = cluster.writer.Write(t.Context(), owner, report(), nil)
		cluster.failUpdates(nil)
		go func() { _ = cluster.writer.Start(t.Context()) }()
		advance(time.Minute)
		if cluster.unwrittenCount() != 0 {
			t.Errorf("%d statuses are unwritten, want none", cluster.unwrittenCount())
		}
	})
}

func TestCanceledWriteIsNotRetried(t *testing.T) {
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		cluster.failUpdates(func(client.Object) error {
			cancel()
			return errPolicy
		})
		if err := cluster.writer.Write(ctx, owner, report(), nil); err == nil {
			t.Error("the canceled Write succeeded")
		}
		advance(time.Minute)
		if got := cluster.writeCount(); got > 2 || cluster.unwrittenCount() != 0 {
			t.Errorf("%d attempts and %d unwritten statuses after the cancellation", got, cluster.unwrittenCount())
		}
	})
}

func TestPanicInAWriteIsAFailure(t *testing.T) {
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		cluster.failUpdates(func(o client.Object) error {
			if kindOf(o) == gateway.KindHTTPRoute {
				panic("a bug")
			}
			return nil
		})
		if err := cluster.writer.Write(t.Context(), owner, report(), nil); err == nil {
			t.Error("the write succeeded")
		}
		advance(time.Minute)
		cluster.wantUnwritten(t, 1)
		cluster.failUpdates(nil)
		advance(time.Minute)
		cluster.wantUnwritten(t, 0)
	})
}

func (cluster *fakeCluster) wantUnwritten(t *testing.T, want int) {
	t.Helper()
	if got := cluster.unwrittenCount(); got != want {
		t.Errorf("%d statuses are unwritten, want %d", got, want)
	}
}

// createRoutes adds routes to the cluster and returns a report about them.
func (cluster *fakeCluster) createRoutes(t *testing.T, count int) gateway.Report {
	t.Helper()
	r := report()
	for i := range count {
		name := types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("route-%d", i)}
		route := named(&gatewayv1.HTTPRoute{}, name)
		route.Spec.ParentRefs = []gatewayv1.ParentReference{ref("g")}
		if err := cluster.server.Create(t.Context(), route); err != nil {
			t.Fatal(err)
		}
		r.Routes = append(r.Routes, &gateway.RouteStatus{Kind: gateway.KindHTTPRoute, NamespacedName: name, Parents: r.Routes[0].Parents})
	}
	return r
}

func TestStuckStatusDelaysTheOthersByTwoSeconds(t *testing.T) {
	// The API server does not respond when one status is updated.
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		r := cluster.createRoutes(t, 100)
		cluster.block(routeName)
		start := time.Now()
		if err := cluster.writer.Write(t.Context(), owner, r, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Write returned %v, want DeadlineExceeded", err)
		}
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("Write took %s, want 2s", got)
		}
		if got := cluster.writeCount(); got != 103 {
			t.Errorf("%d statuses were written, want 103", got)
		}
		cluster.wantUnwritten(t, 1)

		// The next report does not wait for it.
		start = time.Now()
		r.Gateway.Conditions = []metav1.Condition{condition("Accepted", isFalse, 2)}
		if err := cluster.writer.Write(t.Context(), owner, r, nil); err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("the next Write took %s, want 0s", got)
		}
		cluster.block(types.NamespacedName{})
		advance(time.Minute)
		cluster.wantUnwritten(t, 0)
	})
}

func TestNumberOfConcurrentWritesIsBounded(t *testing.T) {
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		r := cluster.createRoutes(t, 100)
		release := make(chan struct{})
		cluster.failUpdates(func(client.Object) error {
			<-release
			return nil
		})
		var writing sync.WaitGroup
		for i := range 3 {
			other := gateway.Owner{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "infra", Name: fmt.Sprint(i)}}
			writing.Go(func() { _ = cluster.writer.WriteAttached(t.Context(), other, r) })
		}
		synctest.Wait()
		if got := cluster.writeCount(); got != 24 {
			t.Errorf("%d statuses are written concurrently, want 24", got)
		}
		close(release)
		writing.Wait()
	})
}

func TestOutageIsRetriedWithoutAStorm(t *testing.T) {
	withRetries(t, func(t *testing.T, cluster *fakeCluster) {
		const routes = 900
		r := cluster.createRoutes(t, routes)
		cluster.failUpdates(func(client.Object) error { return errors.New("connection refused") })
		_ = cluster.writer.Write(t.Context(), owner, r, nil)
		advance(10 * time.Minute)
		cluster.wantUnwritten(t, routes+3)
		if got := cluster.writeCount(); got > 20*(routes+3) {
			t.Errorf("%d attempts for %d statuses within ten minutes", got, routes+3)
		}
		cluster.failUpdates(nil)
		advance(time.Minute)
		cluster.wantUnwritten(t, 0)
	})
}
