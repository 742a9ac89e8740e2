package cli_test

import (
	"strings"
	"testing"
)

func TestHelpNamesCommandsFlagsAndVariables(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      []string
	}{
		"program":   {[]string{"--help"}, []string{"access", "check", "controller", "dns", "plan", "version", "completion", "pause", "reconcile", "resume", "rotate-token", "top", "wait"}},
		"operation": {[]string{"rotate-token", "--help"}, []string{"tunnel-gateway rotate-token GATEWAY", "--wait ", "--timeout duration", "-n, --namespace", "--controller-namespace", "Exit status", "\n  tunnel-gateway rotate-token platform/shared\n"}},
		"wait":      {[]string{"wait", "--help"}, []string{"tunnel-gateway wait GATEWAY", "--timeout duration", "Exit status", "\n  tunnel-gateway wait platform/shared\n"}},
		"check":     {[]string{"check", "--help"}, []string{"tunnel-gateway check (HOSTNAME | URL)", "--no-request", "--header NAME:VALUE", "--timeout duration", "--gateway namespace/name", "[CLOUDFLARE_API_TOKEN]", "Zone: Read, DNS: Read", "Exit status", "\n  tunnel-gateway check shop.example.com\n"}},
		"dns":       {[]string{"dns", "--help"}, []string{"tunnel-gateway dns [command]", "adopt"}},
		"dns adopt": {[]string{"dns", "adopt", "--help"}, []string{"tunnel-gateway dns adopt (NAME... | --leading-here)", "--dry-run", "--yes", "--gateway namespace/name", "--timeout duration", "[CLOUDFLARE_API_TOKEN]", "Zone: Read and DNS:", "Exit status", "\n  tunnel-gateway dns adopt --leading-here --gateway platform/shared\n"}},
		"top":       {[]string{"top", "--help"}, []string{"tunnel-gateway top [GATEWAY]", "--by kind", "--interval duration", "-n, --namespace", "--once", "--limit", "Exit status", "\n  tunnel-gateway top platform/shared --by backend\n"}},
		"controller": {[]string{"controller", "--help"}, []string{
			"The environment variable in brackets also sets the flag", "\nCloudflare:\n", "\nGateways:\n", "\nKubernetes:\n", "\nEndpoints and log:\n",
			"--cloudflare-api-token", "[CLOUDFLARE_API_TOKEN]", "--cluster-id", "[TUNNEL_GATEWAY_CLUSTER_ID]", "--leader-election",
		}},
		"plan": {[]string{"plan", "--help"}, []string{"--filename", "--output", "--cluster-domain", "--strict", "--namespace", "--context", "--kubeconfig", "--gateway", "--diff", "--color", "Cloudflare Tunnel: Read", "[CLOUDFLARE_API_TOKEN]", "Exit status", "\n  tunnel-gateway plan -f gateway.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := wantStdout(t, "", test.arguments...)
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("the help does not contain %q:\n%s", want, text)
				}
			}
		})
	}
}

func TestHelpDoesNotContainTheToken(t *testing.T) {
	t.Setenv("CLOUDFLARE_API_TOKEN", "s3cr3t")
	if text := wantStdout(t, "", "controller", "--help"); strings.Contains(text, "s3cr3t") {
		t.Error("the help contains the token")
	}
}

func TestVersionPrintsTheVersions(t *testing.T) {
	text := wantStdout(t, "", "version")
	for _, want := range []string{"tunnel-gateway development\n", "commit unknown\n", "Gateway API v1.", "\nconnectors docker.io/cloudflare/cloudflared:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output does not contain %q:\n%s", want, text)
		}
	}
}

func TestControllerRejectsInvalidFlags(t *testing.T) {
	// The controller validates its flags before it connects to an API server.
	for name, test := range map[string]struct {
		environment map[string]string
		arguments   []string
		want        []string
	}{
		"account without a token": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "account"},
			want: []string{"--cloudflare-api-token (or CLOUDFLARE_API_TOKEN) is missing"}},
		"token without an account": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": "token"},
			want: []string{"--cloudflare-account-id (or CLOUDFLARE_ACCOUNT_ID) is missing"}},
		"variable of the wrong type":     {environment: map[string]string{"TUNNEL_GATEWAY_WORKERS": "many"}, want: []string{"TUNNEL_GATEWAY_WORKERS must be a valid int for --workers"}},
		"flag of the wrong type":         {arguments: []string{"--workers=many"}, want: []string{"--workers"}},
		"flag with an unsupported value": {arguments: []string{"--log-level=loud"}, want: []string{"--log-level", "debug, info, warn, error"}},
		"variable with an invalid value": {environment: map[string]string{"CLOUDFLARE_BASE_URL": "nowhere"},
			want: []string{"CLOUDFLARE_BASE_URL"}},
		"unknown flag": {arguments: []string{"--colour"}, want: []string{"--colour"}},
		"argument":     {arguments: []string{"now"}, want: []string{`"now"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CLOUDFLARE_ACCOUNT_ID", "")
			t.Setenv("CLOUDFLARE_API_TOKEN", "")
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			got := run(t, "", append([]string{"controller"}, test.arguments...)...)
			if got.status != 1 || got.stdout != "" {
				t.Errorf("status = %d, stdout = %q; want status 1 and no output", got.status, got.stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("the error %q does not contain %s", got.stderr, want)
				}
			}
		})
	}
}

func TestControllerErrorsDoNotContainTheToken(t *testing.T) {
	t.Setenv("CLOUDFLARE_API_TOKEN", "s3cr3t")
	t.Setenv("CLOUDFLARE_ACCOUNT_ID", "")
	t.Setenv("TUNNEL_GATEWAY_WORKERS", "")
	for _, arguments := range [][]string{{"controller"}, {"controller", "--cloudflare-api-token", "s3cr3t", "--workers=x"}} {
		if got := run(t, "", arguments...); got.status != 1 || strings.Contains(got.stderr, "s3cr3t") {
			t.Errorf("%q: status = %d, stderr = %q; want status 1 and no token", arguments, got.status, got.stderr)
		}
	}
}

func TestUnknownCommandIsAnError(t *testing.T) {
	if got := run(t, "", "serve"); got.status != 1 || !strings.Contains(got.stderr, `"serve"`) || got.stdout != "" {
		t.Errorf("status = %d, stdout = %q, stderr = %q; want status 1 and an error that names the command", got.status, got.stdout, got.stderr)
	}
}
