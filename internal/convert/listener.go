package convert

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The listeners' ports. A tunnel serves a hostname on all ports at once, so the port only
// tells listeners with different settings apart. A TunnelConfiguration's entry without a
// hostname applies to listeners with every hostname, so the listener without a hostname has
// ports of its own.
const (
	firstPort            = 443
	furtherPort          = 8442
	furtherPortAnyHost   = 20443
	maxListenersPerOwner = 64
)

// listener is a listener in a namespace.
type listener struct {
	namespace, name, hostname string
	port                      int32
}

// addListeners adds a listener for each different settings in a group's routes. It
// returns their names by the settings' keys.
func (c *converter) addListeners(g *group, namespace, base string, runs []run) map[string]string {
	names := map[string]string{}
	if len(runs) == 0 {
		c.listeners = append(c.listeners, listener{namespace, base, g.hostname, firstPort})
		return names
	}
	for _, r := range runs {
		key := r.settings.key()
		if names[key] != "" {
			continue
		}
		l := listener{namespace, base, g.hostname, firstPort}
		if n := int32(len(names)); n > 0 || g.hostname == "" && len(r.settings) > 0 { //nolint:gosec // at most one for each rule
			l.port = furtherPort + n
			if g.hostname == "" {
				l.port = furtherPortAnyHost + n
			}
			l.name = fmt.Sprintf("%s-p%d", base, l.port)
		}
		names[key] = l.name
		c.listeners = append(c.listeners, l)
		if o := r.settings.originRequest(); o != nil {
			c.entries = append(c.entries, v1alpha1.ListenerConfiguration{ProtocolPort: fmt.Sprintf("HTTPS:%d", l.port), Hostname: g.hostname, OriginRequest: o})
		}
	}
	return names
}

// addAccess adds a hostname's access block. A hostname without one gets a block that
// requires no token, if the block for a wider hostname would apply to it.
func (c *converter) addAccess(g *group, access *Access) {
	if access != nil || len(g.served()) > 0 && c.hasAccess() {
		c.entries = append(c.entries, v1alpha1.ListenerConfiguration{ProtocolPort: v1alpha1.EveryPort, Hostname: g.hostname, Access: access.block()})
	}
}

// hasAccess reports whether a rule for several hostnames requires a token.
func (c *converter) hasAccess() bool {
	return slices.ContainsFunc(c.destinations, func(d destination) bool {
		return d.access != nil && (d.hostname == "" || d.hostname[0] == '*')
	})
}

// parentRef refers to a listener.
func (c *converter) parentRef(namespace, listener string) gatewayv1.ParentReference {
	ref := gatewayv1.ParentReference{SectionName: ptr.To(gatewayv1.SectionName(listener))}
	if c.ListenerSets {
		ref.Kind = ptr.To(gatewayv1.Kind(gateway.KindListenerSet))
		ref.Name = gatewayv1.ObjectName(c.setName(c.setIndex(namespace, listener)))
		return ref
	}
	ref.Name = gatewayv1.ObjectName(c.GatewayName)
	if namespace != c.GatewayNamespace {
		ref.Namespace = ptr.To(gatewayv1.Namespace(c.GatewayNamespace))
	}
	return ref
}

// setIndex returns which ListenerSet in the namespace has the listener, from 0.
func (c *converter) setIndex(namespace, name string) int {
	before := 0
	for _, l := range c.listeners {
		if l.namespace == namespace && l.name == name {
			break
		}
		if l.namespace == namespace {
			before++
		}
	}
	return before / maxListenersPerOwner
}

// setName returns the name for a namespace's ListenerSet.
func (c *converter) setName(index int) string {
	if index == 0 {
		return c.GatewayName
	}
	return fmt.Sprintf("%s-%d", c.GatewayName, index+1)
}

// addGateway adds the Gateway, its TunnelConfiguration, and the ListenerSets.
func (c *converter) addGateway() {
	g := &gatewayv1.Gateway{}
	g.Name, g.Namespace = c.GatewayName, c.GatewayNamespace
	g.Spec.GatewayClassName = gatewayv1.ObjectName(c.className())
	namespaces := map[string]bool{}
	for _, l := range c.listeners {
		namespaces[l.namespace] = true
	}
	if c.addConfiguration() {
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
			Group: gatewayv1.Group(v1alpha1.GroupVersion.Group), Kind: "TunnelConfiguration", Name: c.GatewayName,
		}}
	}
	d := Document{Object: g, rank: rankGateway}
	if c.ListenerSets && len(c.listeners) > 0 {
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{
			From: ptr.To(gatewayv1.NamespacesFromSelector), Selector: selector(slices.Sorted(maps.Keys(namespaces))),
		}}
		c.addSets()
	} else {
		for _, l := range c.listeners {
			g.Spec.Listeners = append(g.Spec.Listeners, l.ofGateway())
		}
	}
	if len(g.Spec.Listeners) == 0 {
		g.Spec.Listeners = []gatewayv1.Listener{placeholder()}
		d.Comment = append(d.Comment, "The Gateway API requires a listener of the Gateway itself. No route attaches to this one.")
	}
	if !c.ListenerSets && len(c.listeners) > maxListenersPerOwner {
		c.notes = append(c.notes, Note{NoteDifferent, 0, "ingress", fmt.Sprintf("the Gateway has %d listeners, and the Gateway API permits %d", len(c.listeners), maxListenersPerOwner), "convert with ListenerSets"})
	}
	c.documents = append(c.documents, d)
}

// placeholder is a listener that no request reaches.
func placeholder() gatewayv1.Listener {
	return gatewayv1.Listener{Name: "unused", Hostname: ptr.To(gatewayv1.Hostname("unused.invalid")), Port: 80, Protocol: gatewayv1.HTTPProtocolType}
}

// selector selects the namespaces by their names.
func selector(namespaces []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces},
	}}
}

// ofGateway returns the listener of a Gateway, for routes in its namespace.
func (l listener) ofGateway() gatewayv1.Listener {
	listener := gatewayv1.Listener{
		Name: gatewayv1.SectionName(l.name), Port: l.port, Protocol: gatewayv1.HTTPSProtocolType,
		AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From: ptr.To(gatewayv1.NamespacesFromSelector), Selector: selector([]string{l.namespace}),
		}},
	}
	if l.hostname != "" {
		listener.Hostname = ptr.To(gatewayv1.Hostname(l.hostname))
	}
	return listener
}

// addSets adds the ListenerSets in all namespaces.
func (c *converter) addSets() {
	sets := map[string]*gatewayv1.ListenerSet{}
	for _, l := range c.listeners {
		name := c.setName(c.setIndex(l.namespace, l.name))
		key := l.namespace + "/" + name
		set := sets[key]
		if set == nil {
			set = &gatewayv1.ListenerSet{}
			set.Name, set.Namespace = name, l.namespace
			set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: gatewayv1.ObjectName(c.GatewayName)}
			if l.namespace != c.GatewayNamespace {
				set.Spec.ParentRef.Namespace = ptr.To(gatewayv1.Namespace(c.GatewayNamespace))
			}
			sets[key] = set
		}
		entry := gatewayv1.ListenerEntry{Name: gatewayv1.SectionName(l.name), Port: l.port, Protocol: gatewayv1.HTTPSProtocolType}
		if l.hostname != "" {
			entry.Hostname = ptr.To(gatewayv1.Hostname(l.hostname))
		}
		set.Spec.Listeners = append(set.Spec.Listeners, entry)
	}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		c.documents = append(c.documents, Document{Object: sets[key], rank: rankListenerSet})
	}
}
