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
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// edge is a Cloudflare with the tunnels of testdata/diff.in.yaml.
type edge struct {
	*simulator.Server
	url string
	// ids has the tunnels by name.
	ids map[string]string
	// ours and theirs are the tokens; every test has others, and so another budget
	// of requests.
	ours, theirs string

	mu sync.Mutex
	// used has the tokens of all requests, by account.
	used map[string]map[string]bool
	// refusing: every token is refused, in an answer that repeats it.
	refusing bool
}

// newEdge starts one, and leaves the environment to tell of it.
func newEdge(t *testing.T) *edge {
	t.Helper()
	e := &edge{Server: simulator.New(simulator.Options{}), ids: map[string]string{}, ours: rand.Text(), theirs: rand.Text()}
	server := httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(server.Close)
	e.url = server.URL + "/client/v4"
	e.used = map[string]map[string]bool{}
	const catchAll = `{"service":"http_status:404"}`
	e.tunnel(t, "ours", "changed", `{"ingress":[{"hostname":"a.example.com","service":"http://web.platform.svc.cluster.local:80"},
		{"hostname":"b.example.com","service":"http://old.platform.svc.cluster.local:80"},`+catchAll+`],"warp-routing":{"enabled":true}}`)
	e.tunnel(t, "ours", "same", `{"ingress":[`+catchAll+`]}`)
	e.tunnel(t, "theirs", "theirs", `{"ingress":[`+catchAll+`],"originRequest":{"connectTimeout":30}}`)
	e.ResetRequests()
	e.used = map[string]map[string]bool{}
	for variable, value := range map[string]string{
		"CLOUDFLARE_ACCOUNT_ID": "ours", "CLOUDFLARE_API_TOKEN": e.ours, "CLOUDFLARE_BASE_URL": e.url,
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
	if e.used[account] == nil {
		e.used[account] = map[string]bool{}
	}
	e.used[account][token] = true
	refused := e.refusing
	e.mu.Unlock()
	if refused {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"success": false, "errors": []any{map[string]any{"code": 10000, "message": "refused " + token}}})
		return
	}
	e.API().ServeHTTP(w, r)
}

func (e *edge) tunnel(t *testing.T, account, name, document string) {
	t.Helper()
	p, err := cloudflare.New(cloudflare.Options{AccountID: account, APIToken: e.ours, BaseURL: e.url})
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := p.CreateTunnel(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	e.SetConfiguration(string(tunnel.ID), json.RawMessage(document))
	e.ids[name] = string(tunnel.ID)
}

// manifests are those of the file with the tunnels that there are, and with the
// Gateways of these names and what refers to them, or with all.
func (e *edge) manifests(t *testing.T, gateways ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/diff.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, document := range strings.Split(e.names().Replace(string(text)), "---\n") {
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

func (e *edge) names() *strings.Replacer {
	pairs := []string{"token-of-theirs", e.theirs, "token-of-ours", e.ours}
	for name, id := range e.ids {
		pairs = append(pairs, "ID-OF-"+strings.ToUpper(name), id)
	}
	return strings.NewReplacer(pairs...)
}

// anonymous takes the tunnels' IDs out of an output again.
func (e *edge) anonymous(text string) string {
	for name, id := range e.ids {
		text = strings.ReplaceAll(text, id, "ID-OF-"+strings.ToUpper(name))
	}
	return text
}

// wantGolden holds text against a file, or writes that.
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
		t.Fatalf("%v; go test ./internal/cli -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); go test ./internal/cli -update rewrites it:\n%s", path, diff)
	}
}

func (e *edge) wantStatus(t *testing.T, got outcome, status int, stderr string) {
	t.Helper()
	if got.status != status || got.err != stderr {
		t.Errorf("status %d, stderr %q; want %d, %q", got.status, got.err, status, stderr)
	}
	if all := got.stdout + got.err; strings.Contains(all, e.ours) || strings.Contains(all, e.theirs) {
		t.Errorf("the output shows a token:\n%s", all)
	}
}

func TestDiffGolden(t *testing.T) {
	e := newEdge(t)
	got := run(t, e.manifests(t), "plan", "-f", "-", "--diff")
	e.wantStatus(t, got, 3, "")
	wantGolden(t, "testdata/diff.golden.txt", e.anonymous(got.stdout))
	for _, request := range e.Requests() {
		if request.Method != http.MethodGet || !strings.HasSuffix(request.Path, "/configurations") && !strings.HasSuffix(request.Path, "/accounts/ours/cfd_tunnel") {
			t.Errorf("it makes the request %s %s", request.Method, request.Path)
		}
	}
	want := map[string]map[string]bool{"ours": {e.ours: true}, "theirs": {e.theirs: true}}
	if diff := cmp.Diff(want, e.used); diff != "" || len(e.Requests()) != 4 {
		t.Errorf("%d requests, want 4; the tokens differ (-want +got):\n%s", len(e.Requests()), diff)
	}
}

func TestDiffJSON(t *testing.T) {
	e := newEdge(t)
	plain := run(t, e.manifests(t), "plan", "-f", "-", "-o", "json")
	got := run(t, e.manifests(t), "plan", "-f", "-", "-o", "json", "--diff", "--color", "always")
	e.wantStatus(t, plain, 0, "")
	e.wantStatus(t, got, 3, "")
	var with, without map[string]any
	for text, into := range map[string]*map[string]any{got.stdout: &with, plain.stdout: &without} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	different := map[any]any{}
	for _, g := range with["gateways"].([]any) {
		fields := g.(map[string]any)
		diff := fields["diff"].(map[string]any)
		different[fields["name"]] = diff["different"]
		if strings.Contains(diff["unified"].(string), "\x1b") {
			t.Errorf("Gateway %s has colours", fields["name"])
		}
		delete(fields, "diff")
	}
	if diff := cmp.Diff(map[any]any{"changed": true, "same": false, "new": true, "theirs": true}, different); diff != "" {
		t.Errorf("what is different differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("--diff changes more than it adds (-without +with):\n%s", diff)
	}
	yaml := run(t, e.manifests(t), "plan", "-f", "-", "-o", "yaml", "--diff")
	e.wantStatus(t, yaml, 3, "")
	if !strings.Contains(yaml.stdout, "  diff:\n    different: true\n") {
		t.Errorf("the YAML has no diff:\n%s", yaml.stdout)
	}
}

func TestDiffExitStatus(t *testing.T) {
	e := newEdge(t)
	same, changed, both := e.manifests(t, "same"), e.manifests(t, "changed"), e.manifests(t, "same", "changed")
	bad := strings.Replace(both, "- {name: a, hostname", "- {name: z, port: 81, protocol: TCP}\n  - {name: a, hostname", 1)
	breaking := func(manifests string) string {
		return strings.Replace(manifests, "accountID: ours\n  name: prod.platform.same", "accountID: theirs\n  name: prod.platform.same", 1)
	}
	const why = "tunnel-gateway: Gateway platform/same: The setting account asks for another tunnel than Tunnel platform.same records. " +
		"Restore the setting, or ask an administrator to delete the Tunnel object to switch.\n"
	const listener = "Gateway platform/changed listener z: UnsupportedProtocol: Protocol TCP is not supported. Use HTTP or HTTPS.\n"
	for name, test := range map[string]struct {
		manifests string
		flags     []string
		status    int
		stderr    string
	}{
		"no difference":                          {same, nil, 0, ""},
		"no difference, strict":                  {same, []string{"--strict"}, 0, ""},
		"a difference":                           {both, nil, 3, ""},
		"a difference, strict":                   {both, []string{"--strict"}, 3, ""},
		"a difference alone":                     {changed, nil, 3, ""},
		"a difference and a bad condition":       {bad, nil, 3, listener},
		"the same, strict":                       {bad, []string{"--strict"}, 2, listener},
		"a tunnel that is not compared":          {breaking(both), nil, 1, why},
		"a tunnel that is not compared, strict":  {breaking(bad), []string{"--strict"}, 1, listener + why},
		"a tunnel that is not compared, as JSON": {breaking(both), []string{"-o", "json"}, 1, why},
		"of one Gateway":                         {both, []string{"--gateway", "platform/same"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.manifests, append([]string{"plan", "-f", "-", "--diff"}, test.flags...)...)
			e.wantStatus(t, got, test.status, test.stderr)
			if shown := strings.Contains(got.stdout, "hostname: c.example.com"); shown != (test.status > 0) {
				t.Errorf("the difference is shown: %t:\n%s", shown, got.stdout)
			}
		})
	}
}

// Without --diff, plan neither calls Cloudflare nor looks at the settings for it.
func TestPlanWithoutDiffAsksNothing(t *testing.T) {
	e := newEdge(t)
	t.Setenv("CLOUDFLARE_BASE_URL", "nowhere")
	e.wantStatus(t, run(t, e.manifests(t), "plan", "-f", "-"), 0, "")
	if requests := e.Requests(); len(requests) != 0 {
		t.Errorf("requests %+v", requests)
	}
}

func TestDiffCredentials(t *testing.T) {
	const none = "tunnel-gateway: Gateway platform/same: its tunnel cannot be read without "
	const class = ", or spec.account in the TunnelConfiguration of its GatewayClass\n"
	const secret = "---\n{apiVersion: v1, kind: Secret, metadata: {name: cloudflare, namespace: platform}, stringData: {token: token-of-ours}}\n"
	for name, test := range map[string]struct {
		environment map[string]string
		flags       []string
		more        string
		status      int
		stderr      string
	}{
		"from the environment": {},
		"from flags": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "", "CLOUDFLARE_API_TOKEN": ""},
			flags: []string{"--cloudflare-account-id", "ours", "--cloudflare-api-token", "token-of-ours"}},
		"flags before the environment": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "none", "CLOUDFLARE_API_TOKEN": "none"},
			flags: []string{"--cloudflare-account-id", "ours", "--cloudflare-api-token", "token-of-ours"}},
		"from a Secret": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""}, more: secret,
			flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}},
		"from a Secret that is not there": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""},
			flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}, status: 1,
			stderr: "tunnel-gateway: Gateway platform/same: the API token cannot be taken from Secret platform/cloudflare: it does not exist\n"},
		"from a Secret with nonsense": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""}, more: strings.Replace(secret, "token-of-ours", `"token-of-ours x"`, 1),
			flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}, status: 1,
			stderr: "tunnel-gateway: Gateway platform/same: the API token cannot be taken from Secret platform/cloudflare: cloudflare options: APIToken has characters that no token has, perhaps a line break at its end\n"},
		"no token": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": ""}, status: 1,
			stderr: none + "--cloudflare-api-token (or CLOUDFLARE_API_TOKEN)" + class},
		"no account": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": ""}, status: 1,
			stderr: none + "--cloudflare-account-id (or CLOUDFLARE_ACCOUNT_ID)" + class},
		"neither": {environment: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "", "CLOUDFLARE_API_TOKEN": ""}, status: 1,
			stderr: none + "--cloudflare-account-id (or CLOUDFLARE_ACCOUNT_ID) and --cloudflare-api-token (or CLOUDFLARE_API_TOKEN)" + class},
		"two tokens": {flags: []string{"--cloudflare-api-token-secret", "platform/cloudflare"}, status: 1,
			stderr: "tunnel-gateway: --cloudflare-api-token-secret (or CLOUDFLARE_API_TOKEN_SECRET) cannot be given together with --cloudflare-api-token (or CLOUDFLARE_API_TOKEN)\n"},
		"no URL": {environment: map[string]string{"CLOUDFLARE_BASE_URL": "nowhere"}, status: 1,
			stderr: "tunnel-gateway: --cloudflare-base-url (or CLOUDFLARE_BASE_URL) is not an absolute http or https URL\n"},
		"no token by its form": {environment: map[string]string{"CLOUDFLARE_API_TOKEN": "token-of-ours!"}, status: 1,
			stderr: "tunnel-gateway: --cloudflare-api-token (or CLOUDFLARE_API_TOKEN) has characters that no token has\n"},
		"no way of colours": {flags: []string{"--color", "red"}, status: 1,
			stderr: `tunnel-gateway: --color "red" is none of auto, always, never` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t)
			for variable, value := range test.environment {
				t.Setenv(variable, e.names().Replace(value))
			}
			arguments := []string{"plan", "-f", "-", "--diff"}
			for _, flag := range test.flags {
				arguments = append(arguments, e.names().Replace(flag))
			}
			got := run(t, e.manifests(t, "same")+e.names().Replace(test.more), arguments...)
			e.wantStatus(t, got, test.status, test.stderr)
			want := "Gateway platform/same: no difference\n"
			switch {
			case strings.HasPrefix(test.stderr, "tunnel-gateway: Gateway"):
				want = "Gateway platform/same: not compared\n"
			case test.status != 0:
				want = ""
			}
			if got.stdout != want {
				t.Errorf("stdout %q, want %q", got.stdout, want)
			}
			if tokens := e.used["ours"]; test.status == 0 && !cmp.Equal(tokens, map[string]bool{e.ours: true}) {
				t.Errorf("it uses the tokens %v", tokens)
			}
		})
	}
}

// Nothing is read for a Gateway without a Tunnel when the name of its tunnel is
// not known.
func TestDiffOfANewTunnelNeedsNoCredentials(t *testing.T) {
	e := newEdge(t)
	t.Setenv("CLOUDFLARE_ACCOUNT_ID", "")
	t.Setenv("CLOUDFLARE_API_TOKEN", "")
	e.wantStatus(t, run(t, e.manifests(t, "new"), "plan", "-f", "-", "--diff"), 3, "")
}

// With a cluster ID the tunnel of a Gateway is found by its name.
func TestDiffClusterID(t *testing.T) {
	e := newEdge(t)
	e.tunnel(t, "ours", "prod.platform.new", `{"ingress":[{"service":"http_status:404"}]}`)
	for id, want := range map[string]string{
		"prod": "Gateway platform/new: Found tunnel prod.platform.new (" + e.ids["prod.platform.new"] + "), which gets the configuration of this Gateway.\n--- tunnel ",
		"test": "Gateway platform/new: The tunnel does not exist yet. The controller creates it with the name test.platform.new.\n--- new tunnel\n",
	} {
		got := run(t, e.manifests(t, "new"), "plan", "-f", "-", "--diff", "--cluster-id", id)
		e.wantStatus(t, got, 3, "")
		if !strings.HasPrefix(got.stdout, want) {
			t.Errorf("with the cluster ID %s it prints\n%s", id, got.stdout)
		}
	}
}

// An answer of the API that repeats the token is not shown as it is.
func TestDiffDoesNotShowTheToken(t *testing.T) {
	e := newEdge(t)
	e.refusing = true
	got := run(t, e.manifests(t), "plan", "-f", "-", "--diff")
	var want strings.Builder
	want.WriteString("tunnel-gateway: ")
	for _, name := range []string{"changed", "new", "same", "theirs"} {
		account := map[bool]string{true: "theirs", false: "ours"}[name == "theirs"]
		what, path := fmt.Sprintf("read the configuration of tunnel %q", e.ids[name]), "/"+e.ids[name]+"/configurations"
		if name == "new" {
			what, path = `find tunnel "prod.platform.new"`, ""
		}
		fmt.Fprintf(&want, "Gateway platform/%s: %s: the Cloudflare API refused the API token: "+
			"GET /client/v4/accounts/%s/cfd_tunnel%s: 403 Forbidden: refused [redacted] (code 10000); "+
			"the API token needs the permission Cloudflare Tunnel: Read of the account\n", name, what, account, path)
	}
	e.wantStatus(t, got, 1, want.String())
	e.wantStatus(t, run(t, "", "plan", "--help"), 0, "")
}

func TestDiffColours(t *testing.T) {
	e := newEdge(t)
	plain := run(t, e.manifests(t), "plan", "-f", "-", "--diff")
	for name, test := range map[string]struct {
		flags   []string
		noColor string
		want    bool
	}{
		"auto is none, for stdout is no terminal": {flags: []string{"--color", "auto"}},
		"never":                  {flags: []string{"--color", "never"}},
		"always":                 {flags: []string{"--color", "always"}, want: true},
		"always, without regard": {flags: []string{"--color=always"}, noColor: "1", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", test.noColor)
			got := run(t, e.manifests(t), append([]string{"plan", "-f", "-", "--diff"}, test.flags...)...)
			e.wantStatus(t, got, 3, "")
			if coloured := strings.Contains(got.stdout, "\x1b["); coloured != test.want {
				t.Errorf("there are colours: %t", coloured)
			}
			if diff := cmp.Diff(plain.stdout, regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(got.stdout, "")); diff != "" {
				t.Errorf("but for colours the output differs (-want +got):\n%s", diff)
			}
		})
	}
}
