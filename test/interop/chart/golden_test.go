package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func diffLines(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}

// valueSets are the files testdata/<set>.values.yaml.
func valueSets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d sets of values, %v", len(files), err)
	}
	return files
}

// withMonitoring returns a copy of the chart with alerts and a dashboard of
// this test's own, which the golden files can show.
func withMonitoring(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tunnel-gateway")
	if err := os.CopyFS(dir, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"alerts.yaml":    "groups:\n- name: example\n  rules:\n  - alert: Example\n    expr: vector(1)\n    annotations:\n      summary: '{{ $labels.name }} is {{ $value }}'\n",
		"dashboard.json": "{\n  \"title\": \"example\",\n  \"legend\": \"{{name}}\"\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "files", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLint(t *testing.T) {
	dir := withMonitoring(t)
	for _, values := range valueSets(t) {
		if out, err := helm(t, "lint", "--strict", dir, "--namespace", namespace, "--values", values); err != nil {
			t.Errorf("helm lint with %s: %v\n%s", values, err, out)
		}
	}
}

// TestGolden holds what the chart renders against testdata/*.golden.yaml.
func TestGolden(t *testing.T) {
	dir := withMonitoring(t)
	for _, values := range valueSets(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			got := render(t, dir, "--values", values)
			compare(t, strings.TrimSuffix(values, ".values.yaml")+".golden.yaml", withoutCRD(got))
		})
	}
}

// withoutCRD leaves out the CRD: it is long, and held against config/crd.
func withoutCRD(manifests string) string {
	var kept []string
	for document := range strings.SplitSeq(manifests, "---\n") {
		if !strings.Contains(document, "kind: CustomResourceDefinition") {
			kept = append(kept, document)
		}
	}
	return strings.Join(kept, "---\n")
}

// What cannot work is refused before it is installed, by name.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		set  []string
		want []string
	}{
		"a value that there is not":       {[]string{"replicaCount=2"}, []string{"replicaCount"}},
		"one in a group":                  {[]string{"controller.colour=red"}, []string{"/controller", "colour"}},
		"a number for a name":             {[]string{"gatewayClass.name=7"}, []string{"/gatewayClass/name", "string"}},
		"negative replicas":               {[]string{"replicas=-1"}, []string{"/replicas", "minimum"}},
		"an unknown level":                {[]string{"controller.logLevel=loud"}, []string{"/controller/logLevel", "'debug', 'info', 'warn', 'error'"}},
		"a controller name without path":  {[]string{"controller.name=tunnelgateway.dev"}, []string{"/controller/name"}},
		"a namespace that is none":        {[]string{"controller.namespaces={Team A}"}, []string{"/controller/namespaces/0"}},
		"a Secret of too many parts":      {[]string{"cloudflare.existingSecret=a/b/c"}, []string{"/cloudflare/existingSecret"}},
		"a digest of another kind":        {[]string{"image.digest=md5:00"}, []string{"/image/digest"}},
		"an argument that is no flag":     {[]string{"controller.extraArgs={workers=8}"}, []string{"/controller/extraArgs/0"}},
		"a token without an account":      {[]string{"cloudflare.existingSecret=cloudflare"}, []string{"cloudflare.accountID is missing"}},
		"an account without a token":      {[]string{"cloudflare.accountID=account"}, []string{"cloudflare.existingSecret is missing"}},
		"settings that nothing refers to": {[]string{"tunnelConfiguration.create=true", "gatewayClass.create=false"}, []string{"tunnelConfiguration.create needs gatewayClass.create"}},
		"settings out of sight":           {[]string{"tunnelConfiguration.create=true", "controller.namespaces={team-a}"}, []string{"namespace tunnel-gateway in controller.namespaces"}},
		"a monitor of nothing":            {[]string{"metrics.enabled=false", "metrics.serviceMonitor.enabled=true"}, []string{"needs metrics.enabled"}},
		"no account of its own":           {[]string{"serviceAccount.create=false"}, []string{"serviceAccount.name is needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := []string{"template", release, chartDir, "--namespace", namespace}
			for _, set := range test.set {
				arguments = append(arguments, "--set", set)
			}
			out, err := helm(t, arguments...)
			if err == nil {
				t.Fatalf("it is rendered:\n%s", out)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("the message does not say %q:\n%s", want, out)
				}
			}
		})
	}
}
