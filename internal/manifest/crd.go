package manifest

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate go run ./copycrds

//go:embed crds/*.yaml
var crdFiles embed.FS

const crdFolder = "crds/"

// CRDs returns the Gateway API's CustomResourceDefinitions that documents are
// checked against: the standard channel of the pinned module, whose version is
// the annotation gateway.networking.k8s.io/bundle-version of each. They are
// ordered by name and belong to the caller. An error means a broken build.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := crdFiles.ReadDir("crds")
	if err != nil {
		return nil, fmt.Errorf("list the embedded definitions: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, file := range files {
		crd, err := readCRD(crdFolder + file.Name())
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

func readCRD(file string) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := crdFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the embedded definition: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, fmt.Errorf("read the embedded definition %s: %w", file, err)
	}
	return crd, nil
}
