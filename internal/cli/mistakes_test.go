package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
)

// httpsManifest is a Gateway whose certificate does not exist.
const httpsManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: a, hostname: a.example.com, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: pending}]}}]
`

// mistake is a command that contains a user's mistake.
type mistake struct {
	stdin     string
	arguments []string
	status    int
	// stderr and stdout are texts that the output must contain.
	stderr, stdout string
}

// mistakes returns the commands with mistakes. dir is a directory with manifests.
func mistakes(dir string) map[string]mistake {
	all := strings.Join([]string{gatewayManifest, routeManifest, serviceManifest}, "---\n")
	edit := func(old, changed string) string { return strings.Replace(all, old, changed, 1) }
	plan := func(flags ...string) []string { return append([]string{"plan", "-f", "-"}, flags...) }
	return map[string]mistake{
		"kind with a letter missing": {stdin: edit("kind: HTTPRoute", "kind: HTTPRout"), arguments: plan("--strict"), status: 2,
			stderr: "warning: stdin: document 2: kind HTTPRout does not exist in gateway.networking.k8s.io; did you mean HTTPRoute?\n"},
		"kind with swapped letters": {stdin: edit("kind: HTTPRoute", "kind: HTTPRuote"), arguments: plan(),
			stderr: "did you mean HTTPRoute?\n"},
		"kind in lower case": {stdin: edit("kind: Gateway", "kind: gateway"), arguments: plan("--strict"), status: 2,
			stderr: "did you mean Gateway?\n"},
		"cloudflared configuration": {stdin: "tunnel: a\ningress: [{service: http_status:404}]\n", arguments: plan(), status: 1,
			stderr: "tunnel-gateway: stdin: document 1: this is a cloudflared configuration, not a manifest; convert it with: kubectl tunnel-gateway convert -f -\n"},
		"XListenerSet": {stdin: all + "---\n{apiVersion: gateway.networking.x-k8s.io/v1alpha1, kind: XListenerSet, metadata: {name: a}, spec: {parentRef: {name: shared}}}", arguments: plan("--strict"), status: 2,
			stdout: "XListenerSet default/a: The controller does not read XListenerSets, so their listeners are not served on Gateway default/shared; did you mean kind ListenerSet of gateway.networking.k8s.io/v1?\n"},
		"field in the singular": {stdin: edit("parentRefs", "parentRef"), arguments: plan(), status: 1,
			stderr: "HTTPRoute default/web: spec.parentRef: Forbidden: unknown field; did you mean parentRefs?\n"},
		"GatewayClass with a letter missing": {stdin: edit("cloudflare-tunnel", "cloudflare-tunel"), arguments: plan("--strict"), status: 2,
			stdout: "\nGateway default/shared: GatewayClass \"cloudflare-tunel\" not found; did you mean cloudflare-tunnel?\n"},
		"Service with swapped letters": {stdin: edit("backendRefs: [{name: web", "backendRefs: [{name: wbe"), arguments: plan("--strict"), status: 2,
			stdout: "Service default/wbe does not exist. Did you mean Service default/web instead of default/wbe?\n"},
		"kind that resembles nothing": {stdin: all + "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}", arguments: plan("--strict"), status: 2,
			stderr: "warning: stdin: document 4: kind Ingress does not exist in gateway.networking.k8s.io\n"},
		"kind of this project": {stdin: all + "---\n{apiVersion: tunnelgateway.dev/v1alpha1, kind: TunelConfiguration, metadata: {name: a}}", arguments: plan("--strict"), status: 2,
			stderr: "kind TunelConfiguration does not exist in tunnelgateway.dev; did you mean TunnelConfiguration?\n"},
		"core kind": {stdin: edit("kind: Service", "kind: Servce"), arguments: plan("--strict"), status: 2,
			stderr: "kind Servce does not exist in apiVersion v1; did you mean Service?\n"},
		"group with a letter missing": {stdin: edit("gateway.networking.k8s.io/v1\nkind: HTTPRoute", "gateway.networkin.k8s.io/v1\nkind: HTTPRoute"), arguments: plan("--strict"), status: 2,
			stderr: "apiVersion gateway.networkin.k8s.io/v1 of kind HTTPRoute does not exist; did you mean gateway.networking.k8s.io?\n"},
		"kind without its group": {stdin: edit("gateway.networking.k8s.io/v1\nkind: HTTPRoute", "v1\nkind: HTTPRoute"), arguments: plan("--strict"), status: 2,
			stderr: "apiVersion v1 of kind HTTPRoute does not exist; did you mean gateway.networking.k8s.io?\n"},
		"field of the experimental channel": {stdin: edit("backendRefs: ", "retry: {attempts: 2}, backendRefs: "), arguments: plan(), status: 1,
			stderr: "HTTPRoute default/web: spec.rules[0].retry: Forbidden: only the CRDs of the Gateway API's experimental channel have this field; if they are installed, use --experimental-crds\n"},
		"field of the experimental channel that is permitted": {stdin: edit("backendRefs: ", "retry: {attempts: 2}, backendRefs: "), arguments: plan("--strict", "--experimental-crds"), status: 2,
			stdout: "not supported by ingress rules: retry"},

		"host with a letter missing": {stdin: all, arguments: plan("--strict", "--why", "a.exmple.com"), status: 2,
			stderr: "warning: a.exmple.com is not served; did you mean a.example.com?\n"},
		"host that resembles nothing": {stdin: all, arguments: plan("-o", "json", "--why", "www.example.org"),
			stderr: "warning: www.example.org is not served\n"},
		"host of a listener without routes": {stdin: gatewayManifest, arguments: plan("--strict", "--why", "a.example.com"), status: 2,
			stderr: "warning: no route answers a.example.com/\n"},

		"host of a route without its parent": {stdin: gatewayManifest + "---\n" + strings.NewReplacer("name: shared", "name: shred", "  rules:", "  hostnames: [b.example.com]\n  rules:").Replace(routeManifest),
			arguments: plan("--strict", "--why", "b.example.com"), status: 2, stderr: "did you mean Gateway default/shared?\n",
			stdout: "Routes that would serve the hostname if their parent existed:\n  HTTPRoute default/web: Gateway default/shred is not in the manifests; did you mean Gateway default/shared?\n"},

		"certificate that is not issued yet": {stdin: httpsManifest, arguments: plan("--strict", "--assume-secrets"),
			stderr: "warning: Secret default/pending not found; --assume-secrets treats it as a valid certificate\n"},

		"unknown command":           {arguments: []string{"pln"}, status: 1, stderr: `tunnel-gateway: unknown command "pln" for "tunnel-gateway", did you mean "plan"? See "tunnel-gateway --help"` + "\n"},
		"unknown command for help":  {arguments: []string{"help", "pln"}, status: 1, stderr: `unknown command "pln" for "tunnel-gateway", did you mean "plan"?`},
		"unknown shell":             {arguments: []string{"completion", "bsh"}, status: 1, stderr: `unknown command "bsh" for "tunnel-gateway completion", did you mean "bash"?`},
		"unknown flag":              {arguments: plan("--strct"), status: 1, stderr: `tunnel-gateway: unknown flag: --strct, did you mean --strict? See "tunnel-gateway plan --help"` + "\n"},
		"unknown flag of no name":   {arguments: []string{"controller", "--zzzzzzzz"}, status: 1, stderr: `unknown flag: --zzzzzzzz; see "tunnel-gateway controller --help"` + "\n"},
		"argument of version":       {arguments: []string{"version", "x"}, status: 1, stderr: `version accepts no arguments, got "x"; see "tunnel-gateway version --help"` + "\n"},
		"version of the program":    {arguments: []string{"--version"}, stdout: "tunnel-gateway development\n"},
		"several errors":            {arguments: plan("--cluster-id", "a.b", "--gateway", "x"), status: 1, stderr: "\ntunnel-gateway: --gateway must be"},
		"empty standard input":      {arguments: plan(), status: 1, stderr: "tunnel-gateway: stdin: the input is empty\n"},
		"only comments":             {stdin: "# Gateways\n---\n", arguments: plan(), status: 1, stderr: "tunnel-gateway: stdin: the input contains no object\n"},
		"empty file":                {arguments: []string{"plan", "-f", filepath.Join(dir, "empty.yaml")}, status: 1, stderr: "empty.yaml: the file is empty\n"},
		"empty file in a directory": {arguments: []string{"plan", "--strict", "-f", dir}, status: 2, stderr: "empty.yaml: the file is empty\n"},
		"URL":                       {arguments: []string{"plan", "-f", "https://example.com/a.yaml"}, status: 1, stderr: "https://example.com/a.yaml: URLs are not supported"},
		"subdirectory":              {arguments: []string{"plan", "-f", dir, "-o", "json"}, stderr: "team; --recursive reads them\n"},
		"subdirectory, recursive":   {arguments: []string{"plan", "-R", "-f", dir}, stdout: "http://web.default.svc.cluster.local:80"},

		"name that YAML reads as a boolean":     {stdin: edit("name: shared", "name: y"), arguments: plan(), status: 1, stderr: `metadata.name: Invalid value: must be a string, but YAML reads y without quotes as a boolean; write "y" on line 3` + "\n"},
		"hostname that YAML reads as a boolean": {stdin: edit("hostname: a.example.com", "hostname: no"), arguments: plan(), status: 1, stderr: `spec.listeners[0].hostname: Invalid value: must be a string, but YAML reads no without quotes as a boolean; write "no" on line 6` + "\n"},
		"hostname that YAML reads as a number":  {stdin: edit("hostname: a.example.com", "hostname: 1.5"), arguments: plan(), status: 1, stderr: `spec.listeners[0].hostname: Invalid value: must be a string, but YAML reads the value on line 6 as a number; if the value is correct, write it in quotes`},
		"label that YAML reads as a boolean":    {stdin: edit("{name: shared}", "{name: shared, labels: {team: on}}"), arguments: plan(), status: 1, stderr: `metadata.labels.team: Invalid value: must be a string, but YAML reads on without quotes as a boolean; write "on" on line 3`},
		"port name of a Service":                {stdin: edit("{port: 80}]}\n", "{port: 80, name: y}]}\n"), arguments: plan(), status: 1, stderr: `spec.ports[0].name: Invalid value: must be a string, but YAML reads y without quotes as a boolean; write "y" on line 18`},

		"hostname with an underscore": {stdin: edit("a.example.com", "a_b.example.com"), arguments: plan(), status: 1,
			stderr: `spec.listeners[0].hostname: Invalid value: "a_b.example.com": must be a hostname in lower case without a port, such as shop.example.com or *.example.com` + "\n"},
		"name with an underscore": {stdin: edit("name: shared", "name: shared_a"), arguments: plan(), status: 1,
			stderr: "(e.g. 'example.com')\n"},
		"hostname of a request": {arguments: []string{"plan", "-f", samples, "--why", "a_b"}, status: 1, stderr: `--why: "a_b" is not a valid hostname, such as shop.example.com`},

		"data plane in lower case":        {stdin: all, arguments: plan("--data-plane", "envoy"), status: 1, stderr: `--data-plane must be IngressRules or Envoy, got "envoy"; did you mean Envoy?`},
		"empty data plane":                {stdin: all, arguments: plan("--data-plane="), status: 1, stderr: "--data-plane must not be empty"},
		"--data-plane with --diff":        {stdin: all, arguments: plan("--data-plane", "Envoy", "--diff"), status: 1, stderr: "--data-plane must not be set together with --diff"},
		"what-if":                         {stdin: all, arguments: plan("--data-plane", "Envoy"), stdout: "This is a what-if: it shows every Gateway with the data plane Envoy, independently of the settings.\nGateway default/shared"},
		"what-if of a request":            {stdin: all, arguments: plan("--data-plane", "Envoy", "--why", "a.example.com"), stdout: "This is a what-if: "},
		"what-if with Envoy's output":     {stdin: all, arguments: plan("--data-plane", "Envoy", "-o", "envoy"), stdout: `"staticResources"`, stderr: "This is a what-if: "},
		"--color with JSON":               {stdin: all, arguments: plan("--color", "never", "-o", "json"), status: 1, stderr: "--color has no effect with --output json"},
		"--wide with YAML":                {stdin: all, arguments: plan("--wide", "-o", "yaml"), status: 1, stderr: "--wide has no effect with --output yaml"},
		"--wide with --diff":              {stdin: all, arguments: plan("--wide", "--diff"), status: 1, stderr: "--wide has no effect with --diff"},
		"account without --diff":          {stdin: all, arguments: plan("--cloudflare-account-id", "a"), status: 1, stderr: "--cloudflare-account-id requires --diff"},
		"--recursive with standard input": {stdin: all, arguments: plan("-R"), status: 1, stderr: "--recursive requires a directory in --filename"},
		"--recursive without files":       {arguments: []string{"plan", "-R"}, status: 1, stderr: "--recursive requires a directory in --filename"},
		"empty context":                   {stdin: all, arguments: plan("--context", ""), status: 1, stderr: "--context must not be empty"},
		"empty Gateway":                   {stdin: all, arguments: plan("--gateway="), status: 1, stderr: "--gateway must not be empty"},
		"burst without a rate":            {arguments: []string{"controller", "--kube-api-burst=3"}, status: 1, stderr: "--kube-api-burst requires --kube-api-qps"},
		"no Gateway":                      {arguments: []string{"pause"}, status: 1, stderr: `pause requires a Gateway name; see "tunnel-gateway pause --help"`},
		"two Gateways":                    {arguments: []string{"resume", "a", "b"}, status: 1, stderr: `resume accepts one Gateway, got 2: "a", "b"; see "tunnel-gateway resume --help"`},
		"Gateway with two slashes":        {arguments: []string{"reconcile", "gateway/a/b"}, status: 1, stderr: `GATEWAY must be of the form name or namespace/name, got "gateway/a/b"`},
		"Gateway without a name":          {arguments: []string{"reconcile", "a/"}, status: 1, stderr: `GATEWAY must be of the form name or namespace/name, got "a/"`},
		"two namespaces":                  {arguments: []string{"reconcile", "a/b", "-n", "a"}, status: 1, stderr: "--namespace has no effect with GATEWAY a/b, which contains a namespace\n"},
		"--timeout without waiting":       {arguments: []string{"rotate-token", "a", "--wait=false", "--timeout=1m"}, status: 1, stderr: "--timeout has no effect with --wait=false\n"},
		"wait without waiting":            {arguments: []string{"wait", "a", "--wait=false"}, status: 1, stderr: "unknown flag: --wait"},
		"--timeout that has passed":       {arguments: []string{"pause", "a", "--timeout=0s"}, status: 1, stderr: "--timeout must be greater than 0, got 0s\n"},
		"--timeout without a unit":        {arguments: []string{"pause", "a", "--timeout=60"}, status: 1, stderr: `invalid argument "60" for "--timeout" flag`},
		"empty namespace":                 {arguments: []string{"pause", "a", "-n", ""}, status: 1, stderr: "--namespace must not be empty\n"},
		"operation with a letter missing": {arguments: []string{"rotate-tokn", "a"}, status: 1, stderr: `unknown command "rotate-tokn" for "tunnel-gateway", did you mean "rotate-token"?`},
		"operation without a cluster":     {arguments: []string{"pause", "a"}, status: 1, stderr: "no API server found in $KUBECONFIG"},
		"settings of a Gateway":           {stdin: all, arguments: plan(), stdout: "Settings: replicas 2, protocol auto, Access not required\n"},
		"colors of problems":              {stdin: httpsManifest, arguments: plan("--color", "always"), stdout: "\x1b[31mGateway default/shared listener a: InvalidCertificateRef"},
		"no colors without a terminal":    {stdin: httpsManifest, arguments: plan(), stdout: "\nGateway default/shared listener a: InvalidCertificateRef"},
	}
}

// mistakenDirectory returns a directory with an empty file and a subdirectory.
func mistakenDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "team"), 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "empty.yaml"), "\n")
	write(t, filepath.Join(dir, "gateway.yaml"), gatewayManifest)
	write(t, filepath.Join(dir, "team", "route.yaml"), routeManifest+"---\n"+serviceManifest)
	return dir
}

func TestMistakesAreReported(t *testing.T) {
	withoutCluster(t)
	for name, test := range mistakes(mistakenDirectory(t)) {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.stdin, test.arguments...)
			if got.status != test.status || !strings.Contains(got.stderr, test.stderr) || !strings.Contains(got.stdout, test.stdout) {
				t.Errorf("%q: status = %d, stderr:\n%s\nstdout:\n%s\nwant status %d, stderr with %q and stdout with %q",
					test.arguments, got.status, got.stderr, got.stdout, test.status, test.stderr, test.stdout)
			}
		})
	}
}

func TestAnInterruptedCommandExitsWithStatus130(t *testing.T) {
	// A signal ends the command even while it reads from a pipe without data.
	ctx, cancel := context.WithCancel(t.Context())
	in, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	go cancel()
	var stdout, stderr bytes.Buffer
	status := cli.Run(ctx, []string{"tunnel-gateway", "plan", "-f", "-"}, cli.Streams{In: in, Out: &stdout, Err: &stderr})
	if got := (outcome{status, stdout.String(), stderr.String()}); got != (outcome{130, "", "tunnel-gateway: interrupted\n"}) {
		t.Errorf("outcome = %+v, want status 130 and the error interrupted", got)
	}
}

// symptoms are the message parts that the pages explain.
var symptoms = []string{
	"does not exist in gateway.networking.k8s.io; did you mean", "does not exist; did you mean", "is not served; did you mean", "no route answers",
	"the input is empty", "the file is empty", "contains no object", "without quotes as a boolean",
	"must be a hostname in lower case without a port", "must not be empty",
	"Routes that would serve the hostname if their parent existed", ".kind must be Gateway or ListenerSet, got", "spec.parentRef.kind must be Gateway, got", `a parentRef to a Service needs group: ""`,
	"spec.parentRefs is empty", "is not in the manifests", " does not exist", "has no effect with the value", "which permits nothing",
}

// readPages returns the text on documentation pages, without line breaks.
func readPages(t *testing.T, names ...string) string {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		data, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(strings.Join(strings.Fields(string(data)), " ") + "\n")
	}
	return text.String()
}

func TestPagesHaveTheWordsOfTheMessages(t *testing.T) {
	withoutCluster(t)
	pages, output := readPages(t, "plan.md", "troubleshooting.md"), ""
	for _, test := range mistakes(mistakenDirectory(t)) {
		got := run(t, test.stdin, test.arguments...)
		output += got.stdout + got.stderr
	}
	for _, test := range objectMistakes() {
		output += run(t, strings.Replace(platformManifest, test.old, test.changed, 1), "plan", "-f", "-", "-o", "yaml").stderr
	}
	for _, symptom := range symptoms {
		if !strings.Contains(pages, symptom) {
			t.Errorf("the pages do not contain %q", symptom)
		}
		if !strings.Contains(output, symptom) {
			t.Errorf("no message contains %q", symptom)
		}
	}
}
