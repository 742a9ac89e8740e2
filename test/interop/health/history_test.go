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

// judged are the kinds whose objects users deploy and tools judge.
var judged = []schema.GroupVersionKind{
	kindOf("GatewayClass"), kindOf("Gateway"), kindOf("ListenerSet"), kindOf("HTTPRoute"), kindOf("GRPCRoute"),
}

func kindOf(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: kind}
}

// version is an object as the API server held it at a time.
type version struct {
	at     time.Time
	object *unstructured.Unstructured
}

// history has every version of every object of the judged kinds, by
// "Kind namespace/name".
type history struct {
	mu       sync.Mutex
	versions map[string][]version
	broken   []string // what a watch had to say other than objects
}

// watch starts a history. There must be no object of the kinds yet.
func (w *world) watch() *history {
	w.t.Helper()
	h := &history{versions: map[string][]version{}}
	for _, kind := range judged {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := w.kube.List(w.t.Context(), list); err != nil || len(list.Items) > 0 {
			w.t.Fatalf("%s: %d objects before the history began, error %v", kind.Kind, len(list.Items), err)
		}
		watching, err := w.kube.Watch(w.t.Context(), list)
		if err != nil {
			w.t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.follow(kind.Kind, watching)
		}()
		w.t.Cleanup(func() {
			watching.Stop()
			<-done
		})
	}
	return h
}

func (h *history) follow(kind string, watching watch.Interface) {
	for event := range watching.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			h.mu.Lock()
			h.broken = append(h.broken, fmt.Sprintf("%s: %v", kind, event.Object))
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
	name := nameOf(object)
	h.versions[name] = append(h.versions[name], version{time.Now(), object})
}

// nameOf returns the name under which the history has an object.
func nameOf(object *unstructured.Unstructured) string {
	return strings.TrimSpace(object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
}

// names returns all that there ever were, sorted.
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

// of returns the versions of an object so far.
func (h *history) of(name string) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[name])
}

// gaps returns what says that the history is not complete.
func (h *history) gaps() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.broken)
}

// count returns how many versions of all objects there are.
func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, versions := range h.versions {
		n += len(versions)
	}
	return n
}

// latest returns what the judge says of the newest version.
func (h *history) latest(name string, j judge) verdict {
	versions := h.of(name)
	if len(versions) == 0 {
		return verdict{health: "Absent"}
	}
	return j(versions[len(versions)-1].object)
}

// seen returns the healths that the judge has given to the versions of an
// object, without repetitions in a row.
func (h *history) seen(name string, j judge) []string {
	var all []string
	for _, v := range h.of(name) {
		all = append(all, j(v.object).health)
	}
	return slices.Compact(all)
}

// flaps returns what a judge would have told people for nothing: an object that
// is not healthy although it was in the same generation, or that was degraded
// on its way to health after its author changed it, or before.
func (h *history) flaps(name string, j judge) []string {
	var found []string
	healthy := int64(0) // the last generation that was
	for _, v := range h.of(name) {
		if v.object.GetDeletionTimestamp() != nil {
			break
		}
		said, generation := j(v.object), v.object.GetGeneration()
		switch {
		case said.health == healthHealthy:
			healthy = generation
		case healthy == generation || said.health != healthProgressing:
			found = append(found, fmt.Sprintf("%s generation %d was healthy in generation %d, and then %s: %s",
				v.at.Format("15:04:05.000"), generation, healthy, said.health, said.message))
		}
	}
	return found
}

// tell returns all versions as a judge saw them, for whoever reads why a test
// failed.
func (h *history) tell(name string, j judge) string {
	var out strings.Builder
	for _, v := range h.of(name) {
		said := j(v.object)
		fmt.Fprintf(&out, "%s %s generation %d version %s: %s %s\n", v.at.Format("15:04:05.000"), name,
			v.object.GetGeneration(), v.object.GetResourceVersion(), said.health, said.message)
	}
	return out.String()
}
