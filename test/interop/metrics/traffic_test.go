package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// visit is a request that visitors send, and how Envoy should count it.
type visit struct {
	host, path, body string
	grpc             bool
	times            int // in each minute
	// labels are the expected values of kind, namespace, name, hostname and backend.
	labels              [5]string
	code, flags, status string
	retries             int
	// received is the length of the response's body.
	received int
}

const (
	kind = iota
	namespace
	route
	hostname
	backend
)

// visits are the requests in each minute. The requests to /visitor end before their
// responses.
func visits() []visit {
	web := func(host, backend string) [5]string { return [5]string{"HTTPRoute", "shop", "web", host, backend} }
	failure := func(backend string) [5]string {
		return [5]string{"HTTPRoute", "shop", "failures", "failures.example.com", backend}
	}
	return []visit{
		{host: "shop.example.com", path: "/", times: 6, labels: web("shop.example.com", "shop/web:80"), code: "2xx"},
		{host: "www.example.com", path: "/", times: 3, labels: web("www.example.com", "shop/web:80"), code: "2xx"},
		{host: "shop.example.com", path: "/cart", times: 2, labels: web("shop.example.com", "shop/cart:80"), code: "2xx"},
		{host: "shop.example.com", path: "/old", times: 1, labels: web("shop.example.com", ""), code: "3xx"},
		{host: "unknown.example.org", path: "/", times: 2, labels: [5]string{"other"}, code: "4xx", flags: "NR"},
		{host: "failures.example.com", path: "/fails", times: 3, labels: failure("shop/fails:80"), code: "5xx"},
		{host: "failures.example.com", path: "/resets", times: 2, labels: failure("shop/resets:80"), code: "5xx", flags: "UC"},
		{host: "failures.example.com", path: "/breaks", times: 1, labels: failure("shop/breaks:80"), code: "2xx", flags: "UPE"},
		{host: "shop.example.com", path: "/socket", times: 1, labels: web("shop.example.com", "shop/socket:80"), code: "1xx", flags: "UC"},
		{host: "failures.example.com", path: "/refuses", times: 2, labels: failure("shop/refuses:80"), code: "5xx", flags: "URX,UF", retries: 1},
		{host: "failures.example.com", path: "/timeout", times: 2, labels: failure("shop/waits:80"), code: "5xx", flags: "UT"},
		{host: "failures.example.com", path: "/visitor", times: 1, labels: failure("shop/waits:80"), code: "other", flags: "DC"},
		{host: "failures.example.com", path: "/without-pods", times: 3, labels: failure("shop/without-pods:80"), code: "5xx", flags: "UH"},
		{host: "failures.example.com", path: "/missing", times: 2, labels: failure(""), code: "5xx"},
		{host: "failures.example.com", path: "/partly", times: 1, labels: failure(""), code: "5xx", flags: "NC"},
		{host: "rare.example.com", path: "/", times: 1, labels: [5]string{"HTTPRoute", "shop", "rare", "rare.example.com", "shop/fails:80"}, code: "5xx"},
		{host: "blog.example.com", path: "/", body: strings.Repeat("a", 100), times: 4, labels: [5]string{"HTTPRoute", "blog", "web", "blog.example.com", "blog/web:80"}, code: "2xx"},
		{host: "blog.example.com", path: "/stream", times: 1, labels: [5]string{"HTTPRoute", "blog", "web", "blog.example.com", "blog/stream:80"}, code: "5xx", flags: "UO"},
		{host: "calls.example.com", path: "/shop.Cart/Get", grpc: true, times: 5, labels: [5]string{"GRPCRoute", "blog", "calls", "calls.example.com", "blog/calls:80"}, code: "2xx", status: "Unavailable"},
		{host: "calls.example.com", path: "/shop.Cart/Missing", grpc: true, times: 2, labels: [5]string{"GRPCRoute", "blog", "calls", "calls.example.com", "blog/calls:80"}, code: "2xx", status: "Unimplemented"},
	}
}

// streams is how many streams are open, which is the limit of the circuit breaker.
const streams = 2

// traffic is an Envoy with visitors, whose metrics a Prometheus server scrapes.
type traffic struct {
	*envoyBed
	*prometheusServer
	visits  []visit
	byRoute bool
	// ended counts the requests that have ended, and left the ones whose visitors or
	// backends left.
	ended, left int
	// refuses reports whether the Envoy refuses series, and refused counts them.
	refuses bool
	refused float64
}

// startTraffic starts an Envoy and opens the streams.
func startTraffic(t *testing.T, by ...v1alpha1.MetricsDimension) *traffic {
	t.Helper()
	s := &traffic{envoyBed: startEnvoy(t, by...), prometheusServer: newServer(t), visits: visits(), byRoute: !slices.Contains(by, v1alpha1.MetricsByGateway)}
	for i := range s.visits {
		if v := &s.visits[i]; !slices.Contains(by, v1alpha1.MetricsByBackend) {
			v.labels[backend] = ""
		}
	}
	for range streams {
		response := s.send(t.Context(), &visit{host: "blog.example.com", path: "/stream"})
		t.Cleanup(func() { must(t, response.Body.Close()) })
		<-s.arrived
	}
	return s
}

// run sends the visits in each minute, and then scrapes Envoy.
func (s *traffic) run(minutes int) {
	s.envoyBed.t.Helper()
	for range minutes {
		for i := range s.visits {
			s.visit(&s.visits[i])
		}
		families := append(s.refuseSeries(s.await()), s.droppedLines())
		s.now = s.now.Add(interval)
		appender := s.db.Appender(s.envoyBed.t.Context())
		s.addFamilies(appender, map[string]string{
			"namespace": "system", "pod": "connector-0", "job": "system/tunnel-gateway",
			"gateway_namespace": sharedGateway.Namespace, "gateway_name": sharedGateway.Name,
		}, families)
		must(s.envoyBed.t, appender.Commit())
	}
}

// visit sends the requests one after the other, and records the length of the responses.
func (s *traffic) visit(v *visit) {
	t := s.envoyBed.t
	t.Helper()
	for range v.times {
		if s.ended++; v.flags == "DC" {
			s.left++
			s.leave(v)
			continue
		}
		response := s.send(t.Context(), v)
		content, err := io.ReadAll(response.Body)
		if !v.broken() || !errors.Is(err, io.ErrUnexpectedEOF) {
			must(t, err)
		}
		must(t, response.Body.Close())
		if got := fmt.Sprintf("%dxx", response.StatusCode/100); got != v.code {
			t.Fatalf("%s%s: the status is %d, want %s", v.host, v.path, response.StatusCode, v.code)
		}
		if v.broken() {
			s.left++
		}
		v.received = len(content)
		if v.flags == "UT" {
			<-s.arrived
		}
	}
}

// leave sends a request and cancels it when the backend has got it.
func (s *traffic) leave(v *visit) {
	ctx, cancel := context.WithCancel(s.envoyBed.t.Context())
	go func() {
		<-s.arrived
		cancel()
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.host+v.path, nil)
	must(s.envoyBed.t, err)
	if response, err := s.visitors.Do(request); err == nil {
		_ = response.Body.Close()
		s.envoyBed.t.Fatal("the request ended before its visitor left")
	}
}

func (s *traffic) send(ctx context.Context, v *visit) *http.Response {
	t := s.envoyBed.t
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.host+v.path, strings.NewReader(v.body))
	must(t, err)
	if v.code == "1xx" {
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", "websocket")
	}
	if v.grpc {
		request.Header.Set("Content-Type", "application/grpc")
	}
	response, err := s.visitors.Do(request)
	must(t, err)
	return response
}

// await returns a scrape in which Envoy has counted exactly the requests that have ended.
func (s *traffic) await() []*dto.MetricFamily {
	t := s.envoyBed.t
	t.Helper()
	counted := map[string]float64{
		"envoy_http_open_downstream_rq_total": float64(s.ended + streams), "envoy_http_open_downstream_rq_active": streams,
		"envoy_http_open_downstream_rq_time": float64(s.ended - s.left),
	}
	if s.byRoute {
		counted["envoy_tunnel_gateway_requests_total"] = float64(s.ended)
		counted["envoy_tunnel_gateway_request_duration_milliseconds"] = float64(s.ended)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		families := s.envoyBed.scrape()
		got := map[string]float64{}
		for name := range counted {
			for _, metric := range families[name].GetMetric() {
				got[name] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
		if maps.Equal(got, counted) {
			return slices.Collect(maps.Values(families))
		}
		if time.Now().After(deadline) {
			t.Fatalf("Envoy has counted %v, want %v", got, counted)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // between two looks at Envoy's counts
	}
}

// droppedLines is a metric that this Envoy does not have, because Envoy gets the limit on
// the lines of its access log by xDS only. The tests of package xds check its name. Here,
// every request drops a line.
func (s *traffic) droppedLines() *dto.MetricFamily {
	return &dto.MetricFamily{
		Name:   proto.String("envoy_access_log_process_ratelimit_denied"),
		Metric: []*dto.Metric{{Counter: &dto.Counter{Value: proto.Float64(float64(s.ended))}}},
	}
}

// refuseSeries adds a refused series in each minute, which this Envoy has too few routes for. A
// test of package xds makes Envoy refuse series.
func (s *traffic) refuseSeries(families []*dto.MetricFamily) []*dto.MetricFamily {
	t := s.envoyBed.t
	t.Helper()
	if !s.byRoute {
		return families // without limits
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "envoy_server_stats_overflow_counter" })
	if i < 0 {
		t.Fatal("Envoy does not count refused series")
	}
	if s.refuses {
		s.refused++
	}
	families[i].Metric[0].Counter.Value = proto.Float64(s.refused)
	return families
}

// sum returns the sums of the values in a minute, by the values of labels.
func (s *traffic) sum(value func(visit) int, by ...int) map[string]float64 {
	sums := map[string]float64{}
	for _, v := range s.visits {
		var key []string
		for _, label := range by {
			if v.labels[label] != "" {
				key = append(key, v.labels[label])
			}
		}
		sums[strings.Join(key, " ")] += float64(value(v) * v.times)
	}
	return sums
}
