package controller

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

const (
	manyGateways    = 500
	routesOfGateway = 20
	// namespaceSize is how many Gateways are in a namespace.
	namespaceSize = 5
)

// BenchmarkManyGateways reconciles one of many Gateways after one of its routes has changed.
// It also reports the processor time until a new process has reconciled all Gateways, and the
// memory that the process then needs for each, without the cache. The controller reads from
// a real cache.
func BenchmarkManyGateways(b *testing.B) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		b.Run(string(plane), func(b *testing.B) {
			h := newManyGateways(b, plane)
			before, heap := processorTime(b), h.heap()
			h.restart()
			h.reconcileMany()
			h.xds.publications = nil
			started, perGateway := processorTime(b)-before, (h.heap()-heap)/manyGateways
			h.key = gatewayNumber(manyGateways / 2)
			h.reconcileChanges(b, h.key.Namespace, h.key.Name+"-7", func(route *gatewayv1.HTTPRoute, n int) {
				route.Spec.Hostnames[0] = gatewayv1.Hostname(fmt.Sprintf("changed-%d.%s.example.com", n, h.key.Name))
			})
			b.ReportMetric(started.Seconds(), "cpu-s/start")
			b.ReportMetric(float64(perGateway)/1024, "KiB/Gateway")
			h.wantProgrammed("True", "Programmed", "")
		})
	}
}

func gatewayNumber(i int) state.Key {
	return state.GatewayKey(fmt.Sprintf("team-%d", i/namespaceSize), fmt.Sprintf("g%d", i))
}

// newManyGateways returns a harness whose Gateways are all served.
func newManyGateways(b *testing.B, plane v1alpha1.DataPlane) *harness {
	b.Helper()
	log.SetLogger(logr.Discard())
	var objects []client.Object
	for i := range manyGateways {
		key := gatewayNumber(i)
		if i%namespaceSize == 0 {
			service := newService()
			service.Namespace = key.Namespace
			objects = append(objects, namespaceObject(key.Namespace), service)
		}
		g := newGateway(key.Name, "*."+key.Name+".example.com")
		g.Namespace = key.Namespace
		objects = append(objects, g)
		for r := range routesOfGateway {
			route := newRoute()
			route.Namespace, route.Name = key.Namespace, fmt.Sprintf("%s-%d", key.Name, r)
			route.Spec.ParentRefs[0].Name = gatewayv1.ObjectName(key.Name)
			route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("r%d.%s.example.com", r, key.Name))}
			objects = append(objects, route)
		}
	}
	h := newHarness(b, objects...)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		if plane == v1alpha1.DataPlaneEnvoy {
			s.Connector = nil
		}
		s.DataPlane = ptr.To(plane)
	})
	h.useCache()
	for range 3 {
		h.reconcileMany()
		h.advance(driftInterval / 100)
	}
	runtime.GC()
	return h
}

// reconcileMany reconciles all Gateways once.
func (h *harness) reconcileMany() {
	h.t.Helper()
	for i := range manyGateways {
		h.key = gatewayNumber(i)
		h.reconcileOnce()
		h.waitForCache(h.gateway())
		if object := h.tunnelObject(); object != nil {
			h.waitForCache(object)
		}
		h.drainEvents()
		h.drainWrites()
	}
}
