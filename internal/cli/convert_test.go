package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const cloudflaredSample = samples + "/migration-from-cloudflared/before/config.yml"

// plan accepts what convert prints, and expects only the Services.
func TestPlanAcceptsConvertedObjects(t *testing.T) {
	converted := run(t, "", "convert", "-f", cloudflaredSample)
	if converted.status != 0 {
		t.Fatalf("convert exited with status %d: %s", converted.status, converted.stderr)
	}
	for _, want := range []string{
		"config.yml:2: step: tunnel: the Gateway gets a new tunnel",
		"config.yml:37: different: ingress[7].service: ssh:// carries connections",
		"different: 3, steps: 2, information: 2",
	} {
		if !strings.Contains(converted.stderr, want) {
			t.Errorf("standard error has no %q:\n%s", want, converted.stderr)
		}
	}
	services, err := os.ReadFile(samples + "/migration-from-cloudflared/30-services.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, converted.stdout+"---\n"+string(services), "plan", "-f", "-", "--strict")
	if got.status != 0 || !strings.Contains(got.stdout, `^(?:(?s).*\.(png|jpg|css|js))$`) {
		t.Errorf("plan exited with status %d: %s%s", got.status, got.stdout, got.stderr)
	}
}

func TestConvertComparesRequests(t *testing.T) {
	got := run(t, "", "convert", "-f", cloudflaredSample, "--compare")
	if got.status != 0 {
		t.Fatalf("convert exited with status %d: %s", got.status, got.stderr)
	}
	wantGolden(t, filepath.Join("testdata", "convert.golden.txt"), got.stdout)
	guide, err := os.ReadFile("../../docs/guides/migration-from-cloudflared.md")
	if err != nil || !strings.Contains(string(guide), got.stdout) {
		t.Errorf("the guide does not show the comparison: %v", err)
	}
	if strict := run(t, "", "convert", "-f", cloudflaredSample, "--compare", "--strict"); strict.status != 2 || strict.stdout != got.stdout {
		t.Errorf("with --strict, convert exited with status %d, want 2, and the same output", strict.status)
	}
}

func TestStrictConversion(t *testing.T) {
	const complete = "ingress:\n- hostname: a.example.com\n  service: http://web.shop.svc\n- service: http_status:404\n"
	if got := run(t, complete, "convert", "-f", "-", "--strict"); got.status != 0 {
		t.Errorf("convert exited with status %d: %s", got.status, got.stderr)
	}
	got := run(t, strings.Replace(complete, "http://web.shop.svc", "tcp://db.shop.svc:5432", 1), "convert", "-f", "-", "--strict")
	if got.status != 2 || !strings.Contains(got.stderr, "stdin:3: different: ingress[0].service: tcp://") {
		t.Errorf("convert exited with status %d, want 2: %s", got.status, got.stderr)
	}
}

func TestConvertReadsTunnels(t *testing.T) {
	e := newEdge(t)
	got := run(t, "", "convert", "--from-tunnel", e.ids["changed"], "--gateway", "infra/shared")
	if got.status != 0 {
		t.Fatalf("convert exited with status %d: %s", got.status, got.stderr)
	}
	for _, want := range []string{"name: a-example-com", `# Rule 1: hostname "b.example.com"`, "name: shared"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the output has no %q:\n%s", want, got.stdout)
		}
	}
	if !strings.Contains(got.stderr, "tunnel "+e.ids["changed"]+": different: warp-routing.enabled: the controller does not route private networks") {
		t.Errorf("standard error does not report warp-routing: %s", got.stderr)
	}
	for _, request := range e.Requests() {
		if request.Method != "GET" {
			t.Errorf("convert sent %s %s", request.Method, request.Path)
		}
	}
	missing := run(t, "", "convert", "--from-tunnel", "00000000-0000-0000-0000-000000000000")
	if missing.status != 1 || !strings.Contains(missing.stderr, "not found") {
		t.Errorf("for a missing tunnel, convert exited with status %d: %s", missing.status, missing.stderr)
	}
	t.Setenv("CLOUDFLARE_API_TOKEN", "")
	if got := run(t, "", "convert", "--from-tunnel", e.ids["changed"]); got.status != 1 || !strings.Contains(got.stderr, "no API token: set CLOUDFLARE_API_TOKEN") {
		t.Errorf("without a token, convert exited with status %d: %s", got.status, got.stderr)
	}
}

func TestConvertChecksFlags(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                           "convert requires either --filename or --from-tunnel",
		"-f a --from-tunnel b":       "convert accepts --filename or --from-tunnel, and not both",
		"-f a --gateway infra":       `--gateway must be of the form namespace/name, got "infra"`,
		"-f a --gateway-class A":     `--gateway-class must be a valid name, got "A"`,
		"-f a --namespace A":         "--namespace must be a valid namespace name",
		"-f a --data-plane envoy":    `--data-plane must be IngressRules or Envoy, got "envoy"; did you mean Envoy?`,
		"-f a --color red --compare": "--color must be",
		"-f a --color never":         "--color has an effect only with --compare",
		"-f /missing/config.yml":     "/missing/config.yml: no such file",
	} {
		got := run(t, "", append([]string{"convert"}, strings.Fields(arguments)...)...)
		if got.status != 1 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("convert %s exited with status %d: %s%s, want %s", arguments, got.status, got.stdout, got.stderr, want)
		}
	}
}
