package cli_test

import (
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      []string
	}{
		"of the program": {[]string{"--help"}, []string{"controller", "plan", "version", "completion"}},
		"of controller": {[]string{"controller", "--help"}, []string{
			"Each flag can be given in the environment", "\nCloudflare:\n", "\nGateways:\n", "\nKubernetes:\n", "\nEndpoints and log:\n",
			"--cloudflare-api-token", "[CLOUDFLARE_API_TOKEN]", "--cluster-id", "[TUNNEL_GATEWAY_CLUSTER_ID]", "--leader-election",
		}},
		"of plan": {[]string{"plan", "--help"}, []string{"--filename", "--output", "--cluster-domain", "--strict", "--namespace", "--context", "--kubeconfig", "--gateway", "--diff", "--color", "Cloudflare Tunnel: Read", "[CLOUDFLARE_API_TOKEN]", "Exit status", "\n  tunnel-gateway plan -f gateway.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := wantStdout(t, "", test.arguments...)
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("the help does not have %q:\n%s", want, text)
				}
			}
		})
	}
}

// What is in the environment shows in no help text.
func TestHelpDoesNotShowTheToken(t *testing.T) {
	t.Setenv("CLOUDFLARE_API_TOKEN", "s3cr3t")
	if text := wantStdout(t, "", "controller", "--help"); strings.Contains(text, "s3cr3t") {
		t.Error("the help shows the token")
	}
}

func TestVersion(t *testing.T) {
	text := wantStdout(t, "", "version")
	for _, want := range []string{"tunnel-gateway development\n", "commit unknown\n", "Gateway API v1."} {
		if !strings.Contains(text, want) {
			t.Errorf("version prints no %q:\n%s", want, text)
		}
	}
}

// The controller looks at its settings before it looks for an API server.
func TestControllerRefusesBadSettings(t *testing.T) {
	for name, test := range map[string]struct {
		environment map[string]string
		arguments   []string
		want        []string
	}{
		"an account without a token": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "account"},
			want: []string{"--cloudflare-api-token (or CLOUDFLARE_API_TOKEN) is missing"}},
		"a token without an account": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": "token"},
			want: []string{"--cloudflare-account-id (or CLOUDFLARE_ACCOUNT_ID) is missing"}},
		"a variable of another type":        {environment: map[string]string{"TUNNEL_GATEWAY_WORKERS": "many"}, want: []string{"TUNNEL_GATEWAY_WORKERS is not a valid int, see --workers"}},
		"a flag of another type":            {arguments: []string{"--workers=many"}, want: []string{"--workers"}},
		"a flag whose value is not allowed": {arguments: []string{"--log-level=loud"}, want: []string{"--log-level", "debug, info, warn, error"}},
		"a variable whose value is not allowed": {environment: map[string]string{"CLOUDFLARE_BASE_URL": "nowhere"},
			want: []string{"CLOUDFLARE_BASE_URL"}},
		"an unknown flag": {arguments: []string{"--colour"}, want: []string{"--colour"}},
		"an argument":     {arguments: []string{"now"}, want: []string{`"now"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CLOUDFLARE_ACCOUNT_ID", "")
			t.Setenv("CLOUDFLARE_API_TOKEN", "")
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			got := run(t, "", append([]string{"controller"}, test.arguments...)...)
			if got.status != 1 || got.stdout != "" {
				t.Errorf("status %d, stdout %q, want 1 and nothing", got.status, got.stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(got.err, want) {
					t.Errorf("error %q does not name %s", got.err, want)
				}
			}
		})
	}
}

func TestControllerErrorsDoNotShowTheToken(t *testing.T) {
	t.Setenv("CLOUDFLARE_API_TOKEN", "s3cr3t")
	t.Setenv("CLOUDFLARE_ACCOUNT_ID", "")
	t.Setenv("TUNNEL_GATEWAY_WORKERS", "")
	for _, arguments := range [][]string{{"controller"}, {"controller", "--cloudflare-api-token", "s3cr3t", "--workers=x"}} {
		if got := run(t, "", arguments...); got.status != 1 || strings.Contains(got.err, "s3cr3t") {
			t.Errorf("%q: status %d, stderr %q", arguments, got.status, got.err)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	if got := run(t, "", "serve"); got.status != 1 || !strings.Contains(got.err, `"serve"`) || got.stdout != "" {
		t.Errorf("status %d, stdout %q, stderr %q", got.status, got.stdout, got.err)
	}
}
