package controller

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// After a Gateway is deleted, nothing in the process remembers it.
func TestNothingRemembersADeletedGateway(t *testing.T) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		t.Run(string(plane), func(t *testing.T) {
			h := newConnectorHarness(t)
			h.selectDataPlane(plane)
			before := remembered(h.process, "gone")
			if len(before) > 0 {
				t.Fatalf("maps with a Gateway that never existed: %v", before)
			}
			h.serveAndDelete("gone-1", func() {
				if found := remembered(h.process, "gone-1"); len(found) == 0 {
					t.Error("no map has the Gateway while the controller serves it, so this test cannot fail")
				}
			})
			if found := remembered(h.process, "gone"); len(found) > 0 {
				t.Errorf("maps that remember the Gateway: %v", found)
			}
		})
	}
}

// serveAndDelete creates a Gateway, serves it, calls do, deletes the Gateway, and
// retires its tunnel.
func (h *harness) serveAndDelete(name string, do func()) {
	h.t.Helper()
	defer func(key state.Key) { h.key = key }(h.key)
	h.key = state.GatewayKey("infra", name)
	g := newGateway(name, name+".example.com")
	h.create(g)
	h.observer.pending.add(h.key)
	h.reconcileFor(time.Minute)
	do()
	h.delete(g)
	h.observer.pending.add(h.key)
	h.reconcileFor(5 * time.Minute)
	h.reconcileOnce() // deletes the Tunnel
	if object := h.tunnelObject(); object != nil {
		h.t.Fatalf("the Tunnel of the deleted Gateway %s remains: %+v", name, object.Status)
	}
}

// The heap does not grow with Gateways that come and go.
func TestHeapStaysFlatWhileGatewaysComeAndGo(t *testing.T) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		t.Run(string(plane), func(t *testing.T) {
			h := newConnectorHarness(t)
			h.selectDataPlane(plane)
			h.serveMany(0)
			first := h.heap()
			h.serveMany(gatewaysPerRound)
			// The fakes keep a few KiB for each Gateway, and the memory for a Gateway
			// has more than 30 KiB.
			if grown := (h.heap() - first) / gatewaysPerRound; grown > 12<<10 {
				t.Errorf("the heap grew by %d bytes for each Gateway", grown)
			}
			runtime.KeepAlive(h)
		})
	}
}

// serveMany serves and deletes many Gateways, one after the other.
func (h *harness) serveMany(from int) {
	h.t.Helper()
	for i := range gatewaysPerRound {
		h.serveAndDelete(fmt.Sprintf("gone-%d", from+i), func() {})
		h.drainEvents()
		h.drainWrites()
		h.cloud.ResetCalls()
		h.xds.publications = nil
	}
}

// heap returns the heap size without garbage.
func (h *harness) heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // G115: a heap has fewer than 2^63 bytes
}

// remembered returns the paths to all maps below the value that have the name in a key.
func remembered(root any, name string) []string {
	w := mapWalk{name: name, seen: map[uintptr]bool{}}
	w.walk(reflect.ValueOf(root), reflect.TypeOf(root).Elem().Name())
	slices.Sort(w.found)
	return slices.Compact(w.found)
}

// mapWalk visits values below a value whose types are from this module.
type mapWalk struct {
	name  string
	seen  map[uintptr]bool
	found []string
}

func (w *mapWalk) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !w.seen[v.Pointer()] {
			w.seen[v.Pointer()] = true
			w.walk(v.Elem(), path)
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.walk(v.Elem(), path)
		}
	case reflect.Struct:
		w.walkStruct(v, path)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.walk(v.Index(i), path)
		}
	case reflect.Map:
		w.walkMap(v, path)
	default:
	}
}

func (w *mapWalk) walkStruct(v reflect.Value, path string) {
	if !strings.HasPrefix(v.Type().PkgPath(), "github.com/tunnel-gateway/tunnel-gateway/internal/") {
		return
	}
	for i := range v.NumField() {
		w.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
	}
}

func (w *mapWalk) walkMap(v reflect.Value, path string) {
	for entries := v.MapRange(); entries.Next(); {
		if strings.Contains(fmt.Sprint(entries.Key()), w.name) {
			w.found = append(w.found, path)
		}
		w.walk(entries.Value(), path)
	}
}
