package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// ClassSnapshot is everything that can affect a GatewayClass that this
// controller manages.
type ClassSnapshot struct {
	Class *gatewayv1.GatewayClass
	// Configuration is the object that [settings.ClassParameters] names; nil when
	// there is no such reference, and when the object does not exist.
	Configuration *v1alpha1.TunnelConfiguration
	// BundleVersions are the installed versions of the Gateway API by the name
	// of the CRD, from its annotation; empty when it has none.
	BundleVersions map[string]string
}

// supportedBundle are the versions of the Gateway API that have all that is
// read here: ListenerSet is in v1 since v1.5, and v1.6 is what is built with.
var supportedBundle = regexp.MustCompile(`^v1\.[56]\.\d+`)

const supportedBundleMessage = "v1.5 and v1.6"

// supportedFeatures are the core features of what is supported, and the extended
// ones whose every conformance test passes. The conformance run compares the two.
var supportedFeatures = []features.FeatureName{
	features.SupportGateway,
	features.SupportHTTPRoute,
	features.SupportReferenceGrant,

	features.SupportGatewayAddressEmpty,
	features.SupportGatewayHTTPListenerIsolation,
	features.SupportGatewayPort8080,
	features.SupportHTTPRouteBackendProtocolWebSocket,
	features.SupportHTTPRouteDestinationPortMatching,
	features.SupportHTTPRouteNamedRouteRule,
	features.SupportListenerSet,
}

// BuildClass decides about a GatewayClass.
func BuildClass(s *ClassSnapshot, o Options) gatewayv1.GatewayClassStatus {
	c := conditions{generation: s.Class.Generation}
	c.check(string(gatewayv1.GatewayClassConditionStatusAccepted), settings.ClassProblem(s.Class, s.Configuration, o.ControllerNamespace),
		string(gatewayv1.GatewayClassReasonAccepted), "The GatewayClass is accepted.")
	c.check(string(gatewayv1.GatewayClassConditionStatusSupportedVersion), bundleProblem(s.BundleVersions),
		string(gatewayv1.GatewayClassReasonSupportedVersion), "The installed version of the Gateway API is supported.")
	status := gatewayv1.GatewayClassStatus{Conditions: c.list}
	for _, name := range supportedFeatures {
		status.SupportedFeatures = append(status.SupportedFeatures, gatewayv1.SupportedFeature{Name: gatewayv1.FeatureName(name)})
	}
	slices.SortFunc(status.SupportedFeatures, func(a, b gatewayv1.SupportedFeature) int { return cmp.Compare(a.Name, b.Name) })
	return status
}

// bundleProblem: "If implementations detect any Gateway API CRDs that either do
// not have this annotation set, or have it set to a version that is not
// recognized [...], this condition MUST be set to false."
// (GatewayClassConditionStatusSupportedVersion)
func bundleProblem(versions map[string]string) *Problem {
	var wrong []string
	for _, crd := range slices.Sorted(maps.Keys(versions)) {
		if version := versions[crd]; !supportedBundle.MatchString(version) {
			wrong = append(wrong, fmt.Sprintf("%s is of version %q", crd, version))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &Problem{Reason: string(gatewayv1.GatewayClassReasonUnsupportedVersion), Message: fmt.Sprintf(
		"Supported are %s of the Gateway API, but %s; others may work, or lose fields.", supportedBundleMessage, strings.Join(wrong, ", "))}
}
