// Package state fills a gateway.Snapshot, from the API server's cache or from
// files. It only reads, and it decides nothing but which objects belong to
// which Gateway.
package state

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Key is what the controller works on: a Gateway, ours or not; or a
// ListenerSet that does not exist although a route refers to it.
type Key = gateway.Owner

// GatewayKey returns the key of a Gateway.
func GatewayKey(namespace, name string) Key {
	return Key{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Loaded is what the cluster holds for a key.
type Loaded struct {
	// Gateway is the object, or nil when it is gone.
	Gateway *gatewayv1.Gateway
	// Record is what the Gateway's annotation says of its tunnel.
	Record Record
	// RecordError says why the annotation could not be read, or is nil.
	RecordError error
	// Ours is whether the Gateway is of a class of our controller.
	Ours bool
	// Classless is whether the Gateway's class does not exist, so that nobody
	// can tell whose the Gateway is.
	Classless bool
	// Snapshot is everything that can affect the Gateway. Its Gateway and Class
	// are nil when there is none; and when the Gateway is not ours, its routes
	// are those that have an entry of ours.
	Snapshot *gateway.Snapshot
}

// Loader reads Snapshots. The Reader has to know the [Indexes] of the same
// controller name.
type Loader struct {
	Reader         client.Reader
	ControllerName gatewayv1.GatewayController
}

// Load reads what belongs to the key. Its cost is in proportion to what the
// key touches, not to the cluster.
func (l Loader) Load(ctx context.Context, key Key) (*Loaded, error) {
	loaded := &Loaded{Snapshot: &gateway.Snapshot{}}
	parents := []gateway.Owner{key}
	if key.Kind == gateway.KindGateway {
		if err := l.loadGateway(ctx, key, loaded); err != nil {
			return nil, err
		}
		if err := l.loadListenerSets(ctx, key, loaded.Snapshot); err != nil {
			return nil, err
		}
		for _, set := range loaded.Snapshot.ListenerSets {
			parents = append(parents, gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)})
		}
	}
	if !loaded.Ours {
		return loaded, l.loadRoutes(ctx, IndexEntry, parents, loaded.Snapshot)
	}
	if err := l.loadRoutes(ctx, IndexParent, parents, loaded.Snapshot); err != nil {
		return nil, err
	}
	if err := l.loadNamespaces(ctx, loaded.Snapshot); err != nil {
		return nil, err
	}
	return loaded, l.loadServices(ctx, loaded.Snapshot)
}

func (l Loader) loadGateway(ctx context.Context, key Key, loaded *Loaded) error {
	object, err := get(ctx, l.Reader, key.NamespacedName, &gatewayv1.Gateway{})
	if err != nil || object == nil {
		return err
	}
	loaded.Gateway, loaded.Snapshot.Gateway = object, object
	loaded.Record, loaded.RecordError = ReadRecord(object)
	loaded.Snapshot.Tunnel = loaded.Record.Tunnel
	class, err := get(ctx, l.Reader, types.NamespacedName{Name: string(object.Spec.GatewayClassName)}, &gatewayv1.GatewayClass{})
	if err != nil {
		return err
	}
	loaded.Classless = class == nil
	loaded.Ours = class != nil && class.Spec.ControllerName == l.ControllerName
	loaded.Snapshot.Class = class
	return nil
}

func (l Loader) loadListenerSets(ctx context.Context, key Key, s *gateway.Snapshot) error {
	var list gatewayv1.ListenerSetList
	if err := l.Reader.List(ctx, &list, client.MatchingFields{IndexParentGateway: key.NamespacedName.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the ListenerSets of %s: %w", key, err)
	}
	for i := range list.Items {
		s.ListenerSets = append(s.ListenerSets, &list.Items[i])
	}
	return nil
}

// loadRoutes reads the routes of all parents by the index, each once.
func (l Loader) loadRoutes(ctx context.Context, index string, parents []gateway.Owner, s *gateway.Snapshot) error {
	seen := map[types.NamespacedName]bool{}
	for _, parent := range parents {
		var list gatewayv1.HTTPRouteList
		if err := l.Reader.List(ctx, &list, client.MatchingFields{index: parent.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the HTTPRoutes of %s: %w", parent, err)
		}
		for i := range list.Items {
			route := &list.Items[i]
			if name := client.ObjectKeyFromObject(route); !seen[name] {
				seen[name] = true
				s.HTTPRoutes = append(s.HTTPRoutes, route)
			}
		}
	}
	return nil
}

func (l Loader) loadNamespaces(ctx context.Context, s *gateway.Snapshot) error {
	s.Namespaces = map[string]*corev1.Namespace{}
	load := func(name string) error {
		if _, ok := s.Namespaces[name]; ok {
			return nil
		}
		object, err := get(ctx, l.Reader, types.NamespacedName{Name: name}, &corev1.Namespace{})
		s.Namespaces[name] = object
		return err
	}
	for _, set := range s.ListenerSets {
		if err := load(set.Namespace); err != nil {
			return err
		}
	}
	for _, route := range s.HTTPRoutes {
		if err := load(route.Namespace); err != nil {
			return err
		}
	}
	return nil
}

func (l Loader) loadServices(ctx context.Context, s *gateway.Snapshot) error {
	s.Services = map[types.NamespacedName]*corev1.Service{}
	for _, route := range s.HTTPRoutes {
		for _, name := range backendServices(route) {
			if _, ok := s.Services[name]; ok {
				continue
			}
			object, err := get(ctx, l.Reader, name, &corev1.Service{})
			if err != nil {
				return err
			}
			s.Services[name] = object
		}
	}
	return nil
}

// backendServices names the Services that the route's rules refer to.
func backendServices(route *gatewayv1.HTTPRoute) []types.NamespacedName {
	var names []types.NamespacedName
	for _, rule := range route.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			if ptr.Deref(ref.Group, "") == "" && ptr.Deref(ref.Kind, "Service") == "Service" {
				namespace := ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace))
				names = append(names, types.NamespacedName{Namespace: string(namespace), Name: string(ref.Name)})
			}
		}
	}
	return names
}

// get reads one object, or returns nil when it does not exist.
func get[T client.Object](ctx context.Context, r client.Reader, name types.NamespacedName, into T) (T, error) {
	var none T
	err := r.Get(ctx, name, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return into, nil
}
