package state

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Previous is what the last [Loader.Reload] of a key has found. The zero value is one before
// the first. Only one Reload may use it at a time.
type Previous struct {
	loaded *Loaded // nil if there is nothing to begin with
	// number is the number of the newest change that loaded contains.
	number uint64
	// parents are the Gateway and its ListenerSets.
	parents map[gateway.Owner]bool
	// admits reports whether a listener admits a route.
	admits func(route client.Object) bool
	// uses counts the objects that refer to each namespace, Service and grants' namespace.
	uses uses
	// detached are the routes without a parentRef to one of the parents. Whether they are
	// orphans depends on objects that are not in the snapshot.
	detached map[gateway.Owner]client.Object
	// inspected are the Secrets and ConfigMaps of which the snapshot contains what was found
	// in them.
	inspected sets.Set[changedObject]
}

// uses counts the routes that need what a snapshot contains for them.
type uses struct {
	namespaces map[string]int
	services   map[types.NamespacedName]int
	// grants has the namespaces to which routes in other namespaces refer.
	grants map[string]int
}

// Reload is like [Loader.Load], but reads only the objects that have changed since the last
// Reload, if they are routes, Services or EndpointSlices, or have only a new status. Load
// would return an equal Snapshot, in which only the order of the slices can differ. Reload keeps
// this order. A route, ListenerSet or Service that has not changed has the same address as in the last
// Snapshot. Without [Loader.Changes], Reload is like Load.
func (l Loader) Reload(ctx context.Context, key Key, p *Previous) (*Loaded, error) {
	if l.Changes == nil {
		return l.Load(ctx, key)
	}
	last := *p
	*p = Previous{} // until the end, so that an error loses it
	changed, newest, isComplete := l.Changes.since(last.number)
	if last.loaded != nil && isComplete {
		u := &update{Loader: l, key: key, last: &last, changed: map[gateway.Owner]bool{}}
		loaded, err := u.load(ctx, changed)
		if err != nil {
			return nil, err
		}
		if loaded != nil {
			last.loaded, last.number = loaded, newest
			*p = last
			return loaded, nil
		}
	}
	loaded, err := l.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	if loaded.Managed && len(loaded.Snapshot.ServiceImports) == 0 && !loaded.Snapshot.NoServiceImports {
		*p = newPrevious(key, loaded, &last)
		p.number = newest
	}
	return loaded, nil
}

// newPrevious returns what the next Reload begins with. It orders the objects, and replaces
// the unchanged ones by the objects that were loaded last.
func newPrevious(key Key, loaded *Loaded, last *Previous) Previous {
	s := loaded.Snapshot
	if last.loaded == nil {
		last.loaded = &Loaded{Snapshot: &gateway.Snapshot{}}
	}
	s.HTTPRoutes = keepVersions(s.HTTPRoutes, last.loaded.Snapshot.HTTPRoutes)
	s.GRPCRoutes = keepVersions(s.GRPCRoutes, last.loaded.Snapshot.GRPCRoutes)
	s.ListenerSets = keepVersions(s.ListenerSets, last.loaded.Snapshot.ListenerSets)
	s.Services = keepServices(s.Services, last.loaded.Snapshot.Services)
	p := Previous{loaded: loaded, parents: map[gateway.Owner]bool{key: true}, detached: map[gateway.Owner]client.Object{}, inspected: sets.Set[changedObject]{}}
	for _, set := range s.ListenerSets {
		p.parents[ownerOfSet(set)] = true
	}
	p.admits = admitsRoute(s)
	for _, name := range gateway.SecretsToRead(s) {
		p.inspected.Insert(changedObject{"Secret", name})
	}
	for _, name := range gateway.CABundlesToRead(s) {
		p.inspected.Insert(changedObject{"ConfigMap", name})
	}
	p.countUses(s)
	return p
}

func admitsRoute(s *gateway.Snapshot) func(client.Object) bool {
	admits := gateway.AdmitsRoute(s)
	return func(route client.Object) bool { return admits(route) }
}

// keepVersions sorts the objects by name, and replaces the unchanged ones by the objects in
// last, which is sorted.
func keepVersions[T client.Object](objects, last []T) []T {
	slices.SortFunc(objects, compareObjects)
	for i, object := range objects {
		if j, ok := slices.BinarySearchFunc(last, object, compareObjects); ok && isSameVersion(object, last[j]) {
			objects[i] = last[j]
		}
	}
	return objects
}

// keepServices replaces the unchanged Services by those in last.
func keepServices(services, last byname.Map[*corev1.Service]) byname.Map[*corev1.Service] {
	if last.Len() == 0 {
		return services
	}
	kept := maps.Collect(services.All())
	for name, service := range kept {
		if before := last.Value(name); before != nil && service != nil && isSameVersion(before, service) {
			kept[name] = before
		}
	}
	return byname.From(kept)
}

func compareObjects[T client.Object](a, b T) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// countUses counts what the objects in the snapshot refer to.
func (p *Previous) countUses(s *gateway.Snapshot) {
	p.uses = uses{map[string]int{}, map[types.NamespacedName]int{}, map[string]int{}}
	p.uses.namespaces[s.Gateway.Namespace]++
	p.countGrants(s.Gateway.Namespace, gateway.SecretsOfGateway(s.Gateway))
	for _, set := range s.ListenerSets {
		p.uses.namespaces[set.Namespace]++
	}
	for _, set := range gateway.AllowedListenerSets(s) {
		p.countGrants(set.Namespace, gateway.SecretsOfListenerSet(set))
	}
	for _, route := range routes(s) {
		for _, ref := range p.refsOf(route) {
			ref.add(&p.uses, 1)
		}
		p.detach(route, routeOwner(route))
	}
}

func (p *Previous) countGrants(from string, names []types.NamespacedName) {
	for _, name := range names {
		if name.Namespace != from {
			p.uses.grants[name.Namespace]++
		}
	}
}

// detach notes a route without a parentRef to one of the parents.
func (p *Previous) detach(route client.Object, owner gateway.Owner) {
	delete(p.detached, owner)
	if spec, _, _ := gateway.CommonRoute(route); !slices.ContainsFunc(owners(spec.ParentRefs, route.GetNamespace()), func(o gateway.Owner) bool { return p.parents[o] }) {
		p.detached[owner] = route
	}
}

// routeRef is something that a snapshot contains for a route. One field is set.
type routeRef struct {
	namespace, grants string
	service           types.NamespacedName
}

// add adds to the number of routes, and returns it.
func (r routeRef) add(u *uses, n int) int {
	switch {
	case r.namespace != "":
		return addTo(u.namespaces, r.namespace, n)
	case r.grants != "":
		return addTo(u.grants, r.grants, n)
	default:
		return addTo(u.services, r.service, n)
	}
}

func addTo[K comparable](counts map[K]int, key K, n int) int {
	counts[key] += n
	if counts[key] == 0 {
		delete(counts, key)
	}
	return counts[key]
}

// refsOf returns what a snapshot contains for the route, each once.
func (p *Previous) refsOf(route client.Object) []routeRef {
	refs := []routeRef{{namespace: route.GetNamespace()}}
	if !p.admits(route) {
		return refs
	}
	for _, name := range BackendServices(route) {
		refs = appendNew(refs, routeRef{service: name})
		if name.Namespace != route.GetNamespace() {
			refs = appendNew(refs, routeRef{grants: name.Namespace})
		}
	}
	return refs
}

func appendNew(refs []routeRef, ref routeRef) []routeRef {
	if slices.Contains(refs, ref) {
		return refs
	}
	return append(refs, ref)
}

// hasParent reports whether one of the owners is a parent.
func (p *Previous) hasParent(owners []gateway.Owner) bool {
	return slices.ContainsFunc(owners, func(o gateway.Owner) bool { return p.parents[o] })
}
