package manifest

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/config/crd"
)

//go:generate go run ./copycrds

//go:embed crds/*.yaml
var gatewayFiles embed.FS

//go:embed crds/experimental/*.yaml
var experimentalFiles embed.FS

// crdDirectory contains an API group's CustomResourceDefinitions, in files named
// <group>_<plural>.yaml.
type crdDirectory struct {
	group string
	files embed.FS
	path  string
}

var (
	// gatewayCRDs are the definitions in the Gateway API's standard channel, in the
	// version that go.mod pins.
	gatewayCRDs = crdDirectory{gatewayv1.GroupName, gatewayFiles, "crds"}
	// projectCRDs are this project's definitions, generated from the types in api.
	projectCRDs = crdDirectory{v1alpha1.GroupName, crd.Files, "."}

	// experimentalCRDs are the definitions of HTTPRoutes and GRPCRoutes in the experimental
	// channel. They have all fields of the standard channel.
	experimentalCRDs = crdDirectory{gatewayv1.GroupName, experimentalFiles, "crds/experimental"}

	crdDirectories = []crdDirectory{gatewayCRDs, projectCRDs}
)

// CRDs returns the CustomResourceDefinitions that validate the manifests: those of the
// Gateway API and of this project, ordered by name. The caller may change them. An
// error means that the build is broken.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, directory := range crdDirectories {
		found, err := directory.all()
		if err != nil {
			return nil, err
		}
		crds = append(crds, found...)
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return crds, nil
}

// all decodes all files in the directory.
func (d crdDirectory) all() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := d.files.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("list the embedded definitions: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		crd, err := d.read(file.Name())
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// read decodes one file in the directory.
func (d crdDirectory) read(file string) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := d.files.ReadFile(path.Join(d.path, file))
	if err != nil {
		return nil, fmt.Errorf("read the embedded definition: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, fmt.Errorf("read the embedded definition %s: %w", file, err)
	}
	return crd, nil
}
