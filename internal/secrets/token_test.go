package secrets_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

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
	token, version, err := secrets.ReadToken(t.Context(), objects, sourceOf("own", "token"))
	if token != "s3cr3t" || version != "7" || err != nil {
		t.Errorf("got token %q with version %q and error %v", token, version, err)
	}
	for want, source := range map[string]credentials.Source{
		`cannot read the API token from Secret platform/none: it does not exist`:     sourceOf("none", "token"),
		`cannot read the API token from Secret platform/own: it has no key "absent"`: sourceOf("own", "absent"),
		`cannot read the API token from Secret platform/own: it has no key "empty"`:  sourceOf("own", "empty"),
	} {
		_, _, err := secrets.ReadToken(t.Context(), objects, source)
		if _, ok := errors.AsType[*credentials.TokenError](err); !ok || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
