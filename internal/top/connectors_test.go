package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// connectorPod returns a running connector with an Envoy for the Gateway.
func connectorPod(name, gateway string) corev1.Pod {
	namespace, gatewayName, _ := strings.Cut(gateway, "/")
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "tunnel-gateway", UID: types.UID(name), Labels: map[string]string{
			"app.kubernetes.io/name": "cloudflared", "app.kubernetes.io/managed-by": "tunnel-gateway", "tunnelgateway.dev/tunnel": namespace + "." + gatewayName,
			"tunnelgateway.dev/gateway-namespace": namespace, "gateway.networking.k8s.io/gateway-name": gatewayName,
		}},
		Spec:   corev1.PodSpec{InitContainers: []corev1.Container{{Name: "envoy"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// connectorsOf returns the Gateway's connectors, from an API server with the pods. Each pod's
// metrics come from its Envoy.
func connectorsOf(t *testing.T, gateway types.NamespacedName, envoys map[string]*testEnvoy, pods ...corev1.Pod) *Connectors {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		if err != nil || r.URL.Path != "/api/v1/namespaces/tunnel-gateway/pods" {
			http.Error(w, "unexpected request", http.StatusBadRequest)
			return
		}
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, pod := range pods {
			if selector.Matches(labels.Set(pod.Labels)) {
				list.Items = append(list.Items, pod)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	c, err := NewConnectors(&rest.Config{Host: server.URL}, "tunnel-gateway", gateway)
	if err != nil {
		t.Fatal(err)
	}
	c.get = func(ctx context.Context, pod *corev1.Pod, port int, path string) (*http.Response, error) {
		e := envoys[pod.Name]
		if port != 2001 {
			return nil, fmt.Errorf("unexpected port %d", port)
		}
		if e == nil {
			return nil, errors.New("the pod is unreachable")
		}
		return e.get(ctx, path)
	}
	return c
}

func read(t *testing.T, c *Connectors) Reading {
	t.Helper()
	reading, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reading
}

// requests returns how many requests each row has, and how many errors.
func requests(m *Measurement) map[string]string {
	counts := map[string]string{}
	for _, row := range m.Rows {
		text := fmt.Sprintf("%.3f", row.Requests)
		if row.ErrorRatio != nil && *row.ErrorRatio > 0 {
			text += fmt.Sprintf(", %.3f errors", *row.ErrorRatio*row.Requests)
		}
		counts[strings.TrimSpace(row.Gateway+" "+row.Name)] = text
	}
	return counts
}

// readUntil reads until Envoys have counted the requests since before: they count a request
// after the response, and its duration later.
func readUntil(t *testing.T, c *Connectors, before Reading, count float64) Reading {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		after := read(t, c)
		m := measurement{by: ByRoute, rows: map[key]*sums{}}
		for uid, r := range after.connectors {
			m.add(r.gateway, before.connectors[uid].scrape, r.scrape)
		}
		total, durations := 0.0, 0.0
		for _, row := range m.rows {
			total += row.requests
			for _, n := range row.buckets {
				durations = max(durations, n)
			}
		}
		if total == count && durations > 0 {
			return after
		}
		if time.Now().After(deadline) {
			t.Fatalf("Envoy has counted %v requests, want %v", total, count)
		}
	}
}

func TestRequestsOfARealEnvoyAreCountedExactly(t *testing.T) {
	e := startEnvoy(t)
	c := connectorsOf(t, types.NamespacedName{}, map[string]*testEnvoy{"a": e}, connectorPod("a", "infra/shared"))
	e.send(t, 4, "shop.example.com", "/") // before the first reading
	before := readUntil(t, c, Reading{}, 4)
	e.send(t, 5, "shop.example.com", "/")
	e.send(t, 2, "shop.example.com", "/error")
	e.send(t, 3, "shop2.example.com", "/grpc?status=14")
	e.send(t, 1, "shop2.example.com", "/grpc?status=12")
	e.send(t, 4, "blog.example.com", "/missing")
	e.send(t, 2, "blog.example.com", "/breaks")
	after := readUntil(t, c, before, 17)

	for by, want := range map[By]map[string]string{
		ByRoute:     {"infra/shared HTTPRoute shop/web": "11.000, 5.000 errors", "infra/shared HTTPRoute blog/blog": "6.000, 2.000 errors"},
		ByBackend:   {"infra/shared shop/web:80": "7.000, 2.000 errors", "infra/shared blog/blog:80": "10.000, 5.000 errors"},
		ByHostname:  {"infra/shared shop.example.com": "7.000, 2.000 errors", "infra/shared shop2.example.com": "4.000, 3.000 errors", "infra/shared blog.example.com": "6.000, 2.000 errors"},
		ByNamespace: {"infra/shared shop": "11.000, 5.000 errors", "infra/shared blog": "6.000, 2.000 errors"},
		// Without metrics by route, Envoy counts neither gRPC statuses nor response flags.
		ByGateway: {"infra/shared": "17.000, 2.000 errors"},
	} {
		m := Compare(before, after, Options{By: by})
		if diff := cmp.Diff(want, requests(m)); diff != "" || m.By != by || len(m.Problems) > 0 || m.Connectors != 1 {
			t.Errorf("by %s: %+v, rows differ (-want +got):\n%s", by, m, diff)
		}
		if m.Rows[0].P50 == nil || m.Rows[0].P99 == nil {
			t.Errorf("by %s: the first row has no latencies", by)
		}
	}
	m := Compare(before, after, Options{By: ByHostname, Namespace: "blog"})
	if diff := cmp.Diff(map[string]string{"infra/shared blog.example.com": "6.000, 2.000 errors"}, requests(m)); diff != "" {
		t.Errorf("rows for a namespace differ (-want +got):\n%s", diff)
	}
}

func TestARestartedEnvoyCountsFromZero(t *testing.T) {
	e := startEnvoy(t)
	envoys := map[string]*testEnvoy{"a": e}
	c := connectorsOf(t, types.NamespacedName{}, envoys, connectorPod("a", "infra/shared"))
	e.send(t, 9, "shop.example.com", "/")
	before := readUntil(t, c, Reading{}, 9)
	e.stop()
	envoys["a"] = startEnvoy(t)
	envoys["a"].send(t, 3, "shop.example.com", "/error")
	after := readUntil(t, c, Reading{}, 3)
	m := Compare(before, after, Options{By: ByRoute})
	if diff := cmp.Diff(map[string]string{"infra/shared HTTPRoute shop/web": "3.000, 3.000 errors"}, requests(m)); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
	if sum := m.Rows[0].P99; sum == nil {
		t.Error("the row has no latencies")
	}
}

func TestConnectorsOfAGatewayAreAddedUp(t *testing.T) {
	one, two := startEnvoy(t), startEnvoy(t)
	envoys := map[string]*testEnvoy{"a": one, "b": two, "c": two}
	pods := []corev1.Pod{connectorPod("a", "infra/shared"), connectorPod("b", "infra/shared"), connectorPod("c", "other/other"), connectorPod("gone", "infra/shared")}
	gateway := types.NamespacedName{Namespace: "infra", Name: "shared"}
	ofOne, ofAll := connectorsOf(t, gateway, envoys, pods...), connectorsOf(t, types.NamespacedName{}, envoys, pods...)
	before, beforeAll := read(t, ofOne), read(t, ofAll)
	one.send(t, 5, "shop.example.com", "/")
	two.send(t, 2, "shop.example.com", "/error")
	after := readUntil(t, ofOne, before, 7)
	afterAll := readUntil(t, ofAll, beforeAll, 9)

	m := Compare(before, after, Options{By: ByRoute})
	problems := []string{"Not counted: pod gone: the pod is unreachable"}
	if len(m.Rows) != 1 || m.Rows[0].Gateway != "infra/shared" || m.Connectors != 2 || !cmp.Equal(m.Problems, problems) {
		t.Errorf("got %+v, want one row for the Gateway and the problem", m)
	}
	rows := Compare(beforeAll, afterAll, Options{By: ByRoute}).Rows
	if len(rows) != 2 || rows[0].Gateway != "infra/shared" || rows[1].Gateway != "other/other" || *rows[1].ErrorRatio != 1 {
		t.Errorf("got %+v, want a row for each Gateway", rows)
	}
}

func TestAConnectorIsCountedFromItsSecondReadingOn(t *testing.T) {
	e := startEnvoy(t)
	e.send(t, 5, "shop.example.com", "/")
	c := connectorsOf(t, types.NamespacedName{}, map[string]*testEnvoy{"a": e}, connectorPod("a", "infra/shared"))
	m := Compare(Reading{}, readUntil(t, c, Reading{}, 5), Options{By: ByRoute})
	if m.Connectors != 0 || len(m.Rows) != 0 {
		t.Errorf("got %+v, want no rows", m)
	}
}

func TestErrorsSayWhatToChange(t *testing.T) {
	withoutEnvoy, pending := connectorPod("a", "infra/shared"), connectorPod("b", "infra/shared")
	withoutEnvoy.Spec.InitContainers = nil
	pending.Status.Phase = corev1.PodPending
	gateway := types.NamespacedName{Namespace: "infra", Name: "shared"}
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no connectors":        {nil, "no connector for Gateway infra/shared found in namespace tunnel-gateway; if the controller runs in another namespace, set --controller-namespace"},
		"another Gateway":      {[]corev1.Pod{connectorPod("a", "infra/other")}, "no connector for Gateway infra/shared found in namespace"},
		"ingress rules":        {[]corev1.Pod{withoutEnvoy}, "no connector for Gateway infra/shared has an Envoy: the data plane is IngressRules"},
		"pending pods":         {[]corev1.Pod{pending}, "no connector for Gateway infra/shared runs; 1 in namespace tunnel-gateway"},
		"an unreachable pod":   {[]corev1.Pod{connectorPod("a", "infra/shared")}, "read the metrics: pod a: the pod is unreachable"},
		"two unreachable pods": {[]corev1.Pod{connectorPod("a", "infra/shared"), connectorPod("b", "infra/shared")}, "read the metrics from 2 connectors: pod a: the pod is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connectorsOf(t, gateway, nil, test.pods...).Read(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}

func TestMetricsOnTheLoopbackAddressAreExplained(t *testing.T) {
	c := connectorsOf(t, types.NamespacedName{}, nil, connectorPod("a", "infra/shared"))
	c.get = func(context.Context, *corev1.Pod, int, string) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		recorder.WriteHeader(http.StatusNotFound)
		return recorder.Result(), nil
	}
	if _, err := c.Read(t.Context()); !errors.Is(err, errLoopback) {
		t.Errorf("error = %v, want %v", err, errLoopback)
	}
}
