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
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// ClassSnapshot is everything that can affect a GatewayClass that this
// controller manages.
type ClassSnapshot struct {
	Class *gatewayv1.GatewayClass
	// Configuration is the object that [settings.ClassParameters] returns. It is nil when
	// the GatewayClass has no parametersRef or the object does not exist.
	Configuration *v1alpha1.TunnelConfiguration
	// BundleVersions are the installed Gateway API CRD versions, by CRD name. A CRD
	// without the annotation has an empty version.
	BundleVersions map[string]string
	// ExperimentalRoutes reports whether the HTTPRoute CRD has the fields of the experimental
	// channel.
	ExperimentalRoutes bool
}

// supportedBundle matches the supported Gateway API versions. ListenerSet is in API
// version v1 since v1.5, and the controller is built with v1.6.
var supportedBundle = regexp.MustCompile(`^v1\.[56]\.\d+`)

const supportedBundleVersions = "v1.5 or v1.6"

// featuresOfIngressRules are the core features of the supported kinds, and the extended
// features whose conformance tests all pass with ingress rules. The conformance run
// compares this list with its results.
var featuresOfIngressRules = []features.FeatureName{
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

// featuresOfEnvoy are the features that only Envoy supports. HTTPRoutePortRedirect is
// missing, because a visitor reaches Cloudflare's edge on other ports than the listener.
var featuresOfEnvoy = []features.FeatureName{
	features.SupportGRPCRoute,

	features.SupportGRPCRouteNamedRouteRule,
	features.SupportHTTPRoute303RedirectStatusCode,
	features.SupportHTTPRoute307RedirectStatusCode,
	features.SupportHTTPRoute308RedirectStatusCode,
	features.SupportHTTPRouteBackendProtocolH2C,
	features.SupportHTTPRouteBackendRequestHeaderModification,
	features.SupportHTTPRouteBackendTimeout,
	features.SupportHTTPRouteCORS,
	features.SupportHTTPRouteHostRewrite,
	features.SupportHTTPRouteMethodMatching,
	features.SupportHTTPRoutePathRedirect,
	features.SupportHTTPRoutePathRewrite,
	features.SupportHTTPRouteQueryParamMatching,
	features.SupportHTTPRouteRequestMirror,
	features.SupportHTTPRouteRequestMultipleMirrors,
	features.SupportHTTPRouteRequestPercentageMirror,
	features.SupportHTTPRouteRequestTimeout,
	features.SupportHTTPRouteResponseHeaderModification,
	features.SupportHTTPRouteSchemeRedirect,
}

// featuresOfExperimentalRoutes are the features that only Envoy supports, for which the CRDs
// of the standard channel have no fields.
var featuresOfExperimentalRoutes = []features.FeatureName{features.SupportHTTPRouteRetry}

// supportedFeatures returns what the data plane of the GatewayClass supports, sorted by
// name. A GatewayClass whose parameters are not valid has the features that every data
// plane supports.
func supportedFeatures(s *ClassSnapshot, controllerNamespace string) []gatewayv1.SupportedFeature {
	names := featuresOfIngressRules
	if settings.ClassDataPlane(s.Class, s.Configuration, controllerNamespace) == v1alpha1.DataPlaneEnvoy {
		names = slices.Concat(featuresOfIngressRules, featuresOfEnvoy)
		if s.ExperimentalRoutes {
			names = slices.Concat(names, featuresOfExperimentalRoutes)
		}
	}
	supported := make([]gatewayv1.SupportedFeature, len(names))
	for i, name := range names {
		supported[i].Name = gatewayv1.FeatureName(name)
	}
	slices.SortFunc(supported, func(a, b gatewayv1.SupportedFeature) int { return cmp.Compare(a.Name, b.Name) })
	return supported
}

// BuildClass returns the status of a GatewayClass, without transition times.
func BuildClass(s *ClassSnapshot, o Options) gatewayv1.GatewayClassStatus {
	c := conditionList{generation: s.Class.Generation}
	c.check(conditions.TypeAccepted, settings.ClassProblem(s.Class, s.Configuration, o.ControllerNamespace),
		conditions.ReasonAccepted, s.acceptedMessage(o))
	c.check(conditions.TypeSupportedVersion, bundleProblem(s.BundleVersions),
		conditions.ReasonSupportedVersion, "The controller supports the installed Gateway API version.")
	return gatewayv1.GatewayClassStatus{Conditions: c.list, SupportedFeatures: supportedFeatures(s, o.ControllerNamespace)}
}

// acceptedMessage returns the message for a GatewayClass that is accepted.
func (s *ClassSnapshot) acceptedMessage(o Options) string {
	in := settings.Input{Class: s.Class, ClassConfiguration: s.Configuration, ControllerNamespace: o.ControllerNamespace}
	d, _ := settings.ClassDNS(in)
	a, _ := settings.ClassApplications(in)
	return strings.Join(slices.DeleteFunc([]string{"The GatewayClass is accepted.", d.Warning(), a.Warning()}, func(text string) bool { return text == "" }), " ")
}

// bundleProblem returns the CRDs with an unsupported version, or nil: "If
// implementations detect any Gateway API CRDs that either do not have this
// annotation set, or have it set to a version that is not recognized [...], this
// condition MUST be set to false." (GatewayClassConditionStatusSupportedVersion)
func bundleProblem(versions map[string]string) *Problem {
	var unsupported []string
	for _, crd := range slices.Sorted(maps.Keys(versions)) {
		if version := versions[crd]; !supportedBundle.MatchString(version) {
			unsupported = append(unsupported, crd+" "+describeVersion(version))
		}
	}
	if len(unsupported) == 0 {
		return nil
	}
	return &Problem{Reason: conditions.ReasonUnsupportedVersion, Message: fmt.Sprintf(
		"The controller does not support the installed Gateway API version: %s. Install %s; with other versions, the controller might ignore fields.",
		strings.Join(unsupported, ", "), supportedBundleVersions)}
}

func describeVersion(version string) string {
	if version == "" {
		return "has no version"
	}
	return fmt.Sprintf("has version %q", version)
}
