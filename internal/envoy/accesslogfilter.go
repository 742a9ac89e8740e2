package envoy

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/process_ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// loggedRequests matches the requests to log.
func loggedRequests(a *v1alpha1.AccessLog) *accesslogv3.AccessLogFilter {
	percent := int32(100)
	if a.SamplingPercent != nil {
		percent = *a.SamplingPercent
	}
	if a.Errors != nil && *a.Errors == v1alpha1.LoggedErrorsSampled {
		return sampled(percent)
	}
	return anyOf(serverError(), failed(), sampled(percent))
}

// sampled matches a share of the requests. The choice does not depend on the request's ID,
// because visitors control it.
func sampled(percent int32) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_RuntimeFilter{RuntimeFilter: &accesslogv3.RuntimeFilter{
		RuntimeKey:               "tunnelgateway.access_log.sampled",                    // required; no layer sets it
		PercentSampled:           &typev3.FractionalPercent{Numerator: uint32(percent)}, //nolint:gosec // validated
		UseIndependentRandomness: true,
	}}}
}

func serverError() *accesslogv3.AccessLogFilter {
	return withStatus(accesslogv3.ComparisonFilter_GE, 500)
}

// withStatus matches responses whose status compares to a status in this way.
func withStatus(op accesslogv3.ComparisonFilter_Op, status uint32) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_StatusCodeFilter{StatusCodeFilter: &accesslogv3.StatusCodeFilter{
		Comparison: &accesslogv3.ComparisonFilter{
			Op: op,
			Value: &corev3.RuntimeUInt32{
				DefaultValue: status, RuntimeKey: "tunnelgateway.status", // required; no layer sets it
			},
		},
	}}}
}

// FailureFlags are Envoy's flags for requests that it could not serve. Where the status is
// below 500, the response was gRPC, or had begun. The flags NR (no route) and DC (the
// visitor disconnected) are not failures: visitors can cause them at will.
var FailureFlags = []string{"UH", "UF", "UO", "NC", "LR", "UR", "UC", "UT", "URX", "UMSDR", "UPE", "SI", "DT", "OM", "NFCF"}

// failed matches requests with one of the FailureFlags.
func failed() *accesslogv3.AccessLogFilter { return withFlags(FailureFlags...) }

// withFlags matches requests with one of Envoy's response flags.
func withFlags(flags ...string) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
		ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: flags},
	}}
}

// lineLimit matches as many requests as the token bucket permits. It comes last, because
// it takes a token from the bucket.
func lineLimit() *accesslogv3.AccessLogFilter {
	return extensionFilter("envoy.access_loggers.extension_filters.process_ratelimit", &limitv3.ProcessRateLimitFilter{
		DynamicConfig: &limitv3.DynamicTokenBucket{ResourceName: LimitAccessLog, ConfigSource: adsSource()},
	})
}

func extensionFilter(name string, config proto.Message) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{ExtensionFilter: &accesslogv3.ExtensionFilter{
		Name: name, ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{TypedConfig: pack(config)},
	}}}
}

func allOf(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{AndFilter: &accesslogv3.AndFilter{Filters: filters}}}
}

func anyOf(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_OrFilter{OrFilter: &accesslogv3.OrFilter{Filters: filters}}}
}
