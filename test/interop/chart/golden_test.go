package chart

import (
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

func TestLint(t *testing.T) {
	for _, values := range valueSets(t) {
		if out, err := helm(t, "lint", "--strict", chartDir, "--namespace", namespace, "--values", values); err != nil {
			t.Errorf("helm lint with %s: %v\n%s", values, err, out)
		}
	}
}

// TestGolden holds what the chart renders against testdata/*.golden.yaml.
func TestGolden(t *testing.T) {
	for _, values := range valueSets(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			got := render(t, "--values", values)
			compare(t, strings.TrimSuffix(values, ".values.yaml")+".golden.yaml", withoutDashboard(t, withoutCRD(got)))
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

// withoutDashboard leaves out the text of the dashboard: it is long, and
// TestMonitoring holds it against its file.
func withoutDashboard(t *testing.T, manifests string) string {
	t.Helper()
	text := strings.TrimSpace(string(chartFile(t, dashboardFile)))
	return strings.Replace(manifests, strings.ReplaceAll(text, "\n", "\n    "), "(files/dashboard.json)", 1)
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
		"alerts about nothing":            {[]string{"metrics.enabled=false", "metrics.prometheusRule.enabled=true"}, []string{"metrics.prometheusRule.enabled needs metrics.enabled"}},
		"profiles beside nothing":         {[]string{"metrics.enabled=false", "metrics.pprof=true"}, []string{"metrics.pprof needs metrics.enabled"}},
		"a collector without a port":      {[]string{"tracing.endpoint=http://collector"}, []string{"/tracing/endpoint"}},
		"a collector without a protocol":  {[]string{"tracing.endpoint=collector:4317"}, []string{"/tracing/endpoint"}},
		"a collector with a path":         {[]string{"tracing.endpoint=http://collector:4317/v1/traces"}, []string{"/tracing/endpoint"}},
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
