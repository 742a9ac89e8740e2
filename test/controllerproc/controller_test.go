package controllerproc_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

func TestStartPassesFlagsAndCredentials(t *testing.T) {
	// Additional flags come last, so they override the defaults. The options override the
	// Cloudflare variables in the environment.
	t.Setenv("CLOUDFLARE_API_TOKEN", "real-token")
	binary := script(t, `printf '%s\n' "$@" "$CLOUDFLARE_ACCOUNT_ID $CLOUDFLARE_API_TOKEN $CLOUDFLARE_BASE_URL"`)
	var output bytes.Buffer
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: binary, Kubeconfig: "file", ControllerNamespace: "n", ClusterID: "c", Cloudflare: "http://cloudflare/client/v4", AccountID: "another",
		Flags: []string{"--health-address=:1"}, Output: &output,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"controller", "--kubeconfig=file", "--controller-namespace=n", "--cluster-id=c", "--leader-election=false", "--metrics-address=0", "--health-address=0",
		"--xds-bind-address=127.0.0.1:0",
		"--health-address=:1", "another token http://cloudflare/client/v4", "",
	}
	if diff := cmp.Diff(want, strings.Split(output.String(), "\n")); diff != "" {
		t.Errorf("command line and environment (-want +got):\n%s", diff)
	}
}

func TestStartRequiresANamespace(t *testing.T) {
	p, err := controllerproc.Start(controllerproc.Options{Binary: script(t, "exit 0")})
	if err == nil {
		t.Error("Start did not fail without a namespace")
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}
}
