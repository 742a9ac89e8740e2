package convert_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/convert"
)

// update rewrites the golden files.
var update = flag.Bool("update", false, "rewrite the golden files")

// Each testdata/*.yml is a configuration, and *.golden.yaml the objects and all notes.
func TestConvertedConfigurationsMatchGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no configurations in testdata", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			got := complete(t, parse(t, string(text)), options)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the output differs from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// complete returns the objects and all notes.
func complete(t *testing.T, input *convert.Configuration, o convert.Options) string {
	t.Helper()
	result := convert.Convert(input, o)
	var out strings.Builder
	if err := result.WriteYAML(&out, input.Name); err != nil {
		t.Fatal(err)
	}
	out.WriteString("---\n")
	for _, n := range result.Notes {
		out.WriteString("# " + string(n.Kind) + ": " + n.Place(input.Name) + ": " + n.String() + "\n")
	}
	return out.String()
}

// The same requests get the same answers, unless a note says otherwise, and the controller
// accepts every object.
func TestConvertedFilesAnswerLikeTheOriginal(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.yml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
			o := options
			o.DataPlane = plane
			input := parse(t, string(text))
			comparison, err := convert.Compare(t.Context(), input, convert.Convert(input, o), o, input.Requests())
			if err != nil {
				t.Fatalf("%s with %s: %v", file, plane, err)
			}
			for _, d := range unexpected(comparison) {
				t.Errorf("%s with %s: %q: rule %d answered %q, now %q", file, plane, d.Request, d.Rule, d.Before, d.After)
			}
			if plane == v1alpha1.DataPlaneIngressRules {
				for _, problem := range comparison.Problems {
					t.Errorf("%s: %s", file, problem)
				}
			}
		}
	}
}

func TestRejectedConfigurationsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "config.yml: the configuration is empty",
		"ingress: []":                     "config.yml:1: ingress: there are no rules",
		"ingress: {}":                     "config.yml:1: ingress: must be a list of rules",
		"a: [":                            "config.yml: yaml:",
		"apiVersion: v1\nkind: ConfigMap": "config.yml:1: this is a Kubernetes object of kind ConfigMap, not a configuration of cloudflared; save the configuration",
		"---\napiVersion: networking.k8s.io/v1\nkind: Ingress":                          "config.yml:2: this is a Kubernetes object of kind Ingress, not a configuration of cloudflared; convert it with ingress2gateway",
		"ingress:\n- hostname: a.com\n  servce: http://web\n- service: http_status:404": `config.yml:2: ingress[0].service: the rule has no service, which cloudflared rejects; line 3 has the key "servce"`,
		"ingress:\n- hostname:": "config.yml:2: ingress[0].service: the rule has no service, which cloudflared rejects",
		"- a":                   "config.yml:1: the configuration: must be a mapping",
		"ingress:\n- 7":         "config.yml:2: ingress[0]: must be a mapping",
		"ingress:\n- hostname: a.example.com\n  service: http://web":                                "config.yml:2: ingress[0].hostname: the last rule must match every request",
		"ingress:\n- service: http://web\n- service: http_status:404":                               "config.yml:2: ingress[0].hostname: only the last rule may match every request",
		"ingress:\n- hostname: a.example.com:80\n  service: http://web\n- service: http_status:404": `config.yml:2: ingress[0].hostname: "a.example.com:80" has a port`,
		"ingress:\n- hostname: a.*.com\n  service: http://web\n- service: http_status:404":          `config.yml:2: ingress[0].hostname: "a.*.com" has a wildcard`,
		"ingress:\n- hostname: a.com\n  path: (\n  service: http://web\n- service: http_status:404": "config.yml:3: ingress[0].path: cloudflared rejects the expression",
		"ingress:\n- service: http://web/":                                                          `config.yml:2: ingress[0].service: "http://web/" must not have a path`,
		"ingress:\n- service: web":                                                                  `config.yml:2: ingress[0].service: "web" must have a scheme`,
		"ingress:\n- service: http_status:99":                                                       `config.yml:2: ingress[0].service: "http_status:99" must have a status`,
		"ingress:\n- service: http://web\n  originRequest: {connectTimeout: 30}":                    "config.yml:3: ingress[0].originRequest.connectTimeout: must be a duration such as 30s",
		"ingress:\n- service: http://web\n  originRequest: {noTLSVerify: maybe}":                    "config.yml:3: ingress[0].originRequest.noTLSVerify: must be true or false",
		"ingress:\n- service: http://web\n  service: http://web":                                    `config.yml:3: ingress[0]: the key "service" is repeated`,
		"ingress:\n- service: http://web\n  originRequest: {access: {required: true, audTag: [a]}}": "config.yml:3: ingress[0].originRequest.access: has an audTag but no teamName",
	} {
		_, err := convert.Parse("config.yml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %s", text, err, want)
		}
	}
}

// A remote configuration has durations in seconds, and no lines.
func TestRemoteConfiguration(t *testing.T) {
	input, err := convert.ParseRemote("tunnel 1", []byte(`{"ingress":[
		{"hostname":"a.example.com","service":"http://web.shop.svc","originRequest":{"connectTimeout":7,"ipRules":[]}},
		{"service":"http_status:404","originRequest":{}}],
		"originRequest":{"tlsTimeout":90},"warp-routing":{"enabled":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := complete(t, input, options)
	for _, want := range []string{
		"connectTimeout: 7s", "tlsTimeout: 1m30s", "# different: tunnel 1: warp-routing.enabled: the controller does not route private networks",
		"# info: tunnel 1: ingress[0].originRequest.ipRules: only applies", `# Rule 0: hostname "a.example.com" service "http://web.shop.svc"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the output has no %q:\n%s", want, got)
		}
	}
}

// No text of a configuration can end a comment and become an object.
func TestCommentsEscapeTheConfiguration(t *testing.T) {
	input := parse(t, `"a\n---\nkind: Secret": 1`+"\ningress:\n"+`- path: "/a\nkind: Secret\u2028"`+"\n  service: http://web.shop.svc\n- service: http_status:404\n")
	for line := range strings.Lines(complete(t, input, options)) {
		if strings.HasPrefix(line, "kind: Secret") || strings.Contains(line, "\u2028") {
			t.Errorf("the output has the line %q", line)
		}
	}
}

// A configuration that exceeds the default limits is not converted without a note.
func TestVerifyNotesExceededLimits(t *testing.T) {
	var text strings.Builder
	text.WriteString("ingress:\n")
	for i := range 300 {
		fmt.Fprintf(&text, "- hostname: h%d.example.com\n  service: http://web.shop.svc\n", i)
	}
	text.WriteString("- service: http_status:404\n")
	result := convert.Convert(parse(t, text.String()), options)
	if result.Differs() {
		t.Fatal("there is a difference before the decisions")
	}
	if err := result.Verify(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if !result.Differs() || !strings.Contains(result.Notes[len(result.Notes)-1].String(), "raise spec.limits") {
		t.Errorf("the notes are %v", result.Notes)
	}
}

// With Envoy, a BackendTLSPolicy replaces the file with certificate authorities, and the
// notes name the command for its ConfigMap.
func TestCertificateAuthoritiesNeedEnvoy(t *testing.T) {
	input := parse(t, "ingress:\n- hostname: a.example.com\n  service: https://web.shop.svc\n  originRequest: {caPool: /etc/ca.pem}\n- service: http_status:404\n")
	if got := complete(t, input, options); strings.Contains(got, "kind: BackendTLSPolicy") || !strings.Contains(got, "convert with --data-plane Envoy") {
		t.Errorf("with ingress rules, the output is\n%s", got)
	}
	o := options
	o.DataPlane = v1alpha1.DataPlaneEnvoy
	got := complete(t, input, o)
	for _, want := range []string{"kind: BackendTLSPolicy", "hostname: web.shop.svc\n", "dataPlane: Envoy", "kubectl create configmap -n shop web-ca --from-file=ca.crt=/etc/ca.pem"} {
		if !strings.Contains(got, want) {
			t.Errorf("with Envoy, the output has no %q:\n%s", want, got)
		}
	}
}

// unexpected returns the differences that no note explains.
func unexpected(c *convert.Comparison) []convert.Difference {
	return slices.DeleteFunc(slices.Clone(c.Differences), func(d convert.Difference) bool { return d.Noted })
}
