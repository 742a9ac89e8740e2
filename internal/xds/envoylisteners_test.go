package xds_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// bootstrapWithListeners returns the bootstrap that pods with schema version 1 have. It
// contains the listeners.
func bootstrapWithListeners(t *testing.T) *bootstrapv3.Bootstrap {
	t.Helper()
	content, err := os.ReadFile("testdata/bootstrap-with-listeners.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSON(content)
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal(text, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// A pod from an earlier version, whose bootstrap contains the listeners, is served
// until it is replaced.
func TestEnvoyWithListenersInItsBootstrapIsServed(t *testing.T) {
	s := newSidecarWith(t, bootstrapWithListeners(t))
	blue, _ := backend(t, "blue")
	s.publish(t, rendered(1, blue))
	s.awaitAnswer(t, "200 blue")
	s.awaitAcknowledged(t, 1)
	await(t, "port for probes", func() bool { return listens(s.ready) })
	failed := s.load(t)
	green, _ := backend(t, "green")
	changed := rendered(2, green)
	setVia(t, changed.Listeners[0], "changed")
	s.publish(t, changed)
	s.awaitAnswer(t, "200 green")
	s.awaitAcknowledged(t, 2)
	failed()
	s.metrics.change(func() {
		if n := s.metrics.pushes[metrics.XDSListeners]; n != 0 {
			t.Errorf("%d listeners were sent, want none", n)
		}
	})
}

// Envoys in pods that run as processes have static listeners. The controller's
// listeners do not replace them: Envoy acknowledges them without effect.
func TestEnvoyKeepsItsStaticListeners(t *testing.T) {
	bootstrap := envoy.Bootstrap("127.0.0.1")
	bootstrap.StaticResources.Listeners = envoy.Listeners(envoy.ReadyOptions{Metrics: true}, routing.Telemetry{})
	s := newSidecarWith(t, bootstrap)
	await(t, "stream", func() bool { return s.State(shared).Connected == 1 })
	if listens(s.open) || listens(s.ready) {
		t.Error("Envoy is ready without a publication")
	}
	blue, _ := backend(t, "blue")
	p := rendered(1, blue)
	setVia(t, p.Listeners[0], "changed")
	s.publish(t, p)
	s.awaitAnswer(t, "200 blue")
	s.awaitAcknowledged(t, 1)
	if got := s.via(t); got != "" {
		t.Errorf("the listener of the controller has taken effect: Via is %q", got)
	}
}

func setVia(t *testing.T, l *listenerv3.Listener, via string) {
	t.Helper()
	config := l.FilterChains[0].Filters[0].GetTypedConfig()
	m := &hcmv3.HttpConnectionManager{}
	if err := config.UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	m.Via = via
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	config.Value = packed.Value
}

// via returns the response's Via header for a request on a new connection.
func (s *sidecar) via(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+s.open+"/app", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = hostname
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatalf("a request on a new connection failed: %v", err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("a request on a new connection has the status %d", response.StatusCode)
	}
	return response.Header.Get("Via")
}

// A changed listener takes effect without a restart, and no request fails, neither on
// connections that exist nor on new ones.
func TestEnvoyUpdatesAListenerInPlace(t *testing.T) {
	s := newSidecar(t)
	blue, _ := backend(t, "blue")
	s.publish(t, rendered(1, blue))
	s.awaitAnswer(t, "200 blue")
	s.awaitAcknowledged(t, 1)
	failed := s.load(t)
	for i := range int64(10) {
		changed := rendered(i+2, blue)
		via := fmt.Sprintf("change-%d", i)
		setVia(t, changed.Listeners[0], via)
		s.publish(t, changed)
		await(t, "effect of the change", func() bool { return s.via(t) == via })
		s.awaitAcknowledged(t, i+2)
	}
	failed()
	if n := s.metrics.streams(); n != 1 {
		t.Errorf("Envoy opened %d streams, want 1", n)
	}
}

// An Envoy that rejects its first listener is not ready, although it starts.
func TestEnvoyWithoutAListenerIsNotReady(t *testing.T) {
	s := newSidecar(t)
	blue, _ := backend(t, "blue")
	bad := rendered(1, blue)
	bad.Listeners[0].ListenerFilters = []*listenerv3.ListenerFilter{{Name: "unknown"}}
	s.publish(t, bad)
	await(t, "port of the protected listener", func() bool { return listens(s.protected) })
	await(t, "acknowledgement of the other routes", func() (acknowledged bool) {
		s.metrics.change(func() { acknowledged = len(s.metrics.took[metrics.XDSRoutes]) > 0 })
		return acknowledged
	})
	if listens(s.ready) || listens(s.open) {
		t.Error("Envoy is ready without a listener")
	}
	if got := s.State(shared); got.Rejected == "" {
		t.Errorf("the state is %+v", got)
	}
	s.publish(t, rendered(2, blue))
	await(t, "port for probes", func() bool { return listens(s.ready) })
	s.awaitAnswer(t, "200 blue")
	s.awaitAcknowledged(t, 2)
}
