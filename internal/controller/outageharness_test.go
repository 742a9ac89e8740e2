package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
	edgeaccess "github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	edgezones "github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	outageAccount = "account"
	// protectedEvery is how many Gateways share one with an AccessPolicy.
	protectedEvery = 20
)

// outageHarness runs the controller's queues with the real Cloudflare client, the simulated
// API and a real cache. It needs the clock of testing/synctest.
type outageHarness struct {
	*harness
	cloudflare *simulator.Server
	records    *edgezones.Database
	zone       string // the ID for example.com
	access     *edgeaccess.Database
	options    Options // of the process
	// zoneQueue and accountQueue are the queues of the executors.
	zoneQueue    workqueue.TypedRateLimitingInterface[zoneKey]
	accountQueue workqueue.TypedRateLimitingInterface[accountKey]
	// reconciles counts the reconciles of Gateways.
	reconciles atomic.Int64
	// skew is the error of the wall clock.
	skew    atomic.Int64
	stop    context.CancelFunc
	running sync.WaitGroup
}

// newOutageHarness returns a controller for that many Gateways. Each has a route and a hostname,
// and some have an AccessPolicy. Users run one connector for each tunnel.
func newOutageHarness(t *testing.T, gateways int) *outageHarness {
	t.Helper()
	log.SetLogger(logr.Discard())
	// client-go compares the times of errors in this test with those in others, which the real
	// clock has set.
	time.Sleep(time.Until(startTime.AddDate(100, 0, 0))) //nolint:forbidigo // virtual time
	h := &outageHarness{harness: newHarness(t)}
	h.events = &events.FakeRecorder{}
	h.startCloudflare()
	h.delete(newGateway("shared", ""))
	h.delete(newRoute())
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Hostnames = &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)}
		s.DNS = &v1alpha1.DNS{Mode: ptr.To(v1alpha1.DNSManage), Zones: []v1alpha1.DNSZone{{Name: "example.com"}}, DeletionDelay: ptr.To[v1alpha1.Duration]("30s")}
		s.Access = &v1alpha1.AccessApplications{
			Applications: ptr.To(v1alpha1.ApplicationsManaged), TeamName: ptr.To("acme"), Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "employees-id"}},
		}
	})
	for i := range gateways {
		h.createGateway(i)
	}
	h.adapt = func(d *dependencies, o *Options) {
		d.clock, d.requeue = systemClock(), func(key state.Key) { h.watched.Add(key) }
		d.clock.now = func() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) }
		d.enqueueZone = func(key zoneKey) { h.zoneQueue.AddAfter(key, executorDelay) }
		d.enqueueAccount = func(key accountKey) { h.accountQueue.AddAfter(key, executorDelay) }
		h.openCloudflare(o)
		h.options = *o
	}
	return h
}

// startCloudflare starts the simulated API. Users run one connector for every tunnel.
func (h *outageHarness) startCloudflare() {
	h.records, h.access = edgezones.New(edgezones.Options{}), edgeaccess.New(edgeaccess.Options{TeamName: "acme"})
	h.zone = h.records.Add(edgezones.Zone{Name: "example.com", Account: outageAccount, RecordQuota: 3500})
	h.access.AddPolicy(outageAccount, edgeaccess.Policy{ID: "employees-id", Name: "employees", Decision: "allow", Reusable: true})
	h.cloudflare = simulator.New(simulator.Options{
		AccountID: outageAccount, Zones: h.records, Access: h.access,
		OnCreate: func(tunnel simulator.Tunnel) { h.cloudflare.Connect(tunnel.ID, 1) },
	})
	h.t.Cleanup(h.cloudflare.Close)
}

// openCloudflare makes the process call the simulated API with the real client.
func (h *outageHarness) openCloudflare(o *Options) {
	clients := &cloudflare.Client{}
	options := cloudflare.Options{AccountID: outageAccount, APIToken: "token", Transport: handlerTransport{h.cloudflare.API()}}
	o.Account = credentials.Default{Account: outageAccount, Token: "token"}
	o.Open = func(string, string) (provider.Provider, error) { return clients.Open(options) }
	o.OpenDNS = func(_, _, token string) (provider.DNS, error) { return clients.OpenDNS(options, token) }
	o.OpenAccess = func(_, _, token string) (provider.Access, error) { return clients.OpenAccess(options, token) }
	o.InventoryInterval = 10 * time.Minute
}

// errClosed is what a client gets when the connection is closed before the answer.
var errClosed = errors.New("connection reset by peer")

// handlerTransport answers requests with a handler, without a connection.
type handlerTransport struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t handlerTransport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		switch recovered := recover(); {
		case recovered == http.ErrAbortHandler: //nolint:errorlint // handlers panic with this value
			response, err = nil, errors.Join(errClosed, r.Context().Err())
		case recovered != nil:
			panic(recovered)
		}
	}()
	received := r.Clone(r.Context())
	if received.Body == nil {
		received.Body = http.NoBody
	}
	defer received.Body.Close()
	recorder := httptest.NewRecorder()
	t.handler.ServeHTTP(recorder, received)
	return recorder.Result(), nil
}

// start starts a controller process.
func (h *outageHarness) start() {
	ctx, stop := context.WithCancel(h.t.Context())
	h.stop = stop
	h.zoneQueue = workqueue.NewTypedRateLimitingQueue(rateLimiter[zoneKey]())
	h.accountQueue = workqueue.NewTypedRateLimitingQueue(rateLimiter[accountKey]())
	h.useCacheUntil(ctx)
	for range 4 { // the default of --workers
		runWorker(ctx, h, h.watched, func(ctx context.Context, key state.Key) (reconcile.Result, error) {
			h.reconciles.Add(1)
			return h.Reconcile(ctx, key)
		})
	}
	runWorker(ctx, h, h.zoneQueue, h.zones.Reconcile)
	runWorker(ctx, h, h.accountQueue, h.applications.Reconcile)
	for _, runnable := range []manager.Runnable{
		h.writer, newInventory(h.process, h.options, h.watched.Add), &connections{book: h.dns, accounts: h.accounts, clock: h.clock},
	} {
		h.running.Go(func() {
			if err := runnable.Start(ctx); err != nil {
				h.t.Error(err)
			}
		})
	}
}

// close stops the process.
func (h *outageHarness) close() {
	h.stop()
	h.watched.ShutDown()
	h.zoneQueue.ShutDown()
	h.accountQueue.ShutDown()
	h.running.Wait()
}

// runWorker reconciles the keys in the queue, as controller-runtime does.
func runWorker[K comparable](ctx context.Context, h *outageHarness, queue workqueue.TypedRateLimitingInterface[K], do func(context.Context, K) (reconcile.Result, error)) {
	h.running.Go(func() {
		for {
			key, shutdown := queue.Get()
			if shutdown {
				return
			}
			switch result, err := do(ctx, key); {
			case err != nil:
				queue.AddRateLimited(key)
			case result.RequeueAfter > 0:
				queue.Forget(key)
				queue.AddAfter(key, result.RequeueAfter)
			default:
				queue.Forget(key)
			}
			queue.Done(key)
		}
	})
}

// createGateway creates a Gateway with a route, and its namespace if it does not exist.
func (h *outageHarness) createGateway(i int) {
	h.t.Helper()
	key := gatewayNumber(i)
	namespace, service := namespaceObject(key.Namespace), newService()
	namespace.Annotations = map[string]string{hostnames.Annotation: "example.com, *.example.com"}
	service.Namespace = key.Namespace
	for _, object := range []client.Object{namespace, service} {
		if err := client.IgnoreAlreadyExists(h.kube.Create(h.t.Context(), object)); err != nil {
			h.t.Fatal(err)
		}
	}
	g, route := newGateway(key.Name, key.Name+".example.com"), newRoute()
	g.Namespace, route.Namespace, route.Name = key.Namespace, key.Namespace, key.Name
	route.Spec.ParentRefs[0].Name = gatewayv1.ObjectName(key.Name)
	h.create(g)
	h.create(route)
	if i%protectedEvery == 0 {
		h.create(policyOf(key))
	}
}

// policyOf returns the AccessPolicy for a Gateway.
func policyOf(key state.Key) *v1alpha1.AccessPolicy {
	target := gatewayv1.LocalPolicyTargetReferenceWithSectionName{}
	target.Group, target.Kind, target.Name = gatewayv1.GroupName, "Gateway", gatewayv1.ObjectName(key.Name)
	return &v1alpha1.AccessPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1, CreationTimestamp: metav1.NewTime(startTime)},
		Spec:       v1alpha1.AccessPolicySpec{TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{target}, Policies: []v1alpha1.PolicyName{"employees"}},
	}
}

// deleteGateway deletes a Gateway, its route and its AccessPolicy. Its user stops the connector.
func (h *outageHarness) deleteGateway(i int) {
	h.t.Helper()
	key := gatewayNumber(i)
	h.cloudflare.Disconnect(h.tunnelOf(key))
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	h.delete(&gatewayv1.Gateway{ObjectMeta: meta})
	h.delete(&gatewayv1.HTTPRoute{ObjectMeta: meta})
	if i%protectedEvery == 0 {
		h.delete(policyOf(key))
	}
}

// changeRoute makes the Gateway's route match another path.
func (h *outageHarness) changeRoute(i int, path string) {
	h.t.Helper()
	key, route := gatewayNumber(i), &gatewayv1.HTTPRoute{}
	h.change(key.Namespace, key.Name, route, func() {
		route.Generation++
		route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type: ptr.To(gatewayv1.PathMatchExact), Value: ptr.To(path),
		}}}
	})
}

// tunnelOf returns the ID of the Gateway's tunnel at Cloudflare, or "".
func (h *outageHarness) tunnelOf(key state.Key) string {
	id, _ := h.cloudflare.TunnelID(tunnel.RemoteName("west", key.NamespacedName))
	return id
}
