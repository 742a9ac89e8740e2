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
		"a value that there is not":                   {[]string{"replicaCount=2"}, []string{"replicaCount"}},
		"one in a group":                              {[]string{"controller.colour=red"}, []string{"/controller", "colour"}},
		"a number for a name":                         {[]string{"gatewayClass.name=7"}, []string{"/gatewayClass/name", "string"}},
		"certificates outside the watched namespaces": {[]string{"controller.namespaces={team-a}", "certificates.namespaces={team-b}"}, []string{"certificates.namespaces contains team-b: add it to controller.namespaces too"}},
		"certificate namespaces without validation":   {[]string{"certificates.validate=false", "certificates.namespaces={team-b}"}, []string{"certificates.namespaces requires certificates.validate"}},
		"negative replicas":                           {[]string{"replicas=-1"}, []string{"/replicas", "minimum"}},
		"an unknown level":                            {[]string{"controller.logLevel=loud"}, []string{"/controller/logLevel", "'debug', 'info', 'warn', 'error'"}},
		"a controller name without path":              {[]string{"controller.name=tunnelgateway.dev"}, []string{"/controller/name"}},
		"a namespace that is none":                    {[]string{"controller.namespaces={Team A}"}, []string{"/controller/namespaces/0"}},
		"a Secret of another namespace":               {[]string{"cloudflare.existingSecret=vault/cloudflare"}, []string{"/cloudflare/existingSecret"}},
		"a delay that is no duration":                 {[]string{"controller.retirementDelay=soon"}, []string{"/controller/retirementDelay"}},
		"a digest of another kind":                    {[]string{"image.digest=md5:00"}, []string{"/image/digest"}},
		"an argument that is no flag":                 {[]string{"controller.extraArgs={workers=8}"}, []string{"/controller/extraArgs/0"}},
		"a token without an account":                  {[]string{"cloudflare.existingSecret=cloudflare"}, []string{"cloudflare.accountID is missing"}},
		"an account without a token":                  {[]string{"cloudflare.accountID=account"}, []string{"cloudflare.existingSecret is missing"}},
		"a TunnelConfiguration without a class":       {[]string{"tunnelConfiguration.create=true", "gatewayClass.create=false"}, []string{"tunnelConfiguration.create requires gatewayClass.create"}},
		"a ServiceMonitor without metrics":            {[]string{"metrics.enabled=false", "metrics.serviceMonitor.enabled=true"}, []string{"requires metrics.enabled"}},
		"alerts without metrics":                      {[]string{"metrics.enabled=false", "metrics.prometheusRule.enabled=true"}, []string{"metrics.prometheusRule.enabled requires metrics.enabled"}},
		"profiles without metrics":                    {[]string{"metrics.enabled=false", "metrics.pprof=true"}, []string{"metrics.pprof requires metrics.enabled"}},
		"a collector without a port":                  {[]string{"tracing.endpoint=http://collector"}, []string{"/tracing/endpoint"}},
		"a collector without a protocol":              {[]string{"tracing.endpoint=collector:4317"}, []string{"/tracing/endpoint"}},
		"a collector with a path":                     {[]string{"tracing.endpoint=http://collector:4317/v1/traces"}, []string{"/tracing/endpoint"}},
		"a collector past all ports":                  {[]string{"tracing.endpoint=http://collector:99999"}, []string{"/tracing/endpoint"}},
		"an API past all ports":                       {[]string{"cloudflare.baseURL=https://api.example.com:70000/v4"}, []string{"/cloudflare/baseURL"}},
		"an API with spaces":                          {[]string{"cloudflare.baseURL=http://x: y"}, []string{"/cloudflare/baseURL"}},
		"an API with a comment":                       {[]string{"cloudflare.baseURL=http://x #y"}, []string{"/cloudflare/baseURL"}},
		"disruption by a fruit":                       {[]string{"podDisruptionBudget.maxUnavailable=banana"}, []string{"/podDisruptionBudget/maxUnavailable"}},
		"disruption below zero":                       {[]string{"podDisruptionBudget.maxUnavailable=-1"}, []string{"/podDisruptionBudget/maxUnavailable"}},
		"disruption of more than all":                 {[]string{"podDisruptionBudget.maxUnavailable=101%"}, []string{"/podDisruptionBudget/maxUnavailable"}},
		"a cluster domain with a gap":                 {[]string{"controller.clusterDomain=a..b"}, []string{"/controller/clusterDomain"}},
		"a controller name with a gap":                {[]string{"controller.name=a..b/c"}, []string{"/controller/name"}},
		"a Secret with a gap":                         {[]string{"cloudflare.existingSecret=a..b"}, []string{"/cloudflare/existingSecret"}},
		"a class with a gap":                          {[]string{"gatewayClass.name=a..b"}, []string{"/gatewayClass/name"}},
		"a class of too long a name":                  {[]string{"gatewayClass.name=" + strings.Repeat("a", 254)}, []string{"/gatewayClass/name"}},
		"a Secret of too long a name":                 {[]string{"cloudflare.existingSecret=" + strings.Repeat("a", 254)}, []string{"/cloudflare/existingSecret"}},
		"an account of too long a name":               {[]string{"serviceAccount.name=" + strings.Repeat("a", 254)}, []string{"/serviceAccount/name"}},
		"settings of too long a name":                 {[]string{"tunnelConfiguration.name=" + strings.Repeat("a", 254)}, []string{"/tunnelConfiguration/name"}},
		"a priority that is no name":                  {[]string{"priorityClassName=Very High"}, []string{"/priorityClassName"}},
		"a name that is too long":                     {[]string{"fullnameOverride=" + strings.Repeat("a", 54)}, []string{"/fullnameOverride"}},
		"a name with a digit first":                   {[]string{"fullnameOverride=1a"}, []string{"/fullnameOverride"}},
		"half a name with a digit first":              {[]string{"nameOverride=1a"}, []string{"/nameOverride"}},
		"a repository that is none":                   {[]string{"image.repository=Reg/X Y"}, []string{"/image/repository"}},
		"a repository with its tag":                   {[]string{"image.repository=example.com/a:v1"}, []string{"/image/repository"}},
		"a peer that is none":                         {[]string{"networkPolicy.metricsFrom[0].foo=bar"}, []string{"/networkPolicy/metricsFrom/0", "foo"}},
		"a collector that is no peer":                 {[]string{"networkPolicy.tracingTo[0].foo=bar"}, []string{"/networkPolicy/tracingTo/0", "foo"}},
		"egress that is none":                         {[]string{"networkPolicy.extraEgress[0].from[0].foo=bar"}, []string{"/networkPolicy/extraEgress/0", "from"}},
		"DNS past all ports":                          {[]string{"networkPolicy.dnsPorts={70000}"}, []string{"/networkPolicy/dnsPorts/0"}},
		"a label that selects the pods":               {[]string{`podLabels.app\.kubernetes\.io/name=x`}, []string{"/podLabels/app.kubernetes.io~1name"}},
		"a label of the chart":                        {[]string{`metrics.dashboard.labels.helm\.sh/chart=x`}, []string{"/metrics/dashboard/labels/helm.sh~1chart"}},
		"an annotation of the chart":                  {[]string{`podAnnotations.kubectl\.kubernetes\.io/default-container=x`}, []string{"/podAnnotations/kubectl.kubernetes.io~1default-container"}},
		"a variable that is a number":                 {[]string{"controller.extraEnv[0].name=A,controller.extraEnv[0].value=1"}, []string{"/controller/extraEnv/0/value"}},
		"two tokens":                                  {[]string{"cloudflare.accountID=a,cloudflare.existingSecret=b,controller.extraEnv[0].name=CLOUDFLARE_API_TOKEN"}, []string{"CLOUDFLARE_API_TOKEN in controller.extraEnv"}},
		"a Lease of one's own":                        {[]string{"controller.extraArgs={--leader-election-id=x}"}, []string{"--leader-election-id=x", "controller.extraArgs"}},
		"no leader":                                   {[]string{"controller.extraArgs={--leader-election=false}"}, []string{"--leader-election=false", "controller.extraArgs"}},
		"no leader, by a variable":                    {[]string{"controller.extraEnv[0].name=TUNNEL_GATEWAY_LEADER_ELECTION"}, []string{"TUNNEL_GATEWAY_LEADER_ELECTION", "controller.extraEnv"}},
		"another namespace":                           {[]string{"controller.extraArgs={--controller-namespace=x}"}, []string{"--controller-namespace=x", "controller.extraArgs"}},
		"no account of its own":                       {[]string{"serviceAccount.create=false"}, []string{"serviceAccount.name is needed"}},
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

// Account and token may each come from the environment.
func TestAccountsAreTaken(t *testing.T) {
	for _, set := range []string{
		"cloudflare.accountID=a,cloudflare.existingSecret=b",
		"controller.extraEnv[0].name=CLOUDFLARE_ACCOUNT_ID,controller.extraEnv[1].name=CLOUDFLARE_API_TOKEN",
		"cloudflare.existingSecret=b,controller.extraEnv[0].name=CLOUDFLARE_ACCOUNT_ID",
		"cloudflare.accountID=a,controller.extraEnv[0].name=CLOUDFLARE_API_TOKEN",
	} {
		if out, err := helm(t, "template", release, chartDir, "--namespace", namespace, "--set", set); err != nil {
			t.Errorf("%s: %s", set, out)
		}
	}
}
