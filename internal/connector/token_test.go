package connector_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestContainerReadsTheTokenFromTheSecret(t *testing.T) {
	in := inputOf("web")
	secret := connector.TokenSecret(in.Tunnel, provider.Token("eyJhIjoiMSJ9"))
	if diff := cmp.Diff(map[string][]byte{"token": []byte("eyJhIjoiMSJ9")}, secret.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	deployment := build(t, in).Deployment
	env := deployment.Spec.Template.Spec.Containers[0].Env[0]
	if ref := env.ValueFrom.SecretKeyRef; *env.Name != "TUNNEL_TOKEN" || *ref.Name != *secret.Name || *ref.Key != connector.TokenKey {
		t.Errorf("%s is key %s of Secret %s, want key %s of Secret %s", *env.Name, *ref.Key, *ref.Name, connector.TokenKey, *secret.Name)
	}
	if *deployment.Namespace != *secret.Namespace {
		t.Errorf("the pods are in namespace %s, but the Secret is in %s", *deployment.Namespace, *secret.Namespace)
	}
}
