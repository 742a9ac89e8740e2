package envoy

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

const (
	// HeaderProxyStatus is the header by which a client can tell Envoy's own responses from a
	// backend's (RFC 9209). Envoy removes it from the backends' responses.
	HeaderProxyStatus = "proxy-status"
	// ProxyName is Envoy's name in HeaderProxyStatus.
	ProxyName = "tunnel-gateway"
)

// addProxyStatus makes the listener add HeaderProxyStatus to its own responses. The setting
// proxy_status_config would also add it to a backend's response after the last retry, and
// would leave it out of responses that need no backend.
//
// A preflight that Envoy answers has no such header, because it is not one of Envoy's local
// replies. A backend's informational responses (1xx) do not reach the client.
func addProxyStatus(m *hcmv3.HttpConnectionManager, telemetry routing.Telemetry) {
	if !telemetry.SendsProxyStatus() {
		return
	}
	m.LocalReplyConfig = &hcmv3.LocalReplyConfig{Mappers: proxyStatuses()}
	m.HttpFilters = append([]*hcmv3.HttpFilter{removeProxyStatusTrailer()}, m.HttpFilters...)
}

// removedFromResponses returns the headers that Envoy removes from responses before
// [addProxyStatus] has an effect.
func removedFromResponses(telemetry routing.Telemetry) []string {
	if !telemetry.SendsProxyStatus() {
		return nil
	}
	return []string{HeaderProxyStatus}
}

// removeProxyStatusTrailer removes the field from trailers too: "The Proxy-Status field MAY be
// sent as an HTTP trailer field." (RFC 9209, section 2)
func removeProxyStatusTrailer() *hcmv3.HttpFilter {
	return httpFilter("envoy.filters.http.header_mutation", &mutationv3.HeaderMutation{Mutations: &mutationv3.Mutations{
		ResponseTrailersMutations: []*mutationrulesv3.HeaderMutation{{Action: &mutationrulesv3.HeaderMutation_Remove{Remove: HeaderProxyStatus}}},
	}})
}

// proxyStatuses returns the value of the header for each response, the first that applies. The
// error types are those in section 2.3 of RFC 9209. The values contain no details, which name
// addresses.
func proxyStatuses() []*hcmv3.ResponseMapper {
	connectionFailed := withFlags("UF")
	return []*hcmv3.ResponseMapper{
		// A backend answers the request for a WebSocket with a status below 400. Envoy keeps the
		// status and the headers, and drops the body.
		proxyStatus("http_upgrade_failed", withDetails("websocket_handshake_unsuccessful")),
		proxyStatus("http_response_timeout", withFlags("UT", "SI", "UMSDR")),
		proxyStatus("connection_timeout", allOf(connectionFailed, withDetails("connection_timeout"))),
		proxyStatus("tls_certificate_error", allOf(connectionFailed, withDetails("CERTIFICATE_VERIFY_FAILED"))),
		proxyStatus("tls_protocol_error", allOf(connectionFailed, withDetails("TLS_error"))),
		proxyStatus("connection_refused", connectionFailed),
		proxyStatus("connection_terminated", withFlags("UR", "UC", "LR")),
		proxyStatus("http_protocol_error", withFlags("UPE")),
		proxyStatus("connection_limit_reached", withFlags("UO", "OM")),
		proxyStatus("destination_unavailable", withFlags("UH")),
		proxyStatus("destination_not_found", anyOf(withFlags("NR"), withStatus(accesslogv3.ComparisonFilter_EQ, 404))),
		// A backend that does not exist, or a rule that cannot be served.
		proxyStatus("proxy_configuration_error", anyOf(withFlags("NC"), allOf(withDetails("direct_response"), withStatus(accesslogv3.ComparisonFilter_GE, 500)))),
		proxyStatus("http_request_denied", withStatus(accesslogv3.ComparisonFilter_EQ, 403)),
		proxyStatus("proxy_internal_error", withStatus(accesslogv3.ComparisonFilter_GE, 500)),
		proxyStatus("http_request_error", withStatus(accesslogv3.ComparisonFilter_GE, 400)),
		proxyStatus("proxy_internal_response", withStatus(accesslogv3.ComparisonFilter_GE, 200)),
	}
}

// proxyStatus adds the header with an error type to the responses that the filter matches. It
// replaces what a route's filters set.
func proxyStatus(errorType string, filter *accesslogv3.AccessLogFilter) *hcmv3.ResponseMapper {
	return &hcmv3.ResponseMapper{Filter: filter, HeadersToAdd: []*corev3.HeaderValueOption{{
		Header:       &corev3.HeaderValue{Key: HeaderProxyStatus, Value: ProxyName + "; error=" + errorType},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}}
}

// withDetails matches responses whose details contain a text, which must not contain quotes.
// Envoy has one flag for all connections that fail.
func withDetails(text string) *accesslogv3.AccessLogFilter {
	return extensionFilter("envoy.access_loggers.extension_filters.cel", &celv3.ExpressionFilter{
		Expression: `response.code_details.contains("` + text + `")`,
	})
}
