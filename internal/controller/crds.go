package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// minGatewayAPIVersion is the oldest version of the Gateway API that has ListenerSet in
// the standard channel. The GatewayClass's condition SupportedVersion reports
// versions that are newer than the controller.
const minGatewayAPIVersion = "v1.5.0"

// gatewayCRDs are the kinds of the Gateway API that the controller reads, by the
// plurals that their CRDs are named after.
var gatewayCRDs = []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "referencegrants"}

// controllerCRDs are the controller's own kinds, likewise.
var controllerCRDs = []string{"tunnelconfigurations", "tunnels"}

// CheckCRDs returns an error that names every CRD that is missing or too old, and
// says how to install it. It logs CRDs without a version.
func CheckCRDs(ctx context.Context, live client.Reader) error {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := live.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the installed CRDs: %w", err)
	}
	bundles, own := map[string]string{}, map[string]string{}
	for i := range list.Items {
		name, annotations := list.Items[i].Name, list.Items[i].Annotations
		bundles[name], own[name] = annotations[consts.BundleVersionAnnotation], annotations[v1alpha1.BundleVersionAnnotation]
	}
	known, err := requiredVersions()
	if err != nil {
		return err
	}
	unknown, err := checkGatewayCRDs(bundles)
	if len(unknown) > 0 {
		log.FromContext(ctx).Info("cannot check the version of these CRDs of the Gateway API, because they do not say it",
			"crds", unknown, "annotation", consts.BundleVersionAnnotation, "oldest", minGatewayAPIVersion)
	}
	return errors.Join(err, checkControllerCRDs(own, known))
}

// checkGatewayCRDs returns an error for each CRD of the Gateway API that is missing
// or too old. versions are the bundle versions by the names of the CRDs. CRDs
// without a version are accepted, and returned.
func checkGatewayCRDs(versions map[string]string) (unknown []string, err error) {
	var wrong []string
	for _, kind := range gatewayCRDs {
		name := kind + "." + gatewayv1.GroupName
		version, installed := versions[name]
		switch {
		case !installed:
			wrong = append(wrong, name+" is missing")
		case !semver.IsValid(version):
			unknown = append(unknown, name)
		case semver.Compare(version, minGatewayAPIVersion) < 0:
			wrong = append(wrong, name+" has version "+version)
		}
	}
	if len(wrong) == 0 {
		return unknown, nil
	}
	return unknown, fmt.Errorf("the CRDs of the Gateway API v1.5 or v1.6, standard channel, are required, but %s; "+
		"https://gateway-api.sigs.k8s.io/guides/getting-started says how to install them", strings.Join(wrong, ", "))
}

// requiredVersions returns the versions of the controller's own CRDs that were built
// with this program, by their names.
func requiredVersions() (map[string]string, error) {
	crds, err := manifest.CRDs()
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, crd := range crds {
		if crd.Spec.Group == v1alpha1.GroupName {
			known[crd.Name] = crd.Annotations[v1alpha1.BundleVersionAnnotation]
		}
	}
	return known, nil
}

// checkControllerCRDs returns an error for each of the controller's own CRDs that is
// missing, or older than the known version. A newer one has all known fields.
func checkControllerCRDs(installed, known map[string]string) error {
	var errs []error
	for _, kind := range controllerCRDs {
		name := kind + "." + v1alpha1.GroupName
		if problem := controllerCRDProblem(installed, name, known[name]); problem != "" {
			errs = append(errs, fmt.Errorf("the CRD %s %s; install it with the chart (with crds.install=false: the release that installs the CRDs), "+
				"or with kubectl apply -k config/crd", name, problem))
		}
	}
	return errors.Join(errs...)
}

// controllerCRDProblem returns why the controller cannot use an installed CRD of its own,
// or "".
func controllerCRDProblem(installed map[string]string, name, known string) string {
	switch version, ok := installed[name]; {
	case !ok:
		return "is missing"
	case !semver.IsValid(version):
		return fmt.Sprintf("has no version in its annotation %s, but this controller needs %s or newer", v1alpha1.BundleVersionAnnotation, known)
	case semver.Compare(version, known) < 0:
		return fmt.Sprintf("has version %s, but this controller needs %s or newer", version, known)
	}
	return ""
}
