package externaldns

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var _ = Describe("the values for the chart of external-dns", func() {
	It("produce the image, arguments and permissions of the manifest", func(ctx SpecContext) {
		rendered := renderChart(samples + "/external-dns/helm/values.yaml")
		var want, got appsv1.Deployment
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: programName, Name: programName}, &want)).To(Succeed())
		Expect(yaml.Unmarshal(rendered["deployment.yaml"], &got)).To(Succeed())
		wanted, container := want.Spec.Template.Spec.Containers[0], got.Spec.Template.Spec.Containers[0]
		Expect(container.Image).To(Equal(wanted.Image))
		Expect(container.Env).To(Equal(wanted.Env))
		byDefault := []string{"--log-level=info", "--log-format=text", "--interval=1m"}
		Expect(container.Args).To(ConsistOf(slices.Concat(wanted.Args, byDefault)))
		Expect(*got.Spec.Replicas).To(Equal(*want.Spec.Replicas))
		Expect(got.Spec.Strategy.Type).To(Equal(want.Spec.Strategy.Type))

		var role, chartRole rbacv1.ClusterRole
		Expect(kube.Get(ctx, client.ObjectKey{Name: programName}, &role)).To(Succeed())
		Expect(yaml.Unmarshal(rendered["clusterrole.yaml"], &chartRole)).To(Succeed())
		Expect(permissions(chartRole)).To(ConsistOf(permissions(role)))
	})

	It("match the version of the chart that the guide installs", func() {
		guide, err := os.ReadFile(root + "/docs/guides/external-dns.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(guide)).To(ContainSubstring("--version %s --values config/samples/external-dns/helm/values.yaml", loadChart().Metadata.Version))
	})
})

// permissions returns each permission in a role as "verb group resource".
func permissions(role rbacv1.ClusterRole) []string {
	var all []string
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, strings.Join([]string{verb, group, resource}, " "))
				}
			}
		}
	}
	return all
}

// renderChart renders the chart in the external-dns source. The result's keys are file
// names.
func renderChart(valuesFile string) map[string][]byte {
	GinkgoHelper()
	values, err := chartutil.ReadValuesFile(valuesFile)
	Expect(err).NotTo(HaveOccurred())
	loaded := loadChart()
	release := chartutil.ReleaseOptions{Name: programName, Namespace: programName}
	all, err := chartutil.ToRenderValues(loaded, values, release, nil) // also validates against the schema
	Expect(err).NotTo(HaveOccurred())
	files, err := engine.Render(loaded, all)
	Expect(err).NotTo(HaveOccurred())
	rendered := map[string][]byte{}
	for name, content := range files {
		rendered[filepath.Base(name)] = []byte(content)
	}
	return rendered
}

func loadChart() *chart.Chart {
	GinkgoHelper()
	loaded, err := loader.Load(filepath.Join(externalDNSSource(), "charts", programName))
	Expect(err).NotTo(HaveOccurred())
	return loaded
}

// externalDNSSource returns the directory with external-dns' source.
func externalDNSSource() string {
	GinkgoHelper()
	command := exec.Command("go", "mod", "download", "-json", modulePath)
	command.Dir = "binary"
	command.Stderr = os.Stderr
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	var module struct{ Dir string }
	Expect(json.Unmarshal(out, &module)).To(Succeed())
	return module.Dir
}
