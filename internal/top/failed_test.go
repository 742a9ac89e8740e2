package top

import "testing"

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
