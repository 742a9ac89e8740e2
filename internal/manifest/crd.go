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

// crdFolder is a folder of CustomResourceDefinitions of one group, in files
// named <group>_<plural>.yaml.
type crdFolder struct {
	group string
	files embed.FS
	path  string
}

var (
	// gatewayCRDs are the standard channel of the pinned module, whose version is
	// the annotation gateway.networking.k8s.io/bundle-version of each.
	gatewayCRDs = crdFolder{gatewayv1.GroupName, gatewayFiles, "crds"}
	// ownCRDs are generated from the types in api.
	ownCRDs = crdFolder{v1alpha1.GroupName, crd.Files, "."}
)

// CRDs returns the CustomResourceDefinitions that documents are checked
// against: those of the Gateway API and our own. They are ordered by name and
// belong to the caller. An error means a broken build.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range []crdFolder{gatewayCRDs, ownCRDs} {
		files, err := folder.files.ReadDir(folder.path)
		if err != nil {
			return nil, fmt.Errorf("list the embedded definitions: %w", err)
		}
		for _, file := range files {
			crd, err := folder.read(file.Name())
			if err != nil {
				return nil, err
			}
			crds = append(crds, crd)
		}
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return crds, nil
}

func (f crdFolder) read(file string) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := f.files.ReadFile(path.Join(f.path, file))
	if err != nil {
		return nil, fmt.Errorf("read the embedded definition: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, fmt.Errorf("read the embedded definition %s: %w", file, err)
	}
	return crd, nil
}
