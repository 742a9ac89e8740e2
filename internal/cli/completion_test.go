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

func TestCompletionPrintsAScriptForEachShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := wantStdout(t, "", "completion", shell); !strings.Contains(script, "tunnel-gateway") {
			t.Errorf("the script for %s does not contain the name of the program:\n%.200s", shell, script)
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

// completions returns how the last argument can be completed, with the directive for the
// shell.
func completions(t *testing.T, arguments ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := cli.Run(t.Context(), append([]string{"tunnel-gateway", "__complete"}, arguments...),
		cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	if status != 0 || strings.Contains(strings.ToLower(stderr.String()), "error") {
		t.Errorf("%q: status = %d, stderr = %q; want status 0 and no error", arguments, status, stderr.String())
	}
	return stdout.String()
}

func TestCompletionListsFlagValues(t *testing.T) {
	withoutCluster(t)
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "config"), twoContexts)
	invalid := write(t, filepath.Join(dir, "invalid"), "{")
	const noFiles, files, yaml = ":4\n", ":0\n", "yaml\nyml\njson\n:8\n"
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"formats":                       {[]string{"plan", "--output", ""}, "table\nyaml\njson\nenvoy\nenvoy-routes\n" + noFiles},
		"formats, short flag":           {[]string{"plan", "-o", ""}, "table\nyaml\njson\nenvoy\nenvoy-routes\n" + noFiles},
		"manifests":                     {[]string{"plan", "--filename", ""}, yaml},
		"manifests, short flag":         {[]string{"plan", "-f", ""}, yaml},
		"kubeconfigs":                   {[]string{"plan", "--kubeconfig", ""}, files},
		"contexts":                      {[]string{"plan", "--kubeconfig", config, "--context", ""}, "production\nstaging\n" + noFiles},
		"contexts without a kubeconfig": {[]string{"plan", "--context", ""}, noFiles},
		"contexts of an invalid file":   {[]string{"plan", "--kubeconfig", invalid, "--context", ""}, noFiles},
		"Gateways without a cluster":    {[]string{"plan", "--gateway", ""}, noFiles},
		"Gateways of manifests":         {[]string{"plan", "-f", samples, "--gateway", ""}, noFiles},
		"arguments":                     {[]string{"plan", ""}, noFiles},
		"contexts of an operation":      {[]string{"pause", "--kubeconfig", config, "--context", ""}, "production\nstaging\n" + noFiles},
		"Gateways of an operation":      {[]string{"pause", ""}, noFiles},
		"a second Gateway":              {[]string{"pause", "a", ""}, noFiles},
		"kinds of rows":                 {[]string{"top", "--by", ""}, "route\nbackend\nhostname\nnamespace\ngateway\n" + noFiles},
		"formats of top":                {[]string{"top", "-o", ""}, "table\njson\n" + noFiles},
		"contexts of top":               {[]string{"top", "--kubeconfig", config, "--context", ""}, "production\nstaging\n" + noFiles},
		"Gateways of top":               {[]string{"top", ""}, noFiles},
		"a second Gateway of top":       {[]string{"top", "a/a", ""}, noFiles},
		"commands of dns":               {[]string{"dns", ""}, "adopt\tLet the controller manage existing DNS records\n" + noFiles},
		"commands of access":            {[]string{"access", ""}, "adopt\tLet the controller manage existing applications\n" + noFiles},
		"hostnames of applications":     {[]string{"access", "adopt", ""}, noFiles},
		"names of records":              {[]string{"dns", "adopt", ""}, noFiles},
		"formats of dns adopt":          {[]string{"dns", "adopt", "-o", ""}, "table\njson\n" + noFiles},
		"contexts of dns adopt":         {[]string{"dns", "adopt", "--kubeconfig", config, "--context", ""}, "production\nstaging\n" + noFiles},
		"Gateways of dns adopt":         {[]string{"dns", "adopt", "--gateway", ""}, noFiles},
		"log levels":                    {[]string{"controller", "--log-level", ""}, "debug\ninfo\nwarn\nerror\n" + noFiles},
		"log formats":                   {[]string{"controller", "--log-format", ""}, "json\nconsole\n" + noFiles},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, completions(t, test.arguments...)); diff != "" {
				t.Errorf("completions differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompletionOfGatewaysIgnoresErrors(t *testing.T) {
	withoutCluster(t)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	config := write(t, filepath.Join(t.TempDir(), "config"), strings.Replace(twoContexts, "SERVER", server.URL, 1))
	for _, arguments := range [][]string{{"plan", "--kubeconfig", config, "--gateway", ""}, {"rotate-token", "--kubeconfig", config, ""}, {"top", "--kubeconfig", config, ""}, {"wait", "--kubeconfig", config, ""},
		{"dns", "adopt", "--kubeconfig", config, ""}, {"dns", "adopt", "--kubeconfig", config, "--gateway", ""}} {
		requests = 0
		if got := completions(t, arguments...); got != ":4\n" {
			t.Errorf("%q: completions = %q, want none", arguments, got)
		}
		if requests == 0 {
			t.Errorf("%q: the completion sent no request to the API server", arguments)
		}
	}
}

func TestPluginPrintsItsCommand(t *testing.T) {
	// As a kubectl plugin, the program prints the command that runs the plugin.
	withoutCluster(t)
	for _, file := range []string{"/usr/local/bin/kubectl-tunnel_gateway", "kubectl-tunnel_gateway.exe"} {
		for name, test := range map[string]struct {
			arguments []string
			want      []string
		}{
			"help":                   {[]string{"--help"}, []string{"\n  kubectl tunnel-gateway [command]\n", `"kubectl tunnel-gateway [command] --help"`}},
			"help of plan":           {[]string{"plan", "--help"}, []string{"\n  kubectl tunnel-gateway plan [flags]\n", "\n  kubectl tunnel-gateway plan -f gateway.yaml", "| kubectl tunnel-gateway plan -f -"}},
			"help of controller":     {[]string{"controller", "--help"}, []string{"\n  kubectl tunnel-gateway controller [flags]\n"}},
			"error":                  {[]string{"plan"}, []string{"kubectl tunnel-gateway: "}},
			"unknown command":        {[]string{"serve"}, []string{`kubectl tunnel-gateway: unknown command "serve" for "kubectl tunnel-gateway"`}},
			"completion for kubectl": {[]string{"__complete", "plan", "--output", "j"}, []string{"envoy-routes\n:4\n"}},
		} {
			t.Run(name, func(t *testing.T) {
				var out bytes.Buffer
				cli.Run(t.Context(), append([]string{file}, test.arguments...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
				for _, want := range test.want {
					if !strings.Contains(out.String(), want) {
						t.Errorf("the output does not contain %q:\n%s", want, out.String())
					}
				}
				others := strings.ReplaceAll(out.String(), "kubectl tunnel-gateway", "")
				if strings.Contains(others, "tunnel-gateway plan") || strings.Contains(others, "tunnel_gateway") {
					t.Errorf("the output contains another name of the program:\n%s", out.String())
				}
			})
		}
	}
}

// kubectl runs another file of the plugin to complete a command line.
func TestPluginCompletesUnderTheNameOfItsLink(t *testing.T) {
	withoutCluster(t)
	for _, file := range []string{"/usr/local/bin/kubectl_complete-tunnel_gateway", "kubectl_complete-tunnel_gateway.exe"} {
		var out, problems bytes.Buffer
		status := cli.Run(t.Context(), []string{file, "pla"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems})
		if want := "plan\t"; status != 0 || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: status %d, output %q, want %q; %s", file, status, out.String(), want, problems.String())
		}
	}
}

func TestCompletionOfFlagsHasNoQuotes(t *testing.T) {
	// The quotes that mark a value name in the help are not for a shell.
	withoutCluster(t)
	if got := completions(t, "plan", "--"); strings.Contains(got, "`") || !strings.Contains(got, "--gateway\tshow only the Gateway namespace/name\n") {
		t.Errorf("completions =\n%s", got)
	}
	if got := completions(t, "dns", "adopt", "--"); strings.Contains(got, "`") || !strings.Contains(got, "--timeout\tmaximum duration to wait") {
		t.Errorf("completions of a command's command =\n%s", got)
	}
}
