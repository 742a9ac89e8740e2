package controller

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// notifier emits events about tunnels on the Gateway, or on the Tunnel when the
// Gateway is gone.
type notifier struct{ events events.EventRecorder }

// emitStep emits the event of a step.
func (n notifier) emitStep(g *gatewayv1.Gateway, t *v1alpha1.Tunnel, e tunnel.Event) {
	n.emit(g, t, e.Reason.IsWarning(), e.Reason.String(), e.Message)
}

// emitProblem emits a warning about a problem that requires user action.
func (n notifier) emitProblem(g *gatewayv1.Gateway, t *v1alpha1.Tunnel, p tunnel.Problem) {
	n.emit(g, t, true, p.Reason.String(), p.Message)
}

// emitFailure logs a failed step. It emits a warning unless the previous failure had
// the same reason and message.
func (n notifier) emitFailure(ctx context.Context, g *gatewayv1.Gateway, t *v1alpha1.Tunnel, previous *tunnel.Problem, current tunnel.Backoff, err error) {
	logger := log.FromContext(ctx).WithValues("reason", current.Problem.Reason.String(), "retryAfter", current.Delay.String())
	if t != nil {
		logger = logger.WithValues("tunnel", t.Status.TunnelID)
	}
	if provider.IsTransient(err) {
		logger.Info("failed to reconcile the tunnel", "cause", err.Error())
	} else {
		logger.Error(err, "failed to reconcile the tunnel")
	}
	if previous == nil || previous.Reason != current.Problem.Reason || previous.Message != current.Problem.Message {
		n.emit(g, t, true, current.Problem.Reason.String(), describeFailure(current.Problem.Message, err))
	}
}

// describeFailure appends the error to the message of its problem, unless the message already
// contains it.
func describeFailure(message string, err error) string {
	if strings.Contains(strings.ToLower(message), strings.ToLower(err.Error())) {
		return message
	}
	return fmt.Sprintf("%s (%v)", message, err)
}

// emitRecovery emits an event when the configuration can be read and written again
// after a failure.
func (n notifier) emitRecovery(g *gatewayv1.Gateway, t *v1alpha1.Tunnel) {
	n.emit(g, t, conditions.EventRecovered.IsWarning(), conditions.EventRecovered.String(), "The controller can read and write the configuration of the tunnel again.")
}

// emitWarning emits a warning about an accepted Gateway.
func (n notifier) emitWarning(g *gatewayv1.Gateway, w gateway.Warning) {
	n.events.Eventf(g, nil, corev1.EventTypeWarning, w.Reason.String(), "ManageTunnel", "%s", truncateNote(w.Message))
}

// emit emits an event on the Gateway, or on the Tunnel if the Gateway is gone.
func (n notifier) emit(g *gatewayv1.Gateway, t *v1alpha1.Tunnel, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	var regarding runtime.Object
	switch {
	case g != nil && g.DeletionTimestamp.IsZero():
		regarding = g
	case t != nil:
		regarding = t
	default:
		return
	}
	n.events.Eventf(regarding, nil, kind, reason, "ManageTunnel", "%s", truncateNote(message))
}

// maxNoteLength is the maximum length of an event's note in bytes.
const maxNoteLength = 1024

// truncateNote shortens a note that is too long for an event.
func truncateNote(note string) string {
	if len(note) < maxNoteLength {
		return note
	}
	return strings.ToValidUTF8(note[:maxNoteLength-4], "") + "…"
}
