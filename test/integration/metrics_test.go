package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// freeAddress returns a local address with a port that is currently free.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(listener.Close()).To(Succeed()) }()
	return listener.Addr().String()
}

// fetch returns the status code and body of the controller's response.
func fetch(address, path string) (int, string) {
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// scrape returns the metrics at the address, parsed as Prometheus does.
func scrape(address string) (map[string]*dto.MetricFamily, error) {
	status, body := fetch(address, "/metrics")
	if status != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", status, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(body))
}

// metricValue returns a function that reads a metric. The series has at least the given
// labels, each written as "name=value". The function returns -1 if there is no such
// series, and the sample count for a histogram.
func metricValue(address, name string, labels ...string) func() (float64, error) {
	return func() (float64, error) {
		families, err := scrape(address)
		for _, metric := range families[name].GetMetric() {
			var pairs []string
			for _, label := range metric.GetLabel() {
				pairs = append(pairs, label.GetName()+"="+label.GetValue())
			}
			if !slices.ContainsFunc(labels, func(label string) bool { return !slices.Contains(pairs, label) }) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount()), nil
			}
		}
		return -1, err
	}
}

var _ = Describe("the metrics endpoint", users, func() {
	It("exports a Gateway's metrics until the Gateway is deleted", func() {
		env := newEnvironment()
		address := freeAddress()
		env.start("--metrics-address="+address, "--drift-interval=10s")
		g, other := env.gateway("shared", "a.example.com"), env.gateway("other", "b.example.com")
		env.create(env.service("web"), g, other, env.route("web", "web", gatewayParent("shared")),
			env.listenerSet("late", "a.example.com"), env.listenerSet("team", "c.example.com"))
		shared := []string{"gateway_namespace=" + env.namespace, "gateway=shared"}
		sharedWith := func(labels ...string) []string { return append(slices.Clone(shared), labels...) }
		Eventually(metricValue(address, "tunnel_gateway_listeners", sharedWith("state=programmed")...)).Should(Equal(2.0))
		Eventually(metricValue(address, "tunnel_gateway_gateway_programmed", shared...)).Should(Equal(1.0))
		Expect(metricValue(address, "tunnel_gateway_listeners", sharedWith("state=conflicted")...)()).To(Equal(1.0))
		Expect(metricValue(address, "tunnel_gateway_listener_sets", sharedWith("state=programmed")...)()).To(Equal(1.0))
		Expect(metricValue(address, "tunnel_gateway_listener_sets", sharedWith("state=rejected")...)()).To(Equal(1.0))
		Expect(metricValue(address, "tunnel_gateway_routes", sharedWith("state=accepted")...)()).To(Equal(1.0))
		Expect(metricValue(address, "tunnel_gateway_rules", shared...)()).To(BeEquivalentTo(len(env.configuration("shared").Ingress)))
		Expect(metricValue(address, "tunnel_gateway_connectors_available", shared...)()).To(BeZero(), "no kubelet runs the pods")
		Expect(metricValue(address, "tunnel_gateway_connectors_wanted", shared...)()).To(BeNumerically(">", 0))

		By("counting calls and configuration writes")
		puts := env.cloudflare.Count(http.MethodPut, configurationPath)
		Expect(metricValue(address, "tunnel_gateway_provider_calls_total", "operation=write_configuration", "result=success")()).To(BeEquivalentTo(puts))
		Expect(metricValue(address, "tunnel_gateway_provider_call_duration_seconds", "operation=write_configuration")()).To(BeEquivalentTo(puts))
		Expect(metricValue(address, "tunnel_gateway_pushes_total", shared...)()).To(BeNumerically(">=", 1))
		Expect(metricValue(address, "tunnel_gateway_pushed_bytes_total", shared...)()).To(BeNumerically(">=", env.configuration("shared").Size()))
		Expect(metricValue(address, "tunnel_gateway_change_to_push_seconds")()).To(BeNumerically(">=", 2), "one sample for each Gateway")

		By("reverting an external change")
		Expect(metricValue(address, "tunnel_gateway_drift_repairs_total", shared...)()).To(BeZero())
		env.cloudflare.SetConfiguration(env.tunnel("shared"), externalConfiguration)
		Eventually(metricValue(address, "tunnel_gateway_drift_repairs_total", shared...)).Should(Equal(1.0))

		By("failing to write a configuration")
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Status: http.StatusInternalServerError, Times: 1000})
		update(g, func(g *gatewayv1.Gateway) {
			g.Spec.Listeners[0].Hostname = ptr.To(gatewayv1.Hostname("*.example.org"))
		})
		route := env.route("more", "web", gatewayParent("shared"))
		env.create(route)
		Eventually(metricValue(address, "tunnel_gateway_reconcile_errors_total", sharedWith("reason=CloudflareUnavailable")...)).Should(BeNumerically(">=", 1))
		Expect(metricValue(address, "tunnel_gateway_provider_calls_total", "operation=write_configuration", "result=unavailable")()).To(BeNumerically(">=", 1))

		By("exporting the documented metrics")
		Eventually(differencesFromDocumentation).WithArguments(address).Should(BeEmpty())
		env.cloudflare.ClearFaults()

		By("deleting a Gateway")
		env.delete(g)
		Eventually(env.isGone).WithArguments(g).Should(BeTrue())
		Eventually(fetchMetrics).WithArguments(address).ShouldNot(ContainSubstring(`gateway="shared"`))
		Expect(metricValue(address, "tunnel_gateway_gateway_programmed", "gateway=other")()).To(Equal(1.0))
		Expect(fetchMetrics(address)).NotTo(Or(ContainSubstring("example.com"), ContainSubstring(`"token"`)))
	})

	It("serves profiles only with --pprof, and never the command line", func() {
		env := newEnvironment()
		disabled, enabled := freeAddress(), freeAddress()
		env.startProcess("--metrics-address=" + disabled)
		env.startProcess("--metrics-address="+enabled, "--pprof")
		for _, address := range []string{disabled, enabled} {
			Eventually(func() int { status, _ := fetch(address, "/metrics"); return status }).Should(Equal(http.StatusOK))
		}
		for _, path := range []string{"", "heap", "goroutine?debug=1", "profile?seconds=1", "trace?seconds=0.1", "symbol", "allocs"} {
			status, body := fetch(enabled, "/debug/pprof/"+path)
			Expect(status).To(Equal(http.StatusOK), "%s: %s", path, body)
			status, _ = fetch(disabled, "/debug/pprof/"+path)
			Expect(status).To(Equal(http.StatusNotFound), path)
		}
		status, body := fetch(enabled, "/debug/pprof/cmdline")
		Expect(status).To(Equal(http.StatusNotFound))
		Expect(body).NotTo(ContainSubstring("controller-name"))
	})
})

func fetchMetrics(address string) string {
	_, body := fetch(address, "/metrics")
	return body
}

// differencesFromDocumentation returns the differences between the list from which the
// documentation is generated and the exported metrics.
func differencesFromDocumentation(g Gomega, address string) string {
	families, err := scrape(address)
	g.Expect(err).NotTo(HaveOccurred())
	exported := map[string]string{}
	for name, family := range families {
		if strings.HasPrefix(name, "tunnel_gateway_") {
			var labels []string
			for _, label := range family.GetMetric()[0].GetLabel() {
				labels = append(labels, label.GetName())
			}
			slices.Sort(labels)
			exported[name] = fmt.Sprint(strings.ToLower(family.GetType().String()), labels, family.GetHelp())
		}
	}
	defined := map[string]string{}
	for _, m := range metrics.All {
		labels := slices.Sorted(slices.Values(m.LabelNames()))
		defined[m.Name] = fmt.Sprint(m.Type, labels, m.Help)
	}
	for _, name := range []string{
		"tunnel_gateway_account_tunnels", "tunnel_gateway_orphaned_tunnels", // exported after the first inventory, one hour after the start
		"tunnel_gateway_gateway_missing_timestamp_seconds",      // exported only for a missing Gateway
		"tunnel_gateway_gateway_paused_since_timestamp_seconds", // exported only for a paused Gateway
		"tunnel_gateway_unwritten_statuses",                     // exported only if a status cannot be written
		// exported only with the data plane Envoy
		"tunnel_gateway_data_plane_ready", "tunnel_gateway_data_plane_rejected", "tunnel_gateway_data_plane_limit_exceeded", "tunnel_gateway_connected_envoys", "tunnel_gateway_xds_certificate_expiry_timestamp_seconds",
		"tunnel_gateway_xds_acknowledgement_seconds", "tunnel_gateway_envoy_uncounted_pairs",
		"tunnel_gateway_tunnel_data_plane_change_start_time_seconds", // exported only during a change
		// exported only for the zones that dns.zones lists
		"tunnel_gateway_dns_records", "tunnel_gateway_dns_changes_total", "tunnel_gateway_dns_zone_records", "tunnel_gateway_dns_zone_quota", "tunnel_gateway_dns_last_read_timestamp_seconds", "tunnel_gateway_dns_forbidden",
		// exported only for accounts whose applications are managed
		"tunnel_gateway_access_hostnames", "tunnel_gateway_access_changes_total", "tunnel_gateway_access_applications", "tunnel_gateway_access_account_applications",
		"tunnel_gateway_access_orphaned_applications", "tunnel_gateway_access_waiting_changes", "tunnel_gateway_access_last_read_timestamp_seconds", "tunnel_gateway_access_forbidden",
	} {
		g.Expect(defined).To(HaveKey(name))
		delete(defined, name)
	}
	return cmp.Diff(defined, exported)
}
