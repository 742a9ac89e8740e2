package check

import (
	"context"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// certificateStep checks the certificate that the edge presents for the host, and the settings
// of its zone that affect requests.
func certificateStep(ctx context.Context, n probe.Network, z zoneView, r Request, e Expectation) Step {
	return newStep(StepCertificate, findings{{Result: Unknown, Message: "not checked"}})
}
