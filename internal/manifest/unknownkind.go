package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1alpha2 "sigs.k8s.io/gateway-api/apis/v1alpha2"
	gatewayv1alpha3 "sigs.k8s.io/gateway-api/apis/v1alpha3"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// ExperimentalGroup contains the Gateway API's experimental kinds. Its name resembles
// the name of the other kinds' group.
const ExperimentalGroup = "gateway.networking.x-k8s.io"

// existingKinds returns all kinds in the groups that have supported kinds, including
// the kinds that are not supported.
var existingKinds = sync.OnceValue(func() map[string][]string {
	all := Scheme()
	for _, install := range []func(*runtime.Scheme) error{gatewayv1alpha2.Install, gatewayv1alpha3.Install} {
		utilruntime.Must(install(all))
	}
	names := map[string]map[string]bool{}
	for gvk := range all.AllKnownTypes() {
		if names[gvk.Group] == nil {
			names[gvk.Group] = map[string]bool{}
		}
		names[gvk.Group][gvk.Kind] = true
	}
	kinds := map[string][]string{}
	for group := range names {
		kinds[group] = slices.Sorted(maps.Keys(names[group]))
	}
	return kinds
})

// projectGroups are the groups of the Gateway API and of this project.
var projectGroups = []string{gatewayv1.GroupName, v1alpha1.GroupName}

// unknownKind returns the warning about a kind that does not exist, but resembles a
// kind in a supported group, or nil.
func unknownKind(gvk schema.GroupVersionKind) error {
	inGroup := existingKinds()[gvk.Group]
	if inGroup == nil {
		return unknownGroup(gvk)
	}
	if slices.Contains(inGroup, gvk.Kind) {
		return nil
	}
	if _, misplaced := loaders[schema.GroupKind{Group: gatewayv1.GroupName, Kind: gvk.Kind}]; misplaced {
		return errors.New(suggest.DidYouMean(fmt.Sprintf("apiVersion %s of kind %s does not exist", gvk.GroupVersion(), gvk.Kind), gatewayv1.GroupName))
	}
	closest := suggest.Closest(gvk.Kind, inGroup)
	switch {
	case slices.Contains(projectGroups, gvk.Group):
		return errors.New(suggest.DidYouMean(fmt.Sprintf("kind %s does not exist in %s", gvk.Kind, gvk.Group), closest))
	case closest != "":
		return errors.New(suggest.DidYouMean(fmt.Sprintf("kind %s does not exist in apiVersion %s", gvk.Kind, gvk.GroupVersion()), closest))
	}
	return nil // the list of core kinds is not complete
}

// unknownGroup returns the warning about a group that resembles a group of the Gateway
// API or of this project, or about a Gateway API kind in another Kubernetes group, or
// nil.
func unknownGroup(gvk schema.GroupVersionKind) error {
	closest := suggest.Closest(gvk.Group, projectGroups)
	if gvk.Group == ExperimentalGroup {
		closest = ""
	}
	if _, misplaced := loaders[schema.GroupKind{Group: gatewayv1.GroupName, Kind: gvk.Kind}]; misplaced && isKubernetesGroup(gvk.Group) {
		closest = gatewayv1.GroupName
	}
	if closest == "" {
		return nil
	}
	return errors.New(suggest.DidYouMean(fmt.Sprintf("apiVersion %s of kind %s does not exist", gvk.GroupVersion(), gvk.Kind), closest))
}

// isKubernetesGroup reports whether the group belongs to Kubernetes or contains the
// Gateway API's experimental kinds, whose names begin with X.
func isKubernetesGroup(group string) bool {
	return group == ExperimentalGroup || strings.HasSuffix(group, ".k8s.io")
}
