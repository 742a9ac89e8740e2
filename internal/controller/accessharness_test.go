package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	edgeaccess "github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// accessHarness is a harness whose GatewayClass manages the applications of the account. It
// runs the queues of Gateways and accounts.
type accessHarness struct {
	*harness
	database *edgeaccess.Database
	api      *fakeprovider.Access
	// apis are the APIs by API token; tokens are those with which one was opened.
	apis   map[string]provider.Access
	tokens []string
	// dueGateways and dueAccounts are the uptimes of the next reconciles.
	dueGateways map[state.Key]time.Duration
	dueAccounts map[accountKey]time.Duration
}

var defaultAccount = accountKey{fakeprovider.AccountID}

func newAccessHarness(t testing.TB) *accessHarness {
	t.Helper()
	return newAccessHarnessWith(t, func(*v1alpha1.TunnelConfigurationSpec) {})
}

// newAccessHarnessWith returns a harness whose class has changed settings. Its namespaces
// may use every hostname in example.com.
func newAccessHarnessWith(t testing.TB, change func(*v1alpha1.TunnelConfigurationSpec)) *accessHarness {
	t.Helper()
	h := &accessHarness{harness: newHarness(t), database: edgeaccess.New(edgeaccess.Options{}), apis: map[string]provider.Access{}}
	for id, name := range map[string]string{"id-employees": "employees", "id-ci": "ci"} {
		h.database.AddPolicy(fakeprovider.AccountID, edgeaccess.Policy{ID: id, Name: name, Decision: "allow", Reusable: true})
	}
	h.api = fakeprovider.NewAccess(h.database, fakeprovider.AccountID)
	h.apis["token"] = h.api
	h.openAccess = func(_, apiToken, accessToken string) (provider.Access, error) {
		token := apiToken
		if accessToken != "" {
			token = accessToken
		}
		h.tokens = append(h.tokens, token)
		return h.apis[token], nil
	}
	namespace := namespaceObject("infra")
	h.change("", "infra", namespace, func() {
		namespace.Annotations = map[string]string{hostnames.Annotation: "example.com, *.example.com"}
	})
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Hostnames = &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)}
		s.Access = &v1alpha1.AccessApplications{
			Applications: ptr.To(v1alpha1.ApplicationsManaged), TeamName: ptr.To("acme"),
			Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "id-employees"}, {Name: "ci", ID: "id-ci"}},
		}
		change(s)
	})
	h.restart()
	return h
}

// restart starts a new process, which first reconciles every Gateway.
func (h *accessHarness) restart() {
	h.harness.restart()
	h.dueGateways, h.dueAccounts = map[state.Key]time.Duration{h.key: 0}, map[accountKey]time.Duration{}
}

// changed tells the controller that the Gateways or objects that affect them have changed.
func (h *accessHarness) changed(names ...string) {
	for _, name := range names {
		h.dueGateways[state.GatewayKey("infra", name)] = h.uptime
	}
}

// changeClass tells the controller about a changed GatewayClass or TunnelConfiguration.
func (h *accessHarness) changeClass() {
	h.t.Helper()
	keys, err := h.applications.fromClass(h.t.Context(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.changed("shared")
	for _, key := range keys {
		h.dueAccounts[key] = h.uptime
	}
}

// setPolicies makes an AccessPolicy demand the policies for the Gateway's hostnames. Without
// policies, it is deleted.
func (h *accessHarness) setPolicies(names ...v1alpha1.PolicyName) {
	h.t.Helper()
	policy := &v1alpha1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "policy", CreationTimestamp: metav1.NewTime(startTime)}}
	if err := client.IgnoreNotFound(h.kube.Delete(h.t.Context(), policy)); err != nil {
		h.t.Fatal(err)
	}
	if len(names) > 0 {
		target := gatewayv1.LocalPolicyTargetReferenceWithSectionName{}
		target.Group, target.Kind, target.Name = gatewayv1.GroupName, "Gateway", "shared"
		policy.ResourceVersion = ""
		policy.Spec = v1alpha1.AccessPolicySpec{TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{target}, Policies: names}
		h.create(policy)
	}
	h.changed("shared")
}

// runFor processes both queues for the duration.
func (h *accessHarness) runFor(d time.Duration) {
	h.t.Helper()
	for end := h.uptime + d; ; {
		h.collect()
		next, found := h.next()
		if !found || next > end {
			h.advance(end - h.uptime)
			return
		}
		h.advance(max(next-h.uptime, 0))
		h.processDue()
	}
}

// collect adds the requeued keys to the queues.
func (h *accessHarness) collect() {
	for _, name := range h.requeued {
		h.dueGateways[state.GatewayKey("infra", name)] = h.uptime
	}
	h.requeued = nil
	for key := range h.queuedAccounts {
		if due, ok := h.dueAccounts[key]; !ok || due > h.uptime+executorDelay {
			h.dueAccounts[key] = h.uptime + executorDelay
		}
	}
	clear(h.queuedAccounts)
}

// next returns the uptime of the next reconcile.
func (h *accessHarness) next() (time.Duration, bool) {
	all := slices.Concat(slices.Collect(maps.Values(h.dueGateways)), slices.Collect(maps.Values(h.dueAccounts)))
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// processDue reconciles what is due.
func (h *accessHarness) processDue() {
	h.t.Helper()
	for _, key := range slices.Collect(maps.Keys(h.dueGateways)) {
		if h.dueGateways[key] > h.uptime {
			continue
		}
		delete(h.dueGateways, key)
		result, err := h.Reconcile(h.t.Context(), key)
		if err != nil {
			h.t.Fatal(err)
		}
		if result.RequeueAfter > 0 {
			h.dueGateways[key] = h.uptime + result.RequeueAfter
		}
	}
	for _, key := range slices.Collect(maps.Keys(h.dueAccounts)) {
		if h.dueAccounts[key] > h.uptime {
			continue
		}
		delete(h.dueAccounts, key)
		h.reconcileAccount(key)
	}
}

// reconcileAccount reconciles an account, as the queue does: an error is retried.
func (h *accessHarness) reconcileAccount(key accountKey) {
	h.t.Helper()
	switch result, err := h.applications.Reconcile(h.t.Context(), key); {
	case err != nil:
		h.t.Logf("%s: %v", h.uptime, err)
		h.dueAccounts[key] = h.uptime + time.Second
	case result.RequeueAfter > 0:
		h.dueAccounts[key] = h.uptime + result.RequeueAfter
	}
}

// wantApplications compares the account's applications, as "hostname policy…", sorted.
func (h *accessHarness) wantApplications(want ...string) {
	h.t.Helper()
	var got []string
	for _, a := range h.database.Applications(fakeprovider.AccountID) {
		var names []string
		for _, p := range a.Policies {
			names = append(names, p.Name)
		}
		got = append(got, strings.Join(append(a.Domains, names...), " "))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("applications differ (-want +got):\n%s", diff)
	}
}

// audTag returns the AUD tag of the hostname's application.
func (h *accessHarness) audTag(hostname string) string {
	h.t.Helper()
	for _, a := range h.database.Applications(fakeprovider.AccountID) {
		if slices.Contains(a.Domains, hostname) {
			return a.AUD
		}
	}
	h.t.Fatalf("no application for %s: %+v", hostname, h.database.Applications(fakeprovider.AccountID))
	return ""
}

// wantRule compares what the tunnel's rule for the hostname does: "open", "closed", or
// "protected" and the AUD tags that it demands. "none" means that there is no rule.
func (h *accessHarness) wantRule(hostname, want string) {
	h.t.Helper()
	configuration, _ := h.cloud.StoredConfiguration(h.tunnelID())
	got := "none"
	for _, rule := range configuration.Ingress {
		if rule.Hostname != hostname {
			continue
		}
		got = "open"
		if access := rule.OriginRequest.Access; access != nil && access.Required {
			got = strings.Join(append([]string{"protected", access.TeamName}, access.AUDTag...), " ")
		} else if rule.Service == "http_status:403" {
			got = "closed"
		}
	}
	if got != want {
		h.t.Errorf("the rule for %s is %s, want %s", hostname, got, want)
	}
}

// wantAccess compares the status and the reason of the Gateway's condition AccessReady, and
// checks its message.
func (h *accessHarness) wantAccess(want, text string) {
	h.t.Helper()
	got, message := "none", ""
	for _, c := range h.gateway().Status.Conditions {
		if c.Type == "tunnelgateway.dev/AccessReady" {
			got, message = string(c.Status)+" "+c.Reason, c.Message
		}
	}
	if got != want || !strings.Contains(message, text) {
		h.t.Errorf("AccessReady is %s: %s; want %s with %q", got, message, want, text)
	}
}
