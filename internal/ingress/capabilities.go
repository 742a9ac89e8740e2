package ingress

import (
	"fmt"
	"net/url"
	"slices"
	"unicode/utf8"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Capabilities returns what ingress rules can express: an ingress rule has a
// hostname, a path and one service.
func Capabilities() routing.Capabilities {
	return routing.Capabilities{
		Match:       unsupportedFields,
		Action:      unsupportedActions,
		Backend:     unsupportedBackend,
		BackendTLS:  unsupportedBackendTLS,
		ErrorStatus: func(string) int { return statusError },
		Protocols:   []routing.Protocol{routing.ProtocolHTTP, routing.ProtocolHTTPS},
		Path:        decodePath,
		RequestPath: url.PathUnescape,
		AccessGaps:  AccessGaps,

		ComparesHostsExactly: true, // https://github.com/cloudflare/cloudflared/issues/1715
	}
}

// statusError is the status for requests whose action cannot be served: "a 500
// status code" (HTTPRouteRule.BackendRefs).
const statusError = 500

func unsupportedFields(match gatewayv1.HTTPRouteMatch) []string {
	var fields []string
	if len(match.Headers) > 0 {
		fields = append(fields, "headers")
	}
	if len(match.QueryParams) > 0 {
		fields = append(fields, "queryParams")
	}
	if match.Method != nil {
		fields = append(fields, "method")
	}
	return fields
}

func unsupportedActions(rule *gatewayv1.HTTPRouteRule) []string {
	var actions []string
	add := func(action string) {
		if !slices.Contains(actions, action) {
			actions = append(actions, action)
		}
	}
	for _, filter := range rule.Filters {
		add(fmt.Sprintf("filter %s", filter.Type))
	}
	weighted := 0
	for _, backend := range rule.BackendRefs {
		if ptr.Deref(backend.Weight, 1) == 0 {
			continue
		}
		weighted++
		for _, filter := range backend.Filters {
			add(fmt.Sprintf("backendRef filter %s", filter.Type))
		}
	}
	if weighted > 1 {
		add(fmt.Sprintf("%d backendRefs with non-zero weight", weighted))
	}
	if t := rule.Timeouts; t != nil && (t.Request != nil || t.BackendRequest != nil) {
		add("timeouts")
	}
	if rule.Retry != nil {
		add("retry")
	}
	return actions
}

// unsupportedBackend rejects gRPC without TLS, because a connector uses HTTP/2 only
// for backends with TLS.
func unsupportedBackend(kind string, p routing.Protocol) string {
	if kind == routing.KindGRPCRoute && p != routing.ProtocolHTTPS {
		return "gRPC to a backend without TLS"
	}
	return ""
}

// unsupportedBackendTLS rejects certificate authorities and subject alternative names: an
// ingress rule has one name, for SNI and for the certificate.
func unsupportedBackendTLS(b *routing.BackendTLS) string {
	switch {
	case b.UsesOnlyHostname():
		return ""
	case b.Authorities != "":
		return "caCertificateRefs"
	default:
		return "subjectAltNames"
	}
}

// decodePath decodes a literal path. A path match in the API is percent-encoded,
// but the connector matches the decoded path.
func decodePath(path string) (string, error) {
	decoded, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(decoded) {
		return "", fmt.Errorf("path %q with invalid encoding", path)
	}
	return decoded, nil
}
