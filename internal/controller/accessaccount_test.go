package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

const applicationOfShared = "a.example.com employees"

func (h *accessHarness) protected(hostname string) string {
	return "protected acme " + h.audTag(hostname)
}

func TestHostnameGetsAnApplication(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	h.wantApplications(applicationOfShared)
	h.wantRule("a.example.com", h.protected("a.example.com"))
	h.wantAccess("True Protected", "")
	if got := h.tunnelObject().Status.Access; got == nil || got.Hostnames["Protected"] != 1 {
		t.Errorf("the Tunnel reports %+v, want one protected hostname", got)
	}
	h.wantMetrics(map[string]float64{
		"access_hostnames Protected": 1, "access_applications": 1, "access_account_applications": 1, "access_changes_total create success": 1, "access_forbidden": 0,
	})
}

func TestNoCallIsMadeWithoutManagedApplications(t *testing.T) {
	h := newAccessHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Access = nil })
	h.restart()
	h.runFor(time.Hour)
	if len(h.tokens) > 0 || len(h.api.Calls()) > 0 {
		t.Errorf("tokens %v were used for the calls %v, want none", h.tokens, h.api.Calls())
	}
	h.wantRule("a.example.com", "open")
}

// A token without the permission is no problem while nothing is demanded.
func TestOneListIsMadeWithoutDemands(t *testing.T) {
	h := newAccessHarness(t)
	h.api.Restrict()
	h.runFor(5 * time.Minute)
	if calls := h.api.Calls(); len(calls) != 1 || calls[0].Op != fakeprovider.OpApplications {
		t.Errorf("the calls are %v, want one list", calls)
	}
	h.wantAccess("none", "")
	h.wantMetrics(map[string]float64{"access_forbidden": 0})
}

func TestProtectionEndsAfterTheOpeningDelay(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	protected := h.protected("a.example.com")
	h.setPolicies()
	h.runFor(25 * time.Second)
	h.wantRule("a.example.com", protected)
	h.wantApplications(applicationOfShared)
	// The rule ends before the application.
	deleted := false
	for range 60 {
		h.runFor(time.Second)
		if len(h.database.Applications(fakeprovider.AccountID)) == 0 && !deleted {
			deleted = true
			h.wantRule("a.example.com", "open")
		}
	}
	h.wantApplications()
	h.wantAccess("none", "")
}

func TestDeletedAndCreatedPolicyEndsNoProtection(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	protected := h.protected("a.example.com")
	writes := []fakeprovider.Op{fakeprovider.OpCreateApplication, fakeprovider.OpDeleteApplication, fakeprovider.OpUpdateApplication}
	before := len(h.api.Calls(writes...))
	h.setPolicies()
	for range 20 {
		h.runFor(time.Second)
		h.wantRule("a.example.com", protected)
	}
	h.setPolicies("employees")
	h.runFor(10 * time.Minute)
	h.wantRule("a.example.com", protected)
	if calls := h.api.Calls(writes...)[before:]; len(calls) > 0 {
		t.Errorf("the application was changed: %v", calls)
	}
}

// While the applications cannot be read, rules that demand a token stay, also after a restart.
func TestOutageEndsNoProtection(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	protected := h.protected("a.example.com")
	outage := slices.Repeat([]error{&provider.UnavailableError{Err: fmt.Errorf("no response")}}, 1000)
	h.api.Fail(fakeprovider.OpApplications, outage...)
	h.restart()
	for range 60 {
		h.runFor(time.Minute)
		h.wantRule("a.example.com", protected)
	}
	h.wantApplications(applicationOfShared)
}

// A hostname that the controller served open stays open for a while if its application cannot
// be created. A hostname that is new to the table is closed at once.
func TestOpenHostnameClosesWithoutAnApplication(t *testing.T) {
	h := newAccessHarness(t)
	h.runFor(time.Minute)
	h.wantRule("a.example.com", "open")
	outage := slices.Repeat([]error{&provider.UnavailableError{Err: fmt.Errorf("no response")}}, 1000)
	h.api.Fail(fakeprovider.OpCreateApplication, outage...)
	h.setPolicies("employees")
	h.runFor(3 * time.Minute)
	h.wantRule("a.example.com", "open")
	h.wantAccess("False Pending", "a.example.com")
	h.runFor(2 * time.Minute)
	h.wantRule("a.example.com", "closed")
	h.setHostname("b.example.com")
	h.changed("shared")
	h.runFor(30 * time.Second)
	h.wantRule("b.example.com", "closed")
}

func TestMissingPermissionClosesOnlyDemandedHostnames(t *testing.T) {
	h := newAccessHarness(t)
	h.changeGateway(func(g *gatewayv1.Gateway) {
		second := g.Spec.Listeners[0]
		second.Name, second.Hostname = "open", new(gatewayv1.Hostname("o.example.com"))
		g.Spec.Listeners = append(g.Spec.Listeners, second)
	})
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.ListenerConfigurations = []v1alpha1.ListenerConfiguration{{
			Hostname: "a.example.com", Access: &v1alpha1.Access{Required: true, Policies: []v1alpha1.PolicyName{"employees"}},
		}}
	})
	h.api.Restrict("Access: Apps and Policies Read")
	h.restart()
	h.runFor(time.Minute)
	h.wantRule("a.example.com", "closed")
	h.wantRule("o.example.com", "open")
	h.wantAccess("False Forbidden", "a.example.com")
	h.wantMetrics(map[string]float64{"access_forbidden": 1, "access_hostnames Forbidden": 1})
}

func TestTokenForAccessIsReplaced(t *testing.T) {
	h := newAccessHarnessWith(t, func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Access.APIToken = &v1alpha1.SecretKeyReference{Name: "access-token"}
	})
	h.apis["first"] = h.api
	h.setPolicies("employees")
	h.runFor(time.Minute)
	h.wantApplications()
	if len(h.tokens) != 0 {
		t.Errorf("the tokens %v were used, although the Secret does not exist", h.tokens)
	}
	secret := secretWith("access-token", "token", []byte("first\n"))
	h.create(secret)
	keys, err := h.applications.fromSecret(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta})
	if err != nil || !slices.Equal(keys, []accountKey{defaultAccount}) {
		t.Fatalf("the Secret concerns the accounts %v: %v", keys, err)
	}
	h.dueAccounts[defaultAccount] = h.uptime
	h.runFor(time.Minute)
	h.wantApplications(applicationOfShared)
	h.wantRule("a.example.com", h.protected("a.example.com"))
}

func TestDisabledApplicationsChangeNothing(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	protected := h.protected("a.example.com")
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Access.Applications = new(v1alpha1.ApplicationsDisabled) })
	h.changeClass()
	h.runFor(time.Minute)
	before := len(h.api.Calls())
	h.runFor(time.Hour)
	h.restart()
	h.runFor(time.Hour)
	h.wantRule("a.example.com", protected)
	h.wantApplications(applicationOfShared)
	h.wantAccess("False Disabled", "a.example.com")
	if calls := h.api.Calls()[before:]; len(calls) > 0 {
		t.Errorf("calls with disabled applications: %v", calls)
	}
	h.wantMetrics(map[string]float64{"access_hostnames Protected": -1, "access_applications": -1})
}

// A restart must not delete what a Gateway demands that was not decided about yet.
func TestRestartDeletesNoApplicationBeforeEveryGatewayIsDecided(t *testing.T) {
	h := newAccessHarness(t)
	h.create(newGateway("other", "o.example.com"))
	h.changed("other")
	h.setPolicies("employees")
	h.runFor(time.Minute)
	h.wantApplications(applicationOfShared)
	h.restart()
	h.setPolicies()
	h.runFor(time.Hour) // only one of the two Gateways is reconciled
	h.wantApplications(applicationOfShared)
	h.changed("other")
	h.runFor(time.Hour)
	h.wantApplications()
}

// Many hostnames cost few writes of the tunnel's configuration.
func TestManyApplicationsShareWrites(t *testing.T) {
	h := newAccessHarness(t)
	h.changeGateway(func(g *gatewayv1.Gateway) {
		listener := g.Spec.Listeners[0]
		g.Spec.Listeners = nil
		for i := range 40 {
			listener.Name, listener.Hostname = gatewayv1.SectionName(fmt.Sprintf("l%d", i)), new(gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", i)))
			g.Spec.Listeners = append(g.Spec.Listeners, listener)
		}
	})
	h.restart()
	h.runFor(2 * time.Minute)
	h.wantRule("h39.example.com", "open")
	h.cloud.ResetCalls()
	h.setPolicies("employees")
	var writes []time.Duration
	for range 600 {
		h.runFor(100 * time.Millisecond)
		if n := len(h.cloud.Calls(fakeprovider.OpConfigure)); n > len(writes) {
			writes = append(writes, h.uptime)
		}
	}
	for i := range 40 {
		hostname := fmt.Sprintf("h%d.example.com", i)
		h.wantRule(hostname, h.protected(hostname))
	}
	for i := 1; i < len(writes); i++ {
		if writes[i]-writes[i-1] < readyInterval {
			t.Errorf("the configuration was written at %v, want at most once in %s", writes, readyInterval)
		}
	}
	if len(writes) == 0 || len(writes) > 4 {
		t.Errorf("the configuration was written at %v", writes)
	}
}

func TestSigningKeyIsShared(t *testing.T) {
	h := newAccessHarness(t)
	h.runFor(time.Minute)
	if err := h.kube.Get(t.Context(), h.applications.key.name, &corev1.Secret{}); err != nil || h.applications.key != h.zones.key {
		t.Errorf("zones and applications do not share the signing key: %v", err)
	}
}

// Two installations in one account do not touch each other's applications.
func TestInstallationsShareAnAccount(t *testing.T) {
	first, second := newAccessHarness(t), newAccessHarness(t)
	second.database, second.apis["token"] = first.database, fakeprovider.NewAccess(first.database, fakeprovider.AccountID)
	second.setHostname("b.example.com")
	second.restart()
	for _, h := range []*accessHarness{first, second} {
		h.setPolicies("employees")
		h.runFor(time.Minute)
	}
	first.wantApplications(applicationOfShared, "b.example.com employees")
	// The second installation also demands the hostname of the first one.
	second.setHostname("a.example.com")
	second.changed("shared")
	second.runFor(time.Minute)
	second.wantAccess("False ApplicationExists", "a.example.com")
	second.wantRule("a.example.com", "closed")
	second.setPolicies()
	second.runFor(time.Hour)
	first.runFor(time.Hour)
	first.wantApplications(applicationOfShared)
	first.wantRule("a.example.com", first.protected("a.example.com"))
}

// The controller repairs an application three times within an hour. Then its hostname is
// closed, until the application is as wanted.
func TestContestedApplicationClosesItsHostname(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	protected := h.protected("a.example.com")
	other := fakeprovider.NewAccess(h.database, fakeprovider.AccountID)
	edit := func(policy provider.AccessPolicyID) {
		all, err := other.Applications(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("the applications are %v: %v", all, err)
		}
		spec := provider.ApplicationSpec{
			Hostname: "a.example.com", Name: "edited", Policies: []provider.AccessPolicyID{policy}, SessionDuration: all[0].SessionDuration, Tags: all[0].Tags,
		}
		if _, err := other.Update(t.Context(), all[0], spec); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		edit("id-ci")
		h.runFor(11 * time.Minute)
		h.wantApplications(applicationOfShared)
		h.wantRule("a.example.com", protected)
	}
	h.drainEvents()
	edit("id-ci")
	h.runFor(11 * time.Minute)
	h.wantApplications("a.example.com ci")
	h.wantRule("a.example.com", "closed")
	h.wantAccess("False Contested", "a.example.com")
	h.wantEvent("Warning ApplicationContested")
	h.wantMetrics(map[string]float64{"access_hostnames Contested": 1})
	edit("id-employees")
	h.runFor(2 * time.Hour)
	h.wantRule("a.example.com", protected)
}
