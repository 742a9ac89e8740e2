package credentials_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

func TestClassOverridesTheDefault(t *testing.T) {
	// A GatewayClass overrides the default account and the default token separately.
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

func TestTokenForDNSIsInTheNamespaceOfTheController(t *testing.T) {
	account := credentials.Source{Account: "account", Token: "token"}
	if got, separate := account.ForDNS(settings.DNS{}, "controller"); got != account || separate {
		t.Errorf("without a Secret, the source is %+v, %t", got, separate)
	}
	want := credentials.Source{Account: "account", Secret: types.NamespacedName{Namespace: "controller", Name: "dns"}, Key: v1alpha1.DefaultSecretKey}
	if got, separate := account.ForDNS(settings.DNS{APIToken: &v1alpha1.SecretKeyReference{Name: "dns"}}, "controller"); got != want || !separate {
		t.Errorf("with a Secret, the source is %+v, %t, want %+v", got, separate, want)
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
