package status_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// After the first report, Write reads a route only if the report about it or the route itself
// has changed, or if its status could not be written.
func TestWriteReadsOnlyWhatHasChanged(t *testing.T) {
	routeOwner := gateway.Owner{Kind: gateway.KindHTTPRoute, NamespacedName: routeName}
	externalChange := func(t *testing.T, cluster *fakeCluster) {
		route := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{})
		route.Status.Parents = nil
		if err := cluster.server.Status().Update(t.Context(), route); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, cluster *fakeCluster, last *status.Last, second *gateway.Report)
		want    int
	}{
		"nothing has changed": {func(*testing.T, *fakeCluster, *status.Last, *gateway.Report) {}, 0},
		"no event has arrived": {func(t *testing.T, cluster *fakeCluster, _ *status.Last, _ *gateway.Report) {
			externalChange(t, cluster)
		}, 0},
		"the object has changed": {func(t *testing.T, cluster *fakeCluster, last *status.Last, _ *gateway.Report) {
			externalChange(t, cluster)
			last.Changed(map[gateway.Owner]bool{routeOwner: true})
		}, 1},
		"anything may have changed": {func(t *testing.T, cluster *fakeCluster, last *status.Last, _ *gateway.Report) {
			externalChange(t, cluster)
			last.Changed(map[gateway.Owner]bool{})
			last.Changed(nil)
		}, 1},
		"the report has changed": {func(_ *testing.T, _ *fakeCluster, _ *status.Last, second *gateway.Report) {
			second.Routes[0] = report().Routes[0]
			second.Routes[0].Parents[0].Conditions[0].Message = "changed"
		}, 1},
		"the owners have changed": {func(t *testing.T, cluster *fakeCluster, _ *status.Last, second *gateway.Report) {
			externalChange(t, cluster)
			second.Owners = map[gateway.Owner]bool{{Kind: gateway.KindListenerSet, NamespacedName: setName}: true}
		}, 1},
		"other routes were added and removed": {func(_ *testing.T, _ *fakeCluster, _ *status.Last, second *gateway.Report) {
			other := func(name string) *gateway.RouteStatus {
				return &gateway.RouteStatus{Kind: gateway.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
			}
			second.Routes = []*gateway.RouteStatus{other("a"), second.Routes[0], other("z")}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, first, last := newFakeCluster(t), report(), status.Last{}
			second := first
			second.Routes = append([]*gateway.RouteStatus{}, first.Routes...)
			if err := cluster.writer.Write(t.Context(), owner, first, &last); err != nil {
				t.Fatal(err)
			}
			test.prepare(t, cluster, &last, &second)
			cluster.writes = nil
			if err := cluster.writer.Write(t.Context(), owner, second, &last); err != nil {
				t.Fatal(err)
			}
			if len(cluster.writes) != test.want {
				t.Errorf("writes %v, want %d", cluster.writes, test.want)
			}
		})
	}
}

// A status that could not be written is still retried after a report that repeats it.
func TestUnchangedReportDoesNotEndRetries(t *testing.T) {
	cluster, first, last := newFakeCluster(t), report(), status.Last{}
	cluster.updateError = func(o client.Object) error {
		if _, isRoute := o.(*gatewayv1.HTTPRoute); isRoute {
			return errors.New("refused")
		}
		return nil
	}
	for range 2 {
		_ = cluster.writer.Write(t.Context(), owner, first, &last)
		if cluster.unwritten != 1 {
			t.Fatalf("%d statuses are unwritten, want 1", cluster.unwritten)
		}
	}
}

// A Write that its context ends leaves statuses unwritten, and the same report must write them.
func TestCanceledWriteIsRepeated(t *testing.T) {
	cluster, first, last := newFakeCluster(t), report(), status.Last{}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cluster.writer.Write(canceled, owner, first, &last); err == nil {
		t.Fatal("the canceled Write has no error")
	}
	if err := cluster.writer.Write(t.Context(), owner, first, &last); err != nil {
		t.Fatal(err)
	}
	if route := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{}); len(route.Status.Parents) == 0 {
		t.Error("the route has no status")
	}
}

// panickingClient panics when the object is read, until it is repaired.
type panickingClient struct {
	client.Client
	name       types.NamespacedName
	isRepaired atomic.Bool
}

func (c *panickingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if key == c.name && !c.isRepaired.Load() {
		panic("a bug")
	}
	return c.Client.Get(ctx, key, object, opts...)
}

// After a panic, the same report writes what was not attempted.
func TestPanickingWriteIsRepeated(t *testing.T) {
	cluster, first, last := newFakeCluster(t), report(), status.Last{}
	broken := &panickingClient{Client: cluster.writer.Client, name: routeName}
	cluster.writer.Client = broken
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the Write did not panic")
			}
		}()
		_ = cluster.writer.Write(t.Context(), owner, first, &last)
	}()
	broken.isRepaired.Store(true) // other writes still run
	if err := cluster.writer.Write(t.Context(), owner, first, &last); err != nil {
		t.Fatal(err)
	}
	if route := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{}); len(route.Status.Parents) == 0 {
		t.Error("the route has no status")
	}
}
