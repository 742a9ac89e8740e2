package envoy

import (
	"fmt"
	"strings"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dataaccesslogv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	statev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	setstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// LimitAccessLog is the name of the token bucket for the lines of the access log.
const LimitAccessLog = "access-log"

// AccessLogLimit returns the token bucket that both listeners share. It exists even if
// Envoy logs nothing, because Envoy must never lose it while a listener uses it.
func AccessLogLimit(t routing.Telemetry) *typev3.TokenBucket {
	lines := uint32(v1alpha1.DefaultMaxLinesPerSecond)
	if t.AccessLog != nil && t.AccessLog.MaxLinesPerSecond != nil {
		lines = uint32(*t.AccessLog.MaxLinesPerSecond) //nolint:gosec // validated
	}
	return &typev3.TokenBucket{MaxTokens: lines, TokensPerFill: wrapperspb.UInt32(lines), FillInterval: durationpb.New(time.Second)}
}

// addAccessLog makes the listener log requests. A listener that logs nothing has no
// logger at all.
func addAccessLog(m *hcmv3.HttpConnectionManager, a *v1alpha1.AccessLog) {
	if a == nil {
		return
	}
	filters := []*accesslogv3.AccessLogFilter{recordsOf(dataaccesslogv3.AccessLogType_DownstreamEnd), loggedRequests(a)}
	if m.GetScopedRoutes() != nil { // Envoy gets the limit only by xDS, so with static routes, it has none
		filters = append(filters, lineLimit())
	}
	m.AccessLog = append(m.AccessLog, &accesslogv3.AccessLog{
		Name:       "envoy.access_loggers.stdout",
		Filter:     allOf(filters...),
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: pack(accessLogFormat(a))},
	})
	m.HttpFilters = append([]*hcmv3.HttpFilter{requestedFilter(a)}, m.HttpFilters...)
}

// The maximum lengths, in bytes, of fields that visitors control.
const (
	longestTarget = 1024 // host, path
	longestField  = 128
)

// The keys under which requestedFilter keeps what the visitor requested.
const (
	stateHost = "tunnelgateway.dev.host"
	statePath = "tunnelgateway.dev.path"
)

// requestedFilter keeps the host and the path that the visitor requested. When Envoy
// writes the line, a route can have replaced both.
func requestedFilter(a *v1alpha1.AccessLog) *hcmv3.HttpFilter {
	query := "NQ"
	if a.Query != nil && *a.Query {
		query = "WQ"
	}
	keep := func(key, format string) *statev3.FilterStateValue {
		return &statev3.FilterStateValue{
			Key: &statev3.FilterStateValue_ObjectKey{ObjectKey: key}, FactoryKey: "envoy.string", SkipIfEmpty: true,
			Value: &statev3.FilterStateValue_FormatString{FormatString: textFormat(format)},
		}
	}
	return httpFilter("envoy.filters.http.set_filter_state", &setstatev3.Config{OnRequestHeaders: []*statev3.FilterStateValue{
		keep(stateHost, fmt.Sprintf("%%REQ(:AUTHORITY):%d%%", longestTarget)),
		keep(statePath, fmt.Sprintf("%%PATH(%s:PATH):%d%%", query, longestTarget)),
	}})
}

func textFormat(format string) *corev3.SubstitutionFormatString {
	return &corev3.SubstitutionFormatString{
		OmitEmptyValues: true,
		Format: &corev3.SubstitutionFormatString_TextFormatSource{
			TextFormatSource: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: format}},
		},
	}
}

// accessLogFields are the fields of a line. The line has no other header, neither of the
// request nor of the response, because any of them can contain a secret.
var accessLogFields = map[string]string{
	"time":           "%START_TIME%",
	"route":          "%ROUTE_NAME%",
	"backend":        fmt.Sprintf("%%METADATA(CLUSTER:%s:%s)%%", MetadataNamespace, metadataBackend),
	"pod":            "%UPSTREAM_HOST%",
	"host":           fmt.Sprintf("%%FILTER_STATE(%s:PLAIN)%%", stateHost),
	"path":           fmt.Sprintf("%%FILTER_STATE(%s:PLAIN)%%", statePath),
	"method":         fmt.Sprintf("%%REQ(:METHOD):%d%%", longestField),
	"protocol":       "%PROTOCOL%",
	"status":         "%RESPONSE_CODE%",
	"flags":          "%RESPONSE_FLAGS%",
	"details":        "%RESPONSE_CODE_DETAILS%",
	"grpc_status":    fmt.Sprintf("%s:%d%%", strings.TrimSuffix(grpcStatus, "%"), longestField),
	"duration_ms":    "%DURATION%",
	"backend_ms":     "%COMMON_DURATION(US_TX_BEG:US_RX_END:ms)%",
	"first_byte_ms":  "%RESPONSE_DURATION%",
	"bytes_received": "%BYTES_RECEIVED%",
	"bytes_sent":     "%BYTES_SENT%",
	"attempts":       "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
	"cf_ray":         fmt.Sprintf("%%REQ(CF-RAY):%d%%", longestField),
	"traceparent":    fmt.Sprintf("%%REQ(TRACEPARENT):%d%%", longestField),
}

const fieldVisitor = "visitor"

// accessLogFormat returns the format of a line. Its JSON has the types of the values, and
// a value that does not exist is null.
func accessLogFormat(a *v1alpha1.AccessLog) *streamv3.StdoutAccessLog {
	fields := make(map[string]*structpb.Value, len(accessLogFields)+1)
	for name, operator := range accessLogFields {
		fields[name] = structpb.NewStringValue(operator)
	}
	if operator := visitorOperator(a); operator != "" {
		fields[fieldVisitor] = structpb.NewStringValue(operator)
	}
	return &streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{
		Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}},
	}}}
}

// visitorOperator returns the operator for the visitor's address, or "" if the line has
// no address. Envoy masks both address families with the same length.
func visitorOperator(a *v1alpha1.AccessLog) string {
	kept := v1alpha1.VisitorAddressFull
	if a.VisitorAddress != nil {
		kept = *a.VisitorAddress
	}
	switch kept {
	case v1alpha1.VisitorAddressNone:
		return ""
	case v1alpha1.VisitorAddressPrefix:
		return "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(24)%"
	default:
		return "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"
	}
}
