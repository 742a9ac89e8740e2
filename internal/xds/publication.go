package xds

import (
	"errors"
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// Publication configures all Envoys that serve a Gateway.
type Publication struct {
	Gateway types.NamespacedName
	// Tunnel is the UID of the Gateway's Tunnel. Only certificates for this Tunnel get
	// the configuration.
	Tunnel types.UID
	// Sequence is a number that the caller chooses for [State.Acknowledged]. It never
	// decreases while the Tunnel stays the same.
	Sequence int64
	// WantsAcknowledgement reports whether the caller waits until every connected Envoy has
	// acknowledged the publication. The server then calls [Options.Changed] once.
	WantsAcknowledgement bool
	// Listeners come from [envoy.Listeners].
	Listeners []*listenerv3.Listener
	Resources *envoy.Resources
	// Secrets are the secrets that the clusters name. They contain private keys.
	Secrets []*tlsv3.Secret
	// Assignments has the endpoints for the clusters in Resources.Endpoints. A missing
	// cluster has no endpoints.
	Assignments envoy.Assignments
}

// Publish validates the publication, replaces the Gateway's previous one, and returns
// without waiting for an Envoy. If the new publication is not valid, the server keeps
// the previous one and reports that in [State.Rejected]. A new Tunnel UID ends the
// streams for the old one.
func (s *Server) Publish(p Publication) error {
	if p.Tunnel == "" || p.Resources == nil || len(p.Resources.Routes) == 0 || len(p.Listeners) == 0 {
		return errors.New("publish Envoy's configuration: the Tunnel, the listeners or the resources are missing")
	}
	g := s.ensureGateway(p.Gateway)
	report, err := s.publish(g, &p)
	report()
	return err
}

// publish handles one publication per Gateway at a time.
func (s *Server) publish(g *gateway, p *Publication) (report func(), err error) {
	g.publishing.Lock()
	defer g.publishing.Unlock()
	next, err := g.validator.newSnapshot(p)
	if err != nil {
		problem := problemText(err.Error())
		return s.commit(g, func() { g.refused = problem }), fmt.Errorf("validate Envoy's configuration: %w", err)
	}
	return s.commit(g, func() {
		g.refused = ""
		if g.tunnel != p.Tunnel {
			g.replaceTunnel(p.Tunnel)
		}
		g.accept(next, p.Sequence)
		g.want(p.WantsAcknowledgement)
		s.recordConnected(g)
	}), nil
}

// PublishEndpoints replaces the endpoints for the given clusters, which the last
// publication contains. Other clusters keep their endpoints. It does nothing if the
// last publication belongs to another Tunnel, or if there is none.
func (s *Server) PublishEndpoints(name types.NamespacedName, tunnel types.UID, a envoy.Assignments) {
	s.mu.Lock()
	g := s.gateways[name]
	s.mu.Unlock()
	if g != nil {
		s.publishEndpoints(g, tunnel, a)()
	}
}

func (s *Server) publishEndpoints(g *gateway, tunnel types.UID, a envoy.Assignments) (report func()) {
	g.publishing.Lock()
	defer g.publishing.Unlock()
	current := s.publishedEndpoints(g, tunnel)
	changed, messages := resources{}, map[string]proto.Message{}
	for cluster := range a {
		if !current.has(cluster) {
			continue
		}
		m := assignment(a, cluster)
		r, err := newEndpoints(cluster, m)
		if err != nil {
			s.options.Logger.Error(err, "the endpoints of a cluster are not valid; Envoys keep the previous endpoints", "gateway", g.name, "cluster", cluster)
			continue
		}
		changed[cluster], messages[cluster] = r, m
	}
	if len(changed) == 0 {
		return func() {}
	}
	next := current.derive(changed, nil)
	g.validator.replaceEndpoints(next, messages)
	return s.commit(g, func() { g.replaceEndpoints(next) })
}

// publishedEndpoints returns the last published endpoints if they belong to the Tunnel.
func (s *Server) publishedEndpoints(g *gateway, tunnel types.UID) *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.published == nil || g.tunnel != tunnel {
		return nil
	}
	return g.published.byKind[endpoints]
}

// Remove ends the streams for a Gateway whose Tunnel is gone, and forgets its
// resources.
func (s *Server) Remove(name types.NamespacedName) {
	s.mu.Lock()
	g := s.gateways[name]
	delete(s.gateways, name)
	var ended []*connection
	if g != nil {
		for c := range g.connections {
			ended = append(ended, c)
		}
		g.streams = nil
	}
	s.options.Metrics.DeleteConnectedEnvoys(name)
	s.mu.Unlock()
	for _, c := range ended {
		c.end()
	}
}

// commit changes a Gateway that still exists, wakes its streams, and ends connections
// for another Tunnel. It returns a function that reports the change.
func (s *Server) commit(g *gateway, change func()) (report func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gateways[g.name] != g {
		return func() {}
	}
	change()
	var ended []*connection
	for c := range g.connections {
		if g.tunnel != "" && c.identity.Tunnel != g.tunnel {
			ended = append(ended, c)
		}
	}
	for st := range g.streams {
		st.notify()
	}
	settled := s.settle(g)
	return func() {
		for _, c := range ended {
			c.end()
		}
		settled()
	}
}
