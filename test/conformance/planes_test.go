package conformance

import (
	"cmp"
	"flag"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/gateway-api/conformance/utils/suite"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// plane is a data plane that the suite tests.
type plane struct {
	name v1alpha1.DataPlane
	// class names the GatewayClass in the test bed.
	class string
	// profiles are the profiles in the report.
	profiles []suite.ConformanceProfile
	// report names the report in docs/conformance.
	report string
}

// planes are the data planes, in the order in which they run.
var planes = []plane{
	{
		name: v1alpha1.DataPlaneEnvoy, class: "cloudflare-tunnel", report: "report.yaml",
		profiles: []suite.ConformanceProfile{suite.GatewayHTTPConformanceProfile, suite.GatewayGRPCConformanceProfile},
	},
	{
		name: v1alpha1.DataPlaneIngressRules, class: "cloudflare-tunnel-ingress-rules", report: "report-ingress-rules.yaml",
		profiles: []suite.ConformanceProfile{suite.GatewayHTTPConformanceProfile},
	},
}

var dataPlane = flag.String("data-plane", "", "run the suite only with the data plane `Envoy` or `IngressRules`")

// selectedPlanes returns the data planes to test. An existing cluster has one GatewayClass.
func selectedPlanes(t *testing.T) []plane {
	name := *dataPlane
	if *existing {
		name = cmp.Or(name, string(v1alpha1.DataPlaneEnvoy))
	}
	if name == "" {
		return planes
	}
	i := slices.IndexFunc(planes, func(p plane) bool { return string(p.name) == name })
	if i < 0 {
		t.Fatalf("-data-plane: %q is not Envoy or IngressRules", name)
	}
	return planes[i : i+1]
}

// file returns the path of the plane's own variant of a file.
func (p plane) file(path string) string {
	return strings.TrimSuffix(path, ".yaml") + "-" + strings.ToLower(string(p.name)) + ".yaml"
}

func (p plane) profileNames() []suite.ConformanceProfileName {
	var names []suite.ConformanceProfileName
	for _, profile := range p.profiles {
		names = append(names, profile.Name)
	}
	return names
}
