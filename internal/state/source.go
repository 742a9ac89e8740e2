package state

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// Source is what a plan is made from: manifests, a cluster, or a cluster with the
// changes from manifests.
type Source struct {
	// Reader provides the [Indexes].
	client.Reader
	// Objects contains all objects, except Secrets and EndpointSlices in a cluster and
	// objects that were added to complete the manifests. Without a cluster, the objects
	// have the order of the manifests.
	Objects []client.Object
	// Certificates inspects Secrets that it reads with the Reader.
	Certificates *PermittedCertificates
	// Unsupported are the objects of Gateway API kinds that the controller does not read.
	Unsupported []Unsupported
	// Skipped counts the manifests whose kinds are not supported.
	Skipped []manifest.Skipped
	// SkippedDirectories are subdirectories that were not read.
	SkippedDirectories []string
	// Warnings are probable mistakes in the manifests.
	Warnings manifest.Errors
	// Live reports whether a cluster was read.
	Live bool
	// HasManifests reports whether manifests were read.
	HasManifests bool
	// ExperimentalRoutes reports whether routes have the fields of the Gateway API's
	// experimental channel.
	ExperimentalRoutes bool
	// Gaps are the reads that the user has no permission for; empty if everything was
	// read.
	Gaps []Gap
	// Namespaces are the namespaces that were listed one by one, because the user may not
	// list a kind in all namespaces; nil if the user may.
	Namespaces []string
	// User is the user whose reads the API server rejected, such as `user "jane"`; empty
	// without Gaps.
	User string

	// unchanged are the cluster's objects before the changes from manifests.
	unchanged  []client.Object
	live       client.Reader
	controller gatewayv1.GatewayController
	// servesImports reports whether the cluster serves ServiceImports.
	servesImports bool
	// readsPolicies reports whether the AccessPolicies of a namespace were read.
	readsPolicies func(namespace string) bool
	// controllerNamespace is the namespace of the controller in the cluster.
	controllerNamespace string
}

// readPoliciesOf makes the Reader of a cluster return [ErrNoAccessPolicies] for the
// namespaces whose AccessPolicies were not read.
func (s *Source) readPoliciesOf(isRead func(namespace string) bool) {
	s.readsPolicies, s.Reader.(*liveReader).readsPolicies = isRead, isRead
}

// WithoutManifests returns the cluster before the changes from manifests. It returns nil if
// the input is not a cluster with manifests.
func (s *Source) WithoutManifests() (*Source, error) {
	if !s.Live || !s.HasManifests {
		return nil, nil
	}
	unchanged, err := newClusterSource(s.live, s.controller, s.servesImports, s.unchanged, &manifest.Set{})
	if err != nil {
		return nil, err
	}
	unchanged.ExperimentalRoutes = s.ExperimentalRoutes
	unchanged.readPoliciesOf(s.readsPolicies)
	unchanged.Gaps, unchanged.User, unchanged.Namespaces, unchanged.controllerNamespace = slices.Clone(s.Gaps), s.User, s.Namespaces, s.controllerNamespace
	if s.Reader.(*liveReader).denied != nil {
		unchanged.Reader.(*liveReader).denied = unchanged.denyLater
	}
	return unchanged, nil
}

// Separate returns a Source of the same objects. Reads on demand from one of them do not change
// the other one.
func (s *Source) Separate() *Source {
	separate := *s
	separate.Gaps = slices.Clone(s.Gaps)
	reader, ok := s.Reader.(*liveReader)
	if !ok {
		return &separate
	}
	own := *reader
	own.endpointSlices = map[string]map[indexed][]discoveryv1.EndpointSlice{}
	if own.denied != nil {
		own.denied = separate.denyLater
	}
	separate.Reader = &own
	return &separate
}

func newSource(r client.Reader, objects []client.Object, set *manifest.Set) *Source {
	return &Source{
		Reader: r, Objects: objects, Certificates: NewPermittedCertificates(r),
		Skipped: set.Skipped, SkippedDirectories: set.SkippedDirectories, Warnings: set.Warnings, HasManifests: len(set.Objects) > 0,
	}
}

// FromFiles reads manifests from files and directories, or from o.Stdin if a path is "-", and
// returns [FromManifests].
func FromFiles(paths []string, o manifest.Options, controller gatewayv1.GatewayController, className string) (*Source, error) {
	set, err := manifest.Read(paths, o)
	if err != nil {
		return nil, err
	}
	return FromManifests(set, o.Experimental, controller, className)
}

// FromManifests returns a Source of manifests. If they contain no GatewayClass, it adds the
// GatewayClass className, which the controller manages. experimental reports whether routes have
// the fields of the Gateway API's experimental channel.
func FromManifests(set *manifest.Set, experimental bool, controller gatewayv1.GatewayController, className string) (*Source, error) {
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
	source := newSource(memory, set.Objects, set)
	source.Unsupported = newUnsupported(nil, set.Unsupported)
	source.ExperimentalRoutes = experimental
	return source, nil
}

// missingNamespaces returns Namespace objects for namespaces that the objects are in
// but that are not among the objects. They have the label that the API server adds to
// every namespace.
func missingNamespaces(objects []client.Object) []client.Object {
	exists := map[string]bool{"": true}
	for _, object := range objects {
		if namespace, ok := object.(*corev1.Namespace); ok {
			exists[namespace.Name] = true
		}
	}
	var missing []client.Object
	for _, object := range objects {
		name := object.GetNamespace()
		if exists[name] {
			continue
		}
		exists[name] = true
		missing = append(missing, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelMetadataName: name},
		}})
	}
	return missing
}
