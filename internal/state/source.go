package state

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// Source is what a plan is made of: manifests, a cluster, or manifests that are
// laid over one.
type Source struct {
	// Reader knows the [Indexes].
	client.Reader
	// Objects are all that there are, but for Secrets and EndpointSlices that only
	// the cluster has, and what was added to complete manifests. Those of manifests
	// alone are in the order of reading.
	Objects []client.Object
	// Certificates looks at Secrets through the Reader.
	Certificates *PermittedCertificates
	// Skipped counts the documents of kinds that are not read.
	Skipped []manifest.Skipped
	// Folders are the subdirectories of the manifests' that were not read.
	Folders []string
	// Live is whether a cluster was read.
	Live bool
}

func newSource(r client.Reader, objects []client.Object, set *manifest.Set) *Source {
	return &Source{Reader: r, Objects: objects, Certificates: NewPermittedCertificates(r), Skipped: set.Skipped, Folders: set.SkippedDirectories}
}

// FromFiles reads manifests, and no cluster, from files, directories or, for
// "-", from o.Stdin. className is the class whose Gateways the controller manages
// when the manifests have no GatewayClass at all.
func FromFiles(paths []string, o manifest.Options, controller gatewayv1.GatewayController, className string) (*Source, error) {
	set, err := manifest.Read(paths, o)
	if err != nil {
		return nil, err
	}
	complete := append(slices.Clone(set.Objects), missingNamespaces(set.Objects)...)
	hasClass := slices.ContainsFunc(set.Objects, func(o client.Object) bool {
		_, ok := o.(*gatewayv1.GatewayClass)
		return ok
	})
	if !hasClass {
		complete = append(complete, &gatewayv1.GatewayClass{
			ObjectMeta: metav1.ObjectMeta{Name: className},
			Spec:       gatewayv1.GatewayClassSpec{ControllerName: controller},
		})
	}
	memory, err := NewMemory(complete, Indexes(controller))
	if err != nil {
		return nil, err
	}
	return newSource(memory, set.Objects, set), nil
}

// missingNamespaces returns the namespaces that the objects are in and that
// are not among them, with the label that the API server gives each.
func missingNamespaces(objects []client.Object) []client.Object {
	known := map[string]bool{"": true}
	for _, object := range objects {
		if namespace, ok := object.(*corev1.Namespace); ok {
			known[namespace.Name] = true
		}
	}
	var missing []client.Object
	for _, object := range objects {
		name := object.GetNamespace()
		if known[name] {
			continue
		}
		known[name] = true
		missing = append(missing, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelMetadataName: name},
		}})
	}
	return missing
}
