package state

import (
	"cmp"
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// reading is what has been read from a cluster, and what the user may not read.
type reading struct {
	Cluster
	objects       []client.Object
	servesImports bool
	// notServed are the optional kinds that the cluster does not serve.
	notServed map[string]bool
	// namespaces are the namespaces to list if the user may not list all.
	namespaces []string
	gaps       []Gap
	errs       []error // of the gaps
	user       string
	// denied are the kinds that the user may not list in all namespaces.
	denied map[string]bool
	// complete are the namespaces that were listed, by kind.
	complete map[string]map[string]bool
	// visited are the objects that were read or tried by name, and the others.
	visited map[objectKey]bool
	// refused are the errors for objects that the user may not get, by kind and namespace.
	refused map[objectKey]error
	// permitted reports whether the user may list anything.
	permitted bool
}

// objectKey identifies an object in a Source.
type objectKey struct {
	kind string
	types.NamespacedName
}

// read lists every listed kind. It continues after a missing kind or permission, so that
// the error names all of them.
func (c Cluster) read(ctx context.Context, set *manifest.Set) (*reading, error) {
	r := &reading{
		Cluster: c, namespaces: c.knownNamespaces(set),
		notServed: map[string]bool{}, denied: map[string]bool{}, complete: map[string]map[string]bool{}, visited: map[objectKey]bool{}, refused: map[objectKey]error{},
	}
	var errs []error
	for _, kind := range kinds.Select(func(k kinds.Kind) bool { return k.Plan == kinds.Listed }) {
		if kind.IsOptional() && len(errs) > 0 {
			continue
		}
		err := r.readKind(ctx, kind)
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, err)
		case err != nil:
			return nil, err
		}
	}
	r.dropNotServed()
	errs = append(errs, r.missingPolicies(set.Objects))
	if len(r.gaps) > 0 && (!c.PermitGaps || !r.permitted) {
		errs = append(errs, &permissionError{r.refusal(), r.errs})
	}
	if err := errors.Join(errs...); err != nil || len(r.gaps) == 0 {
		return r, err
	}
	return r, r.follow(ctx, set.Objects)
}

// dropNotServed removes the gaps for kinds that the cluster does not serve.
func (r *reading) dropNotServed() {
	for kind := range r.notServed {
		delete(r.denied, kind)
	}
	r.gaps = slices.DeleteFunc(r.gaps, func(g Gap) bool { return r.notServed[g.Kind] })
}

// missingPolicies returns an error if the manifests contain an AccessPolicy, which the
// cluster would reject.
func (r *reading) missingPolicies(manifests []client.Object) error {
	hasPolicy := slices.ContainsFunc(manifests, func(o client.Object) bool { _, ok := o.(*v1alpha1.AccessPolicy); return ok })
	if !hasPolicy || !r.notServed[kinds.AccessPolicy.GVK().Kind] {
		return nil
	}
	resource := kinds.AccessPolicy.Resource()
	return listError(kinds.AccessPolicy, apierrors.NewNotFound(resource, ""))
}

// knownNamespaces returns the namespaces that the user works in, and those of the
// manifests, sorted.
func (c Cluster) knownNamespaces(set *manifest.Set) []string {
	names := slices.Clone(c.Namespaces)
	for _, object := range set.Objects {
		names = append(names, object.GetNamespace())
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// readKind lists a kind in all namespaces, or, without this permission, in each known
// namespace.
func (r *reading) readKind(ctx context.Context, kind kinds.Kind) error {
	scope := r.scopeOf(kind)
	err := r.readNamespace(ctx, kind, scope)
	if !apierrors.IsForbidden(err) {
		return err
	}
	r.deny(newGap("list", kind, types.NamespacedName{Namespace: scope}), err)
	r.denied[kind.GVK().Kind] = true
	if !r.PermitGaps || kind.ClusterScoped || scope != "" {
		return nil
	}
	for _, namespace := range r.namespaces {
		if err := r.tryNamespace(ctx, kind, namespace); err != nil {
			return err
		}
	}
	return nil
}

// tryNamespace lists a kind in a namespace if the user may.
func (r *reading) tryNamespace(ctx context.Context, kind kinds.Kind, namespace string) error {
	err := r.readNamespace(ctx, kind, namespace)
	if apierrors.IsForbidden(err) {
		r.deny(newGap("list", kind, types.NamespacedName{Namespace: namespace}), err)
		return nil
	}
	return err
}

// readNamespace lists a kind in a namespace, or in all.
func (r *reading) readNamespace(ctx context.Context, kind kinds.Kind, namespace string) error {
	name := kind.GVK().Kind
	found, served, err := r.listServed(ctx, kind, namespace)
	if err != nil {
		return err
	}
	r.permitted = r.permitted || kind.IsRequired()
	if !served {
		r.notServed[name] = true
	}
	if r.complete[name] == nil {
		r.complete[name] = map[string]bool{}
	}
	r.complete[name][namespace] = true
	r.objects = append(r.objects, found...)
	return nil
}

// listServed lists a kind in a namespace, or in all. It returns false if the kind is
// optional and the cluster does not serve it.
func (r *reading) listServed(ctx context.Context, kind kinds.Kind, namespace string) (found []client.Object, served bool, err error) {
	if kind.HasVersions() {
		found, served, err = r.listImports(ctx, namespace)
		r.servesImports = r.servesImports || served
		return found, served, err
	}
	found, err = r.listIn(ctx, kind, namespace)
	if kind.IsOptional() && apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return found, true, err
}

// deny records that the user may not read something.
func (r *reading) deny(gap Gap, err error) {
	r.gaps, r.errs = append(r.gaps, gap), append(r.errs, err)
	r.user = cmp.Or(r.user, refusedUser(err))
}

// permissionError says that a user may not read enough. It wraps the errors of the API server.
type permissionError struct {
	message string
	errs    []error
}

func (e *permissionError) Error() string { return e.message }

func (e *permissionError) Unwrap() []error { return e.errs }

// recordGaps copies what the user may not read.
func (s *Source) recordGaps(r *reading) {
	s.controllerNamespace = r.ControllerNamespace
	if r.PermitGaps {
		s.Reader.(*liveReader).denied = s.denyLater
	}
	if len(r.gaps) > 0 {
		s.Gaps, s.User, s.Namespaces = r.gaps, r.user, r.namespaces
	}
}

// denyLater records a read on demand that the user has no permission for.
func (s *Source) denyLater(gap Gap, err error) {
	if !slices.Contains(s.Gaps, gap) {
		s.Gaps = append(s.Gaps, gap)
	}
	s.User = cmp.Or(s.User, refusedUser(err))
}

// permits reports whether an error of reading an object on demand is recorded as a Gap.
func (s *Source) permits(kind kinds.Kind, name types.NamespacedName, err error) bool {
	reader, ok := s.Reader.(*liveReader)
	if !ok || reader.denied == nil || !apierrors.IsForbidden(err) {
		return false
	}
	reader.denied(newGap("get", kind, name), err)
	return true
}

// Unread returns the Gap for an object that could not be read by its name, or nil. Without
// a Gap, an object that the Source does not contain does not exist.
func (s *Source) Unread(kind string, name types.NamespacedName) *Gap {
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.Verb == "get" && g.Kind == kind && g.Namespace == name.Namespace && g.Name == name.Name {
			return g
		}
	}
	return nil
}

// Incomplete reports whether objects of the kind in other namespaces were not read.
func (s *Source) Incomplete(of ...kinds.Kind) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool {
		return g.Verb == "list" && slices.ContainsFunc(of, func(k kinds.Kind) bool { return k.GVK().Kind == g.Kind })
	})
}

// Unlisted reports whether the user may not list the kind in the namespace.
func (s *Source) Unlisted(kind kinds.Kind, namespace string) bool {
	return slices.Contains(s.Gaps, newGap("list", kind, types.NamespacedName{Namespace: namespace}))
}
