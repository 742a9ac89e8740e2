package conformance

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// The channels of the Gateway API. With the experimental one, routes have more fields, such as
// retry.
const (
	standard     = "standard"
	experimental = "experimental"
)

var channels = []string{standard, experimental}

var channel = flag.String("channel", standard,
	"install the CRDs of the channel `standard` or experimental; with --existing-cluster, the channel of the installed CRDs")

// installedCRDs returns the CRDs for the test bed. The suite requires that all CRDs of the
// Gateway API are of the same channel.
func installedCRDs(defaults []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	if *channel == standard {
		return defaults
	}
	for i, crd := range defaults {
		if crd.Spec.Group != gatewayv1.GroupName {
			continue
		}
		replacement, err := experimentalCRD(crd.Spec.Names.Plural)
		if err != nil {
			panic(fmt.Sprintf("read the CRD of %s in the experimental channel: %v", crd.Spec.Names.Plural, err))
		}
		defaults[i] = replacement
	}
	return defaults
}

// experimentalCRD reads a CRD of the Gateway API's module.
func experimentalCRD(plural string) (*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "experimental", gatewayv1.GroupName+"_"+plural+".yaml")
	raw, err := os.ReadFile(file) // #nosec G304 -- a file of the pinned module
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, yaml.UnmarshalStrict(raw, crd)
}
