package xds_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// renderedFor returns a publication in which <Service>.example.com leads to each backend.
func renderedFor(sequence int64, addresses map[string]*net.TCPAddr, backends ...routing.Backend) xds.Publication {
	p := rendered(sequence, backends[0])
	table := &routing.Table{ClusterDomain: "cluster.local"}
	for _, b := range backends {
		host := b.Service.Name + ".example.com"
		route := &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: b.Service}
		table.Groups = append(table.Groups, routing.Group{Hostname: host, Namespace: "team", Entries: []*routing.Entry{{
			Hostname: host, RouteHostname: host, Source: routing.Source{Route: route}, Match: &routing.Match{Path: routing.Path{Value: "/app"}},
			Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: b, Weight: 1}}}},
		}}})
	}
	p.Resources = envoy.Render(table)
	for _, e := range p.Resources.Endpoints {
		p.Assignments[e.Cluster] = assignedTo(e.Cluster, addresses[e.Service.Name])
	}
	return p
}

// visit returns the response status and body for <Service>.example.com.
func (s *sidecar) visit(service string) string {
	request, err := http.NewRequest(http.MethodGet, "http://"+s.open+"/app", http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Host = service + ".example.com"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// A leader that publishes nothing changes only the endpoints in the real Envoy. The other
// clusters, the routes and the listeners stay, and the next publication changes nothing
// more.
func TestEnvoyFollowsEndpointsByName(t *testing.T) {
	s := newSidecar(t)
	addresses := map[string]*net.TCPAddr{}
	var backends []routing.Backend
	for _, name := range []string{"static", "left", "moved", "kept"} {
		b, address := backend(t, name)
		if name != "static" {
			b.ClusterIP, b.Headless = "", true
		}
		addresses[name] = address
		backends = append(backends, b)
	}
	wantAnswers := func(want map[string]string) {
		t.Helper()
		for name, answer := range want {
			await(t, fmt.Sprintf("answer %q from %s", answer, name), func() bool { return s.visit(name) == answer })
		}
	}
	s.publish(t, renderedFor(1, addresses, backends...))
	s.awaitAcknowledged(t, 1)
	wantAnswers(map[string]string{"static": "200 static", "left": "200 left", "moved": "200 moved", "kept": "200 kept"})

	s.stop()
	s.startServer(t)
	await(t, "subscriptions", func() bool { return len(s.Subscriptions(shared, envoy.EndpointSource{}).Clusters) == 3 })
	_, elsewhere := backend(t, "elsewhere")
	wanted, found := s.Subscriptions(shared, envoy.EndpointSource{}), envoy.Assignments{}
	for _, cluster := range wanted.Clusters {
		switch cluster.Source.Name {
		case "left":
			found[cluster.Name] = nil
		case "moved":
			found[cluster.Name] = assignedTo(cluster.Name, elsewhere)
		default:
			found[cluster.Name] = assignedTo(cluster.Name, addresses[cluster.Source.Name])
		}
	}
	s.PublishByName(shared, wanted.Number, found)
	after := map[string]string{"static": "200 static", "left": "503 no healthy upstream", "moved": "200 elsewhere", "kept": "200 kept"}
	wantAnswers(after)
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // Envoy would remove clusters now
	wantAnswers(after)
	if !listens(s.ready) || !listens(s.protected) {
		t.Error("Envoy has closed a listener")
	}
	s.metrics.change(func() {
		if want := map[metrics.XDSResources]int{metrics.XDSEndpoints: 1}; !maps.Equal(s.metrics.pushes, want) {
			t.Errorf("the responses are %v, want %v", s.metrics.pushes, want)
		}
	})

	p := renderedFor(2, map[string]*net.TCPAddr{"left": addresses["left"], "moved": elsewhere, "kept": addresses["kept"]}, backends...)
	s.publish(t, p)
	s.awaitAcknowledged(t, 2)
	wantAnswers(map[string]string{"static": "200 static", "left": "200 left", "moved": "200 elsewhere", "kept": "200 kept"})
}
