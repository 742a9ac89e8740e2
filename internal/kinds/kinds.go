// Package kinds lists the kinds of objects that decisions are based on, and how the
// controller and a plan read them. The schemes, the cache, the CRD and permission checks,
// a plan's lists and the kinds in manifests follow from it.
package kinds

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Object is an API object. Every Object is a client.Object.
type Object interface {
	metav1.Object
	runtime.Object
}

// List is a list of API objects. Every List is a client.ObjectList.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// PlanRead is how a plan reads a kind from a cluster.
type PlanRead int

const (
	// Never means that only the controller reads the kind.
	Never PlanRead = iota
	// Listed means that a plan lists all objects of the kind.
	Listed
	// OnDemand means that a plan reads objects when a decision needs them.
	OnDemand
	// Metadata means that a plan reads only the objects' metadata. Manifests cannot
	// contain them.
	Metadata
)

// Kind is a kind of object.
type Kind struct {
	// Plural names the kind's objects in messages.
	Plural string
	// ClusterScoped means that the objects have no namespace.
	ClusterScoped bool
	// OwnNamespace means that the objects are read only in the controller's own namespace.
	OwnNamespace bool
	// WatchMetadata means that the controller watches only the objects' metadata.
	WatchMetadata bool
	// Plan is how a plan reads the objects.
	Plan PlanRead
	// Versions are the versions in which the objects can be read, the newest first. They are
	// empty for a kind that is read only in the version of GVK. A kind with versions is
	// optional: the cluster need not have it.
	Versions []string
	// Optional means that the cluster need not have the kind, which has one version.
	Optional bool

	api    api
	object Object
	// list is nil unless the kind is Listed.
	list List
}

// api is one version of an API group.
type api struct {
	version schema.GroupVersion
	install func(*runtime.Scheme) error
	// custom means that CRDs define the kinds.
	custom bool
}

// all contains the kinds in the order in which they are declared.
var all []Kind

// declare adds the kind to [All].
func declare(a api, k Kind) Kind {
	k.api = a
	all = append(all, k)
	return k
}

// All returns every kind.
func All() []Kind { return slices.Clone(all) }

// Select returns the kinds that match.
func Select(matches func(Kind) bool) []Kind {
	return slices.DeleteFunc(All(), func(k Kind) bool { return !matches(k) })
}

// Scheme returns a new scheme with the kinds' types.
func Scheme(of []Kind) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, k := range of {
		if !s.Recognizes(k.GVK()) {
			utilruntime.Must(k.api.install(s))
		}
	}
	return s
}

// GVK returns the version in which the kind is read, and to which its objects in
// manifests are converted.
func (k Kind) GVK() schema.GroupVersionKind {
	return k.api.version.WithKind(reflect.TypeOf(k.object).Elem().Name())
}

// GVKs returns the versions in which the kind can be read, the newest first.
func (k Kind) GVKs() []schema.GroupVersionKind {
	if !k.HasVersions() {
		return []schema.GroupVersionKind{k.GVK()}
	}
	all := make([]schema.GroupVersionKind, len(k.Versions))
	for i, version := range k.Versions {
		all[i] = k.GVK().GroupKind().WithVersion(version)
	}
	return all
}

// Resource returns the kind's API resource.
func (k Kind) Resource() schema.GroupResource {
	return schema.GroupResource{Group: k.api.version.Group, Resource: strings.ToLower(k.Plural)}
}

// HasCRD reports whether a CRD of the Gateway API or of this project defines the kind. The
// CRD must be installed unless the kind is optional.
func (k Kind) HasCRD() bool { return k.api.custom }

// HasVersions reports whether the kind can be read in several versions.
func (k Kind) HasVersions() bool { return len(k.Versions) > 0 }

// IsOptional reports whether clusters need not have the kind.
func (k Kind) IsOptional() bool { return k.Optional || k.HasVersions() }

// IsRequired reports whether every cluster must have the kind.
func (k Kind) IsRequired() bool { return !k.IsOptional() }

// InManifests reports whether manifests can contain objects of the kind.
func (k Kind) InManifests() bool { return k.Plan == Listed || k.Plan == OnDemand }

// New returns an empty object.
func (k Kind) New() Object { return k.object.DeepCopyObject().(Object) }

// NewList returns an empty list. The kind must be Listed.
func (k Kind) NewList() List { return k.list.DeepCopyObject().(List) }

// NewWatched returns an empty object with the type that the controller watches.
func (k Kind) NewWatched() Object {
	if !k.WatchMetadata {
		return k.New()
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(k.GVK())
	return object
}

// NewMetadataList returns an empty list for object metadata.
func (k Kind) NewMetadataList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.api.version.WithKind(k.GVK().Kind + "List"))
	return list
}
