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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
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
// and says what to do about it.
func CheckCRDs(ctx context.Context, live client.Reader) error {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := live.List(ctx, &list); err != nil {
		return fmt.Errorf("looking which CRDs are installed: %w", err)
	}
	versions := map[string]string{}
	for i := range list.Items {
		versions[list.Items[i].Name] = list.Items[i].Annotations[consts.BundleVersionAnnotation]
	}
	return errors.Join(checkGatewayCRDs(versions), checkOwnCRD(versions))
}

// checkGatewayCRDs takes the version of the bundle by the name of the CRD. One
// that does not say its version is taken as it is.
func checkGatewayCRDs(versions map[string]string) error {
	var wrong []string
	for _, kind := range gatewayKinds {
		name := kind + "." + gatewayv1.GroupName
		version, there := versions[name]
		switch {
		case !there:
			wrong = append(wrong, name+" is missing")
		case semver.IsValid(version) && semver.Compare(version, oldestBundle) < 0:
			wrong = append(wrong, name+" is of version "+version)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("the CRDs of the Gateway API have to be those of v1.5 or v1.6, standard channel, but %s; "+
		"https://gateway-api.sigs.k8s.io/guides/getting-started says how to install them", strings.Join(wrong, ", "))
}

func checkOwnCRD(versions map[string]string) error {
	if _, there := versions[ownCRD]; there {
		return nil
	}
	return fmt.Errorf("the CRD %s is missing; it comes with the chart, or with kubectl apply -k config/crd", ownCRD)
}
