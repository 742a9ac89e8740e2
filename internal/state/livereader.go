package state

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// liveReader reads Secrets, ConfigMaps and EndpointSlices from manifests and the API
// server, and all other objects from memory.
type liveReader struct {
	*Memory
	live client.Reader
	// endpointSlices are the EndpointSlices in the cluster, by namespace and then by the
	// value of an index. A plan needs those of most Services in a namespace, so that one
	// request for each namespace is faster than one for each Service.
	endpointSlices map[string]map[indexed][]discoveryv1.EndpointSlice
	// noServiceImports reports whether the cluster has no ServiceImports.
	noServiceImports bool
	// readsPolicies reports whether the AccessPolicies of a namespace were read. If it is nil,
	// all were.
	readsPolicies func(namespace string) bool
	// denied records what the user may not read. If it is nil, this is an error.
	denied func(Gap, error)
}

// indexed is a value of an index.
type indexed struct{ index, value string }

// Get implements client.Reader.
func (r *liveReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, isImport := object.(*multicluster.ServiceImport); isImport && r.noServiceImports {
		return ErrNoServiceImports
	}
	err := r.Memory.Get(ctx, key, object, opts...)
	switch object.(type) {
	case *corev1.Secret, *corev1.ConfigMap:
		if apierrors.IsNotFound(err) {
			return r.live.Get(ctx, key, object, opts...)
		}
	}
	return err
}

// List implements client.Reader. EndpointSlices can be selected only by [IndexService]
// and [IndexServiceImport].
func (r *liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.AccessPolicyList); ok && !r.hasPolicies(opts) {
		return ErrNoAccessPolicies
	}
	endpointSlices, ok := list.(*discoveryv1.EndpointSliceList)
	if !ok {
		return r.Memory.List(ctx, list, opts...)
	}
	found, err := r.listEndpointSlices(ctx, opts)
	if err != nil {
		return err
	}
	if err := r.Memory.List(ctx, endpointSlices, opts...); err != nil {
		return err
	}
	for i := range found {
		// An EndpointSlice from a manifest replaces the one in the cluster, even if its
		// labels do not match.
		err := r.Memory.Get(ctx, client.ObjectKeyFromObject(&found[i]), &discoveryv1.EndpointSlice{})
		if apierrors.IsNotFound(err) {
			endpointSlices.Items = append(endpointSlices.Items, found[i])
		}
	}
	return nil
}

// errSelection is a bug in the caller of [liveReader.List].
var errSelection = errors.New("EndpointSlices can be selected only by their Service or ServiceImport")

// ErrNoServiceImports is the error of readers for a ServiceImport in a cluster that serves
// none. meta.IsNoMatchError recognizes it.
var ErrNoServiceImports error = &meta.NoKindMatchError{GroupKind: kinds.ServiceImport.GVK().GroupKind(), SearchedVersions: multicluster.Versions()}

// listEndpointSlices returns the EndpointSlices in the cluster that an index selects.
func (r *liveReader) listEndpointSlices(ctx context.Context, opts []client.ListOption) ([]discoveryv1.EndpointSlice, error) {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.FieldSelector == nil || len(o.FieldSelector.Requirements()) != 1 {
		return nil, errSelection
	}
	selected := o.FieldSelector.Requirements()[0]
	if selected.Field != IndexService && selected.Field != IndexServiceImport {
		return nil, errSelection
	}
	namespace, _, _ := strings.Cut(selected.Value, "/")
	byIndex, ok := r.endpointSlices[namespace]
	if !ok {
		var found discoveryv1.EndpointSliceList
		err := r.live.List(ctx, &found, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) && r.denied != nil {
			r.denied(newGap("list", kinds.EndpointSlice, types.NamespacedName{Namespace: namespace}), err)
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the EndpointSlices of namespace %s: %w", namespace, err)
		}
		byIndex = map[indexed][]discoveryv1.EndpointSlice{}
		for i := range found.Items {
			slice := &found.Items[i]
			for index, label := range map[string]string{IndexService: discoveryv1.LabelServiceName, IndexServiceImport: multicluster.LabelServiceName} {
				if name := slice.Labels[label]; name != "" {
					key := indexed{index, namespace + "/" + name}
					byIndex[key] = append(byIndex[key], *slice)
				}
			}
		}
		r.endpointSlices[namespace] = byIndex
	}
	return byIndex[indexed{selected.Field, selected.Value}], nil
}
