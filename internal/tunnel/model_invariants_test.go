package tunnel

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// noteMissing keeps the model's own account of since when every look at the
// Gateway showed that it is missing.
func (w *model) noteMissing(a int, f Facts) {
	me := &w.actors[a]
	missing := f.Object != nil && (f.Gateway.State == GatewayGone || f.Gateway.State == GatewayNotManaged || f.missing())
	switch {
	case !missing:
		me.missing = 0
	case me.missing == 0:
		me.missing = w.now + 1
	}
}

// attempt is an action that the process is about to carry out.
type attempt struct {
	actor int
	facts Facts
	step  Step
	// live is the Tunnel object at the API server; nil for none.
	live *object
	// tunnel is the number of the tunnel that the Tunnel records according to the
	// Facts, or -1.
	tunnel int
	// excused is whether a cache that is behind excuses what it does not show. It
	// does not excuse a destructive action.
	excused bool
}

// checks are the checks of every action that must not always happen. The first
// one that fails counts.
var checks = map[Action][]func(w *model, at *attempt){
	Create:           {(*model).checkCreate, (*model).checkCreatedBefore},
	Configure:        {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkConfigure},
	RotateToken:      {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkRotation},
	Disconnect:       {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkDisconnect},
	RunConnectors:    {(*model).checkRun},
	StopConnectors:   {(*model).checkMissing, (*model).checkPause},
	WithdrawStatuses: {(*model).checkMissing, (*model).checkPause},
	Delete:           {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkMissing, (*model).checkDelete},
	DeleteObject:     {(*model).checkDeleteObject},
}

// check finds actions that must not happen.
func (w *model) check(a int, f Facts, s Step) {
	at := &attempt{
		actor: a, facts: f, step: s, live: w.actors[a].object, tunnel: recordedIndex(f),
		excused: w.frozen != nil && !s.Destructive(),
	}
	for _, check := range checks[s.Action] {
		if check(w, at); w.violation != "" {
			return
		}
	}
}

// checkExternal checks that the controller does not take its own configuration
// for somebody else's.
func (w *model) checkExternal(a int, s Step) {
	t := w.recordedTunnel(a)
	if s.ExternalChange != 0 && t != nil && !t.external && !w.admin && w.frozen == nil {
		w.violate("the controller takes its own configuration for somebody else's")
	}
}

// checkTunnel checks that the tunnel can be the one of the Gateway.
func (w *model) checkTunnel(at *attempt) {
	if at.tunnel < 0 {
		w.violate("%s of no tunnel", at.step.Action)
		return
	}
	switch t := w.cloudflare.get(at.tunnel); {
	case t == nil: // a call for a tunnel that is gone does no harm
	case t.local:
		w.violate("%s of a locally managed tunnel", at.step.Action)
	case t.hasOtherGatewayName(at.actor):
		w.violate("%s of a tunnel with another Gateway's name", at.step.Action)
	}
}

// checkObject checks that the Tunnel object permits a change of the tunnel.
func (w *model) checkObject(at *attempt) {
	switch {
	case at.excused:
	case at.live == nil:
		w.violate("%s without a Tunnel object", at.step.Action)
	case at.live.Spec.ClusterUID != options.ClusterUID:
		w.violate("%s by a Tunnel of another cluster", at.step.Action)
	case at.live.Status.TunnelID != at.facts.Object.Status.TunnelID:
		w.violate("%s of a tunnel that is not recorded", at.step.Action)
	case at.live.Spec.Paused:
		w.violate("%s while paused", at.step.Action)
	}
}

// checkClaim checks that no other Tunnel has the claim on the tunnel.
func (w *model) checkClaim(at *attempt) {
	if w.frozen == nil && w.belongsToRival(at.actor, at.tunnel) {
		w.violate("%s of a tunnel that another Tunnel has claimed", at.step.Action)
	}
}

// belongsToRival reports whether another Tunnel has the claim on the tunnel.
func (w *model) belongsToRival(a, id int) bool {
	if int(w.cloudflare.tunnels[id].name) == a {
		return false // it has the name of the Gateway
	}
	me := w.actors[a].object
	recorded := me.records(id)
	if w.rival.hasClaim(id, recorded) {
		return true
	}
	for b := range w.count {
		if other := w.actors[b].object; b != a && other.records(id) && (!recorded || other.uid < me.uid) {
			return true
		}
	}
	return false
}

// records reports whether there is an object that records the tunnel.
func (o *object) records(id int) bool { return o != nil && o.Status.TunnelID == tunnelIDs[id] }

// hasClaim reports whether the rival has the claim on the tunnel. Recorded is
// whether the Tunnel of the Gateway records the tunnel, too.
func (r rivalObject) hasClaim(id int, recorded bool) bool {
	return r.exists && id == 0 && r.recorded && (!recorded || r.older || r.otherController)
}

// checkCreate checks that the Tunnel object permits a new tunnel.
func (w *model) checkCreate(at *attempt) {
	switch {
	case at.live == nil:
		if !at.excused {
			w.violate("Create without a Tunnel object")
		}
	case !at.live.Status.Creating:
		w.violate("Create before it is recorded")
	case at.live.Status.TunnelID != "":
		w.violate("Create although a tunnel is recorded")
	case at.live.Spec.ClusterUID != options.ClusterUID:
		w.violate("Create by a Tunnel of another cluster")
	case at.live.Spec.Paused && !at.excused:
		w.violate("Create while paused")
	}
}

// checkCreatedBefore checks that no tunnel of the Gateway is left behind.
func (w *model) checkCreatedBefore(at *attempt) {
	if at.live == nil || w.admin {
		return
	}
	for _, t := range w.cloudflare.tunnels {
		if t.live && t.creator == at.actor+1 && tunnelNames[t.name] != at.live.Spec.Name {
			w.violate("Create although a tunnel was created for the Gateway before")
		}
	}
}

// checkConfigure checks that the record permits the configuration.
func (w *model) checkConfigure(at *attempt) {
	live := at.live
	if live == nil || at.excused {
		return
	}
	t := w.cloudflare.get(at.tunnel)
	switch {
	case live.Status.Configuration.Hash != at.step.Hash:
		w.violate("Configure without a record of the hash")
	case live.Status.Contested:
		w.violate("Configure of a contested tunnel")
	case t != nil && t.original && (live.Spec.Existing == nil || !live.Spec.Existing.Takeover):
		w.violate("the configuration of an adopted tunnel is replaced without takeover")
	}
}

// checkRotation checks that the rotation is recorded.
func (w *model) checkRotation(at *attempt) {
	if at.live != nil && at.live.Status.Token.Phase != v1alpha1.TokenRotating {
		w.violate("the token is rotated before that is recorded")
	}
}

// checkMissing checks that the Gateway has been missing for long enough.
func (w *model) checkMissing(at *attempt) {
	me := &w.actors[at.actor]
	switch state := me.gateway.state(); {
	case state == GatewayUnknown:
		w.violate("%s while the Gateway's state is unknown", at.step.Action)
	case me.object == nil:
		w.violate("%s without a Tunnel object", at.step.Action)
	case state == GatewayExists && !w.replaced(at.actor):
		w.violate("%s although the Gateway exists", at.step.Action)
	case me.missing == 0 || w.now-(me.missing-1) < me.delay():
		w.violate("%s within the retirement delay", at.step.Action)
	}
}

// checkPause checks that a Tunnel that retires is not paused, unless its tunnel is
// retained.
func (w *model) checkPause(at *attempt) {
	if at.live != nil && at.live.Spec.Paused && at.live.Spec.DeletionPolicy != v1alpha1.DeletionPolicyRetain {
		w.violate("%s while paused", at.step.Action)
	}
}

// replaced reports whether the Gateway was created anew with another identity.
func (w *model) replaced(a int) bool {
	me := &w.actors[a]
	d := desired(a, me.gateway.settings)
	return d != nil && types.UID(me.object.Status.GatewayUID) != me.gateway.facts().UID && Disagreement(me.object.Spec, d.Spec) != ""
}

// checkDisconnect checks that a connector may be disconnected: after a rotation of
// the token, or before the deletion of the tunnel when the connector is not live.
func (w *model) checkDisconnect(at *attempt) {
	if at.live == nil || at.live.Status.Token.Phase == v1alpha1.TokenDisconnecting && !at.live.Status.Deleting {
		return
	}
	w.checkMissing(at)
	w.checkDelete(at)
	if t := w.cloudflare.get(at.tunnel); t != nil {
		if c := t.connector(at.step.Connector); c != nil && c.connected {
			w.violate("Disconnect of a live connector")
		}
	}
}

// checkDelete checks that the deletion of the tunnel is recorded, and permitted.
func (w *model) checkDelete(at *attempt) {
	switch {
	case at.live == nil:
	case !at.live.Status.Deleting:
		w.violate("the deletion begins before it is recorded")
	case at.live.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain:
		w.violate("a retained tunnel is deleted")
	}
}

// checkDeleteObject checks that the Tunnel object is no longer needed.
func (w *model) checkDeleteObject(at *attempt) {
	live := at.live
	if live == nil {
		return
	}
	t := w.cloudflare.get(tunnelIndex(live.Status.TunnelID))
	if live.Status.Deleting && t == nil {
		return
	}
	w.checkMissing(at)
	touched := live.Spec.Existing == nil || live.Status.Configuration.Hash != ""
	if t != nil && touched && len(at.facts.Rivals) == 0 && !w.admin {
		w.violate("the Tunnel object is deleted before its tunnel")
	}
	if live.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain && touched {
		w.violate("the object of a retained tunnel is deleted")
	}
}

// checkRun checks that connectors may run.
func (w *model) checkRun(at *attempt) {
	if at.facts.Desired.RunConnectors && w.frozen == nil && w.belongsToRival(at.actor, at.tunnel) {
		w.violate("connectors run for a tunnel that another Tunnel has claimed")
	}
}

// checkConnect checks that a connector may connect to the tunnel.
func (w *model) checkConnect(a, id int) {
	t := w.cloudflare.tunnels[id]
	switch live := w.actors[a].object; {
	case t.local:
		w.violate("a connector connects to a locally managed tunnel")
	case live == nil, w.actors[a].collect != 0:
	case live.Spec.ClusterUID != options.ClusterUID:
		w.violate("a connector of a Tunnel of another cluster connects")
	}
}
