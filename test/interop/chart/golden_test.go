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

func valueSets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d sets of values, want at least 4 (%v)", len(files), err)
	}
	return files
}

func TestChartPassesLint(t *testing.T) {
	for _, values := range valueSets(t) {
		if out, err := helm(t, "lint", "--strict", chartDir, "--namespace", namespace, "--values", values); err != nil {
			t.Errorf("helm lint with %s: %v\n%s", values, err, out)
		}
	}
}

// TestGoldenManifests compares the rendered manifests with testdata/*.golden.yaml.
func TestGoldenManifests(t *testing.T) {
	for _, values := range valueSets(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			got := render(t, "--values", values)
			compareGolden(t, strings.TrimSuffix(values, ".values.yaml")+".golden.yaml", withoutDashboards(t, withoutCRD(got)))
		})
	}
}

// withoutCRD removes the CRDs, which another test compares with config/crd.
func withoutCRD(manifests string) string {
	var lines []string
	for document := range strings.SplitSeq(manifests, "---\n") {
		if !strings.Contains(document, "kind: CustomResourceDefinition") {
			lines = append(lines, document)
		}
	}
	return strings.Join(lines, "---\n")
}

// withoutDashboards removes the dashboards' content, which
// TestAlertsAndDashboardsAreRenderedVerbatim compares with its files.
func withoutDashboards(t *testing.T, manifests string) string {
	t.Helper()
	for _, file := range dashboardFiles {
		text := strings.TrimSpace(string(chartFile(t, file)))
		manifests = strings.Replace(manifests, strings.ReplaceAll(text, "\n", "\n    "), "(files/"+file+")", 1)
	}
	return manifests
}

// TestInvalidValuesAreRejected checks that the message for an invalid value names it.
func TestInvalidValuesAreRejected(t *testing.T) {
	for name, test := range map[string]struct {
		set  []string
		want []string
	}{
		"an unknown value":            {[]string{"replicaCount=2"}, []string{"replicaCount"}},
		"an unknown value in a group": {[]string{"controller.colour=red"}, []string{"/controller", "colour"}},
		"a number as a name":          {[]string{"gatewayClass.name=7"}, []string{"/gatewayClass/name", "string"}},
		"certificates in a namespace that the controller does not watch": {[]string{"controller.namespaces={team-a}", "certificates.namespaces={team-b}"}, []string{"certificates.namespaces contains team-b: add it to controller.namespaces too"}},
		"namespaces of certificates without validation":                  {[]string{"certificates.validate=false", "certificates.namespaces={team-b}"}, []string{"certificates.namespaces requires certificates.validate"}},
		"a negative number of replicas":                                  {[]string{"replicas=-1"}, []string{"/replicas", "minimum"}},
		"an unknown log level":                                           {[]string{"controller.logLevel=loud"}, []string{"/controller/logLevel", "'debug', 'info', 'warn', 'error'"}},
		"a controller name without a path":                               {[]string{"controller.name=tunnelgateway.dev"}, []string{"/controller/name"}},
		"an invalid namespace":                                           {[]string{"controller.namespaces={Team A}"}, []string{"/controller/namespaces/0"}},
		"a Secret in another namespace":                                  {[]string{"cloudflare.existingSecret=vault/cloudflare"}, []string{"/cloudflare/existingSecret"}},
		"a retirement delay that is not a duration":                      {[]string{"controller.retirementDelay=soon"}, []string{"/controller/retirementDelay"}},
		"a digest with another algorithm":                                {[]string{"image.digest=md5:00"}, []string{"/image/digest"}},
		"a Gateway of the policy without a namespace":                    {[]string{"hostnamePolicy.gateways[0].name=shared"}, []string{"/hostnamePolicy/gateways/0", "namespace"}},
		"a Gateway of the policy with a quote":                           {[]string{"hostnamePolicy.gateways[0].namespace=a'b", "hostnamePolicy.gateways[0].name=shared"}, []string{"/hostnamePolicy/gateways/0"}},
		"an argument that is not a flag":                                 {[]string{"controller.extraArgs={workers=8}"}, []string{"/controller/extraArgs/0"}},
		"a token without an account":                                     {[]string{"cloudflare.existingSecret=cloudflare"}, []string{"cloudflare.accountID is missing"}},
		"an account without a token":                                     {[]string{"cloudflare.accountID=" + account}, []string{"cloudflare.existingSecret is missing"}},
		"an account's name instead of its ID":                            {[]string{"cloudflare.accountID=example"}, []string{"/cloudflare/accountID"}},
		"an account ID in upper case":                                    {[]string{"cloudflare.accountID=0123456789ABCDEF0123456789ABCDEF"}, []string{"/cloudflare/accountID"}},
		"an account ID that lacks a digit":                               {[]string{"cloudflare.accountID=" + account[1:]}, []string{"/cloudflare/accountID"}},
		"an unknown policy":                                              {[]string{"policies.protectGateway=true"}, []string{"/policies", "protectGateway"}},
		"a TunnelConfiguration without a GatewayClass":                   {[]string{"tunnelConfiguration.create=true", "gatewayClass.create=false"}, []string{"tunnelConfiguration.create requires gatewayClass.create"}},
		"a data plane without a GatewayClass":                            {[]string{"gatewayClass.create=false,gatewayClass.dataPlane=Envoy"}, []string{"gatewayClass.dataPlane and gatewayClass.images require gatewayClass.create"}},
		"an image without a GatewayClass":                                {[]string{"gatewayClass.create=false,gatewayClass.images.envoy=a"}, []string{"gatewayClass.dataPlane and gatewayClass.images require gatewayClass.create"}},
		"an unknown data plane":                                          {[]string{"gatewayClass.dataPlane=envoy"}, []string{"/gatewayClass/dataPlane", "'IngressRules', 'Envoy'"}},
		"an invalid image of Envoy":                                      {[]string{"gatewayClass.images.envoy=a b"}, []string{"/gatewayClass/images/envoy"}},
		"two data planes":                                                {[]string{"gatewayClass.dataPlane=Envoy,tunnelConfiguration.spec.dataPlane=Envoy"}, []string{"tunnelConfiguration.spec.dataPlane are mutually exclusive"}},
		"two images of the connectors":                                   {[]string{"gatewayClass.images.cloudflared=a,tunnelConfiguration.spec.connector.image=b"}, []string{"tunnelConfiguration.spec.connector.image are mutually exclusive"}},
		"two images of Envoy":                                            {[]string{"gatewayClass.images.envoy=a,tunnelConfiguration.spec.connector.envoy.image=b"}, []string{"tunnelConfiguration.spec.connector.envoy.image are mutually exclusive"}},
		"a ServiceMonitor without metrics":                               {[]string{"metrics.enabled=false", "metrics.serviceMonitor.enabled=true"}, []string{"requires metrics.enabled"}},
		"an error ratio above 100 %":                                     {[]string{"metrics.prometheusRule.routeErrorPercent=100"}, []string{"/metrics/prometheusRule/routeErrorPercent"}},
		"a latency above the largest bucket":                             {[]string{"metrics.prometheusRule.routeLatencyMilliseconds=10000"}, []string{"/metrics/prometheusRule/routeLatencyMilliseconds"}},
		"alerts without metrics":                                         {[]string{"metrics.enabled=false", "metrics.prometheusRule.enabled=true"}, []string{"metrics.prometheusRule.enabled requires metrics.enabled"}},
		"profiling without metrics":                                      {[]string{"metrics.enabled=false", "metrics.pprof=true"}, []string{"metrics.pprof requires metrics.enabled"}},
		"a collector without a port":                                     {[]string{"tracing.endpoint=http://collector"}, []string{"/tracing/endpoint"}},
		"a collector without a protocol":                                 {[]string{"tracing.endpoint=collector:4317"}, []string{"/tracing/endpoint"}},
		"a collector with a path":                                        {[]string{"tracing.endpoint=http://collector:4317/v1/traces"}, []string{"/tracing/endpoint"}},
		"a collector whose port is too high":                             {[]string{"tracing.endpoint=http://collector:99999"}, []string{"/tracing/endpoint"}},
		"an API URL whose port is too high":                              {[]string{"cloudflare.baseURL=https://api.example.com:70000/v4"}, []string{"/cloudflare/baseURL"}},
		"an API URL with a space":                                        {[]string{"cloudflare.baseURL=http://x: y"}, []string{"/cloudflare/baseURL"}},
		"an API URL with a comment":                                      {[]string{"cloudflare.baseURL=http://x #y"}, []string{"/cloudflare/baseURL"}},
		"a disruption budget that is a word":                             {[]string{"podDisruptionBudget.maxUnavailable=banana"}, []string{"/podDisruptionBudget/maxUnavailable"}},
		"a negative disruption budget":                                   {[]string{"podDisruptionBudget.maxUnavailable=-1"}, []string{"/podDisruptionBudget/maxUnavailable"}},
		"a disruption budget of more than 100%":                          {[]string{"podDisruptionBudget.maxUnavailable=101%"}, []string{"/podDisruptionBudget/maxUnavailable"}},
		"a cluster domain with an empty label":                           {[]string{"controller.clusterDomain=a..b"}, []string{"/controller/clusterDomain"}},
		"a controller name with an empty label":                          {[]string{"controller.name=a..b/c"}, []string{"/controller/name"}},
		"a Secret name with an empty label":                              {[]string{"cloudflare.existingSecret=a..b"}, []string{"/cloudflare/existingSecret"}},
		"a GatewayClass name with an empty label":                        {[]string{"gatewayClass.name=a..b"}, []string{"/gatewayClass/name"}},
		"a GatewayClass name that is too long":                           {[]string{"gatewayClass.name=" + strings.Repeat("a", 254)}, []string{"/gatewayClass/name"}},
		"a Secret name that is too long":                                 {[]string{"cloudflare.existingSecret=" + strings.Repeat("a", 254)}, []string{"/cloudflare/existingSecret"}},
		"a ServiceAccount name that is too long":                         {[]string{"serviceAccount.name=" + strings.Repeat("a", 254)}, []string{"/serviceAccount/name"}},
		"a TunnelConfiguration name that is too long":                    {[]string{"tunnelConfiguration.name=" + strings.Repeat("a", 254)}, []string{"/tunnelConfiguration/name"}},
		"a priority class that is not a name":                            {[]string{"priorityClassName=Very High"}, []string{"/priorityClassName"}},
		"a fullnameOverride that is too long":                            {[]string{"fullnameOverride=" + strings.Repeat("a", 54)}, []string{"/fullnameOverride"}},
		"a fullnameOverride that begins with a digit":                    {[]string{"fullnameOverride=1a"}, []string{"/fullnameOverride"}},
		"a nameOverride that begins with a digit":                        {[]string{"nameOverride=1a"}, []string{"/nameOverride"}},
		"an invalid image repository":                                    {[]string{"image.repository=Reg/X Y"}, []string{"/image/repository"}},
		"an image repository with a tag":                                 {[]string{"image.repository=example.com/a:v1"}, []string{"/image/repository"}},
		"an invalid source of metrics requests":                          {[]string{"networkPolicy.metricsFrom[0].foo=bar"}, []string{"/networkPolicy/metricsFrom/0", "foo"}},
		"an invalid destination of traces":                               {[]string{"networkPolicy.tracingTo[0].foo=bar"}, []string{"/networkPolicy/tracingTo/0", "foo"}},
		"an invalid egress rule":                                         {[]string{"networkPolicy.extraEgress[0].from[0].foo=bar"}, []string{"/networkPolicy/extraEgress/0", "from"}},
		"a DNS port that is too high":                                    {[]string{"networkPolicy.dnsPorts={70000}"}, []string{"/networkPolicy/dnsPorts/0"}},
		"a pod label that the selector uses":                             {[]string{`podLabels.app\.kubernetes\.io/name=x`}, []string{"/podLabels/app.kubernetes.io~1name"}},
		"a label that the chart sets":                                    {[]string{`metrics.dashboard.labels.helm\.sh/chart=x`}, []string{"/metrics/dashboard/labels/helm.sh~1chart"}},
		"an annotation that the chart sets":                              {[]string{`podAnnotations.kubectl\.kubernetes\.io/default-container=x`}, []string{"/podAnnotations/kubectl.kubernetes.io~1default-container"}},
		"an environment variable that is a number":                       {[]string{"controller.extraEnv[0].name=A,controller.extraEnv[0].value=1"}, []string{"/controller/extraEnv/0/value"}},
		"a token in a Secret and in a variable":                          {[]string{"cloudflare.accountID=" + account + ",cloudflare.existingSecret=b,controller.extraEnv[0].name=CLOUDFLARE_API_TOKEN"}, []string{"CLOUDFLARE_API_TOKEN in controller.extraEnv"}},
		"a custom Lease name":                                            {[]string{"controller.extraArgs={--leader-election-id=x}"}, []string{"--leader-election-id=x", "controller.extraArgs"}},
		"no leader election":                                             {[]string{"controller.extraArgs={--leader-election=false}"}, []string{"--leader-election=false", "controller.extraArgs"}},
		"no leader election, by a variable":                              {[]string{"controller.extraEnv[0].name=TUNNEL_GATEWAY_LEADER_ELECTION"}, []string{"TUNNEL_GATEWAY_LEADER_ELECTION", "controller.extraEnv"}},
		"another controller namespace":                                   {[]string{"controller.extraArgs={--controller-namespace=x}"}, []string{"--controller-namespace=x", "controller.extraArgs"}},
		"another xDS Service":                                            {[]string{"controller.extraArgs={--xds-service=x}"}, []string{"--xds-service=x", "controller.extraArgs"}},
		"another address for Envoys":                                     {[]string{"controller.extraArgs={--xds-bind-address=:19000}"}, []string{"--xds-bind-address=:19000", "controller.extraArgs"}},
		"no ServiceAccount":                                              {[]string{"serviceAccount.create=false"}, []string{"serviceAccount.name is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := []string{"template", release, chartDir, "--namespace", namespace}
			for _, set := range test.set {
				arguments = append(arguments, "--set", set)
			}
			out, err := helm(t, arguments...)
			if err == nil {
				t.Fatalf("the chart accepts the values:\n%s", out)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("the message does not contain %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestAccountAndTokenCanComeFromTheEnvironment renders each combination of values and
// variables.
func TestAccountAndTokenCanComeFromTheEnvironment(t *testing.T) {
	for _, set := range []string{
		"cloudflare.accountID=" + account + ",cloudflare.existingSecret=b",
		"controller.extraEnv[0].name=CLOUDFLARE_ACCOUNT_ID,controller.extraEnv[1].name=CLOUDFLARE_API_TOKEN",
		"cloudflare.existingSecret=b,controller.extraEnv[0].name=CLOUDFLARE_ACCOUNT_ID",
		"cloudflare.accountID=" + account + ",controller.extraEnv[0].name=CLOUDFLARE_API_TOKEN",
	} {
		if out, err := helm(t, "template", release, chartDir, "--namespace", namespace, "--set", set); err != nil {
			t.Errorf("%s: %s", set, out)
		}
	}
}

// TestTheDataPlaneNeedsNoCRDOfThisProject renders what the first installation with Envoy
// contains. Helm, Argo CD and Flux cannot apply a kind whose CRD does not exist yet.
func TestTheDataPlaneNeedsNoCRDOfThisProject(t *testing.T) {
	all := objects(t, render(t, "--set", "gatewayClass.dataPlane=Envoy"))
	for _, o := range all {
		if version, _ := o["apiVersion"].(string); strings.HasPrefix(version, "tunnelgateway.dev/") {
			t.Errorf("the chart renders %s", o.id())
		}
	}
	class := onlyObject(t, all, "GatewayClass")
	if got := childMap(childMap(class, "metadata"), "annotations")["tunnelgateway.dev/data-plane"]; got != "Envoy" {
		t.Errorf("the annotation of the GatewayClass is %v, want Envoy", got)
	}
	if ref := childMap(childMap(class, "spec"), "parametersRef"); ref != nil {
		t.Errorf("the GatewayClass refers to %v", ref)
	}
}

// TestImagesOfTheClassCreateItsTunnelConfiguration renders each value below
// gatewayClass that becomes a TunnelConfiguration field.
func TestImagesOfTheClassCreateItsTunnelConfiguration(t *testing.T) {
	for set, want := range map[string]map[string]any{
		"gatewayClass.images.cloudflared=a": {"connector": map[string]any{"image": "a"}},
		"gatewayClass.images.envoy=b":       {"connector": map[string]any{"envoy": map[string]any{"image": "b"}}},
		"gatewayClass.images.envoy=b,tunnelConfiguration.spec.connector.envoy.concurrency=4": {
			"connector": map[string]any{"envoy": map[string]any{"image": "b", "concurrency": float64(4)}},
		},
	} {
		all := objects(t, render(t, "--set", set))
		if diff := cmp.Diff(want, childMap(onlyObject(t, all, "TunnelConfiguration"), "spec")); diff != "" {
			t.Errorf("%s: the spec differs (-want +got):\n%s", set, diff)
		}
		if childMap(childMap(onlyObject(t, all, "GatewayClass"), "spec"), "parametersRef") == nil {
			t.Errorf("%s: the GatewayClass does not refer to the TunnelConfiguration", set)
		}
	}
}
