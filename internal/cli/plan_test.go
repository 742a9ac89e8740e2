package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
)

// update rewrites the golden files. Review the diff before you commit it, because
// programs depend on this output.
var update = flag.Bool("update", false, "rewrite the golden files")

const samples = "../../config/samples"

// outcome is what a command returned and printed.
type outcome struct {
	status         int
	stdout, stderr string
}

// run executes a command with stdin as standard input.
func run(t *testing.T, stdin string, arguments ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := cli.Run(t.Context(), append([]string{"bin/tunnel-gateway"}, arguments...), cli.Streams{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	// On a slow machine, the command reports its progress.
	messages := strings.ReplaceAll(stderr.String(), "reading the manifests ...\n", "")
	return outcome{status, stdout.String(), messages}
}

// wantStdout executes a command that must succeed, and returns its standard output.
// stderr may mention only the subdirectories that plan skips in the samples.
func wantStdout(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	got := run(t, stdin, arguments...)
	skippedSamples := strings.HasPrefix(got.stderr, "skipped subdirectories: "+samples+"/") && strings.Count(got.stderr, "\n") == 1
	if got.status != 0 || got.stderr != "" && !skippedSamples {
		t.Fatalf("%q exited with status %d: %s", arguments, got.status, got.stderr)
	}
	return got.stdout
}

// TestPlanMatchesGoldenFiles compares the plan for the samples with
// testdata/samples.golden.*.
func TestPlanMatchesGoldenFiles(t *testing.T) {
	for file, format := range map[string]string{"samples.golden.json": "json", "samples.golden.txt": "table"} {
		t.Run(format, func(t *testing.T) {
			wantGolden(t, filepath.Join("testdata", file), wantStdout(t, "", "plan", "-f", samples, "-o", format))
		})
	}
}

func TestPlanFormatsHaveTheSameContent(t *testing.T) {
	if table, byDefault := wantStdout(t, "", "plan", "-f", samples, "--output", "table"), wantStdout(t, "", "plan", "-f", samples); table != byDefault {
		t.Errorf("without -o the output differs from the table (-table +default):\n%s", cmp.Diff(table, byDefault))
	}
	var want, got any
	for format, target := range map[string]*any{"json": &want, "yaml": &got} {
		if err := yaml.Unmarshal([]byte(wantStdout(t, "", "plan", "-f", samples, "-o", format)), target); err != nil {
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

// tunnelManifest is the Gateway's Tunnel, in a namespace other than the default.
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

// write writes a file and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlanReadsFilesDirectoriesListsAndStandardInput(t *testing.T) {
	// The plan does not depend on how the manifests are provided.
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
		"several files":                   {"", []string{"-f", g, "-f", r, "-f", s}},
		"several files, in another order": {"", []string{"-f", s, "-f", r, "-f", g}},
		"directory":                       {"", []string{"-f", dir}},
		"files and standard input":        {routeManifest, []string{"-f", s, "-f", "-", "-f", g}},
		"List":                            {string(list), []string{"--filename=-"}},
		"another version of the API":      {strings.ReplaceAll(all, "gateway.networking.k8s.io/v1\n", "gateway.networking.k8s.io/v1beta1\n"), []string{"-f", "-"}},
		"explicit namespace":              {strings.ReplaceAll(all, "metadata: {", "metadata: {namespace: default, "), []string{"-f", "-"}},
		"explicit --namespace":            {all, []string{"-f", "-", "--namespace", "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := wantStdout(t, test.stdin, append([]string{"plan", "-o", "json"}, test.arguments...)...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanFlagsChangeThePlan(t *testing.T) {
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
				t.Errorf("the plan does not contain %s:\n%s", test.want, got)
			}
		})
	}
}

func TestPlanReportsSkippedKindsAndDirectories(t *testing.T) {
	const deployments = `---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
`
	dir := t.TempDir()
	for _, name := range []string{"teams", ".git"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "gateway.yaml"), gatewayManifest)
	if got, want := run(t, "", "plan", "-f", dir).stderr, "skipped subdirectories: "+filepath.Join(dir, "teams")+"; --recursive reads them\n"; got != want {
		t.Errorf("stderr = %q, want %q", got, want)
	}
	want := wantStdout(t, gatewayManifest, "plan", "-f", "-", "-o", "json")
	got := run(t, gatewayManifest+deployments, "plan", "-f", "-", "-o", "json")
	if got.status != 0 || got.stderr != "skipped 2 of kind Deployment.apps\n" {
		t.Errorf("status = %d, stderr = %q; want 0 and the number of Deployments", got.status, got.stderr)
	}
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("skipped kinds change the plan (-without +with):\n%s", diff)
	}
}

func TestPlanStrictExitsWithStatus2ForAnUnexpectedCondition(t *testing.T) {
	healthy := wantStdout(t, gatewayManifest, "plan", "-f", "-", "--strict")
	if !strings.Contains(healthy, "a.example.com") {
		t.Errorf("with --strict, stdout = %q, want the plan", healthy)
	}
	unhealthy := strings.Replace(gatewayManifest, "port: 80, protocol: HTTP}]", "port: 80, protocol: TCP}]", 1)
	unhealthy = strings.Replace(unhealthy, "hostname: a.example.com, ", "", 1)
	want := wantStdout(t, unhealthy, "plan", "-f", "-")
	got := run(t, unhealthy, "plan", "-f", "-", "--strict")
	if got.status != 2 || got.stdout != want {
		t.Errorf("status = %d, want 2 and the whole plan:\n%s", got.status, got.stdout)
	}
}

// withoutCluster hides the clusters that the local kubeconfig contains.
func withoutCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

func TestPlanOfManifestsReadsNoKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", write(t, filepath.Join(t.TempDir(), "invalid"), "{"))
	wantStdout(t, gatewayManifest, "plan", "-f", "-")
}

func TestPlanOfOneGatewayOmitsTheOthers(t *testing.T) {
	other := strings.NewReplacer("name: shared", "name: other", "a.example.com", "b.example.com").Replace(gatewayManifest)
	all := strings.Join([]string{gatewayManifest, other, routeManifest, serviceManifest}, "---\n")
	got := wantStdout(t, all, "plan", "-f", "-", "-o", "json", "--gateway", "default/shared")
	want := wantStdout(t, strings.Join([]string{gatewayManifest, routeManifest, serviceManifest}, "---\n"), "plan", "-f", "-", "-o", "json")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the plan differs from a plan without the other Gateway (-want +got):\n%s", diff)
	}
}

func TestPlanErrorsNameTheirPlace(t *testing.T) {
	// An error names its place, and nothing is printed on standard output.
	withoutCluster(t)
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o750); err != nil {
		t.Fatal(err)
	}
	invalid := write(t, filepath.Join(dir, "invalid.yaml"), gatewayManifest+"---\n"+strings.Replace(gatewayManifest, "port: 80", "port: 80, colour: red", 1))
	for name, test := range map[string]struct {
		stdin     string
		arguments []string
		want      []string
	}{
		"no manifests and no cluster": {arguments: nil, want: []string{"--kubeconfig", "--filename"}},
		"missing kubeconfig":          {arguments: []string{"--kubeconfig", "no-such-kubeconfig"}, want: []string{"no-such-kubeconfig"}},
		"missing context":             {arguments: []string{"-f", samples, "--context", "production"}, want: []string{`"production"`, "--kubeconfig"}},
		"Gateway without a namespace": {arguments: []string{"-f", samples, "--gateway", "shared"}, want: []string{"--gateway", `"shared"`, "namespace/name"}},
		"Gateway without a name":      {arguments: []string{"-f", samples, "--gateway", "platform/"}, want: []string{"--gateway", "namespace/name"}},
		"missing Gateway":             {arguments: []string{"-f", samples, "--gateway", "platform/none"}, want: []string{"platform/none: not found", "platform/shared"}},
		"missing file":                {arguments: []string{"-f", "no-such-file.yaml"}, want: []string{"no-such-file.yaml"}},
		"empty directory":             {arguments: []string{"-f", empty}, want: []string{empty}},
		"unsupported format":          {arguments: []string{"-f", samples, "-o", "xml"}, want: []string{"--output", `"xml"`, "table, yaml, json"}},
		"unknown flag":                {arguments: []string{"-f", samples, "--colour"}, want: []string{"--colour"}},
		"argument":                    {arguments: []string{samples}, want: []string{samples, "plan accepts no arguments", "specify manifests with -f"}},
		"empty file name":             {arguments: []string{"-f", ""}, want: []string{"--filename must not be empty"}},
		"empty request":               {arguments: []string{"-f", samples, "--why", ""}, want: []string{"--why must not be empty"}},
		"request without a host":      {arguments: []string{"-f", samples, "--why", "/cart"}, want: []string{`--why: "/cart" has no hostname; use HOST, HOST/PATH or a URL`}},
		"--method without --why":      {arguments: []string{"-f", samples, "--method", "POST"}, want: []string{"--method requires --why"}},
		"--header without --why":      {arguments: []string{"-f", samples, "--header", "a:b"}, want: []string{"--header requires --why"}},
		"a header without a value":    {arguments: []string{"-f", samples, "--why", "a.example.com", "--header", "a"}, want: []string{`--header must be of the form NAME:VALUE, got "a"`}},
		"--why and --diff":            {arguments: []string{"-f", samples, "--why", "a.example.com", "--diff"}, want: []string{"--why must not be set together with --diff"}},
		"Envoy and --why":             {arguments: []string{"-f", samples, "-o", "envoy", "--why", "a.example.com"}, want: []string{"--output envoy must not be set together with --why or --diff"}},
		"Envoy and --diff":            {arguments: []string{"-f", samples, "-o", "envoy-routes", "--diff"}, want: []string{"--output envoy-routes must not be set together with --why or --diff"}},
		"Envoy and --color":           {arguments: []string{"-f", samples, "-o", "envoy", "--color", "always"}, want: []string{"--color has no effect with --output envoy"}},
		"Envoy with ingress rules":    {arguments: []string{"-f", samples, "--gateway", "platform/shared", "-o", "envoy"}, want: []string{"Gateway platform/shared has the data plane IngressRules; set the annotation tunnelgateway.dev/data-plane"}},
		"-n of kubectl":               {arguments: []string{"-n", "team"}, want: []string{"'n' in -n", "plan reads all namespaces, or the one in --namespace if you cannot read all, and --gateway selects one Gateway"}},
		"-A of kubectl":               {arguments: []string{"-A"}, want: []string{"plan reads all namespaces, or the one in --namespace"}},
		"template":                    {stdin: "kind: {{ .Values.kind }}\n", arguments: []string{"-f", "-"}, want: []string{"stdin: document 1", "looks like a template; render it first"}},
		"invalid YAML":                {stdin: gatewayManifest + "---\n{", arguments: []string{"-f", "-"}, want: []string{"stdin", "document 2"}},
		"unknown field":               {arguments: []string{"-f", invalid}, want: []string{invalid, "document 2", "spec.listeners[0].colour"}},
		"invalid value":               {stdin: strings.Replace(gatewayManifest, "port: 80", "port: 0", 1), arguments: []string{"-f", "-"}, want: []string{"stdin", "document 1", "spec.listeners[0].port"}},
		"violation of a CEL rule": {stdin: strings.Replace(gatewayManifest, "[{name: a,", "[{name: b, hostname: a.example.com, port: 80, protocol: HTTP}, {name: a,", 1),
			arguments: []string{"-f", "-"}, want: []string{"stdin", "document 1", "spec.listeners"}},
		"duplicate object":             {stdin: gatewayManifest + "---\n" + gatewayManifest, arguments: []string{"-f", "-"}, want: []string{"document 2", "Gateway default/shared"}},
		"invalid cluster domain":       {arguments: []string{"-f", samples, "--cluster-domain", "cluster.local."}, want: []string{"--cluster-domain"}},
		"empty cluster domain":         {arguments: []string{"-f", samples, "--cluster-domain", ""}, want: []string{"--cluster-domain"}},
		"invalid namespace":            {arguments: []string{"-f", samples, "--namespace", "Team A"}, want: []string{"--namespace"}},
		"invalid controller namespace": {arguments: []string{"-f", samples, "--controller-namespace", "a.b"}, want: []string{"--controller-namespace"}},
		"invalid cluster ID":           {arguments: []string{"-f", samples, "--cluster-id", "a.b"}, want: []string{"--cluster-id"}},
		"invalid controller name":      {arguments: []string{"-f", samples, "--controller-name", "controller"}, want: []string{"--controller-name"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strict := range []string{"--strict=false", "--strict"} {
				got := run(t, test.stdin, append([]string{"plan", strict}, test.arguments...)...)
				if got.status != 1 || got.stdout != "" {
					t.Errorf("%s: status = %d with %d bytes on stdout, want status 1 and no output", strict, got.status, len(got.stdout))
				}
				for _, want := range test.want {
					if !strings.Contains(got.stderr, want) {
						t.Errorf("%s: the error %q does not contain %s", strict, got.stderr, want)
					}
				}
			}
		})
	}
}

// errWriter fails every write, like a closed pipe.
type errWriter struct{}

func (errWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPlanReportsAFailedWrite(t *testing.T) {
	var stderr bytes.Buffer
	status := cli.Run(t.Context(), []string{"tunnel-gateway", "plan", "-f", samples}, cli.Streams{In: strings.NewReader(""), Out: errWriter{}, Err: &stderr})
	if status != 1 || !strings.Contains(stderr.String(), "print the plan") {
		t.Errorf("status = %d, stderr = %q; want 1 and the failed operation", status, stderr.String())
	}
}

// The explanation names a ServiceImport, and the Envoy configuration contains its cluster.
func TestPlanOfAServiceImport(t *testing.T) {
	const file = samples + "/backends/other-backends.yaml"
	if got := run(t, "", "plan", "-f", file, "--strict"); got.status != 0 {
		t.Errorf("status = %d, stderr = %s", got.status, got.stderr)
	}
	text := wantStdout(t, "", "plan", "-f", file, "--why", "https://shop.example.com/")
	if want := "-> http://10.42.0.1:80 (ServiceImport shop/shop)"; !strings.Contains(text, want) {
		t.Errorf("the output does not contain %q:\n%s", want, text)
	}
	manifests, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	withEnvoy := strings.Replace(string(manifests), "  name: legacy\n  namespace: shop\nspec:\n", "  name: legacy\n  namespace: shop\nspec:\n  clusterIP: 10.96.0.7\n", 1) + `
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: shop, name: envoy}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {namespace: shop, name: envoy}
spec: {dataPlane: Envoy}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: east, labels: {multicluster.kubernetes.io/service-name: shop}}
addressType: IPv4
endpoints: [{addresses: [10.8.0.1]}]
ports: [{name: web, port: 8080}]
`
	text = wantStdout(t, withEnvoy, "plan", "-f", "-", "-o", "envoy")
	if !strings.Contains(text, `"i.shop.shop.80.`) || !strings.Contains(text, "10.42.0.1") || strings.Contains(text, "10.8.0.1") {
		t.Errorf("the Envoy configuration does not have the cluster with the address:\n%s", text)
	}
	text = wantStdout(t, strings.Replace(withEnvoy, "type: ClusterSetIP", "type: Headless", 1), "plan", "-f", "-", "-o", "envoy")
	if !strings.Contains(text, "10.8.0.1") || strings.Contains(text, "10.42.0.1") {
		t.Errorf("the Envoy configuration does not have the endpoints of the source cluster:\n%s", text)
	}
}

func TestPlanExplainsARequest(t *testing.T) {
	// --why explains a request instead of printing the plan, in every format. The exit
	// status still depends on the plan.
	const request = "https://team-a.example.com:8443/api/orders?of=today"
	arguments := func(flags ...string) []string {
		return append([]string{"plan", "-f", "../../config/samples", "--why", request}, flags...)
	}
	for format, want := range map[string]string{
		"table": "Answered by HTTPRoute team-a/web rule 0 match 0 (team-a.example.com, PathPrefix /api) -> http://api.team-a.svc.cluster.local:8080\n",
		"json":  `"host": "team-a.example.com"`,
		"yaml":  "path: /api/orders\n",
	} {
		if text := wantStdout(t, "", arguments("-o", format)...); !strings.Contains(text, want) {
			t.Errorf("the output in format %s does not contain %q:\n%s", format, want, text)
		}
	}
	if got := run(t, "", arguments("--strict")...); got.status != 2 || got.stdout == "" {
		t.Errorf("with --strict, status = %d and %d bytes on stdout, want status 2 and the explanation", got.status, len(got.stdout))
	}
	withQuery := wantStdout(t, "", arguments("--method", "post", "--header", "X-Version: 2", "--header", "x-version:3")...)
	if want := "POST team-a.example.com/api/orders?of=today on Gateway platform/shared\n"; !strings.HasPrefix(withQuery, want) {
		t.Errorf("the output does not begin with %q:\n%s", want, withQuery)
	}
	if got := run(t, "", arguments("--diff")...); got.status != 1 || !strings.Contains(got.stderr, "why") {
		t.Errorf("with --diff, status = %d, stderr = %q; want 1 and an error about --why", got.status, got.stderr)
	}
	const otherForm = "warning: no route answers TEAM-A.example.com/; did you mean team-a.example.com?\n"
	if got := run(t, "", "plan", "-f", "../../config/samples", "--why", "https://TEAM-A.example.com"); !strings.HasSuffix(got.stderr, otherForm) {
		t.Errorf("with another form of the host, stderr = %q, want %q", got.stderr, otherForm)
	}
	if got := run(t, "", "plan", "-f", "../../config/samples", "--why", "*.example.com"); got.status != 1 || !strings.Contains(got.stderr, "--why") {
		t.Errorf("with a wildcard, status = %d, stderr = %q; want 1 and an error about --why", got.status, got.stderr)
	}
}

func TestPlanReportsObjectsWithoutTheirGateway(t *testing.T) {
	// Without their Gateway, a team's objects get no status. --strict must not succeed
	// then.
	const (
		mistake = "HTTPRoute default/web: Gateway default/shared is not in the manifests. Add --context to combine the manifests with a cluster.\n"
		encoded = "- message: Gateway default/shared is not in the manifests. Add --context to combine\n    the manifests with a cluster.\n" +
			"  object:\n    kind: HTTPRoute\n    name: web\n    namespace: default\n"
	)
	for name, test := range map[string]struct {
		flags          []string
		stdout, stderr string
		status         int
	}{
		"table":         {nil, "No Gateway uses this controller.\n" + mistake, "", 0},
		"table, strict": {[]string{"--strict"}, "No Gateway uses this controller.\n" + mistake, "", 2},
		"yaml":          {[]string{"-o", "yaml"}, "gateways: []\nmistakes:\n" + encoded + "statuses: []\n", "warning: " + mistake, 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := outcome{test.status, test.stdout, test.stderr}
			got := run(t, routeManifest, append([]string{"plan", "-f", "-"}, test.flags...)...)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("the outcome differs (-want +got):\n%s", diff)
			}
		})
	}
}
