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

// oldestBundle is the version of the Gateway API in which ListenerSet is in the
// standard channel. What a newer version than ours means is said by the
// GatewayClass's SupportedVersion.
const oldestBundle = "v1.5.0"

// gatewayKinds are what the controller reads of the Gateway API, by the plurals
// that name the CRDs.
var gatewayKinds = []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "referencegrants"}

// ownCRD is the definition of our own kind.
const ownCRD = "tunnelconfigurations." + v1alpha1.GroupName

// CheckCRDs returns an error that names every CRD that is missing or too old,
// and says what to do about it. What it cannot judge it logs.
func CheckCRDs(ctx context.Context, live client.Reader) error {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := live.List(ctx, &list); err != nil {
		return fmt.Errorf("looking which CRDs are installed: %w", err)
	}
	bundles, own := map[string]string{}, map[string]string{}
	for i := range list.Items {
		name, annotations := list.Items[i].Name, list.Items[i].Annotations
		bundles[name], own[name] = annotations[consts.BundleVersionAnnotation], annotations[v1alpha1.BundleVersionAnnotation]
	}
	known, err := knownBundle()
	if err != nil {
		return err
	}
	unknown, err := checkGatewayCRDs(bundles)
	if len(unknown) > 0 {
		log.FromContext(ctx).Info("it is not known whether these CRDs of the Gateway API are new enough: they do not say of which version they are",
			"crds", unknown, "annotation", consts.BundleVersionAnnotation, "oldest", oldestBundle)
	}
	return errors.Join(err, checkOwnCRD(own, known))
}

// checkGatewayCRDs takes the version of the bundle by the name of the CRD. Those
// that do not say their version are taken as they are, and returned.
func checkGatewayCRDs(versions map[string]string) (unknown []string, err error) {
	var wrong []string
	for _, kind := range gatewayKinds {
		name := kind + "." + gatewayv1.GroupName
		version, there := versions[name]
		switch {
		case !there:
			wrong = append(wrong, name+" is missing")
		case !semver.IsValid(version):
			unknown = append(unknown, name)
		case semver.Compare(version, oldestBundle) < 0:
			wrong = append(wrong, name+" is of version "+version)
		}
	}
	if len(wrong) == 0 {
		return unknown, nil
	}
	return unknown, fmt.Errorf("the CRDs of the Gateway API have to be those of v1.5 or v1.6, standard channel, but %s; "+
		"https://gateway-api.sigs.k8s.io/guides/getting-started says how to install them", strings.Join(wrong, ", "))
}

// knownBundle is the version of our own CRD that was built with this program.
func knownBundle() (string, error) {
	crds, err := manifest.CRDs()
	for _, crd := range crds {
		if crd.Name == ownCRD {
			return crd.Annotations[v1alpha1.BundleVersionAnnotation], nil
		}
	}
	return "", err
}

// checkOwnCRD takes the versions by the names of the CRDs. One that says none is
// older than the first that did; a newer one still has all that we know.
func checkOwnCRD(versions map[string]string, known string) error {
	const remedy = "it comes with the chart (with crds.install=false, from the release that has it), or with kubectl apply -k config/crd"
	switch version, there := versions[ownCRD]; {
	case !there:
		return fmt.Errorf("the CRD %s is missing; %s", ownCRD, remedy)
	case !semver.IsValid(version):
		return fmt.Errorf("the CRD %s is older than %s, which this controller needs: it has no version in its annotation %s; %s",
			ownCRD, known, v1alpha1.BundleVersionAnnotation, remedy)
	case semver.Compare(version, known) < 0:
		return fmt.Errorf("the CRD %s is of version %s, and this controller needs %s or newer; %s", ownCRD, version, known, remedy)
	}
	return nil
}
