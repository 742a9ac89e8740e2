package health

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// watchedKinds are the Gateway API kinds that users deploy.
var watchedKinds = []schema.GroupVersionKind{
	gatewayAPIKind("GatewayClass"), gatewayAPIKind("Gateway"), gatewayAPIKind("ListenerSet"), gatewayAPIKind("HTTPRoute"), gatewayAPIKind("GRPCRoute"),
}

func gatewayAPIKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: kind}
}

// version is one version of an object on the API server.
type version struct {
	time   time.Time
	object *unstructured.Unstructured
}

// history contains every version of every object that has a watched kind. The keys are
// historyNames.
type history struct {
	mu       sync.Mutex
	versions map[string][]version
	errors   []string // watch events that are not objects
}

// recordHistory starts a history. The cluster must not contain objects with these kinds.
func (e *environment) recordHistory() *history {
	e.t.Helper()
	h := &history{versions: map[string][]version{}}
	for _, kind := range watchedKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := e.kube.List(e.t.Context(), list); err != nil || len(list.Items) > 0 {
			e.t.Fatalf("%s: %d objects before the start of the history, error %v", kind.Kind, len(list.Items), err)
		}
		watcher, err := e.kube.Watch(e.t.Context(), list)
		if err != nil {
			e.t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.follow(kind.Kind, watcher)
		}()
		e.t.Cleanup(func() {
			watcher.Stop()
			<-done
		})
	}
	return h
}

// follow records a watch's events.
func (h *history) follow(kind string, watcher watch.Interface) {
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			h.mu.Lock()
			h.errors = append(h.errors, fmt.Sprintf("%s: %v", kind, event.Object))
			h.mu.Unlock()
			continue
		}
		if event.Type == watch.Added || event.Type == watch.Modified {
			h.add(object)
		}
	}
}

func (h *history) add(object *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := historyName(object)
	h.versions[name] = append(h.versions[name], version{time.Now(), object})
}

// historyName returns "Kind namespace/name", or "Kind name" for cluster-scoped objects.
func historyName(object *unstructured.Unstructured) string {
	return strings.TrimSpace(object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
}

// names returns the sorted names of all objects, including deleted ones.
func (h *history) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name := range h.versions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// versionsOf returns an object's versions in chronological order.
func (h *history) versionsOf(name string) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[name])
}

// watchErrors returns the errors because of which the history may be incomplete.
func (h *history) watchErrors() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.errors)
}

// count counts the versions of all objects.
func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, versions := range h.versions {
		n += len(versions)
	}
	return n
}

// latest assesses an object's latest version.
func (h *history) latest(name string, check healthCheck) assessment {
	versions := h.versionsOf(name)
	if len(versions) == 0 {
		return assessment{health: "Absent"}
	}
	return check(versions[len(versions)-1].object)
}

// healthChanges returns the health of each version of an object, without repetitions.
func (h *history) healthChanges(name string, check healthCheck) []string {
	var all []string
	for _, v := range h.versionsOf(name) {
		all = append(all, check(v.object).health)
	}
	return slices.Compact(all)
}

// flaps returns the versions that would cause a false alarm. Such a version is not
// healthy although an earlier version with the same generation was, or its health is
// neither Healthy nor Progressing.
func (h *history) flaps(name string, check healthCheck) []string {
	var found []string
	healthy := int64(0) // last healthy generation
	for _, v := range h.versionsOf(name) {
		if v.object.GetDeletionTimestamp() != nil {
			break
		}
		assessed, generation := check(v.object), v.object.GetGeneration()
		switch {
		case assessed.health == healthHealthy:
			healthy = generation
		case healthy == generation || assessed.health != healthProgressing:
			found = append(found, fmt.Sprintf("%s generation %d (last healthy generation: %d) is %s: %s",
				v.time.Format("15:04:05.000"), generation, healthy, assessed.health, assessed.message))
		}
	}
	return found
}

// describe returns how all of an object's versions are assessed, for failure messages.
func (h *history) describe(name string, check healthCheck) string {
	var out strings.Builder
	for _, v := range h.versionsOf(name) {
		assessed := check(v.object)
		fmt.Fprintf(&out, "%s %s generation %d version %s: %s %s\n", v.time.Format("15:04:05.000"), name,
			v.object.GetGeneration(), v.object.GetResourceVersion(), assessed.health, assessed.message)
	}
	return out.String()
}
