package controller

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// churnedKind is a kind whose objects come and go.
type churnedKind int

// The kinds, in the order in which their objects depend on each other.
const (
	namespaceKind churnedKind = iota
	secretKind
	setKind
	routeKind
	gatewayKind
)

// population is how many objects a kind has, and weight is how often one of them changes.
var population = map[churnedKind]struct{ objects, weight int }{
	namespaceKind: {3, 10}, secretKind: {3, 15}, setKind: {4, 15}, routeKind: {10, 55}, gatewayKind: {2, 5},
}

// allowed is the label with which a Namespace may use the Gateway.
const allowed = "example.com/allowed"

// prepare lets the namespaces with the label use the Gateway, and creates all objects.
func (c *churn) prepare() {
	c.t.Helper()
	selected := &gatewayv1.RouteNamespaces{
		From: ptr.To(gatewayv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{allowed: "true"}},
	}
	c.changeGateway(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners[0].Hostname = ptr.To[gatewayv1.Hostname]("*.example.com")
		g.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: selected}
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: selected.From, Selector: selected.Selector}}
	})
	c.affect([]state.Key{c.key})
	for kind := namespaceKind; kind <= gatewayKind; kind++ {
		for range population[kind].objects {
			c.add(kind)
		}
	}
	c.settle(2 * driftInterval)
}

// change adds, changes or removes an object of a random kind.
func (c *churn) change() {
	c.t.Helper()
	n := c.random.IntN(100)
	for kind := namespaceKind; kind <= gatewayKind; kind++ {
		if n -= population[kind].weight; n >= 0 {
			continue
		}
		switch live := c.live[kind]; {
		case len(live) < population[kind].objects:
			c.add(kind)
		case c.random.IntN(2) == 0:
			c.modify(live[c.random.IntN(len(live))])
		default:
			c.remove(kind, live[c.random.IntN(len(live))])
		}
		return
	}
}

// removeAll removes all objects.
func (c *churn) removeAll() {
	c.t.Helper()
	for kind := gatewayKind; kind >= namespaceKind; kind-- {
		for len(c.live[kind]) > 0 {
			c.remove(kind, c.live[kind][0])
		}
	}
}

// add creates an object whose name no other object has had.
func (c *churn) add(kind churnedKind) {
	c.t.Helper()
	c.created++
	name := fmt.Sprintf("%s-%d", churned, c.created)
	object := c.newObject(kind, metav1.ObjectMeta{
		Namespace: c.anyName(namespaceKind), Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(c.wallTime),
	})
	c.create(object)
	if kind == namespaceKind { // with a Service
		service := newService()
		service.Namespace = name
		c.create(service)
	}
	c.live[kind] = append(c.live[kind], object)
	c.affect(c.keysOf(object))
}

func (c *churn) newObject(kind churnedKind, metadata metav1.ObjectMeta) client.Object {
	switch kind {
	case namespaceKind:
		namespace := namespaceObject(metadata.Name)
		namespace.Labels = map[string]string{allowed: "true"}
		return namespace
	case secretKind:
		return &corev1.Secret{ObjectMeta: metadata, Type: corev1.SecretTypeTLS, Data: maps.Clone(c.certificate)}
	case setKind:
		return c.newSet(metadata)
	case routeKind:
		route := newRoute()
		route.ObjectMeta = metadata
		route.Spec.ParentRefs[0].Namespace = ptr.To[gatewayv1.Namespace]("infra")
		if set := c.anyOf(setKind); set != nil && c.random.IntN(3) == 0 {
			route.Spec.ParentRefs[0] = gatewayv1.ParentReference{
				Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Namespace: ptr.To(gatewayv1.Namespace(set.GetNamespace())), Name: gatewayv1.ObjectName(set.GetName()),
			}
		}
		route.Spec.Hostnames = []gatewayv1.Hostname{c.hostname()}
		return route
	default:
		g := newGateway(metadata.Name, metadata.Name+".example.org")
		g.CreationTimestamp = metadata.CreationTimestamp
		return g
	}
}

// newSet returns a ListenerSet with a listener for HTTP, and one for HTTPS whose certificate
// is any Secret.
func (c *churn) newSet(metadata metav1.ObjectMeta) *gatewayv1.ListenerSet {
	set := &gatewayv1.ListenerSet{ObjectMeta: metadata}
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Namespace: ptr.To[gatewayv1.Namespace]("infra"), Name: "shared"}
	everywhere := &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}}
	set.Spec.Listeners = []gatewayv1.ListenerEntry{
		{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(c.hostname()), AllowedRoutes: everywhere},
		{
			Name: "https", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, Hostname: ptr.To(c.hostname()), AllowedRoutes: everywhere,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{
				Name: gatewayv1.ObjectName(c.anyName(secretKind)), Namespace: ptr.To(gatewayv1.Namespace(metadata.Namespace)),
			}}},
		},
	}
	return set
}

// hostname returns a hostname that no object has had.
func (c *churn) hostname() gatewayv1.Hostname {
	c.created++
	return gatewayv1.Hostname(fmt.Sprintf("%s-%d.example.com", churned, c.created))
}

// newCertificate returns a Secret's data with a new certificate.
func newCertificate(t *testing.T) map[string][]byte {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("*.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
}

// anyOf returns a random object, or nil.
func (c *churn) anyOf(kind churnedKind) client.Object {
	if len(c.live[kind]) == 0 {
		return nil
	}
	return c.live[kind][c.random.IntN(len(c.live[kind]))]
}

// anyName returns a random object's name, or a name that no object has.
func (c *churn) anyName(kind churnedKind) string {
	if object := c.anyOf(kind); object != nil {
		return object.GetName()
	}
	return "none"
}

// modify changes an object.
func (c *churn) modify(object client.Object) {
	c.t.Helper()
	keys := c.keysOf(object)
	current := newOf(object)
	c.harness.change(object.GetNamespace(), object.GetName(), current, func() {
		switch o := current.(type) {
		case *corev1.Namespace:
			if o.Labels[allowed] == "true" {
				o.Labels[allowed] = "false"
			} else {
				o.Labels[allowed] = "true"
			}
		case *corev1.Secret:
			o.Data[corev1.TLSPrivateKeyKey] = []byte("not a key")
			if c.random.IntN(2) == 0 {
				o.Data = maps.Clone(c.certificate)
			}
		case *gatewayv1.ListenerSet:
			o.Spec.Listeners[c.random.IntN(2)].Hostname = ptr.To(c.hostname())
			o.Generation++
		case *gatewayv1.HTTPRoute:
			o.Spec.Hostnames = []gatewayv1.Hostname{c.hostname()}
			o.Generation++
		case *gatewayv1.Gateway:
			o.Spec.Listeners[0].Hostname = ptr.To(c.hostname())
			o.Generation++
		}
	})
	c.affect(append(keys, c.keysOf(current)...))
}

// remove deletes an object. With a namespace, everything in it is deleted first.
func (c *churn) remove(kind churnedKind, object client.Object) {
	c.t.Helper()
	if kind == namespaceKind {
		for inner := routeKind; inner > namespaceKind; inner-- {
			for _, o := range append([]client.Object(nil), c.live[inner]...) {
				if o.GetNamespace() == object.GetName() {
					c.remove(inner, o)
				}
			}
		}
		service := newService()
		service.Namespace = object.GetName()
		c.delete(service)
	}
	keys := c.keysOf(object)
	current := newOf(object)
	current.SetNamespace(object.GetNamespace())
	current.SetName(object.GetName())
	c.delete(current)
	for i, o := range c.live[kind] {
		if o == object {
			c.live[kind] = append(c.live[kind][:i:i], c.live[kind][i+1:]...)
			break
		}
	}
	c.affect(append(keys, c.keysOf(object)...))
}

func newOf(object client.Object) client.Object {
	return reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
}

// keysOf returns the keys that a change to the object affects, as the watches find them.
func (c *churn) keysOf(object client.Object) (keys []state.Key) {
	c.t.Helper()
	var err error
	switch o := object.(type) {
	case *corev1.Namespace:
		keys, err = c.watches.fromNamespace(c.t.Context(), o)
	case *corev1.Secret:
		keys, err = c.watches.fromSecret(c.t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: o.ObjectMeta})
	case *gatewayv1.ListenerSet:
		keys, err = c.watches.fromListenerSet(c.t.Context(), o)
	case *gatewayv1.HTTPRoute:
		keys, err = c.watches.fromRoute(c.t.Context(), o)
	case *gatewayv1.Gateway:
		keys, err = c.watches.fromGateway(c.t.Context(), o)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return keys
}

// sameRule compares what matters to requests.
func sameRule(a, b provider.IngressRule) bool {
	return a.Hostname == b.Hostname && a.Path == b.Path && a.Service == b.Service
}
