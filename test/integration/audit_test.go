package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// checkAudit fails if a controller lacked a permission. It also fails if a
// controller changed an object outside its namespace, except for a status or an
// event.
func checkAudit(t *testing.T, log, user string) {
	t.Helper()
	requests, err := cluster.ReadAudit(log, user)
	if err != nil || len(requests) == 0 {
		t.Errorf("the audit log contains %d requests of %s: %v", len(requests), user, err)
	}
	denied, outside := map[string]bool{}, map[string]bool{} // without duplicates
	for _, r := range requests {
		found := denied
		switch {
		case r.ChangesOutside(isControllerNamespace):
			found = outside
		case (r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized) && !r.Terminating:
		default:
			continue
		}
		r.Namespace, r.Name = "", ""
		found[r.String()] = true
	}
	for request := range denied {
		t.Errorf("the controller lacks the permission to %s; charts/tunnel-gateway/templates/_rules.tpl lists its permissions", request)
	}
	for request := range outside {
		t.Errorf("the controller changes objects outside its namespace: %s", request)
	}
}

func isControllerNamespace(namespace string) bool {
	return namespace == cluster.ControllerNamespace || strings.HasPrefix(namespace, environmentPrefix+"-") && strings.HasSuffix(namespace, "-system")
}
