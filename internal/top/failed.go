package top

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// failedStatuses are the gRPC statuses for which the server is responsible. The others can
// depend on the visitor: an unknown method (Unimplemented) is like 404, a limit
// (ResourceExhausted) like 429, and a conflict (Aborted) like 409.
var failedStatuses = []string{"Unknown", "DeadlineExceeded", "Internal", "Unavailable", "DataLoss"}

// failed reports whether requests with these labels failed, by the same definition as the
// alerts, the dashboard and the templates for canaries. The page on metrics has it.
func failed(labels map[string]string) bool {
	code, flags := labels[labelCode], strings.Split(labels[labelFlags], ",")
	switch {
	case code == "5xx", slices.Contains(failedStatuses, labels[labelGRPCStatus]):
		return true
	case code == "1xx": // a backend can end a WebSocket at any time, which has the flag UC
		return false
	case code == "other" && !slices.Contains(flags, "DC"): // unless the visitor left
		return true
	}
	return slices.ContainsFunc(flags, func(flag string) bool { return slices.Contains(envoy.FailureFlags, flag) })
}
