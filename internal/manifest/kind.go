package manifest

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

type kind struct {
	// stored is the group, version and kind that decoded objects have.
	stored schema.GroupVersionKind
	// served are the versions that a manifest may use. Their schemas equal the stored
	// version's schema.
	served     []string
	namespaced bool
	// decode validates and decodes an object in the stored version. It may change its
	// argument.
	decode func(*unstructured.Unstructured) (client.Object, []error)
}

// loaders contains the supported kinds. A kind is loaded for its first object, because
// compiling validation rules takes time.
var loaders = newLoaders()

// experimentalLoaders contains the kinds that differ in the experimental channel.
var experimentalLoaders = map[schema.GroupKind]func() (kind, error){
	kinds.HTTPRoute.GVK().GroupKind(): customKind(experimentalCRDs, kinds.HTTPRoute.Resource().Resource),
	kinds.GRPCRoute.GVK().GroupKind(): customKind(experimentalCRDs, kinds.GRPCRoute.Resource().Resource),
}

func newLoaders() map[schema.GroupKind]func() (kind, error) {
	all := map[schema.GroupKind]func() (kind, error){}
	for _, k := range kinds.Select(kinds.Kind.InManifests) {
		load := coreKind(k)
		for _, directory := range crdDirectories {
			if k.HasCRD() && directory.group == k.Resource().Group {
				load = customKind(directory, k.Resource().Resource)
			}
		}
		all[k.GVK().GroupKind()] = load
	}
	return all
}

var scheme = Scheme()

// Scheme returns a new scheme with all types that [Read] returns.
func Scheme() *runtime.Scheme { return kinds.Scheme(kinds.Select(kinds.Kind.InManifests)) }

// convert converts an object to the stored version and decodes it. It sorts the
// errors, because the validators process fields in random order.
func (k kind) convert(u *unstructured.Unstructured) (client.Object, []error) {
	if !slices.Contains(k.served, u.GroupVersionKind().Version) {
		served := make([]string, len(k.served))
		for i, version := range k.served {
			served[i] = schema.GroupVersion{Group: k.stored.Group, Version: version}.String()
		}
		return nil, []error{field.NotSupported(field.NewPath("apiVersion"), u.GetAPIVersion(), served)}
	}
	u.SetGroupVersionKind(k.stored)
	object, errs := k.decode(u)
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return object, errs
}

// newObject returns an empty object whose kind is in [Scheme].
func newObject(gvk schema.GroupVersionKind) (client.Object, error) {
	object, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return object.(client.Object), nil
}

// toErrors converts a list of field errors, and replaces regular expressions in them
// with examples. Some errors from the schema validator have no path: only their details
// contain the field.
func toErrors(list field.ErrorList) []error {
	var noPath *field.Path
	errs := make([]error, len(list))
	for i, err := range list {
		describePattern(err)
		errs[i] = err
		if err.Field == noPath.String() {
			errs[i] = errors.New(err.Detail)
		}
	}
	return errs
}
