package controller

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// adopt requests to adopt the hostname's application, as the administrator's command does.
func (h *accessHarness) adopt(hostname string) {
	h.t.Helper()
	id := ""
	for _, a := range h.database.Applications(fakeprovider.AccountID) {
		id = a.ID
	}
	text, err := json.Marshal([]v1alpha1.ApplicationAdoption{{Hostname: hostname, ID: id, Requested: metav1.NewTime(h.wallTime)}})
	if err != nil {
		h.t.Fatal(err)
	}
	// The status has no fractions of a second, and an annotation can have them.
	h.annotateTunnel(strings.ReplaceAll(string(text), `Z"`, `.3Z"`))
}

func (h *accessHarness) annotateTunnel(text string) {
	h.t.Helper()
	t := h.tunnelObject()
	h.change(t.Namespace, t.Name, t, func() { metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.AdoptApplicationsAnnotation, text) })
	keys, err := h.applications.fromTunnel(h.t.Context(), t)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, key := range keys {
		h.dueAccounts[key] = h.uptime
	}
	h.changed("shared")
}

// wantResults compares the results in the Tunnel's status, and checks that no request is left.
func (h *accessHarness) wantResults(want ...string) {
	h.t.Helper()
	var got []string
	for _, r := range recordedApplicationResults(h.tunnelObject()) {
		got = append(got, r.Hostname+" "+string(r.Result))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("the results differ (-want +got):\n%s", diff)
	}
	if _, ok := h.tunnelObject().Annotations[v1alpha1.AdoptApplicationsAnnotation]; ok {
		h.t.Error("the request remains in the annotation")
	}
	if got := h.access.outcomes(h.key.NamespacedName); len(got) > 0 {
		h.t.Errorf("the process remembers %v", got)
	}
}

// loseKey replaces the signing key, as a rebuilt cluster does.
func (h *accessHarness) loseKey() {
	h.t.Helper()
	secret := secretWith("dns-key", secrets.SigningKeyField, bytes.Repeat([]byte{7}, secrets.SigningKeySize))
	h.delete(secret)
	h.create(secret)
	h.restart()
}

// After a lost key, the hostname stays protected with its application, which an administrator
// can adopt.
func TestApplicationIsAdoptedAfterALostKey(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	protected := h.protected("a.example.com")
	h.loseKey()
	h.runFor(30 * time.Minute)
	h.wantRule("a.example.com", protected)
	h.wantApplications(applicationOfShared)
	h.wantAccess("False ApplicationExists", "a.example.com")

	h.adopt("a.example.com")
	h.runFor(time.Minute)
	h.wantResults("a.example.com Adopted")
	h.wantAccess("True Protected", "")
	h.wantRule("a.example.com", protected)
	h.setPolicies()
	h.runFor(10 * time.Minute)
	h.wantApplications()
}

func TestAdoptionWithoutManagedApplicationsIsRefused(t *testing.T) {
	h := newAccessHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Access.Applications = new(v1alpha1.ApplicationsDisabled) })
	h.changeClass()
	h.runFor(time.Minute)
	h.adopt("a.example.com")
	h.runFor(time.Minute)
	h.wantResults("a.example.com Refused")
}

func TestInvalidRequestToAdoptApplicationsIsReported(t *testing.T) {
	h := newAccessHarness(t)
	h.runFor(time.Minute)
	h.drainEvents()
	h.annotateTunnel(`[{"hostname": "a.example.com"}]`)
	h.runFor(time.Minute)
	h.changed("shared")
	h.runFor(time.Minute)
	events := strings.Join(h.drainEvents(), "\n")
	if strings.Count(events, "InvalidAdoptApplications") != 1 || !strings.Contains(events, "adopts no application: entry 1 has no time") {
		t.Errorf("the events are %q", events)
	}
}
