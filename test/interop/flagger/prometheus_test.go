package flagger

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// prometheusConfiguration scrapes the Envoys in a file. The real PodMonitor scrapes less
// often.
const prometheusConfiguration = `
global: {scrape_interval: 1s}
scrape_configs:
- job_name: connectors
  metrics_path: /stats/prometheus
  file_sd_configs: [{files: [targets.json]}]
`

// startPrometheus starts Prometheus, and waits until it has scraped the Gateway's
// connectors.
func (b *bed) startPrometheus(t *testing.T) {
	t.Helper()
	binary, err := binaries.Prometheus(t.Context(), os.Stderr)
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(prometheusConfiguration), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "targets.json"), b.targets(t), 0o600))
	address := freeAddress(t)
	command := exec.Command(binary, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address) // #nosec G204 -- the test has built it
	command.Stdout = logOf(t, "Prometheus")
	command.Stderr = command.Stdout
	process, err := controllerproc.Run(command)
	must(t, err)
	stopAtEnd(t, process.Stop)
	b.prometheus = "http://" + address
	eventually(t, "Prometheus has scraped the connectors", func() (bool, string) {
		values, err := b.query(t.Context(), "min(up)")
		return err == nil && len(values) == 1 && values[0] == 1, fmt.Sprint(values, err)
	})
}

// targets returns the Envoys in the connectors of Gateway platform/envoy, with the labels
// that the chart's PodMonitor gives them.
func (b *bed) targets(t *testing.T) []byte {
	t.Helper()
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	var groups []group
	eventually(t, "a connector is ready", func() (bool, string) {
		groups = nil
		pods := &corev1.PodList{}
		if err := b.kube.List(t.Context(), pods, client.MatchingLabels{connector.TunnelLabel: "platform.envoy"}); err != nil {
			return false, err.Error()
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !isReady(pod) {
				return false, pod.Name
			}
			groups = append(groups, group{[]string{net.JoinHostPort(pod.Status.PodIP, "2001")}, map[string]string{
				"namespace": pod.Namespace, "pod": pod.Name,
				"gateway_namespace": pod.Labels[connector.GatewayNamespaceLabel], "gateway_name": pod.Labels[gatewayv1.GatewayNameLabelKey],
			}})
		}
		return len(groups) > 0, "no pods"
	})
	text, err := json.Marshal(groups)
	must(t, err)
	return text
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close() //nolint:errcheck // it accepts no connection
	return listener.Addr().String()
}

// query evaluates a PromQL expression now and returns the values.
func (b *bed) query(ctx context.Context, expression string) ([]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.prometheus+"/api/v1/query?query="+url.QueryEscape(expression), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("query %s: %s", expression, answer.Error)
	}
	values := []float64{}
	for _, sample := range answer.Data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(sample.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// rates matches a rate of a counter.
var rates = regexp.MustCompile(`(?s)rate\((.+?)\[\w+\]\)`)

// totals returns the expression with counters instead of their rates, so that its value
// follows exactly from the number of requests.
func totals(t *testing.T, expression string) string {
	t.Helper()
	replaced := rates.ReplaceAllString(expression, "($1)")
	if replaced == expression {
		t.Fatalf("the expression has no rate: %s", expression)
	}
	return replaced
}

// expectValue waits until the expression has the value, and no other one.
func (b *bed) expectValue(t *testing.T, expression string, want float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %g", expression, want), func() (bool, string) {
		got, err := b.query(t.Context(), expression)
		return err == nil && len(got) == 1 && math.Abs(got[0]-want) < 1e-6, fmt.Sprint(got, err)
	})
}

// awaitScrape waits until Prometheus has scraped what the Envoys have counted so far.
func (b *bed) awaitScrape(t *testing.T) {
	t.Helper()
	now := float64(time.Now().UnixMilli()) / 1000
	eventually(t, "Prometheus has scraped the connectors again", func() (bool, string) {
		last, err := b.query(t.Context(), "min(timestamp(up))")
		return err == nil && len(last) == 1 && last[0] > now, fmt.Sprint(last, err)
	})
}
