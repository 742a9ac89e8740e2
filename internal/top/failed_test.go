package top

import (
	"os"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// TestQueriesDefineFailedRequestsAlike compares the lists in the queries with the ones here.
func TestQueriesDefineFailedRequestsAlike(t *testing.T) {
	for file, queries := range map[string]int{
		"charts/tunnel-gateway/files/traffic-alerts.yaml": 1, "charts/tunnel-gateway/files/traffic-dashboard.json": 3,
		"config/samples/canary/20-metric-templates.yaml": 1, "config/samples/canary/30-analysis-template.yaml": 1,
	} {
		content, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(content), `\"`, `"`)
		flags := `code!="1xx", flags=~"(.+,)?(` + strings.Join(envoy.FailureFlags, "|") + `)(,.+)?"}`
		statuses := `, grpc_status=~"` + strings.Join(failedStatuses, "|") + `"}`
		if got := strings.Count(text, flags); got != queries {
			t.Errorf("%s: %d queries for all flags, want %d", file, got, queries)
		}
		if strings.Count(text, statuses) < queries {
			t.Errorf("%s: a query lacks a gRPC status", file)
		}
	}
}

func TestFailedRequests(t *testing.T) {
	for _, test := range []struct {
		code, flags, status string
		want                bool
	}{
		{"2xx", "-", "", false},
		{"4xx", "NR", "", false},
		{"5xx", "-", "", true},
		{"5xx", "DC", "", true},
		{"other", "-", "", true},
		{"other", "DC", "", false},
		{"2xx", "DC", "", false},
		{"2xx", "UPE", "", true},
		{"2xx", "UC", "", true},
		{"2xx", "URX,UF", "", true},
		{"1xx", "UC", "", false}, // a WebSocket that the backend ends
		{"1xx", "DC", "", false},
		{"2xx", "-", "OK", false},
		{"2xx", "-", "Unavailable", true},
		{"2xx", "UH", "Unavailable", true},
		{"2xx", "-", "Internal", true},
		{"2xx", "-", "Unimplemented", false},
		{"2xx", "-", "ResourceExhausted", false},
		{"2xx", "-", "Aborted", false},
		{"2xx", "-", "NotFound", false},
		{"2xx", "-", "other", false},
	} {
		labels := map[string]string{labelCode: test.code, labelFlags: test.flags}
		if test.status != "" {
			labels[labelGRPCStatus] = test.status
		}
		if got := failed(labels); got != test.want {
			t.Errorf("failed(%v) = %v, want %v", labels, got, test.want)
		}
	}
	if failed(map[string]string{labelCode: "2xx"}) { // Envoy's totals have no flags
		t.Error("a response with 2xx failed")
	}
}
