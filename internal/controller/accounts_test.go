package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// accountFixture has an account whose API token is in a Secret.
type accountFixture struct {
	*accounts
	t      *testing.T
	kube   client.Client
	secret *corev1.Secret
	source credentials.Source
	// connected lists the accounts and tokens in the order in which they were
	// connected.
	connected []string
}

func newAccountFixture(t *testing.T) *accountFixture {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "cloudflare"}}
	s := &accountFixture{
		t: t, kube: fake.NewClientBuilder().WithScheme(Scheme()).Build(), secret: secret,
		source: credentials.Source{Account: "account", Secret: client.ObjectKeyFromObject(secret), Key: v1alpha1.DefaultSecretKey},
	}
	s.accounts = &accounts{
		metadata: s.kube, live: s.kube, connect: s.connectAccount, bySource: map[credentials.Source]*openAccount{},
	}
	return s
}

func (s *accountFixture) connectAccount(account, token string) (provider.Provider, error) {
	s.connected = append(s.connected, account+" "+token)
	if token == "bad token" {
		return nil, errors.New("invalid characters")
	}
	return fakeprovider.New(), nil
}

// updateSecret replaces the Secret's data.
func (s *accountFixture) updateSecret(data map[string][]byte) {
	s.t.Helper()
	s.secret.Data = data
	if err := s.kube.Update(s.t.Context(), s.secret); err != nil {
		s.t.Fatal(err)
	}
}

func (s *accountFixture) wantError(want string) {
	s.t.Helper()
	_, err := s.openSource(s.t.Context(), s.source)
	if _, ok := errors.AsType[*credentials.TokenError](err); !ok || !strings.Contains(err.Error(), want) {
		s.t.Errorf("got %v, want a TokenError that contains %q", err, want)
	}
}

// wantOpened checks the last connection and returns the account.
func (s *accountFixture) wantOpened(want string) account {
	s.t.Helper()
	found, err := s.openSource(s.t.Context(), s.source)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := s.connected[len(s.connected)-1]; got != want {
		s.t.Errorf("opened %q, want %q", got, want)
	}
	return found
}

func TestAccountIsReopenedWhenTheTokenChanges(t *testing.T) {
	// The controller reopens an account only when the token in its Secret changes.
	s := newAccountFixture(t)
	s.wantError("Secret platform/cloudflare: it does not exist")
	if err := s.kube.Create(t.Context(), s.secret); err != nil {
		t.Fatal(err)
	}
	s.wantError(`it has no key "token"`)
	s.updateSecret(map[string][]byte{v1alpha1.DefaultSecretKey: []byte("bad token")})
	s.wantError("invalid characters")
	s.updateSecret(map[string][]byte{v1alpha1.DefaultSecretKey: []byte(" first\n")})
	first := s.wantOpened("account first")
	s.updateSecret(map[string][]byte{v1alpha1.DefaultSecretKey: []byte("first"), "other": nil})
	if s.wantOpened("account first") != first || len(s.connected) != 2 {
		t.Errorf("the account was reopened with the same token: %q", s.connected)
	}
	s.updateSecret(map[string][]byte{v1alpha1.DefaultSecretKey: []byte("second")})
	if s.wantOpened("account second") == first {
		t.Error("the account still uses the old token")
	}
	if err := s.kube.Delete(t.Context(), s.secret); err != nil {
		t.Fatal(err)
	}
	s.wantError("it does not exist")
}

// An account that no Tunnel uses is closed after an inventory that finds no orphaned
// tunnel in it. Nothing remains, so no alert fires for ever.
func TestAccountThatNoTunnelUsesIsClosed(t *testing.T) {
	h := newHarness(t, newGatewayWithAccount()...)
	h.key = state.GatewayKey("infra", "slow")
	i := h.inventory()
	wantOpen := func(want int) {
		t.Helper()
		if err := i.checkAccounts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(h.accounts.bySource); got != want {
			t.Errorf("%d accounts are open, want %d", got, want)
		}
	}
	h.reconcileFor(time.Minute)
	wantOpen(1)
	h.delete(h.gateway())
	orphan := h.createUnmanagedTunnel("west.infra.gone")
	h.reconcileFor(5 * time.Minute)
	wantOpen(1)
	wantOpen(1)
	h.wantMetrics(map[string]float64{"orphaned_tunnels": 1})

	if err := h.cloud.DeleteTunnel(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	wantOpen(0)
	if got := h.metric("orphaned_tunnels"); got != -1 {
		t.Errorf("%v orphaned tunnels are reported in a closed account", got)
	}
	if len(i.orphanCandidates) > 0 {
		t.Errorf("the inventory remembers %v", i.orphanCandidates)
	}
}
