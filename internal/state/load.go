// Package state loads a [gateway.Snapshot] from the controller's cache, from files, from a
// cluster that is read once, or from a cluster and files. It determines which objects
// belong to a Gateway, and never writes.
package state

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Key identifies what is reconciled: a Gateway, managed or not, or a ListenerSet
// without a Gateway, for which routes may have status entries.
type Key = gateway.Owner

// GatewayKey returns a Gateway's key.
func GatewayKey(namespace, name string) Key {
	return Key{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Loaded contains the objects in the cluster that affect a key.
type Loaded struct {
	// Gateway is the Gateway, or nil if it does not exist.
	Gateway *gatewayv1.Gateway
	// Tunnel is the Gateway's Tunnel object, or nil if it does not exist.
	Tunnel *v1alpha1.Tunnel
	// Managed reports whether the Gateway's GatewayClass names this controller.
	Managed bool
	// ClassMissing reports whether the Gateway's GatewayClass does not exist.
	ClassMissing bool
	// Snapshot contains all objects that can affect the Gateway. Its Gateway and Class
	// are nil if they do not exist. If the Gateway is not managed, Snapshot contains only
	// the objects with a status entry from this controller, and the AccessPolicies that
	// target it.
	Snapshot *gateway.Snapshot
	// Changed are the objects in the Snapshot that have changed since the last
	// [Loader.Reload], or that were added or removed. It is nil if every object may have.
	Changed map[gateway.Owner]bool
}

// Loader loads snapshots. The Reader must provide the [Indexes] for the same controller
// name.
type Loader struct {
	Reader         client.Reader
	ControllerName gatewayv1.GatewayController
	// ControllerNamespace is the namespace that contains the Tunnels.
	ControllerNamespace string
	// ControllerPod has the addresses of the controller's pod. It is empty outside a
	// cluster.
	ControllerPod []netip.Addr
	// Certificates inspects the certificates that listeners and Gateways refer to.
	Certificates Certificates
	// CABundles inspects the certificate authorities that BackendTLSPolicies refer to.
	CABundles CABundles
	// Changes records the events of the Reader's cache, for [Loader.Reload]. It may be nil.
	Changes *Changes
}

// Load reads the objects that affect the key. Its cost grows with the number of these
// objects and does not depend on the cluster's size.
func (l Loader) Load(ctx context.Context, key Key) (*Loaded, error) {
	loaded := &Loaded{Snapshot: &gateway.Snapshot{}}
	parents, err := l.loadParents(ctx, key, loaded)
	if err != nil {
		return nil, err
	}
	if err := l.loadAccessPolicies(ctx, parents, loaded.Snapshot); err != nil {
		return nil, err
	}
	if !loaded.Managed {
		retain(l.Certificates, key, nil)
		retain(l.CABundles, key, nil)
		if err := l.loadStatusPolicies(ctx, key, loaded.Snapshot); err != nil {
			return nil, err
		}
		if err := l.loadRoutes(ctx, IndexStatusParent, parents, loaded.Snapshot); err != nil {
			return nil, err
		}
		return loaded, l.loadOrphans(ctx, loaded, parents)
	}
	if err := l.loadRoutes(ctx, IndexParent, parents, loaded.Snapshot); err != nil {
		return nil, err
	}
	if err := l.loadOrphans(ctx, loaded, parents); err != nil {
		return nil, err
	}
	for _, load := range []func(context.Context, *gateway.Snapshot) error{
		l.loadUsage, l.loadConfigurations, l.loadNamespaces, l.loadReferences,
	} {
		if err := load(ctx, loaded.Snapshot); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// loadParents reads the Gateway and its ListenerSets. It returns them as possible
// parents for routes.
func (l Loader) loadParents(ctx context.Context, key Key, loaded *Loaded) ([]gateway.Owner, error) {
	if key.Kind == gateway.KindListenerSet {
		return l.orphanedListenerSet(ctx, key)
	}
	if err := l.loadGateway(ctx, key, loaded); err != nil {
		return nil, err
	}
	if err := l.loadListenerSets(ctx, key, loaded.Snapshot); err != nil {
		return nil, err
	}
	parents := []gateway.Owner{key}
	for _, set := range loaded.Snapshot.ListenerSets {
		parents = append(parents, gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)})
	}
	return parents, nil
}

// orphanedListenerSet returns the ListenerSet as a parent, unless it exists and has a
// Gateway. In this case the Gateway's reconcile covers it.
func (l Loader) orphanedListenerSet(ctx context.Context, key Key) ([]gateway.Owner, error) {
	set, err := get(ctx, l.Reader, key.NamespacedName, &gatewayv1.ListenerSet{})
	if err != nil {
		return nil, err
	}
	if set != nil {
		if _, ok := ParentGateway(set); ok {
			return nil, nil
		}
	}
	return []gateway.Owner{key}, nil
}

// loadGateway reads the Gateway, its Tunnel and its GatewayClass.
func (l Loader) loadGateway(ctx context.Context, key Key, loaded *Loaded) error {
	object, err := get(ctx, l.Reader, key.NamespacedName, &gatewayv1.Gateway{})
	if err != nil || object == nil {
		return err
	}
	loaded.Gateway, loaded.Snapshot.Gateway = object, object
	if loaded.Tunnel, err = l.loadTunnel(ctx, key.NamespacedName); err != nil {
		return err
	}
	if loaded.Tunnel != nil {
		loaded.Snapshot.Tunnel = provider.TunnelID(loaded.Tunnel.Status.TunnelID)
	}
	loaded.Snapshot.DataPlane = tunnel.RecordedDataPlane(loaded.Tunnel)
	class, err := get(ctx, l.Reader, types.NamespacedName{Name: string(object.Spec.GatewayClassName)}, &gatewayv1.GatewayClass{})
	if err != nil {
		return err
	}
	loaded.ClassMissing = class == nil
	loaded.Managed = class != nil && class.Spec.ControllerName == l.ControllerName
	loaded.Snapshot.Class = class
	return nil
}

// loadTunnel returns the Gateway's Tunnel object. It returns nil if the object does not
// exist or belongs to another Gateway or controller.
func (l Loader) loadTunnel(ctx context.Context, gateway types.NamespacedName) (*v1alpha1.Tunnel, error) {
	name := types.NamespacedName{Namespace: l.ControllerNamespace, Name: tunnel.ObjectName(gateway)}
	found, err := get(ctx, l.Reader, name, &v1alpha1.Tunnel{})
	if err != nil || found == nil {
		return nil, err
	}
	if found.Spec.ControllerName != string(l.ControllerName) || found.Spec.Gateway != (v1alpha1.GatewayReference{Namespace: gateway.Namespace, Name: gateway.Name}) {
		return nil, nil
	}
	return found, nil
}

// loadListenerSets reads the ListenerSets whose parentRef names the Gateway.
func (l Loader) loadListenerSets(ctx context.Context, key Key, s *gateway.Snapshot) error {
	var list gatewayv1.ListenerSetList
	if err := l.Reader.List(ctx, &list, client.MatchingFields{IndexParentGateway: key.NamespacedName.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ListenerSets of %s: %w", key, err)
	}
	for i := range list.Items {
		s.ListenerSets = append(s.ListenerSets, &list.Items[i])
	}
	return nil
}

// loadRoutes reads all parents' routes by the index, each route once.
func (l Loader) loadRoutes(ctx context.Context, index string, parents []gateway.Owner, s *gateway.Snapshot) error {
	http, grpc := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	for _, parent := range parents {
		err := ForEachRoute(ctx, l.Reader, func(route client.Object) {
			name := client.ObjectKeyFromObject(route)
			switch r := route.(type) {
			case *gatewayv1.HTTPRoute:
				if !http[name] {
					http[name] = true
					s.HTTPRoutes = append(s.HTTPRoutes, r)
				}
			case *gatewayv1.GRPCRoute:
				if !grpc[name] {
					grpc[name] = true
					s.GRPCRoutes = append(s.GRPCRoutes, r)
				}
			}
		}, client.MatchingFields{index: parent.String()})
		if err != nil {
			return fmt.Errorf("list the routes of %s: %w", parent, err)
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
	if err := load(s.Gateway.Namespace); err != nil {
		return err
	}
	for _, set := range s.ListenerSets {
		if err := load(set.Namespace); err != nil {
			return err
		}
	}
	for _, route := range routes(s) {
		if err := load(route.GetNamespace()); err != nil {
			return err
		}
	}
	return nil
}

// KindOf returns an object's kind. The type determines it, because the API server omits
// the kind in lists.
func KindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }

// get reads one object. It returns nil if the object does not exist.
func get[T client.Object](ctx context.Context, r client.Reader, name types.NamespacedName, object T, opts ...client.GetOption) (T, error) {
	var zero T
	err := r.Get(ctx, name, object, opts...)
	if apierrors.IsNotFound(err) {
		return zero, nil
	}
	if err != nil {
		return zero, fmt.Errorf("read %s %s: %w", KindOf(object), name, err)
	}
	return object, nil
}
