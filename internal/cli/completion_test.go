package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
)

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := wantStdout(t, "", "completion", shell); !strings.Contains(script, "tunnel-gateway") {
			t.Errorf("the script for %s does not name the program:\n%.200s", shell, script)
		}
	}
}

const twoContexts = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: SERVER}}]
users: [{name: u, user: {}}]
contexts: [{name: staging, context: {cluster: c, user: u}}, {name: production, context: {cluster: c, user: u}}]
current-context: staging
`

// values are what a shell offers, with the directive that says what else.
func values(t *testing.T, arguments ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := cli.Run(t.Context(), append([]string{"tunnel-gateway", "__complete"}, arguments...),
		cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	if status != 0 || strings.Contains(strings.ToLower(stderr.String()), "error") {
		t.Errorf("%q: status %d, stderr %q", arguments, status, stderr.String())
	}
	return stdout.String()
}

func TestCompletionOfValues(t *testing.T) {
	withoutCluster(t)
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "config"), twoContexts)
	broken := write(t, filepath.Join(dir, "broken"), "{")
	const alone, files, yaml = ":4\n", ":0\n", "yaml\nyml\njson\n:8\n"
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"formats":                     {[]string{"plan", "--output", ""}, "table\nyaml\njson\n" + alone},
		"formats, by the letter":      {[]string{"plan", "-o", ""}, "table\nyaml\njson\n" + alone},
		"manifests":                   {[]string{"plan", "--filename", ""}, yaml},
		"manifests, by the letter":    {[]string{"plan", "-f", ""}, yaml},
		"kubeconfigs":                 {[]string{"plan", "--kubeconfig", ""}, files},
		"contexts":                    {[]string{"plan", "--kubeconfig", config, "--context", ""}, "production\nstaging\n" + alone},
		"no contexts":                 {[]string{"plan", "--context", ""}, alone},
		"contexts of a broken file":   {[]string{"plan", "--kubeconfig", broken, "--context", ""}, alone},
		"Gateways without a cluster":  {[]string{"plan", "--gateway", ""}, alone},
		"Gateways of manifests alone": {[]string{"plan", "-f", samples, "--gateway", ""}, alone},
		"arguments that plan has not": {[]string{"plan", ""}, alone},
		"levels of the log":           {[]string{"controller", "--log-level", ""}, "debug\ninfo\nwarn\nerror\n" + alone},
		"formats of the log":          {[]string{"controller", "--log-format", ""}, "json\nconsole\n" + alone},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, values(t, test.arguments...)); diff != "" {
				t.Errorf("values differ (-want +got):\n%s", diff)
			}
		})
	}
}

// An API server that refuses is no reason to disturb somebody who types.
func TestCompletionOfGatewaysIsSilent(t *testing.T) {
	withoutCluster(t)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	config := write(t, filepath.Join(t.TempDir(), "config"), strings.Replace(twoContexts, "SERVER", server.URL, 1))
	if got := values(t, "plan", "--kubeconfig", config, "--gateway", ""); got != ":4\n" {
		t.Errorf("it offers %q", got)
	}
	if asked == 0 {
		t.Error("it did not ask the API server")
	}
}

// As a plugin of kubectl it says how it is called, everywhere.
func TestNameOfThePlugin(t *testing.T) {
	withoutCluster(t)
	for _, file := range []string{"/usr/local/bin/kubectl-tunnel_gateway", "kubectl-tunnel_gateway.exe"} {
		for name, test := range map[string]struct {
			arguments []string
			want      []string
		}{
			"help":                  {[]string{"--help"}, []string{"\n  kubectl tunnel_gateway [command]\n", `"kubectl tunnel_gateway [command] --help"`}},
			"help of plan":          {[]string{"plan", "--help"}, []string{"\n  kubectl tunnel_gateway plan [flags]\n", "\n  kubectl tunnel_gateway plan -f gateway.yaml", "| kubectl tunnel_gateway plan -f -"}},
			"help of controller":    {[]string{"controller", "--help"}, []string{"\n  kubectl tunnel_gateway controller [flags]\n"}},
			"an error":              {[]string{"plan"}, []string{"kubectl tunnel_gateway: "}},
			"an unknown command":    {[]string{"serve"}, []string{`kubectl tunnel_gateway: unknown command "serve" for "kubectl tunnel_gateway"`}},
			"completion for kubect": {[]string{"__complete", "plan", "--output", "j"}, []string{"json\n:4\n"}},
		} {
			t.Run(name, func(t *testing.T) {
				var out bytes.Buffer
				cli.Run(t.Context(), append([]string{file}, test.arguments...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
				for _, want := range test.want {
					if !strings.Contains(out.String(), want) {
						t.Errorf("it does not say %q:\n%s", want, out.String())
					}
				}
				if strings.Contains(out.String(), "tunnel-gateway plan") || strings.Contains(out.String(), "kubectl-tunnel_gateway") {
					t.Errorf("it speaks of another name:\n%s", out.String())
				}
			})
		}
	}
}

// The quotes that mark a value's name in the help are nothing for a shell.
func TestCompletionOfFlags(t *testing.T) {
	withoutCluster(t)
	if got := values(t, "plan", "--"); strings.Contains(got, "`") || !strings.Contains(got, "--gateway\tshow one Gateway only, by its namespace/name\n") {
		t.Errorf("a shell is told\n%s", got)
	}
}
