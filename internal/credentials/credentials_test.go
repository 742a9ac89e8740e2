package credentials_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

func TestClassOverridesTheDefault(t *testing.T) {
	// The account and the token of a GatewayClass override the default separately.
	defaults := credentials.Default{Account: "default", Token: "token"}
	secret := types.NamespacedName{Namespace: "platform", Name: "own"}
	for name, test := range map[string]struct {
		account *v1alpha1.Account
		want    credentials.Source
	}{
		"no account of the class": {nil, credentials.Source{Account: "default", Token: "token", Key: "token"}},
		"another account":         {&v1alpha1.Account{AccountID: ptr.To("other")}, credentials.Source{Account: "other", Token: "token", Key: "token"}},
		"another token": {&v1alpha1.Account{APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "own"}},
			credentials.Source{Account: "default", Secret: secret, Key: "token"}},
		"both, and a key": {&v1alpha1.Account{AccountID: ptr.To("other"), APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "own", Key: ptr.To("key")}},
			credentials.Source{Account: "other", Secret: secret, Key: "key"}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := &settings.Settings{Spec: v1alpha1.TunnelConfigurationSpec{Account: test.account}, AccountNamespace: "platform"}
			if diff := cmp.Diff(test.want, defaults.ForSettings(settings)); diff != "" {
				t.Errorf("the source differs (-want +got):\n%s", diff)
			}
		})
	}
	if got, want := defaults.ForSettings(nil), defaults.ForSettings(&settings.Settings{}); got != want {
		t.Errorf("nil settings result in %+v, want %+v", got, want)
	}
}

func TestSourceHasToken(t *testing.T) {
	for want, all := range map[bool][]credentials.Source{
		false: {{}, {Account: "account", Key: "token"}},
		true:  {{Token: "token"}, {Secret: types.NamespacedName{Namespace: "platform", Name: "own"}}},
	} {
		for _, source := range all {
			if source.HasToken() != want {
				t.Errorf("%+v: HasToken = %t, want %t", source, !want, want)
			}
		}
	}
}

func TestTokenIsReadFromTheSecret(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "own", ResourceVersion: "7"},
		Data:       map[string][]byte{"token": []byte(" s3cr3t\n"), "empty": []byte("\n")},
	}
	objects, err := state.NewMemory([]client.Object{secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sourceOf := func(name, key string) credentials.Source {
		return credentials.Source{Secret: types.NamespacedName{Namespace: "platform", Name: name}, Key: key}
	}
	token, version, err := sourceOf("own", "token").ReadToken(t.Context(), objects)
	if token != "s3cr3t" || version != "7" || err != nil {
		t.Errorf("got token %q with version %q and error %v", token, version, err)
	}
	for want, source := range map[string]credentials.Source{
		`cannot read the API token from Secret platform/none: it does not exist`:     sourceOf("none", "token"),
		`cannot read the API token from Secret platform/own: it has no key "absent"`: sourceOf("own", "absent"),
		`cannot read the API token from Secret platform/own: it has no key "empty"`:  sourceOf("own", "empty"),
	} {
		_, _, err := source.ReadToken(t.Context(), objects)
		if _, ok := errors.AsType[*credentials.TokenError](err); !ok || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
