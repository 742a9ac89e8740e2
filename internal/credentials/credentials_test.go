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

// What a class names goes before the default, each part by itself.
func TestOf(t *testing.T) {
	def := credentials.Default{Account: "default", Token: "token"}
	own := types.NamespacedName{Namespace: "platform", Name: "own"}
	for name, test := range map[string]struct {
		account *v1alpha1.Account
		want    credentials.Source
	}{
		"no account of the class": {nil, credentials.Source{Account: "default", Token: "token", Key: "token"}},
		"another account":         {&v1alpha1.Account{AccountID: ptr.To("other")}, credentials.Source{Account: "other", Token: "token", Key: "token"}},
		"another token": {&v1alpha1.Account{APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "own"}},
			credentials.Source{Account: "default", Secret: own, Key: "token"}},
		"both, and a key": {&v1alpha1.Account{AccountID: ptr.To("other"), APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "own", Key: ptr.To("key")}},
			credentials.Source{Account: "other", Secret: own, Key: "key"}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := &settings.Settings{Spec: v1alpha1.TunnelConfigurationSpec{Account: test.account}, AccountNamespace: "platform"}
			if diff := cmp.Diff(test.want, def.ForSettings(settings)); diff != "" {
				t.Errorf("the source differs (-want +got):\n%s", diff)
			}
		})
	}
	if got, want := def.ForSettings(nil), def.ForSettings(&settings.Settings{}); got != want {
		t.Errorf("settings that are not known give %+v, want %+v", got, want)
	}
}

func TestHasToken(t *testing.T) {
	for want, all := range map[bool][]credentials.Source{
		false: {{}, {Account: "account", Key: "token"}},
		true:  {{Token: "token"}, {Secret: types.NamespacedName{Namespace: "platform", Name: "own"}}},
	} {
		for _, source := range all {
			if source.HasToken() != want {
				t.Errorf("%+v: %t, want %t", source, !want, want)
			}
		}
	}
}

func TestReadToken(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "own", ResourceVersion: "7"},
		Data:       map[string][]byte{"token": []byte(" s3cr3t\n"), "empty": []byte("\n")},
	}
	objects, err := state.NewMemory([]client.Object{secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name, key string) credentials.Source {
		return credentials.Source{Secret: types.NamespacedName{Namespace: "platform", Name: name}, Key: key}
	}
	token, version, err := at("own", "token").ReadToken(t.Context(), objects)
	if token != "s3cr3t" || version != "7" || err != nil {
		t.Errorf("got %q of version %q, %v", token, version, err)
	}
	for want, source := range map[string]credentials.Source{
		`the API token cannot be taken from Secret platform/none: it does not exist`:     at("none", "token"),
		`the API token cannot be taken from Secret platform/own: it has no key "absent"`: at("own", "absent"),
		`the API token cannot be taken from Secret platform/own: it has no key "empty"`:  at("own", "empty"),
	} {
		_, _, err := source.ReadToken(t.Context(), objects)
		if _, ok := errors.AsType[*credentials.TokenError](err); !ok || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
