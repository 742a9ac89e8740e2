package cli_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// edge simulates Cloudflare with the tunnels in testdata/diff.in.yaml.
type edge struct {
	*simulator.Server
	zones *zones.Database
	url   string
	// ids are the tunnel IDs by name.
	ids map[string]string
	// mainToken and tenantToken are the tokens for the accounts main and tenant. They are
	// unique for each test, so that each test has its own request budget.
	mainToken, tenantToken string

	applications *access.Database

	mu sync.Mutex
	// usedTokens are the tokens in all requests, by account.
	usedTokens map[string]map[string]bool
	// rejecting makes the edge reject every token with a response that contains it.
	rejecting bool
}

// newEdge starts an edge and sets the environment variables for it.
func newEdge(t *testing.T) *edge {
	t.Helper()
	database := zones.New(zones.Options{})
	applications := access.New(access.Options{})
	e := &edge{Server: simulator.New(simulator.Options{Zones: database, Access: applications}), zones: database, applications: applications, ids: map[string]string{}, mainToken: rand.Text(), tenantToken: rand.Text()}
	server := httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(server.Close)
	e.url = server.URL + "/client/v4"
	e.usedTokens = map[string]map[string]bool{}
	const catchAll = `{"service":"http_status:404"}`
	e.createTunnel(t, "main", "changed", `{"ingress":[{"hostname":"a.example.com","service":"http://web.platform.svc.cluster.local:80"},
		{"hostname":"b.example.com","service":"http://old.platform.svc.cluster.local:80"},`+catchAll+`],"warp-routing":{"enabled":true}}`)
	e.createTunnel(t, "main", "same", `{"ingress":[`+catchAll+`]}`)
	e.createTunnel(t, "tenant", "tenant", `{"ingress":[`+catchAll+`],"originRequest":{"connectTimeout":30}}`)
	e.ResetRequests()
	e.usedTokens = map[string]map[string]bool{}
	for variable, value := range map[string]string{
		"CLOUDFLARE_ACCOUNT_ID": "main", "CLOUDFLARE_API_TOKEN": e.mainToken, "CLOUDFLARE_BASE_URL": e.url,
		"CLOUDFLARE_API_TOKEN_SECRET": "", "NO_COLOR": "",
	} {
		t.Setenv(variable, value)
	}
	return e
}

func (e *edge) serve(w http.ResponseWriter, r *http.Request) {
	account := strings.Split(strings.TrimPrefix(r.URL.Path, "/client/v4/accounts/"), "/")[0]
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	e.mu.Lock()
	if e.usedTokens[account] == nil {
		e.usedTokens[account] = map[string]bool{}
	}
	e.usedTokens[account][token] = true
	rejecting := e.rejecting
	e.mu.Unlock()
	if rejecting {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"success": false, "errors": []any{map[string]any{"code": 10000, "message": "refused " + token}}})
		return
	}
	e.API().ServeHTTP(w, r)
}

// createTunnel creates a tunnel with a configuration.
func (e *edge) createTunnel(t *testing.T, account, name, configuration string) {
	t.Helper()
	var accounts cloudflare.Client
	p, err := accounts.Open(cloudflare.Options{AccountID: account, APIToken: e.mainToken, BaseURL: e.url})
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := p.CreateTunnel(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	e.SetConfiguration(string(tunnel.ID), json.RawMessage(configuration))
	e.ids[name] = string(tunnel.ID)
}

// manifests returns testdata/diff.in.yaml with the edge's IDs and tokens. If gateways are
// specified, it contains only these Gateways and the routes and Tunnels that refer to
// them.
func (e *edge) manifests(t *testing.T, gateways ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/diff.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, document := range strings.Split(e.replacer().Replace(string(text)), "---\n") {
		name := gatewayName.FindStringSubmatch(document)
		refers := strings.Contains(document, "parentRefs:") || strings.Contains(document, "kind: Tunnel\n")
		orphan := refers && !slices.ContainsFunc(gateways, func(name string) bool { return strings.Contains(document, "name: "+name+"}") })
		if len(gateways) == 0 || name != nil && slices.Contains(gateways, name[1]) || name == nil && !orphan {
			documents = append(documents, document)
		}
	}
	return strings.Join(documents, "---\n")
}

var gatewayName = regexp.MustCompile(`kind: Gateway\nmetadata:[\s{]*name: (\w+)`)

// replacer replaces the placeholders for tokens and tunnel IDs.
func (e *edge) replacer() *strings.Replacer {
	pairs := []string{"token-of-tenant", e.tenantToken, "token-of-main", e.mainToken}
	for name, id := range e.ids {
		pairs = append(pairs, "ID-OF-"+strings.ToUpper(name), id)
	}
	return strings.NewReplacer(pairs...)
}

// withoutIDs replaces tunnel IDs with placeholders.
func (e *edge) withoutIDs(text string) string {
	for name, id := range e.ids {
		text = strings.ReplaceAll(text, id, "ID-OF-"+strings.ToUpper(name))
	}
	return text
}

// wantGolden compares text with a golden file, or writes the file with -update.
func wantGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./internal/cli -update to create it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); run go test ./internal/cli -update to rewrite it:\n%s", path, diff)
	}
}

// wantOnlyReads checks that requests changed nothing.
func (e *edge) wantOnlyReads(t *testing.T) {
	t.Helper()
	for _, request := range e.Requests() {
		if request.Method != http.MethodGet {
			t.Errorf("unexpected request %s %s", request.Method, request.Path)
		}
	}
}

// wantStatus checks a command's status and stderr, and that its output contains no token.
func (e *edge) wantStatus(t *testing.T, got outcome, status int, stderr string) {
	t.Helper()
	if got.status != status || got.stderr != stderr {
		t.Errorf("status = %d, stderr = %q; want %d, %q", got.status, got.stderr, status, stderr)
	}
	if all := got.stdout + got.stderr; strings.Contains(all, e.mainToken) || strings.Contains(all, e.tenantToken) {
		t.Errorf("the output contains a token:\n%s", all)
	}
}

func TestDiffMatchesGoldenFile(t *testing.T) {
	e := newEdge(t)
	got := run(t, e.manifests(t), "plan", "-f", "-", "--diff")
	e.wantStatus(t, got, 3, "")
	wantGolden(t, "testdata/diff.golden.txt", e.withoutIDs(got.stdout))
	for _, request := range e.Requests() {
		if request.Method != http.MethodGet || !strings.HasSuffix(request.Path, "/configurations") && !strings.HasSuffix(request.Path, "/accounts/main/cfd_tunnel") {
			t.Errorf("unexpected request %s %s", request.Method, request.Path)
		}
	}
	want := map[string]map[string]bool{"main": {e.mainToken: true}, "tenant": {e.tenantToken: true}}
	if diff := cmp.Diff(want, e.usedTokens); diff != "" || len(e.Requests()) != 4 {
		t.Errorf("%d requests, want 4; tokens by account (-want +got):\n%s", len(e.Requests()), diff)
	}
}

func TestJSONAndYAMLContainTheDiff(t *testing.T) {
	e := newEdge(t)
	plain := run(t, e.manifests(t), "plan", "-f", "-", "-o", "json")
	got := run(t, e.manifests(t), "plan", "-f", "-", "-o", "json", "--diff")
	e.wantStatus(t, plain, 0, "")
	e.wantStatus(t, got, 3, "")
	var withDiff, withoutDiff map[string]any
	for text, target := range map[string]*map[string]any{got.stdout: &withDiff, plain.stdout: &withoutDiff} {
		if err := json.Unmarshal([]byte(text), target); err != nil {
			t.Fatal(err)
		}
	}
	different := map[any]any{}
	for _, g := range withDiff["gateways"].([]any) {
		fields := g.(map[string]any)
		diff := fields["diff"].(map[string]any)
		different[fields["name"]] = diff["different"]
		if strings.Contains(diff["unified"].(string), "\x1b") {
			t.Errorf("the JSON of Gateway %s has colors", fields["name"])
		}
		delete(fields, "diff")
	}
	if diff := cmp.Diff(map[any]any{"changed": true, "same": false, "new": true, "tenant": true}, different); diff != "" {
		t.Errorf("the field different differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(withoutDiff, withDiff); diff != "" {
		t.Errorf("--diff changes other fields (-without +with):\n%s", diff)
	}
	yaml := run(t, e.manifests(t), "plan", "-f", "-", "-o", "yaml", "--diff")
	e.wantStatus(t, yaml, 3, "")
	if !strings.Contains(yaml.stdout, "  diff:\n    different: true\n") {
		t.Errorf("the YAML contains no diff:\n%s", yaml.stdout)
	}
}

func TestDiffExitStatusDependsOnDifferencesAndErrors(t *testing.T) {
	e := newEdge(t)
	same, changed, both := e.manifests(t, "same"), e.manifests(t, "changed"), e.manifests(t, "same", "changed")
	unhealthy := strings.Replace(both, "- {name: a, hostname", "- {name: z, port: 81, protocol: TCP}\n  - {name: a, hostname", 1)
	notComparable := func(manifests string) string {
		return strings.Replace(manifests, "accountID: main\n  name: prod.platform.same", "accountID: tenant\n  name: prod.platform.same", 1)
	}
	const compareError = "tunnel-gateway: Gateway platform/same: The setting account selects a different tunnel than Tunnel platform.same records. " +
		"Restore the setting, or ask an administrator to delete the Tunnel object to switch.\n"
	const listenerProblem = "Gateway platform/changed listener z: UnsupportedProtocol: Protocol TCP is not supported. Use HTTP or HTTPS.\n"
	for name, test := range map[string]struct {
		manifests string
		flags     []string
		status    int
		stderr    string
	}{
		"no difference":                                    {same, nil, 0, ""},
		"no difference, strict":                            {same, []string{"--strict"}, 0, ""},
		"a difference":                                     {both, nil, 3, ""},
		"a difference, strict":                             {both, []string{"--strict"}, 3, ""},
		"a difference of the only Gateway":                 {changed, nil, 3, ""},
		"a difference and an unexpected condition":         {unhealthy, nil, 3, listenerProblem},
		"a difference and an unexpected condition, strict": {unhealthy, []string{"--strict"}, 2, listenerProblem},
		"a tunnel that cannot be compared":                 {notComparable(both), nil, 1, compareError},
		"a tunnel that cannot be compared, strict":         {notComparable(unhealthy), []string{"--strict"}, 1, listenerProblem + compareError},
		"a tunnel that cannot be compared, as JSON":        {notComparable(both), []string{"-o", "json"}, 1, compareError},
		"no difference of the selected Gateway":            {both, []string{"--gateway", "platform/same"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.manifests, append([]string{"plan", "-f", "-", "--diff"}, test.flags...)...)
			e.wantStatus(t, got, test.status, test.stderr)
			if printed := strings.Contains(got.stdout, "hostname: c.example.com"); printed != (test.status > 0) {
				t.Errorf("the output contains the difference: %t, want %t:\n%s", printed, !printed, got.stdout)
			}
		})
	}
}

func TestPlanWithoutDiffSendsNoRequests(t *testing.T) {
	// Without --diff, plan ignores the settings for Cloudflare.
	e := newEdge(t)
	t.Setenv("CLOUDFLARE_BASE_URL", "nowhere")
	e.wantStatus(t, run(t, e.manifests(t), "plan", "-f", "-"), 0, "")
	if requests := e.Requests(); len(requests) != 0 {
		t.Errorf("requests = %+v, want none", requests)
	}
}

func TestDiffReadsCredentialsFromFlagsEnvironmentAndSecrets(t *testing.T) {
	const missing = "tunnel-gateway: Gateway platform/same: no credentials to read the tunnel: set "
	const alternative = ", or spec.account in the GatewayClass's TunnelConfiguration\n"
	const secret = "---\n{apiVersion: v1, kind: Secret, metadata: {name: cloudflare, namespace: platform}, stringData: {token: token-of-main}}\n"
	for name, test := range map[string]struct {
		environment map[string]string
		flags       []string
		manifests   string
		status      int
		stderr      string
	}{
		"environment": {},
		"flags": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "", "CLOUDFLARE_API_TOKEN": ""},
			flags: []string{"--cloudflare-account-id", "main", "--cloudflare-api-token", "token-of-main"}},
		"flags override the environment": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "none", "CLOUDFLARE_API_TOKEN": "none"},
			flags: []string{"--cloudflare-account-id", "main", "--cloudflare-api-token", "token-of-main"}},
		"Secret": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""}, manifests: secret,
			flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}},
		"missing Secret": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""},
			flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}, status: 1,
			stderr: "tunnel-gateway: Gateway platform/same: cannot read the API token from Secret platform/cloudflare: it does not exist\n"},
		"Secret with an invalid token": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""}, manifests: strings.Replace(secret, "token-of-main", `"token-of-main x"`, 1),
			flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}, status: 1,
			stderr: "tunnel-gateway: Gateway platform/same: cannot read the API token from Secret platform/cloudflare: cloudflare options: APIToken contains a character that is not allowed in an API token; check for a trailing line break\n"},
		"no token": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""}, status: 1,
			stderr: missing + "--cloudflare-api-token (or CLOUDFLARE_API_TOKEN)" + alternative},
		"no account": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": ""}, status: 1,
			stderr: missing + "--cloudflare-account-id (or CLOUDFLARE_ACCOUNT_ID)" + alternative},
		"neither account nor token": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "", "CLOUDFLARE_API_TOKEN": ""}, status: 1,
			stderr: missing + "--cloudflare-account-id (or CLOUDFLARE_ACCOUNT_ID) and --cloudflare-api-token (or CLOUDFLARE_API_TOKEN)" + alternative},
		"two tokens": {flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}, status: 1,
			stderr: "tunnel-gateway: --cloudflare-api-token-secret (or CLOUDFLARE_API_TOKEN_SECRET) must not be set together with --cloudflare-api-token (or CLOUDFLARE_API_TOKEN)\n"},
		"invalid URL": {environment: map[string]string{"CLOUDFLARE_BASE_URL": "nowhere"}, status: 1,
			stderr: "tunnel-gateway: --cloudflare-base-url (or CLOUDFLARE_BASE_URL) must be an absolute http or https URL\n"},
		"invalid token": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": "token-of-main!"}, status: 1,
			stderr: "tunnel-gateway: --cloudflare-api-token (or CLOUDFLARE_API_TOKEN) must contain only letters, digits, '-' and '_'\n"},
		"invalid color mode": {flags: []string{"--color", "red"}, status: 1,
			stderr: `tunnel-gateway: --color must be one of auto, always, never, got "red"` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t)
			for variable, value := range test.environment {
				t.Setenv(variable, e.replacer().Replace(value))
			}
			arguments := []string{"plan", "-f", "-", "--diff"}
			for _, flag := range test.flags {
				arguments = append(arguments, e.replacer().Replace(flag))
			}
			got := run(t, e.manifests(t, "same")+e.replacer().Replace(test.manifests), arguments...)
			e.wantStatus(t, got, test.status, test.stderr)
			want := "Gateway platform/same: no difference\n"
			switch {
			case strings.HasPrefix(test.stderr, "tunnel-gateway: Gateway"):
				want = "Gateway platform/same: not compared\n"
			case test.status != 0:
				want = ""
			}
			if got.stdout != want {
				t.Errorf("stdout = %q, want %q", got.stdout, want)
			}
			if tokens := e.usedTokens["main"]; test.status == 0 && !cmp.Equal(tokens, map[string]bool{e.mainToken: true}) {
				t.Errorf("requests used the tokens %v, want %s", tokens, e.mainToken)
			}
		})
	}
}

func TestDiffOfANewTunnelNeedsNoCredentials(t *testing.T) {
	// Without a Tunnel and a cluster ID, plan does not know the tunnel name and reads
	// nothing from Cloudflare.
	e := newEdge(t)
	t.Setenv("CLOUDFLARE_ACCOUNT_ID", "")
	t.Setenv("CLOUDFLARE_API_TOKEN", "")
	e.wantStatus(t, run(t, e.manifests(t, "new"), "plan", "-f", "-", "--diff"), 3, "")
}

func TestDiffFindsATunnelByNameAndClusterID(t *testing.T) {
	e := newEdge(t)
	e.createTunnel(t, "main", "prod.platform.new", `{"ingress":[{"service":"http_status:404"}]}`)
	for id, want := range map[string]string{
		"prod": "Gateway platform/new: Tunnel prod.platform.new (" + e.ids["prod.platform.new"] + ") has the name of this Gateway's tunnel, so the controller uses it and replaces its configuration.\n--- tunnel ",
		"test": "Gateway platform/new: The tunnel does not exist yet. The controller creates it with the name test.platform.new.\n--- new tunnel\n",
	} {
		got := run(t, e.manifests(t, "new"), "plan", "-f", "-", "--diff", "--cluster-id", id)
		e.wantStatus(t, got, 3, "")
		if !strings.HasPrefix(got.stdout, want) {
			t.Errorf("with cluster ID %s, stdout =\n%s", id, got.stdout)
		}
	}
}

func TestDiffRedactsTheTokenInErrors(t *testing.T) {
	e := newEdge(t)
	e.rejecting = true
	got := run(t, e.manifests(t), "plan", "-f", "-", "--diff")
	var want strings.Builder
	for _, name := range []string{"changed", "new", "same", "tenant"} {
		account := map[bool]string{true: "tenant", false: "main"}[name == "tenant"]
		operation, path := fmt.Sprintf("read the configuration of tunnel %q", e.ids[name]), "/"+e.ids[name]+"/configurations"
		if name == "new" {
			operation, path = `find tunnel "prod.platform.new"`, ""
		}
		fmt.Fprintf(&want, "tunnel-gateway: Gateway platform/%s: %s: the Cloudflare API rejected the API token: "+
			"GET /client/v4/accounts/%s/cfd_tunnel%s: 403 Forbidden: refused [redacted] (code 10000); "+
			"the API token requires the permission Cloudflare Tunnel: Read\n", name, operation, account, path)
	}
	e.wantStatus(t, got, 1, want.String())
	e.wantStatus(t, run(t, "", "plan", "--help"), 0, "")
}

func TestDiffUsesColorsAsTheFlagRequires(t *testing.T) {
	e := newEdge(t)
	plain := run(t, e.manifests(t), "plan", "-f", "-", "--diff")
	for name, test := range map[string]struct {
		flags   []string
		noColor string
		want    bool
	}{
		"auto, without a terminal": {flags: []string{"--color", "auto"}},
		"never":                    {flags: []string{"--color", "never"}},
		"always":                   {flags: []string{"--color", "always"}, want: true},
		"always, with NO_COLOR":    {flags: []string{"--color=always"}, noColor: "1", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", test.noColor)
			got := run(t, e.manifests(t), append([]string{"plan", "-f", "-", "--diff"}, test.flags...)...)
			e.wantStatus(t, got, 3, "")
			if colored := strings.Contains(got.stdout, "\x1b["); colored != test.want {
				t.Errorf("the output has colors: %t, want %t", colored, test.want)
			}
			if diff := cmp.Diff(plain.stdout, regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(got.stdout, "")); diff != "" {
				t.Errorf("the output without its colors differs (-want +got):\n%s", diff)
			}
		})
	}
}
