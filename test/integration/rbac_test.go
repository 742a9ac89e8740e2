package integration

import (
	"net/http"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// checkNoneRefused fails when a controller lacked a permission.
func checkNoneRefused(t *testing.T, part, log, user string) {
	t.Helper()
	requests, err := cluster.ReadAudit(log, user)
	if err != nil || len(requests) == 0 {
		t.Errorf("part %q: the audit log has %d requests of %s: %v", part, len(requests), user, err)
	}
	refused := map[string]bool{} // each once
	for _, r := range requests {
		if (r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized) && !r.Terminating {
			r.Namespace, r.Name = "", ""
			refused[r.String()] = true
		}
	}
	for what := range refused {
		t.Errorf("part %q: the controller is not allowed to %s; charts/tunnel-gateway/templates/_rules.tpl says what it is", part, what)
	}
}
