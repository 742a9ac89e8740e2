package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The alerts about Envoys.
const (
	disconnectedAlert = "TunnelGatewayEnvoyDisconnected"
	rejectedAlert     = "TunnelGatewayEnvoyRejected"
	certificateAlert  = "TunnelGatewayEnvoyCertificateExpires"
)

// TestEnvoyAlertsWithARealController checks when the alerts about Envoys fire with the
// metrics that a controller serves. Only Prometheus' clock is simulated: a state in the
// controller lasts for minutes there.
func TestEnvoyAlertsWithARealController(t *testing.T) {
	b := newControllerBed(t)
	s := newServer(t)
	s.now = time.Now().Truncate(time.Second)
	b.serve("rules", v1alpha1.DataPlaneIngressRules)
	b.serve("shared", v1alpha1.DataPlaneEnvoy)
	b.await("connectors_wanted", "rules", 2)
	b.await("connected_envoys", "shared", 0)
	b.await("connectors_wanted", "shared", 2)

	s.last(b, 4)
	s.wantAlerts("in the first minutes")
	s.last(b, 2)
	s.wantAlerts("no Envoy connects", disconnectedAlert+" shared")
	first := b.connect("shared", false)
	b.await("data_plane_ready", "shared", 1)
	s.last(b, 1)
	s.wantAlerts("an Envoy has connected")

	b.restart() // the new leader
	<-first.ended
	b.await("connectors_wanted", "shared", 2)
	b.await("connected_envoys", "shared", 0)
	s.last(b, 1)
	first = b.connect("shared", false)
	b.await("data_plane_ready", "shared", 1)
	s.last(b, 10)
	s.wantAlerts("after the leader changed")

	first.rejectsRoutes.Store(true)
	b.setPath("shared", "/rejected")
	b.await("data_plane_rejected", "shared", 1)
	s.last(b, 120)
	s.wantAlerts("an Envoy rejected the routes two hours ago", rejectedAlert+" shared")
	first.close()
	b.restart()
	first = b.connect("shared", true)
	b.await("data_plane_rejected", "shared", 1)
	s.last(b, 120)
	s.wantAlerts("a new leader's first routes were rejected", rejectedAlert+" shared")
	first.rejectsRoutes.Store(false)
	b.setPath("shared", "/accepted")
	b.await("data_plane_rejected", "shared", 0)
	s.last(b, 20)
	s.wantAlerts("other routes are accepted")

	first.close()
	b.await("connected_envoys", "shared", 0)
	s.last(b, 6)
	s.wantAlerts("the Envoy has disconnected", disconnectedAlert+" shared")
	b.setReplicas("shared", 0)
	b.await("connectors_wanted", "shared", 0)
	s.last(b, 10)
	s.wantAlerts("no connectors are desired")

	b.awaitValue("xds_certificate_expiry_timestamp_seconds", "envoy", func(expiry float64) bool { return expiry > 0 }) // updated once a minute
	s.now = s.now.Add(75 * 24 * time.Hour)                                                                             // 90 days
	s.last(b, 20)
	s.wantAlerts("two weeks after the renewal should have happened")
	s.now = s.now.Add(2 * 24 * time.Hour)
	s.last(b, 20)
	s.wantAlerts("the certificate ends in 13 days", certificateAlert+" envoy")
}

// last stores what the controller serves now as the scrapes in the next minutes.
func (s *prometheusServer) last(b *controllerBed, minutes int) {
	s.t.Helper()
	b.scrape()
	families := slices.Collect(func(yield func(*dto.MetricFamily) bool) {
		for name, family := range b.families {
			if strings.HasPrefix(name, "tunnel_gateway_") && !yield(family) {
				return
			}
		}
	})
	for range minutes {
		s.now = s.now.Add(interval)
		appender := s.db.Appender(s.t.Context())
		s.addFamilies(appender, releasePods[0].target(), families)
		if err := appender.Commit(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// wantAlerts compares the firing alerts about Envoys, with their Gateways or certificates.
func (s *prometheusServer) wantAlerts(situation string, want ...string) {
	s.t.Helper()
	var got []string
	for name, rule := range alerts(s.t) {
		if !slices.Contains([]string{disconnectedAlert, rejectedAlert, certificateAlert, "TunnelGatewayDataPlaneChangeSlow"}, name) || !s.fires(rule) {
			continue
		}
		for _, sample := range s.query(rule.Expr) {
			got = append(got, name+" "+sample.Metric.Get("gateway")+sample.Metric.Get("certificate"))
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		s.t.Errorf("%s: %q fire, want %q", situation, got, want)
	}
}
