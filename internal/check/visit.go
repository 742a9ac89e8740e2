package check

import (
	"context"
	"net/http"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// visits are the requests that were sent through the edge.
type visits struct {
	// anonymous is the answer to a request without the caller's headers, and answer is the
	// answer to the caller's request. They are nil if no request was sent.
	anonymous, answer *probe.Answer
}

// visit sends the caller's request. If the host requires a token and the caller's request has
// headers, which may contain one, visit sends a request without them before. It sends nothing
// with r.NoRequest.
func visit(ctx context.Context, n probe.Network, r Request, e Expectation) visits {
	if r.NoRequest {
		return visits{}
	}
	caller := probe.Request{URL: r.URL, Method: r.Method, Header: r.Header, GRPC: r.isGRPC(e), WithoutEnvoy: e.forwardsProxyStatus()}
	var v visits
	if len(r.Header) > 0 && slices.ContainsFunc(e.Gateways, func(g ServingGateway) bool { return g.Protected }) {
		anonymous := caller
		anonymous.Header = nil
		if !isSafe(r.Method) {
			anonymous.Method = http.MethodGet
		}
		answer := probe.Send(ctx, n, anonymous)
		v.anonymous = &answer
	}
	answer := probe.Send(ctx, n, caller)
	v.answer = &answer
	if len(r.Header) == 0 {
		v.anonymous = &answer
	}
	return v
}

// forwardsProxyStatus reports whether the header Proxy-Status is a backend's on all Gateways.
func (e Expectation) forwardsProxyStatus() bool {
	other := slices.ContainsFunc(e.Gateways, func(g ServingGateway) bool { return !g.ForwardsProxyStatus })
	return len(e.Gateways) > 0 && !other
}

// isGRPC reports whether the request is sent as a call of a gRPC method: a GRPCRoute answers
// it, and the caller did not choose a method.
func (r Request) isGRPC(e Expectation) bool {
	return r.Method == "" && r.URL.Scheme == "https" && e.usesGRPC()
}

// isSafe reports whether a request with the method changes nothing.
func isSafe(method string) bool {
	return slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}
