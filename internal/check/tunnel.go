package check

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// tunnelFindings reports on the tunnel, its configuration and its connectors.
func (i *inspection) tunnelFindings(ctx context.Context, r *plan.Receiver) findings {
	var f findings
	name := tunnel.ObjectName(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if gap := i.Source.Unread("Tunnel", types.NamespacedName{Namespace: i.ControllerNamespace, Name: name}); gap != nil {
		f.add(Unknown, "The Tunnel of %s is not checked, because you cannot %s.", gatewayOf(r), gap)
	} else if r.Tunnel == nil {
		f.add(Failed, "%s has no Tunnel object: the controller has not created its tunnel.", gatewayOf(r))
		f.advise("Read the Gateway's conditions, and check that --controller-namespace is the controller's namespace.")
	} else {
		f = append(f, phase(r.Tunnel)...)
		f = append(f, pause(r.Tunnel)...)
		f = append(f, i.configuration(r)...)
		f = append(f, dataPlane(r.Tunnel)...)
	}
	return append(f, i.connectors(ctx, r)...)
}

func nameOf(t *v1alpha1.Tunnel) string { return fmt.Sprintf("Tunnel %s/%s", t.Namespace, t.Name) }

// phase reports the phase, and the problem that the condition Ready contains.
func phase(t *v1alpha1.Tunnel) findings {
	var f findings
	ready := conditions.TypeTunnelReady.Find(t.Status.Conditions)
	problem := ""
	reportedByPause := t.Spec.Paused && conditions.ReasonPaused.Is(ready)
	if ready != nil && ready.Status != metav1.ConditionTrue && !reportedByPause {
		problem = ": " + describe(ready)
	}
	switch phase := t.Status.Phase; {
	case phase != v1alpha1.TunnelServing && phase == "":
		f.add(Failed, "%s has no phase: the controller has not processed it.", nameOf(t))
	case phase != v1alpha1.TunnelServing:
		f.add(Failed, "%s is in the phase %s%s", nameOf(t), phase, suggest.Sentence(problem))
	case problem != "":
		f.add(Warning, "%s serves, but is not ready%s", nameOf(t), problem)
	default:
		f.add(OK, "%s serves the Gateway.", nameOf(t))
	}
	return f
}

// pause reports that changes do not take effect.
func pause(t *v1alpha1.Tunnel) findings {
	var f findings
	if !t.Spec.Paused {
		return nil
	}
	since := ""
	if at := t.Status.PausedSince; at != nil {
		since = " since " + at.UTC().Format(time.RFC3339)
	}
	f.add(Warning, "Gateway %s/%s is paused%s: changes do not take effect.", t.Spec.Gateway.Namespace, t.Spec.Gateway.Name, since)
	f.advise("Run: kubectl tunnel-gateway resume %s/%s", t.Spec.Gateway.Namespace, t.Spec.Gateway.Name)
	return f
}

// configuration compares the configuration that the controller has written with the one
// that follows from the objects.
func (i *inspection) configuration(r *plan.Receiver) findings {
	var f findings
	t := r.Tunnel
	applied := conditions.TypeTunnelConfigurationApplied.Find(t.Status.Conditions)
	switch written := t.Status.Configuration.Hash; {
	case written == "":
		f.add(Failed, "%s: the controller has not written a configuration yet.", nameOf(t))
	case i.isHeldByPause(r):
		f.add(Warning, "%s: the configuration in effect does not match the objects, because the Gateway is paused.", nameOf(t))
	case applied != nil && applied.Status != metav1.ConditionTrue:
		f.add(Warning, "%s: the current configuration is not in effect: %s", nameOf(t), describe(applied))
	case r.Hash == "":
		f.add(Warning, "%s keeps its last configuration, because the Gateway is not accepted.", nameOf(t))
	case len(i.Source.Gaps) > 0:
		f.add(Unknown, "%s: whether the configuration in effect matches the objects is not known, because you cannot read all of them.", nameOf(t))
	case r.DependsOnApplications:
		f.add(OK, "%s: the controller reports no problem with its configuration, which contains the AUD tags of applications.", nameOf(t))
	case written != r.Hash:
		f.add(Warning, "%s: the configuration in effect does not match the objects.", nameOf(t))
		f.advise("Wait a few seconds, and check again. It also differs if the controller uses another --cluster-domain, or if you cannot read a listener's Secret.")
	default:
		f.add(OK, "%s: the configuration in effect matches the objects.", nameOf(t))
	}
	return f
}

// isHeldByPause reports whether the Gateway is paused, and the written configuration is known
// not to match the objects.
func (i *inspection) isHeldByPause(r *plan.Receiver) bool {
	isComparable := r.Hash != "" && !r.DependsOnApplications && len(i.Source.Gaps) == 0
	return r.Tunnel.Spec.Paused && isComparable && r.Tunnel.Status.Configuration.Hash != r.Hash
}

// dataPlane reports a data plane change.
func dataPlane(t *v1alpha1.Tunnel) findings {
	c := conditions.TypeTunnelDataPlaneApplied.Find(t.Status.Conditions)
	if c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	var f findings
	phase := ""
	if change := t.Status.DataPlaneChange; change != nil {
		phase = fmt.Sprintf(" (phase %s)", change.Phase)
	}
	f.add(Warning, "%s: the data plane is %s, and a change is requested or in progress%s: %s", nameOf(t), t.Status.DataPlane, phase, describe(c))
	return f
}

// connectors reports whether connectors are connected to Cloudflare's edge, as the Gateway
// says, and otherwise the Tunnel.
func (i *inspection) connectors(ctx context.Context, r *plan.Receiver) findings {
	var f findings
	if !r.RunsConnectors {
		f.add(Unknown, "You run the connectors of %s yourself (connector.enabled is false), so their state is not known.", gatewayOf(r))
		return f
	}
	c := i.connectorsReady(ctx, r)
	switch {
	case c == nil:
		f.add(Unknown, "%s does not report whether its connectors are connected.", gatewayOf(r))
	case c.Status == metav1.ConditionTrue:
		f.add(OK, "Connectors of %s: %s", gatewayOf(r), c.Message)
	case isDown(c, r.Tunnel):
		f.add(Failed, "No connector of %s is connected to Cloudflare: %s", gatewayOf(r), describe(c))
		if conditions.ReasonNoReplicas.Is(c) {
			break // the message says what to do
		}
		f.advise("Run: kubectl get pods -n %s -l tunnelgateway.dev/tunnel=%s.%s. The usual cause is a firewall or NetworkPolicy that blocks port 7844.", i.ControllerNamespace, r.Namespace, r.Name)
	default:
		f.add(Warning, "Connectors of %s: %s", gatewayOf(r), describe(c))
	}
	return f
}

// connectorsReady returns the condition about the connectors, or nil.
func (i *inspection) connectorsReady(ctx context.Context, r *plan.Receiver) *metav1.Condition {
	if g, err := i.gateway(ctx, r); err == nil {
		if c := conditions.TypeConnectorsReady.Find(g.Status.Conditions); c != nil {
			return c
		}
	}
	if r.Tunnel == nil {
		return nil
	}
	return conditions.TypeTunnelConnectorsReady.Find(r.Tunnel.Status.Conditions)
}

// isDown reports whether no connector serves. t can be nil.
func isDown(c *metav1.Condition, t *v1alpha1.Tunnel) bool {
	none := t != nil && t.Status.Connectors.Ready == 0
	return none || conditions.ReasonUnavailable.Is(c) || conditions.ReasonNoReplicas.Is(c)
}
