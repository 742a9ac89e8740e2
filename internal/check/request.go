package check

import (
	"context"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// visits are the requests that were sent through the edge.
type visits struct {
	// anonymous is the answer to a request without the caller's headers, and answer is the
	// answer to the caller's request. They are nil if no request was sent.
	anonymous, answer *probe.Answer
}

// visit sends the caller's request, and before it one without the caller's headers if there
// are some. It sends nothing with r.NoRequest.
func visit(ctx context.Context, n probe.Network, r Request, e Expectation) visits {
	return visits{}
}

// requestStep reports the answer to the caller's request, and compares it with the
// expectation.
func requestStep(r Request, e Expectation, v visits) Step {
	return newStep(StepRequest, findings{{Result: Unknown, Message: "not checked"}})
}
