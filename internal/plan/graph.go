package plan

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

const (
	// MaxGraphNodes is the greatest number of nodes in a [Graph]. More are not readable.
	MaxGraphNodes = 200
	// KindHostname is the kind of a node for a hostname, whose name is "*" for every host.
	KindHostname = "Hostname"
)

// Graph shows how requests get from Gateways through ListenerSets, hostnames and routes to
// Services. Its JSON encoding is stable.
type Graph struct {
	// Nodes are in the order in which a request passes them, hostname by hostname.
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
	// Omitted is the number of nodes above [MaxGraphNodes], by kind.
	Omitted map[string]int `json:"omitted,omitempty"`
}

// GraphNode is an object or a hostname. Gateway is the "namespace/name" of a
// hostname's Gateway; empty for objects.
type GraphNode struct {
	Owner
	Gateway string `json:"gateway,omitempty"`
	// State is "served", "closed", or the reason of a problem.
	State string `json:"state"`
	// Message describes the problem; empty if there is none.
	Message string `json:"message,omitempty"`
}

// IsProblem reports whether the node has a problem.
func (n *GraphNode) IsProblem() bool { return n.State != stateServed }

// GraphEdge leads from one node to another. Both are indexes in [Graph.Nodes].
type GraphEdge struct {
	From int `json:"from"`
	To   int `json:"to"`
	// Problem is the reason why a listener does not serve the hostname, or why a parent rejects
	// the route; empty if there is none.
	Problem string `json:"problem,omitempty"`
}

// GraphSelection selects what a graph shows.
type GraphSelection struct {
	// Gateway is a Gateway's "namespace/name"; empty for all.
	Gateway string
	// Hostname is nil for all hostnames that concern the Namespace.
	Hostname *string
	// Namespace is empty for all objects that concern the Hostname.
	Namespace string
}

// graphBuilder adds nodes and edges to a graph.
type graphBuilder struct {
	Graph
	selection GraphSelection
	nodes     map[GraphNode]int // without State and Message
	edges     map[[2]int]int    // in Edges
	omitted   map[GraphNode]bool
	routes    map[*Gateway]map[Owner]*gateway.Route
}

// NewGraph returns what belongs to the selected hostname or namespace.
func (p *Plan) NewGraph(h *Hostnames, s GraphSelection) *Graph {
	b := &graphBuilder{
		Graph: Graph{Nodes: []GraphNode{}, Edges: []GraphEdge{}}, selection: s,
		nodes: map[GraphNode]int{}, edges: map[[2]int]int{}, omitted: map[GraphNode]bool{}, routes: map[*Gateway]map[Owner]*gateway.Route{},
	}
	for i := range h.Rows {
		if row := &h.Rows[i]; s.includes(row) {
			b.addRow(row)
		}
	}
	for i := range p.Gateways {
		if g := &p.Gateways[i]; s.includesGateway(g.Namespace + "/" + g.Name) {
			b.addUnserved(g)
		}
	}
	for node := range b.omitted {
		if b.Omitted == nil {
			b.Omitted = map[string]int{}
		}
		b.Omitted[node.Kind]++
	}
	return &b.Graph
}

func (s *GraphSelection) includesGateway(name string) bool {
	return s.Gateway == "" || s.Gateway == name
}

func (s *GraphSelection) includes(row *HostnameRow) bool {
	return s.includesGateway(row.Gateway) && (s.Hostname == nil || *s.Hostname == row.Hostname) && (s.Namespace == "" || row.Concerns(s.Namespace))
}

// add returns the node's index, or -1 if the graph is full.
func (b *graphBuilder) add(node GraphNode) int {
	key := GraphNode{Owner: node.Owner, Gateway: node.Gateway}
	if i, ok := b.nodes[key]; ok {
		return i
	}
	if len(b.Nodes) == MaxGraphNodes {
		b.omitted[key] = true
		return -1
	}
	b.nodes[key] = len(b.Nodes)
	b.Nodes = append(b.Nodes, node)
	return len(b.Nodes) - 1
}

// connect adds an edge once, unless the graph lacks one of the nodes. An edge with and without
// a problem has none.
func (b *graphBuilder) connect(from, to int, problem string) {
	if from < 0 || to < 0 {
		return
	}
	key := [2]int{from, to}
	if i, ok := b.edges[key]; ok {
		if problem == "" {
			b.Edges[i].Problem = ""
		}
		return
	}
	b.edges[key] = len(b.Edges)
	b.Edges = append(b.Edges, GraphEdge{from, to, problem})
}

// addRow adds a hostname with the objects before and after it.
func (b *graphBuilder) addRow(row *HostnameRow) {
	g := row.plan.gateway
	before := make([]int, len(row.Listeners))
	for i := range row.Listeners {
		before[i] = b.addOwner(g, row.Listeners[i].Owner)
	}
	hostname := b.add(newHostnameNode(row))
	for i, owner := range before {
		b.connect(owner, hostname, row.Listeners[i].Reason)
	}
	if row.host == nil {
		return
	}
	for _, e := range row.host.Entries {
		source := e.Source.Route
		route := b.routesOf(g)[Owner{source.Kind, source.Namespace, source.Name}]
		if route == nil || !b.shows(row, route.Namespace) {
			continue
		}
		node := b.add(newRouteNode(route))
		b.connect(hostname, node, "")
		b.addBackends(node, e.Action)
	}
}

// shows reports whether the graph shows a route in the namespace on the hostname: all routes
// if a listener of the selected namespace receives the requests.
func (b *graphBuilder) shows(row *HostnameRow, namespace string) bool {
	s := b.selection.Namespace
	return s == "" || s == namespace || slices.ContainsFunc(row.Listeners, func(l HostnameListener) bool { return l.Owner.Namespace == s && l.State() == stateServed })
}

// addOwner adds the Gateway, and a ListenerSet behind it. It returns the owner's index.
func (b *graphBuilder) addOwner(g *Gateway, owner Owner) int {
	node := GraphNode{Owner: Owner{gateway.KindGateway, g.Namespace, g.Name}, State: stateServed}
	if p := g.result.Rejected; p != nil {
		node.State, node.Message = p.Reason.String(), p.Message
	} else if g.outcome.State == tunnel.OutcomeFailed {
		node.State, node.Message = g.outcome.Reason.String(), g.outcome.Message
	}
	index := b.add(node)
	if owner.Kind == gateway.KindGateway {
		return index
	}
	set := GraphNode{Owner: owner, State: stateServed}
	for _, s := range g.result.Sets {
		if p := s.NotAllowed; p != nil && newOwner(s.Owner) == owner {
			set.State, set.Message = p.Reason.String(), p.Message
		}
	}
	to := b.add(set)
	b.connect(index, to, "")
	return to
}

func newHostnameNode(row *HostnameRow) GraphNode {
	node := GraphNode{Owner: Owner{Kind: KindHostname, Name: orStar(row.Hostname)}, Gateway: row.Gateway, State: row.State()}
	if row.IsClosed() {
		node.State, node.Message = "closed", row.Access
	}
	for i := range row.Listeners {
		if l := &row.Listeners[i]; node.Message == "" && node.IsProblem() {
			node.Message = l.Message
		}
	}
	return node
}

// newRouteNode returns a node with the route's first problem.
func newRouteNode(route *gateway.Route) GraphNode {
	node := GraphNode{Owner: ownerOf(route), State: stateServed}
	if p := routeProblem(route); p != nil {
		node.State, node.Message = p.Reason.String(), p.Message
	} else if dropped := droppedRules(route); len(dropped) > 0 {
		node.State, node.Message = conditions.ReasonUnsupportedValue.String(), dropped[0]
	}
	return node
}

// routeProblem returns why a parent rejects the route, or why a backend does not resolve, or nil.
func routeProblem(route *gateway.Route) *gateway.Problem {
	for i := range route.Parents {
		if p := route.Parents[i].Rejected; p != nil {
			return p
		}
	}
	return route.Unresolved
}

// addBackends adds the Services to which the action forwards requests. The problem of a
// missing one is the route's.
func (b *graphBuilder) addBackends(route int, action *routing.Action) {
	if action.Forward == nil {
		return
	}
	for i := range action.Forward.Backends {
		backend := &action.Forward.Backends[i]
		if backend.Status != 0 {
			continue
		}
		service := Owner{"Service", backend.Backend.Service.Namespace, backend.Backend.Service.Name}
		if backend.Backend.Import {
			service.Kind = "ServiceImport"
		}
		b.connect(route, b.add(GraphNode{Owner: service, State: stateServed}), "")
	}
}

// addUnserved adds the selected routes that are not served, behind their parents.
func (b *graphBuilder) addUnserved(g *Gateway) {
	for _, route := range g.result.Routes {
		if routeProblem(route) == nil || !b.selects(route) {
			continue
		}
		node := b.add(newRouteNode(route))
		for i := range route.Parents {
			if p := &route.Parents[i]; p.Rejected != nil {
				b.connect(b.addOwner(g, newOwner(p.Owner)), node, p.Rejected.Reason.String())
			}
		}
	}
}

// selects reports whether the selection contains a route that is not served.
func (b *graphBuilder) selects(route *gateway.Route) bool {
	s := b.selection
	if s.Namespace != "" && s.Namespace != route.Namespace {
		return false
	}
	if s.Hostname == nil {
		return true
	}
	return slices.Contains(route.Hostnames, gatewayv1.Hostname(*s.Hostname))
}

// routesOf returns the Gateway's routes.
func (b *graphBuilder) routesOf(g *Gateway) map[Owner]*gateway.Route {
	if b.routes[g] == nil {
		b.routes[g] = make(map[Owner]*gateway.Route, len(g.result.Routes))
		for _, route := range g.result.Routes {
			b.routes[g][ownerOf(route)] = route
		}
	}
	return b.routes[g]
}
