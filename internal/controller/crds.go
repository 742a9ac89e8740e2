package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/mod/semver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// minGatewayAPIVersion is the first Gateway API version with ListenerSet in the
// standard channel. The GatewayClass condition SupportedVersion reports versions that
// are newer than the controller supports.
const minGatewayAPIVersion = "v1.5.0"

var (
	// gatewayCRDs are the Gateway API CRDs that the controller requires.
	gatewayCRDs = crdsOf(gatewayv1.GroupName)
	// controllerCRDs are the CRDs for the controller's own kinds.
	controllerCRDs = crdsOf(v1alpha1.GroupName)
)

// crdsOf returns the names of an API group's CRDs.
func crdsOf(group string) []string {
	var names []string
	for _, kind := range kinds.All() {
		if resource := kind.Resource(); kind.HasCRD() && resource.Group == group {
			names = append(names, resource.String())
		}
	}
	return names
}

// CRDs describe the installed CRDs.
type CRDs struct {
	// ExperimentalRoutes reports whether HTTPRoutes have the fields of the experimental
	// channel.
	ExperimentalRoutes bool
	// AccessPolicies is the UID of the CRD of AccessPolicies. It is empty if there is none,
	// or if it is being deleted.
	AccessPolicies types.UID
}

// CheckCRDs returns an error that names every missing or outdated CRD and explains how
// to install it. The CRD of AccessPolicies may be missing. CheckCRDs logs the Gateway API
// CRDs that have no version.
func CheckCRDs(ctx context.Context, live client.Reader) (found CRDs, err error) {
	list := kinds.CustomResourceDefinition.NewMetadataList()
	if err := live.List(ctx, list); err != nil {
		return CRDs{}, fmt.Errorf("list the installed CRDs: %w", err)
	}
	bundles, versions := map[string]string{}, map[string]string{}
	for i := range list.Items {
		name, annotations := list.Items[i].Name, list.Items[i].Annotations
		found.ExperimentalRoutes = found.ExperimentalRoutes || hasExperimentalRoutes(&list.Items[i])
		if name == accessPolicyCRD && list.Items[i].DeletionTimestamp == nil {
			found.AccessPolicies = list.Items[i].UID
		}
		bundles[name], versions[name] = annotations[consts.BundleVersionAnnotation], annotations[v1alpha1.BundleVersionAnnotation]
	}
	required, err := requiredVersions()
	if err != nil {
		return found, err
	}
	unversioned, err := checkGatewayCRDs(bundles)
	if len(unversioned) > 0 {
		log.FromContext(ctx).Info("cannot check the version of Gateway API CRDs; their annotation is missing",
			"crds", unversioned, "annotation", consts.BundleVersionAnnotation, "minimum", minGatewayAPIVersion)
	}
	return found, errors.Join(err, checkControllerCRDs(versions, required))
}

// hasExperimentalRoutes reports whether the CRD is the one of HTTPRoutes in the experimental
// channel. Its fields include retry.
func hasExperimentalRoutes(crd metav1.Object) bool {
	return crd.GetName() == kinds.HTTPRoute.Resource().String() && crd.GetAnnotations()[consts.ChannelAnnotation] == "experimental"
}

// checkGatewayCRDs returns an error that names each missing or outdated Gateway API
// CRD. Versions maps CRD names to bundle versions. CRDs without a valid version are
// accepted and returned.
func checkGatewayCRDs(versions map[string]string) (unversioned []string, err error) {
	var wrong []string
	for _, name := range gatewayCRDs {
		version, installed := versions[name]
		switch {
		case !installed:
			wrong = append(wrong, name+" is missing")
		case !semver.IsValid(version):
			unversioned = append(unversioned, name)
		case semver.Compare(version, minGatewayAPIVersion) < 0:
			wrong = append(wrong, name+" has version "+version)
		}
	}
	if len(wrong) == 0 {
		return unversioned, nil
	}
	return unversioned, fmt.Errorf("the standard channel CRDs of Gateway API v1.5 or v1.6 are required, but %s; "+
		"to install them, see https://gateway-api.sigs.k8s.io/guides/getting-started", strings.Join(wrong, ", "))
}

// requiredVersions maps the controller's own CRDs to the versions that are built into
// this program.
var requiredVersions = sync.OnceValues(func() (map[string]string, error) {
	crds, err := manifest.CRDs()
	if err != nil {
		return nil, err
	}
	required := map[string]string{}
	for _, crd := range crds {
		if crd.Spec.Group == v1alpha1.GroupName {
			required[crd.Name] = crd.Annotations[v1alpha1.BundleVersionAnnotation]
		}
	}
	return required, nil
})

// checkControllerCRDs returns an error for each of the controller's own CRDs that is
// missing or older than the required version. A newer CRD contains all required fields.
func checkControllerCRDs(installed, required map[string]string) error {
	var errs []error
	for _, name := range controllerCRDs {
		if problem := controllerCRDProblem(installed, name, required[name]); problem != "" {
			errs = append(errs, fmt.Errorf("the CRD %s %s; install it with the chart (with crds.install=false: with the release that installs the CRDs) "+
				"or with kubectl apply -k config/crd", name, problem))
		}
	}
	return errors.Join(errs...)
}

// controllerCRDProblem returns why the controller cannot use its own CRD with the name,
// or "".
func controllerCRDProblem(installed map[string]string, name, required string) string {
	switch version, ok := installed[name]; {
	case !ok && name == accessPolicyCRD:
		return "" // without it, AccessPolicies are unknown
	case !ok:
		return "is missing"
	case !semver.IsValid(version):
		return fmt.Sprintf("has no version in its annotation %s, but this controller requires %s or newer", v1alpha1.BundleVersionAnnotation, required)
	case semver.Compare(version, required) < 0:
		return fmt.Sprintf("has version %s, but this controller requires %s or newer", version, required)
	}
	return ""
}
