package controller

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// notifier emits every event from the controller. The action is ManageTunnel if the
// event is about a tunnel, which the controller changes at Cloudflare, and Report if it
// is about the status of an object.
type notifier struct{ events events.EventRecorder }

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

// describeFailure appends the error to its problem's message, unless the message
// already contains it.
func describeFailure(message string, err error) string {
	if strings.Contains(strings.ToLower(message), strings.ToLower(err.Error())) {
		return message
	}
	return fmt.Sprintf("%s (%v)", message, err)
}

// emitRecovery emits an event when the configuration can be read and written again
// after a failure.
func (n notifier) emitRecovery(g *gatewayv1.Gateway, t *v1alpha1.Tunnel) {
	n.emit(g, t, conditions.EventRecovered.IsWarning(), conditions.EventRecovered.String(), "The controller can read and write the tunnel configuration again.")
}

// emitInvalidAdoptions emits a warning on the Tunnel about its requests to adopt DNS records
// or applications, which the message names.
func (n notifier) emitInvalidAdoptions(t *v1alpha1.Tunnel, reason conditions.EventReason, annotation, things string, err error) {
	n.write(t, reason.IsWarning(), reason.String(), actionManage, fmt.Sprintf(
		"The annotation %s is not valid, so the controller adopts no %s: %v. Correct or remove the annotation.", annotation, things, err))
}

// emitContestedApplication emits a warning on the Gateway that the controller no longer
// repairs the application of the hostname.
func (n notifier) emitContestedApplication(g *gatewayv1.Gateway, hostname string) {
	reason := conditions.EventApplicationContested
	n.write(g, reason.IsWarning(), reason.String(), actionManage, fmt.Sprintf(
		"Another client has changed the application of %s three times within an hour, so the controller no longer repairs it. "+
			"Stop the other client, then restore or delete the application.", hostname))
}

// emitWarning emits a warning about an accepted Gateway.
func (n notifier) emitWarning(g *gatewayv1.Gateway, w gateway.Warning) {
	n.write(g, w.Reason.IsWarning(), w.Reason.String(), actionManage, w.Message)
}

// emitChange emits an event about changed conditions on an object.
func (n notifier) emitChange(object client.Object, change status.Change) {
	switch {
	case !change.Orphaned:
		n.emitReport(object, change.Warning, change.Reason, change.Message)
	case object.GetDeletionTimestamp().IsZero():
		n.emitReport(object, conditions.EventNoParent.IsWarning(), conditions.EventNoParent.String(), change.Message)
	}
}

// emitUnwritten emits an event about a status that cannot be written.
func (n notifier) emitUnwritten(object client.Object, err error) {
	n.emitReport(object, conditions.EventStatusNotWritten.IsWarning(), conditions.EventStatusNotWritten.String(),
		fmt.Sprintf("The status of this object is out of date, because the controller cannot write it: %v.", err))
}

// emitReport emits an event about an object's status.
func (n notifier) emitReport(object client.Object, warning bool, reason, message string) {
	n.write(object, warning, reason, actionReport, message)
}

// emit emits an event on the Gateway, or on the Tunnel if the Gateway is gone.
func (n notifier) emit(g *gatewayv1.Gateway, t *v1alpha1.Tunnel, warning bool, reason, message string) {
	var regarding runtime.Object
	switch {
	case g != nil && g.DeletionTimestamp.IsZero():
		regarding = g
	case t != nil:
		regarding = t
	default:
		return
	}
	n.write(regarding, warning, reason, actionManage, message)
}

// The actions in events.
const (
	actionManage = "ManageTunnel"
	actionReport = "Report"
)

// write emits an event.
func (n notifier) write(regarding runtime.Object, warning bool, reason, action, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	n.events.Eventf(regarding, nil, kind, reason, action, "%s", truncateNote(message))
}

// maxNoteLength limits an event's note, in bytes.
const maxNoteLength = 1024

// truncateNote shortens a note that is too long for an event.
func truncateNote(note string) string {
	if len(note) < maxNoteLength {
		return note
	}
	return strings.ToValidUTF8(note[:maxNoteLength-4], "") + "…"
}
