package controller

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// The provider is opened again when the token changed, and only then.
func TestCredentialsFromASecret(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "cloudflare"}}
	c := fake.NewClientBuilder().WithScheme(manifest.Scheme()).Build()
	var all []string
	known := &accounts{
		flags:    credentials.Default{Account: "account", Secret: types.NamespacedName{Namespace: "platform", Name: "cloudflare"}},
		metadata: c, live: c, opened: map[credentials.Source]*opened{}, secrets: map[types.NamespacedName]bool{},
		open: func(account, token string) (provider.Provider, error) {
			all = append(all, account+" "+token)
			if token == "bad token" {
				return nil, errors.New("characters that no token has")
			}
			return fakeprovider.New(), nil
		},
	}
	set := func(data map[string][]byte) {
		t.Helper()
		secret.Data = data
		if err := c.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	wantError := func(want string) {
		t.Helper()
		_, err := known.of(t.Context(), nil)
		if _, ok := errors.AsType[*credentialsError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a credentialsError that says %q", err, want)
		}
	}
	wantOpened := func(want string) account {
		t.Helper()
		p, err := known.of(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := all[len(all)-1]; got != want {
			t.Errorf("opened %q, want %q", got, want)
		}
		return p
	}

	wantError("Secret platform/cloudflare: it does not exist")
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	wantError(`it has no key "token"`)
	set(map[string][]byte{TokenKey: []byte("bad token")})
	wantError("characters that no token has")
	set(map[string][]byte{TokenKey: []byte(" first\n")})
	first := wantOpened("account first")
	set(map[string][]byte{TokenKey: []byte("first"), "other": nil})
	if wantOpened("account first") != first || len(all) != 2 {
		t.Errorf("the same token is opened again: %q", all)
	}
	set(map[string][]byte{TokenKey: []byte("second")})
	if wantOpened("account second") == first {
		t.Error("the provider of the old token goes on")
	}
	if err := c.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	wantError("it does not exist")
}
