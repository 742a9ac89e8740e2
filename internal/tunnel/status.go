package tunnel

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// Status returns the Tunnel object's status: the current record, with the phase, the
// conditions and the other fields that are derived from the Facts. Unchanged fields are
// equal to the object's.
func Status(f Facts) v1alpha1.TunnelStatus {
	f = f.withPausedSince()
	s := *f.Object.Status.DeepCopy()
	s.Gateway = f.Object.Spec.Gateway.Namespace + "/" + f.Object.Spec.Gateway.Name
	s.Phase = phase(f)
	switch {
	case !f.Memory.MissingSince.IsSet():
		s.MissingSince = nil
	case s.MissingSince == nil:
		s.MissingSince = f.now()
	}
	if f.refreshed() {
		s.Reconciled = f.Memory.Refresh.Value
	}
	if f.inEffect() {
		s.Hostnames = ptr.To(int32(f.Desired.Hostnames)) // #nosec G115 -- a tunnel has far fewer
	}
	s.DNS, s.Access = f.DNS.Status, f.Access.Status
	c := f.Connectors
	s.Connectors = v1alpha1.ConnectorsStatus{Desired: c.Desired, Ready: c.Ready, Summary: fmt.Sprintf("%d/%d", c.Ready, c.Desired)}
	if c.Desired == 0 && f.connectorsReadyCondition() == nil {
		meta.RemoveStatusCondition(&s.Conditions, conditions.TypeTunnelConnectorsReady.String())
	}
	for _, condition := range []*metav1.Condition{f.readyCondition(s.Phase), f.credentialsValid(), f.configurationApplied(), f.connectorsReadyCondition(), f.dataPlaneApplied()} {
		if condition != nil {
			condition.ObservedGeneration = f.Object.Generation
			condition.LastTransitionTime = *f.now()
			meta.SetStatusCondition(&s.Conditions, *condition)
		}
	}
	return s
}

func phase(f Facts) v1alpha1.TunnelPhase {
	if f.objectProblem() != nil {
		return v1alpha1.TunnelBlocked
	}
	switch f.lifecycle() {
	case lifecycleServing:
		return servingPhase(f)
	case lifecycleReturned:
		return v1alpha1.TunnelDeleting
	case lifecycleRetiring:
		return retiringPhase(f)
	default: // lifecycleUnknown, lifecycleMissing: the phase does not change
		return cmp.Or(f.Object.Status.Phase, v1alpha1.TunnelClaiming)
	}
}

func servingPhase(f Facts) v1alpha1.TunnelPhase {
	status, remote := f.Object.Status, f.Memory.Remote
	missing := status.TunnelID == "" || remote.Configuration.Missing
	if !missing && status.Configuration.Hash != "" && f.claimProblem() == nil {
		return v1alpha1.TunnelServing
	}
	switch p := f.servingProblem(); {
	case p != nil && p.RequiresAction:
		return v1alpha1.TunnelBlocked
	case f.adopts() && !f.Memory.Claimed:
		return v1alpha1.TunnelClaiming
	case missing, f.adopts() && remote.Tunnel.Presence != Present:
		return v1alpha1.TunnelLocating
	default:
		return v1alpha1.TunnelConfiguring
	}
}

func retiringPhase(f Facts) v1alpha1.TunnelPhase {
	step := retire(f)
	switch {
	case step.Problem != nil && step.Problem.RequiresAction:
		return v1alpha1.TunnelBlocked
	case step.Action == None && f.retains():
		return v1alpha1.TunnelRetained
	case f.Object.Status.Deleting:
		return v1alpha1.TunnelDeleting
	default:
		return v1alpha1.TunnelRetiring
	}
}

// condition returns a condition without its generation and transition time. Its message has
// at most [message.MaxSize] bytes.
func condition(t conditions.Type, status metav1.ConditionStatus, reason conditions.Reason, text string) *metav1.Condition {
	return ptr.To(t.New(status, reason, message.Cut(text, message.MaxSize)))
}

// readyCondition returns the Ready condition. It is True if the tunnel is in the
// desired state. Otherwise it has the first problem's reason.
func (f Facts) readyCondition(phase v1alpha1.TunnelPhase) *metav1.Condition {
	if c := f.notServingCondition(); c != nil {
		return c
	}
	step := Decide(f)
	switch {
	case step.Problem != nil:
		p := f.withRetryTime(step.Problem)
		return condition(conditions.TypeTunnelReady, metav1.ConditionFalse, p.Reason, p.Message)
	case phase == v1alpha1.TunnelRetained:
		return condition(conditions.TypeTunnelReady, metav1.ConditionTrue, conditions.ReasonRetained,
			"The Gateway is gone and the tunnel is retained at Cloudflare, without connectors. Delete the Tunnel object when you no longer need the tunnel.")
	case f.lifecycle() != lifecycleServing:
		return condition(conditions.TypeTunnelReady, metav1.ConditionFalse, conditions.ReasonPending, "The controller is deleting the tunnel.")
	case f.Connectors.Reason != (conditions.Reason{}):
		return condition(conditions.TypeTunnelReady, metav1.ConditionFalse, f.Connectors.Reason, f.Connectors.Message)
	case f.inEffect():
		return condition(conditions.TypeTunnelReady, metav1.ConditionTrue, conditions.ReasonServing, "The tunnel serves its Gateway.")
	case f.probablyInEffect():
		return nil // the condition was reported before, and no change is known
	default:
		return condition(conditions.TypeTunnelReady, metav1.ConditionFalse, conditions.ReasonPending, "The desired configuration is not in effect yet.")
	}
}

// notServingCondition returns the Ready condition if the Tunnel does not serve its
// Gateway as desired, or nil. Unlike the Gateway's conditions, it names the other
// Tunnel that has claimed the tunnel.
func (f Facts) notServingCondition() *metav1.Condition {
	if f.objectProblem() == nil {
		switch f.lifecycle() {
		case lifecycleServing:
			if rival := f.claimant(); rival != "" {
				return condition(conditions.TypeTunnelReady, metav1.ConditionFalse, conditions.ReasonTunnelInUse, fmt.Sprintf(
					"Tunnel %s has claimed the same tunnel at Cloudflare. Set tunnel.existing.id of this Tunnel's Gateway to another tunnel.", rival))
			}
		case lifecycleReturned:
		default:
			return nil // there is no Gateway
		}
	}
	if o := Programmed(f); o.State == OutcomeFailed {
		return condition(conditions.TypeTunnelReady, metav1.ConditionFalse, o.Reason, o.Message)
	}
	return nil
}

func (f Facts) credentialsValid() *metav1.Condition {
	if p := f.credentialsProblem(); p != nil {
		return condition(conditions.TypeTunnelCredentialsValid, metav1.ConditionFalse, p.Reason, p.Message)
	}
	for _, b := range f.Memory.Backoffs {
		if b.Problem != nil && b.Problem.Reason == conditions.ReasonUnauthorized {
			return condition(conditions.TypeTunnelCredentialsValid, metav1.ConditionFalse, conditions.ReasonUnauthorized, b.Problem.Message)
		}
	}
	if f.Memory.InEffect == "" && f.Memory.Remote.Tunnel.Presence == PresenceUnknown {
		return nil // no request was sent to Cloudflare yet
	}
	return condition(conditions.TypeTunnelCredentialsValid, metav1.ConditionTrue, conditions.ReasonAccepted, "Cloudflare accepts the API token.")
}

func (f Facts) configurationApplied() *metav1.Condition {
	if f.lifecycle() != lifecycleServing {
		return nil
	}
	switch o := Programmed(f); {
	case f.inEffect():
		return condition(conditions.TypeTunnelConfigurationApplied, metav1.ConditionTrue, conditions.ReasonApplied, "The desired configuration is in effect.")
	case o.State == OutcomeFailed && o.Reason != conditions.ReasonSettingsNotApplied:
		return condition(conditions.TypeTunnelConfigurationApplied, metav1.ConditionFalse, o.Reason, o.Message)
	case f.Desired == nil || f.Desired.Configuration == nil || f.probablyInEffect():
		return nil
	case o.Reason == conditions.ReasonConfigurationThrottled:
		return condition(conditions.TypeTunnelConfigurationApplied, metav1.ConditionFalse, o.Reason, o.Message)
	default:
		return condition(conditions.TypeTunnelConfigurationApplied, metav1.ConditionFalse, conditions.ReasonPending, "The desired configuration is not in effect yet.")
	}
}

func (f Facts) connectorsReadyCondition() *metav1.Condition {
	if b := f.Memory.Backoffs[TrackConnectors]; b.Problem != nil {
		return condition(conditions.TypeTunnelConnectorsReady, metav1.ConditionFalse, b.Problem.Reason, b.Problem.Message)
	}
	if f.Connectors.Reason != (conditions.Reason{}) {
		return condition(conditions.TypeTunnelConnectorsReady, metav1.ConditionFalse, f.Connectors.Reason, f.Connectors.Message)
	}
	if f.Connectors.Desired == 0 {
		return nil
	}
	return condition(conditions.TypeTunnelConnectorsReady, metav1.ConditionTrue, conditions.ReasonReady, f.Connectors.Message)
}

// dataPlaneApplied returns the DataPlaneApplied condition. It is nil if it is unknown
// which data plane the settings ask for.
func (f Facts) dataPlaneApplied() *metav1.Condition {
	switch c := f.dataPlaneChange(); {
	case f.objectProblem() != nil:
		return nil
	case c != nil:
		return condition(conditions.TypeTunnelDataPlaneApplied, metav1.ConditionFalse, c.Reason, c.Message)
	case f.lifecycle() != lifecycleServing || f.Desired == nil || RecordedDataPlane(f.Object) != f.Desired.DataPlane:
		return nil
	}
	return condition(conditions.TypeTunnelDataPlaneApplied, metav1.ConditionTrue, conditions.ReasonApplied, fmt.Sprintf("The data plane is %s, as the settings require.", f.Desired.DataPlane))
}
