package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// checkAudit fails when a controller lacked a permission, or changed an object
// outside the namespaces of controllers other than a status or an event.
func checkAudit(t *testing.T, part, log, user string) {
	t.Helper()
	requests, err := cluster.ReadAudit(log, user)
	if err != nil || len(requests) == 0 {
		t.Errorf("part %q: the audit log has %d requests of %s: %v", part, len(requests), user, err)
	}
	refused, outside := map[string]bool{}, map[string]bool{} // each once
	for _, r := range requests {
		found := refused
		switch {
		case r.ChangesOutside(isOfController):
			found = outside
		case (r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized) && !r.Terminating:
		default:
			continue
		}
		r.Namespace, r.Name = "", ""
		found[r.String()] = true
	}
	for what := range refused {
		t.Errorf("part %q: the controller is not allowed to %s; charts/tunnel-gateway/templates/_rules.tpl lists its permissions", part, what)
	}
	for what := range outside {
		t.Errorf("part %q: the controller changes objects outside its namespace: %s", part, what)
	}
}

// isOfController reports whether the namespace is that of a world's controller.
func isOfController(namespace string) bool {
	return namespace == cluster.ControllerNamespace || strings.HasPrefix(namespace, "w-") && strings.HasSuffix(namespace, "-system")
}
