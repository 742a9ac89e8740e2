package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
)

// update rewrites the golden files. Read the diff before you commit it: other
// programs read this output.
var update = flag.Bool("update", false, "rewrite the golden files")

const samples = "../../config/samples"

// outcome is what a command leaves behind.
type outcome struct {
	status      int
	stdout, err string
}

// run carries out a command with text on standard input.
func run(t *testing.T, stdin string, arguments ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := cli.Run(t.Context(), append([]string{"bin/tunnel-gateway"}, arguments...), cli.Streams{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	// A machine may be slow.
	told := strings.ReplaceAll(stderr.String(), "reading the manifests ...\n", "")
	return outcome{status, stdout.String(), told}
}

// wantStdout carries out a command that succeeds without a word on stderr, but for
// the folders of the samples.
func wantStdout(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	got := run(t, stdin, arguments...)
	ofSamples := strings.HasPrefix(got.err, "skipped subdirectories: "+samples+"/") && strings.Count(got.err, "\n") == 1
	if got.status != 0 || got.err != "" && !ofSamples {
		t.Fatalf("%q ended with status %d: %s", arguments, got.status, got.err)
	}
	return got.stdout
}

// TestPlanGolden holds the output of plan for the samples against
// testdata/samples.*, to the byte.
func TestPlanGolden(t *testing.T) {
	for file, format := range map[string]string{"samples.golden.json": "json", "samples.golden.txt": "table"} {
		t.Run(format, func(t *testing.T) {
			wantGolden(t, filepath.Join("testdata", file), wantStdout(t, "", "plan", "-f", samples, "-o", format))
		})
	}
}

func TestPlanFormats(t *testing.T) {
	if table, byDefault := wantStdout(t, "", "plan", "-f", samples, "--output", "table"), wantStdout(t, "", "plan", "-f", samples); table != byDefault {
		t.Errorf("without -o the output differs from the table (-table +default):\n%s", cmp.Diff(table, byDefault))
	}
	var want, got any
	for format, into := range map[string]*any{"json": &want, "yaml": &got} {
		if err := yaml.Unmarshal([]byte(wantStdout(t, "", "plan", "-f", samples, "-o", format)), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("YAML and JSON differ (-json +yaml):\n%s", diff)
	}
}

const gatewayManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: a, hostname: a.example.com, port: 80, protocol: HTTP}]
`

const routeManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: shared}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`

const serviceManifest = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
`

// tunnelManifest is the Tunnel of the Gateway in another namespace than the
// default.
const tunnelManifest = `---
apiVersion: tunnelgateway.dev/v1alpha1
kind: Tunnel
metadata: {name: default.shared, namespace: system}
spec:
  gateway: {namespace: default, name: shared}
  controllerName: tunnelgateway.dev/controller
  clusterUID: b1c5e9a4-5a0f-4a2e-9d4b-0f3f5a0c7c11
  accountID: account
  name: prod.default.shared
  deletionPolicy: Delete
status: {tunnelID: 11111111-1111-4111-8111-111111111111}
`

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// However the manifests come, the plan is the same.
func TestPlanReadsManifestsFromEverywhere(t *testing.T) {
	all := strings.Join([]string{gatewayManifest, routeManifest, serviceManifest}, "---\n")
	var items []json.RawMessage
	for _, manifest := range []string{gatewayManifest, routeManifest, serviceManifest} {
		item, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	g := write(t, filepath.Join(dir, "gateway.yaml"), gatewayManifest)
	r := write(t, filepath.Join(dir, "route.yml"), routeManifest)
	s := write(t, filepath.Join(dir, "service.yaml"), serviceManifest)
	want := wantStdout(t, all, "plan", "-o", "json", "-f", "-")
	for name, test := range map[string]struct {
		stdin     string
		arguments []string
	}{
		"several -f":                 {"", []string{"-f", g, "-f", r, "-f", s}},
		"several -f, another order":  {"", []string{"-f", s, "-f", r, "-f", g}},
		"a directory":                {"", []string{"-f", dir}},
		"files and standard input":   {routeManifest, []string{"-f", s, "-f", "-", "-f", g}},
		"a List":                     {string(list), []string{"--filename=-"}},
		"another version of the API": {strings.ReplaceAll(all, "gateway.networking.k8s.io/v1\n", "gateway.networking.k8s.io/v1beta1\n"), []string{"-f", "-"}},
		"the namespace written out":  {strings.ReplaceAll(all, "metadata: {", "metadata: {namespace: default, "), []string{"-f", "-"}},
		"the default namespace":      {all, []string{"-f", "-", "--namespace", "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := wantStdout(t, test.stdin, append([]string{"plan", "-o", "json"}, test.arguments...)...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanFlags(t *testing.T) {
	all := strings.Join([]string{gatewayManifest, routeManifest, serviceManifest}, "---\n")
	for name, test := range map[string]struct {
		stdin     string
		arguments []string
		want      string
	}{
		"--namespace":            {all, []string{"--namespace", "team"}, `"service": "http://web.team.svc.cluster.local:80"`},
		"--cluster-domain":       {all, []string{"--cluster-domain", "k8s.example"}, `"service": "http://web.default.svc.k8s.example:80"`},
		"--controller-namespace": {all + tunnelManifest, []string{"--controller-namespace", "system"}, `"value": "11111111-1111-4111-8111-111111111111.cfargotunnel.com"`},
		"--controller-name": {all + "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: cloudflare-tunnel}, spec: {controllerName: example.com/c}}",
			[]string{"--controller-name", "example.com/c"}, `"controllerName": "example.com/c"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := wantStdout(t, test.stdin, append([]string{"plan", "-f", "-", "-o", "json"}, test.arguments...)...)
			if !strings.Contains(got, test.want) {
				t.Errorf("the plan has no %s:\n%s", test.want, got)
			}
		})
	}
}

func TestPlanCountsWhatItSkips(t *testing.T) {
	const others = `---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
`
	dir := t.TempDir()
	for _, folder := range []string{"teams", ".git"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "gateway.yaml"), gatewayManifest)
	if got, want := run(t, "", "plan", "-f", dir).err, "skipped subdirectories: "+filepath.Join(dir, "teams")+"\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	want := wantStdout(t, gatewayManifest, "plan", "-f", "-", "-o", "json")
	got := run(t, gatewayManifest+others, "plan", "-f", "-", "-o", "json")
	if got.status != 0 || got.err != "skipped 2 of kind Deployment.apps\n" {
		t.Errorf("status %d, stderr %q", got.status, got.err)
	}
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("skipped kinds change the plan (-without +with):\n%s", diff)
	}
}

func TestPlanStrict(t *testing.T) {
	good := wantStdout(t, gatewayManifest, "plan", "-f", "-", "--strict")
	if !strings.Contains(good, "a.example.com") {
		t.Errorf("--strict prints %q", good)
	}
	conflict := strings.Replace(gatewayManifest, "port: 80, protocol: HTTP}]", "port: 80, protocol: TCP}]", 1)
	conflict = strings.Replace(conflict, "hostname: a.example.com, ", "", 1)
	want := wantStdout(t, conflict, "plan", "-f", "-")
	got := run(t, conflict, "plan", "-f", "-", "--strict")
	if got.status != 2 || got.stdout != want {
		t.Errorf("status %d, want 2 and the whole plan:\n%s", got.status, got.stdout)
	}
}

// withoutCluster hides the clusters of whoever runs the tests.
func withoutCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

// Manifests alone are planned without a look at any cluster.
func TestPlanOfManifestsReadsNoKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", write(t, filepath.Join(t.TempDir(), "broken"), "{"))
	wantStdout(t, gatewayManifest, "plan", "-f", "-")
}

func TestPlanOfOneGateway(t *testing.T) {
	other := strings.NewReplacer("name: shared", "name: other", "a.example.com", "b.example.com").Replace(gatewayManifest)
	all := strings.Join([]string{gatewayManifest, other, routeManifest, serviceManifest}, "---\n")
	got := wantStdout(t, all, "plan", "-f", "-", "-o", "json", "--gateway", "default/shared")
	want := wantStdout(t, strings.Join([]string{gatewayManifest, routeManifest, serviceManifest}, "---\n"), "plan", "-f", "-", "-o", "json")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the plan differs from one without the other Gateway (-want +got):\n%s", diff)
	}
}

// Nothing is half-printed on an error, and the error says what and where.
func TestPlanErrors(t *testing.T) {
	withoutCluster(t)
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o750); err != nil {
		t.Fatal(err)
	}
	broken := write(t, filepath.Join(dir, "broken.yaml"), gatewayManifest+"---\n"+strings.Replace(gatewayManifest, "port: 80", "port: 80, colour: red", 1))
	for name, test := range map[string]struct {
		stdin     string
		arguments []string
		want      []string
	}{
		"no manifests and no cluster": {arguments: nil, want: []string{"--kubeconfig", "--filename"}},
		"no such kubeconfig":          {arguments: []string{"--kubeconfig", "no-such-kubeconfig"}, want: []string{"no-such-kubeconfig"}},
		"no such context":             {arguments: []string{"-f", samples, "--context", "production"}, want: []string{`"production"`, "--kubeconfig"}},
		"a namespace of no manifests": {arguments: []string{"--namespace", "team"}, want: []string{"--namespace", "--filename"}},
		"not the name of a Gateway":   {arguments: []string{"-f", samples, "--gateway", "shared"}, want: []string{"--gateway", `"shared"`, "namespace/name"}},
		"half the name of a Gateway":  {arguments: []string{"-f", samples, "--gateway", "platform/"}, want: []string{"--gateway", "namespace/name"}},
		"no such Gateway":             {arguments: []string{"-f", samples, "--gateway", "platform/none"}, want: []string{"platform/none: not found", "platform/shared"}},
		"no such file":                {arguments: []string{"-f", "no-such-file.yaml"}, want: []string{"no-such-file.yaml"}},
		"an empty directory":          {arguments: []string{"-f", empty}, want: []string{empty}},
		"an unknown format":           {arguments: []string{"-f", samples, "-o", "xml"}, want: []string{"--output", `"xml"`, "table, yaml, json"}},
		"an unknown flag":             {arguments: []string{"-f", samples, "--colour"}, want: []string{"--colour"}},
		"an argument":                 {arguments: []string{samples}, want: []string{samples, "plan takes no arguments", "named with -f"}},
		"no file name":                {arguments: []string{"-f", ""}, want: []string{"--filename is empty"}},
		"no request":                  {arguments: []string{"-f", samples, "--why", ""}, want: []string{"--why is empty"}},
		"a request without a host":    {arguments: []string{"-f", samples, "--why", "/cart"}, want: []string{`--why: "/cart" has no hostname; use HOST, HOST/PATH or a URL`}},
		"a request and --diff":        {arguments: []string{"-f", samples, "--why", "a.example.com", "--diff"}, want: []string{"--why and --diff cannot be given together"}},
		"a namespace, as of kubectl":  {arguments: []string{"-n", "team"}, want: []string{"'n' in -n", "all namespaces are read, see --gateway"}},
		"all namespaces":              {arguments: []string{"-A"}, want: []string{"all namespaces are read, see --gateway"}},
		"a template":                  {stdin: "kind: {{ .Values.kind }}\n", arguments: []string{"-f", "-"}, want: []string{"stdin: document 1", "looks like a template; render it first"}},
		"not YAML":                    {stdin: gatewayManifest + "---\n{", arguments: []string{"-f", "-"}, want: []string{"stdin", "document 2"}},
		"an unknown field":            {arguments: []string{"-f", broken}, want: []string{broken, "document 2", "spec.listeners[0].colour"}},
		"a value not allowed":         {stdin: strings.Replace(gatewayManifest, "port: 80", "port: 0", 1), arguments: []string{"-f", "-"}, want: []string{"stdin", "document 1", "spec.listeners[0].port"}},
		"a broken rule of the API": {stdin: strings.Replace(gatewayManifest, "[{name: a,", "[{name: b, hostname: a.example.com, port: 80, protocol: HTTP}, {name: a,", 1),
			arguments: []string{"-f", "-"}, want: []string{"stdin", "document 1", "spec.listeners"}},
		"the same object twice":      {stdin: gatewayManifest + "---\n" + gatewayManifest, arguments: []string{"-f", "-"}, want: []string{"document 2", "Gateway default/shared"}},
		"a bad cluster domain":       {arguments: []string{"-f", samples, "--cluster-domain", "cluster.local."}, want: []string{"--cluster-domain"}},
		"no cluster domain":          {arguments: []string{"-f", samples, "--cluster-domain", ""}, want: []string{"--cluster-domain"}},
		"a bad namespace":            {arguments: []string{"-f", samples, "--namespace", "Team A"}, want: []string{"--namespace"}},
		"a bad controller namespace": {arguments: []string{"-f", samples, "--controller-namespace", "a.b"}, want: []string{"--controller-namespace"}},
		"a bad cluster ID":           {arguments: []string{"-f", samples, "--cluster-id", "a.b"}, want: []string{"--cluster-id"}},
		"a bad controller name":      {arguments: []string{"-f", samples, "--controller-name", "controller"}, want: []string{"--controller-name"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strict := range []string{"--strict=false", "--strict"} {
				got := run(t, test.stdin, append([]string{"plan", strict}, test.arguments...)...)
				if got.status != 1 || got.stdout != "" {
					t.Errorf("%s: status %d and %d bytes on stdout, want 1 and none", strict, got.status, len(got.stdout))
				}
				for _, want := range test.want {
					if !strings.Contains(got.err, want) {
						t.Errorf("%s: error %q does not name %s", strict, got.err, want)
					}
				}
			}
		})
	}
}

// errWriter stands for a pipe that nobody reads.
type errWriter struct{}

func (errWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPlanSaysThatItCouldNotPrint(t *testing.T) {
	var stderr bytes.Buffer
	status := cli.Run(t.Context(), []string{"tunnel-gateway", "plan", "-f", samples}, cli.Streams{In: strings.NewReader(""), Out: errWriter{}, Err: &stderr})
	if status != 1 || !strings.Contains(stderr.String(), "printing the plan") {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
}

// TestPlanWhy: --why prints the trail of a request instead of the plan, in every
// format; the plan decides the exit status all the same.
func TestPlanWhy(t *testing.T) {
	const request = "https://TEAM-A.example.com:8443/api/orders?of=today"
	arguments := func(more ...string) []string {
		return append([]string{"plan", "-f", "../../config/samples", "--why", request}, more...)
	}
	for format, want := range map[string]string{
		"table": "Answered by rule 1 (team-a.example.com, ^/api(/|$)) of HTTPRoute team-a/web rule 0 match 0 -> http://api.team-a.svc.cluster.local:8080\n",
		"json":  `"host": "team-a.example.com"`,
		"yaml":  "path: /api/orders\n",
	} {
		if text := wantStdout(t, "", arguments("-o", format)...); !strings.Contains(text, want) {
			t.Errorf("%s does not have %q:\n%s", format, want, text)
		}
	}
	if got := run(t, "", arguments("--strict")...); got.status != 2 || got.stdout == "" {
		t.Errorf("with --strict the status is %d", got.status)
	}
	if got := run(t, "", arguments("--diff")...); got.status != 1 || !strings.Contains(got.err, "why") {
		t.Errorf("with --diff: status %d, %s", got.status, got.err)
	}
	if got := run(t, "", "plan", "-f", "../../config/samples", "--why", "*.example.com"); got.status != 1 || !strings.Contains(got.err, "--why") {
		t.Errorf("a wildcard: status %d, %s", got.status, got.err)
	}
}

// A team's files alone have no Gateway, which is nothing to be green about.
func TestPlanOfATeamAlone(t *testing.T) {
	const stray = "1 HTTPRoute refers to parents that are not among the manifests (Gateway default/shared): add --context to lay them over a cluster.\n"
	for name, test := range map[string]struct {
		flags       []string
		stdout, err string
		status      int
	}{
		"table":         {nil, "No Gateway uses this controller.\n" + stray, "", 0},
		"table, strict": {[]string{"--strict"}, "No Gateway uses this controller.\n" + stray, "", 2},
		"yaml":          {[]string{"-o", "yaml"}, "gateways: []\nstatuses: []\n", "warning: " + stray, 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := outcome{test.status, test.stdout, test.err}
			got := run(t, routeManifest, append([]string{"plan", "-f", "-"}, test.flags...)...)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := run(t, "", "plan", "-f", "-", "--strict"); got.status != 2 {
		t.Errorf("of nothing, the status is %d, want 2", got.status)
	}
}

// A pipe that nobody writes to does not hold up who ends the command.
func TestPlanIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	go cancel()
	var stdout, stderr bytes.Buffer
	status := cli.Run(ctx, []string{"tunnel-gateway", "plan", "-f", "-"}, cli.Streams{In: in, Out: &stdout, Err: &stderr})
	if got := (outcome{status, stdout.String(), stderr.String()}); got != (outcome{1, "", "tunnel-gateway: interrupted\n"}) {
		t.Errorf("it ends with %+v", got)
	}
}
