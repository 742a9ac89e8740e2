package controller

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func secretWith(name, field string, data []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: name}, Data: map[string][]byte{field: data}}
}

// secretChanged tells the controller that a Secret has changed.
func (h *dnsHarness) secretChanged(secret *corev1.Secret) {
	h.t.Helper()
	keys, err := h.zones.fromSecret(h.t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, key := range keys {
		h.dueZones[key] = h.uptime
	}
}

func TestTokenForDNSIsReplaced(t *testing.T) {
	h := newDNSHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DNS.APIToken = &v1alpha1.SecretKeyReference{Name: "dns-token"}
	})
	h.apis["first"], h.apis["second"] = fakeprovider.NewDNS(h.database), h.dns
	h.apis["first"].(*fakeprovider.DNS).Restrict()
	h.restart()
	h.publish()
	h.wantMetrics(map[string]float64{"dns_forbidden example.com": 1})
	h.wantRecords()
	if len(h.tokens) != 0 {
		t.Errorf("the tokens %v were used, although the Secret does not exist", h.tokens)
	}

	secret := secretWith("dns-token", "token", []byte("first\n"))
	h.create(secret)
	h.secretChanged(secret)
	h.runFor(time.Minute)
	h.wantMetrics(map[string]float64{"dns_forbidden example.com": 1})
	h.wantRecords()

	h.change(secret.Namespace, secret.Name, secret, func() { secret.Data["token"] = []byte("second") })
	h.secretChanged(secret)
	h.runFor(time.Minute)
	h.wantRecords(managedRecord)
	h.wantMetrics(map[string]float64{"dns_forbidden example.com": 0})
	if got := strings.Join(h.tokens, " "); got != "first second" {
		t.Errorf("the API was opened with the tokens %q, each of them once", got)
	}

	h.delete(secret)
	h.secretChanged(secret)
	h.setHostname("b.example.com")
	h.changed("shared")
	h.runFor(time.Hour)
	h.wantRecords(managedRecord)
	h.wantMetrics(map[string]float64{"dns_forbidden example.com": 1})
}

func TestSigningKeyIsCreatedOnce(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	first := &corev1.Secret{}
	if err := h.kube.Get(t.Context(), h.zones.key.name, first); err != nil || len(first.Data["key"]) != 32 {
		t.Fatalf("the Secret is %+v: %v", first, err)
	}
	h.restart()
	h.publish()
	second := &corev1.Secret{}
	if err := h.kube.Get(t.Context(), h.zones.key.name, second); err != nil || !bytes.Equal(first.Data["key"], second.Data["key"]) {
		t.Errorf("the key has changed: %v", err)
	}
	h.wantRecords(managedRecord)
}

func TestSigningKeyOfAnotherProcessIsUsed(t *testing.T) {
	h := newDNSHarness(t)
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Secret" && w.verb == "create" {
			h.create(secretWith("dns-key", "key", bytes.Repeat([]byte{7}, 32)))
		}
		return true, nil
	}
	key, problem, err := h.zones.key.read(t.Context(), true)
	if err != nil || problem != "" || !bytes.Equal(key, bytes.Repeat([]byte{7}, 32)) {
		t.Errorf("got key %v, problem %q and error %v", key, problem, err)
	}
}

func TestLostSigningKeyChangesNothing(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.wantRecords(managedRecord)
	before := h.database.Records(h.zone)
	h.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "dns-key"}})
	h.restart()
	h.publish()
	h.runFor(time.Hour)
	if after := h.database.Records(h.zone); len(after) != 1 || after[0].Comment != before[0].Comment {
		t.Errorf("the record %+v became %+v", before, after)
	}
	h.wantMetrics(map[string]float64{"dns_records External example.com": 1, "dns_records Managed example.com": 0})
	if got := h.tunnelObject().Status.DNS.Hostnames["External"]; got != 1 {
		t.Errorf("%d external hostnames, want 1", got)
	}
}

func TestInvalidSigningKeyChangesNothing(t *testing.T) {
	h := newDNSHarness(t, secretWith("dns-key", "key", []byte("short")))
	h.publish()
	h.runFor(time.Hour)
	h.wantRecords()
	h.wantMetrics(map[string]float64{"dns_forbidden example.com": 1})
	secret := &corev1.Secret{}
	if err := h.kube.Get(t.Context(), h.zones.key.name, secret); err != nil || string(secret.Data["key"]) != "short" {
		t.Errorf("the Secret was changed: %+v: %v", secret, err)
	}
	h.change(secret.Namespace, secret.Name, secret, func() { secret.Data["key"] = bytes.Repeat([]byte{1}, 32) })
	h.secretChanged(secret)
	h.runFor(time.Minute)
	h.wantRecords(managedRecord)
}

func TestKeyThatCannotBeReadChangesNothing(t *testing.T) {
	h := newDNSHarness(t)
	refused := errors.New("refused")
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Secret" && w.verb == "create" && w.name == "dns-key" {
			return false, refused
		}
		return true, nil
	}
	h.publish()
	h.wantRecords()
	if _, _, err := h.zones.key.read(t.Context(), true); !errors.Is(err, refused) {
		t.Errorf("got %v, want the error of the API server", err)
	}
	if len(h.dns.Calls()) != 0 {
		t.Errorf("calls without a key: %v", h.dns.Calls())
	}
}
