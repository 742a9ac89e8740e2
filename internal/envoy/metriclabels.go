package envoy

import (
	"fmt"
	"strconv"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	statsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	transformv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/actions/transform_stat/v3"
	inputsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/stats/v3"
	"google.golang.org/grpc/codes"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// other is the label of requests that are not counted for a route, and of values that
// only a misbehaving backend sends.
const other = "other"

// routeLabels returns the labels of a route. Because every metric has them, they use
// formatters, which Envoy evaluates faster than rules.
func routeLabels(telemetry routing.Telemetry) []*statsv3.Config_Tag {
	labels := []*statsv3.Config_Tag{
		label("route_kind", firstOf(metadataParameter("ROUTE", metadataRouteKind), metadataParameter("LISTENER", metadataRouteKind))),
		label("route_namespace", ofRoute(metadataRouteNamespace)),
		label("route_name", ofRoute(metadataRouteName)),
		label("rule", ofRoute(metadataRule)),
		label("hostname", ofRoute(metadataHostname)),
	}
	if telemetry.CountsBackends() {
		labels = append(labels, label("backend", firstOf(metadataParameter("ROUTE", metadataNoBackend), metadataParameter("CLUSTER", metadataBackend))))
	}
	return labels
}

func label(name, format string) *statsv3.Config_Tag {
	return &statsv3.Config_Tag{Name: name, ValueFormat: format}
}

// metadataParameter returns the parameter of the operator METADATA.
func metadataParameter(of, key string) string { return of + ":" + MetadataNamespace + ":" + key }

func ofRoute(key string) string { return "%METADATA(" + metadataParameter("ROUTE", key) + ")%" }

// firstOf returns the format for the first of two metadata values that exists, even if it
// is empty.
func firstOf(first, second string) string {
	return fmt.Sprintf(`%%COALESCE({"operators":[{"command":"METADATA","param":%q},{"command":"METADATA","param":%q}]})%%`, first, second)
}

// codeLabel has the class of the status. A backend can send any number.
func codeLabel() *statsv3.Config_Tag {
	classes := map[string]*xdsmatcherv3.Matcher_OnMatch{}
	for _, first := range []string{"1", "2", "3", "4", "5"} {
		classes[first] = replaceBy(first + "xx")
	}
	return &statsv3.Config_Tag{Name: "code", ValueFormat: "%RESPONSE_CODE%", Rules: &xdsmatcherv3.Matcher{
		MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{
			Input: labelValue(), TreeType: &xdsmatcherv3.Matcher_MatcherTree_PrefixMatchMap{PrefixMatchMap: &xdsmatcherv3.Matcher_MatcherTree_MatchMap{Map: classes}},
		}},
		OnNoMatch: replaceBy(other),
	}}
}

// flagsLabel has Envoy's response flags, such as UH.
func flagsLabel() *statsv3.Config_Tag { return label("flags", "%RESPONSE_FLAGS%") }

// grpcStatus is the format of a gRPC call's status: a trailer, or a header of a response
// without a body.
//
// The operator GRPC_STATUS would make up a status for each request whose Content-Type is
// that of gRPC: Unknown for a website's response, and for a stream that the visitor ends.
const grpcStatus = `%COALESCE({"operators":[{"command":"TRAILER","param":"GRPC-STATUS"},{"command":"RESP","param":"GRPC-STATUS"}]})%`

// grpcStatusLabel has the name of a gRPC call's status. Other responses have no such label.
// A backend can send every number.
func grpcStatusLabel() *statsv3.Config_Tag {
	statuses := map[string]*xdsmatcherv3.Matcher_OnMatch{"": withoutLabel()}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		statuses[strconv.Itoa(int(code))] = replaceBy(code.String())
	}
	return &statsv3.Config_Tag{Name: "grpc_status", ValueFormat: grpcStatus, Rules: byValue(statuses, replaceBy(other))}
}

// onlyIfNot returns a condition: Envoy counts a request unless the format has one of the
// values. It adds no label.
func onlyIfNot(format string, values ...string) *statsv3.Config_Tag {
	ignored := map[string]*xdsmatcherv3.Matcher_OnMatch{}
	for _, value := range values {
		ignored[value] = transform(&transformv3.TransformStat{DropStat: &transformv3.TransformStat_DropStat{}})
	}
	return &statsv3.Config_Tag{Name: "condition", ValueFormat: format, Rules: byValue(ignored, withoutLabel())}
}

func byValue(values map[string]*xdsmatcherv3.Matcher_OnMatch, otherwise *xdsmatcherv3.Matcher_OnMatch) *xdsmatcherv3.Matcher {
	return &xdsmatcherv3.Matcher{
		MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{
			Input: labelValue(), TreeType: &xdsmatcherv3.Matcher_MatcherTree_ExactMatchMap{ExactMatchMap: &xdsmatcherv3.Matcher_MatcherTree_MatchMap{Map: values}},
		}},
		OnNoMatch: otherwise,
	}
}

func labelValue() *xdscorev3.TypedExtensionConfig {
	return &xdscorev3.TypedExtensionConfig{Name: "value", TypedConfig: pack(&inputsv3.StatTagValueInput{})}
}

func replaceBy(value string) *xdsmatcherv3.Matcher_OnMatch {
	return transform(&transformv3.TransformStat{UpdateTag: &transformv3.TransformStat_UpdateTag{NewTagValue: value}})
}

func withoutLabel() *xdsmatcherv3.Matcher_OnMatch {
	return transform(&transformv3.TransformStat{DropTag: &transformv3.TransformStat_DropTag{}})
}

func transform(t *transformv3.TransformStat) *xdsmatcherv3.Matcher_OnMatch {
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
		Action: &xdscorev3.TypedExtensionConfig{Name: "transform", TypedConfig: pack(t)},
	}}
}
