package tunnel

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// updateMissing updates the time since which every read found the Gateway to be missing,
// independently of the Memory.
func (m *model) updateMissing(a int, f Facts) {
	actor := &m.actors[a]
	missing := f.Object != nil && (f.Gateway.State == GatewayGone || f.Gateway.State == GatewayNotManaged || f.gatewayMissing())
	switch {
	case !missing:
		actor.missing = 0
	case actor.missing == 0:
		actor.missing = m.now + 1
	}
}

// attempt is an action that the process is about to execute.
type attempt struct {
	actor int
	facts Facts
	step  Step
	// live is the Tunnel object at the API server; nil for none.
	live *object
	// tunnel is the index of the tunnel that is recorded according to the Facts, or -1.
	tunnel int
	// excused reports whether a stale cache excuses the action. It never excuses a
	// destructive action.
	excused bool
}

// actionChecks contains the checks for each action. The first failed check is reported.
var actionChecks = map[Action][]func(m *model, current *attempt){
	Create:           {(*model).checkCreate, (*model).checkCreatedBefore},
	Configure:        {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkConfigure, (*model).checkRevocation},
	RotateToken:      {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkRotation},
	Disconnect:       {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkDisconnect},
	RunConnectors:    {(*model).checkRun},
	StopConnectors:   {(*model).checkMissing, (*model).checkPause},
	WithdrawStatuses: {(*model).checkMissing, (*model).checkPause},
	Delete:           {(*model).checkTunnel, (*model).checkObject, (*model).checkClaim, (*model).checkMissing, (*model).checkDelete, (*model).checkRecords},
	DeleteObject:     {(*model).checkDeleteObject},
}

// check checks whether the action is allowed.
func (m *model) check(a int, f Facts, s Step) {
	current := &attempt{
		actor: a, facts: f, step: s, live: m.actors[a].object, tunnel: recordedIndex(f),
		excused: m.staleCache != nil && !s.Destructive(),
	}
	m.checkDataPlane(current)
	m.checkVersion(current)
	for _, check := range actionChecks[s.Action] {
		if check(m, current); m.violation != "" {
			return
		}
	}
}

// checkVersion checks that this version does nothing while a newer version serves the
// Tunnel.
func (m *model) checkVersion(current *attempt) {
	if current.live != nil && !current.excused && current.live.Status.SchemaVersion > SchemaVersion {
		m.violate("%s of a Tunnel that a newer version serves", current.step.Action)
	}
}

// checkExternal checks that the controller does not treat its own configuration as an
// external change.
func (m *model) checkExternal(a int, s Step) {
	t := m.recordedTunnel(a)
	if s.ExternalChange != 0 && t != nil && !t.external && !m.adminChanged && m.staleCache == nil {
		m.violate("the controller treats its own configuration as an external change")
	}
}

// checkReconciled checks that a requested reconcile is not recorded together with
// conditions that rely on an earlier read.
func (m *model) checkReconciled(a int, f Facts, after v1alpha1.TunnelStatus) {
	if after.Reconciled == f.Object.Status.Reconciled || m.actors[a].readSince {
		return
	}
	if conditions.TypeTunnelConfigurationApplied.IsTrue(after.Conditions) && conditions.TypeTunnelReady.IsTrue(after.Conditions) &&
		f.lifecycle() == lifecycleServing {
		m.violate("a requested reconcile is recorded without a read of the configuration")
	}
}

// checkTunnel checks that the tunnel can belong to the Gateway.
func (m *model) checkTunnel(current *attempt) {
	if current.tunnel < 0 {
		m.violate("%s without a tunnel", current.step.Action)
		return
	}
	switch t := m.cloudflare.get(current.tunnel); {
	case t == nil: // a call for a deleted tunnel has no effect
	case t.local:
		m.violate("%s of a locally managed tunnel", current.step.Action)
	case t.hasOtherGatewayName(current.actor):
		m.violate("%s of a tunnel with another Gateway's name", current.step.Action)
	}
}

// checkObject checks that the Tunnel object permits changing the tunnel.
func (m *model) checkObject(current *attempt) {
	switch {
	case current.excused:
	case current.live == nil:
		m.violate("%s without a Tunnel object", current.step.Action)
	case current.live.Spec.ClusterUID != options.ClusterUID:
		m.violate("%s by a Tunnel of another cluster", current.step.Action)
	case current.live.Status.TunnelID != current.facts.Object.Status.TunnelID:
		m.violate("%s of a tunnel that is not recorded", current.step.Action)
	case current.live.Spec.Paused:
		m.violate("%s while paused", current.step.Action)
	}
}

// checkClaim checks that no other Tunnel has claimed the tunnel.
func (m *model) checkClaim(current *attempt) {
	if m.staleCache == nil && m.belongsToRival(current.actor, current.tunnel) {
		m.violate("%s of a tunnel that another Tunnel has claimed", current.step.Action)
	}
}

// belongsToRival reports whether another Tunnel has claimed the tunnel.
func (m *model) belongsToRival(a, id int) bool {
	if int(m.cloudflare.tunnels[id].name) == a {
		return false // the tunnel has the Gateway's name
	}
	actor := m.actors[a].object
	recorded := actor.records(id)
	if m.rival.hasClaim(id, recorded) {
		return true
	}
	for b := range m.count {
		if other := m.actors[b].object; b != a && other.records(id) && (!recorded || other.uid < actor.uid) {
			return true
		}
	}
	return false
}

// records reports whether the object exists and records the tunnel.
func (o *object) records(id int) bool { return o != nil && o.Status.TunnelID == tunnelIDs[id] }

// hasClaim reports whether the rival has claimed the tunnel. recorded states whether
// the Gateway's Tunnel records the tunnel, too.
func (r rivalObject) hasClaim(id int, recorded bool) bool {
	return r.exists && id == 0 && r.recorded && (!recorded || r.older || r.otherController)
}

// checkCreate checks that the Tunnel object permits a new tunnel.
func (m *model) checkCreate(current *attempt) {
	switch {
	case current.live == nil:
		if !current.excused {
			m.violate("Create without a Tunnel object")
		}
	case !current.live.Status.Creating:
		m.violate("Create without a record")
	case current.live.Status.TunnelID != "":
		m.violate("Create although a tunnel is recorded")
	case current.live.Spec.ClusterUID != options.ClusterUID:
		m.violate("Create by a Tunnel of another cluster")
	case current.live.Spec.Paused && !current.excused:
		m.violate("Create while paused")
	}
}

// checkCreatedBefore checks that the Gateway has no other created tunnel.
func (m *model) checkCreatedBefore(current *attempt) {
	if current.live == nil || m.adminChanged {
		return
	}
	for _, t := range m.cloudflare.tunnels {
		if t.live && t.creator == current.actor+1 && tunnelNames[t.name] != current.live.Spec.Name {
			m.violate("Create although a tunnel was created for the Gateway before")
		}
	}
}

// checkConfigure checks that the record permits the configuration.
func (m *model) checkConfigure(current *attempt) {
	live := current.live
	if live == nil || current.excused {
		return
	}
	t := m.cloudflare.get(current.tunnel)
	switch {
	case live.Status.Configuration.Hash != current.step.Hash:
		m.violate("Configure without a record of the hash")
	case live.Status.Contested:
		m.violate("Configure of a contested tunnel")
	case t != nil && t.original && (live.Spec.Existing == nil || !live.Spec.Existing.Takeover):
		m.violate("the configuration of an adopted tunnel is replaced without takeover")
	}
}

// checkRotation checks that the rotation is recorded.
func (m *model) checkRotation(current *attempt) {
	if current.live != nil && current.live.Status.Token.Phase != v1alpha1.TokenRotating {
		m.violate("RotateToken without a record")
	}
}

// checkMissing checks that the Gateway has been missing for long enough.
func (m *model) checkMissing(current *attempt) {
	actor := &m.actors[current.actor]
	switch state := actor.gateway.state(); {
	case state == GatewayUnknown:
		m.violate("%s while the Gateway's state is unknown", current.step.Action)
	case actor.object == nil:
		m.violate("%s without a Tunnel object", current.step.Action)
	case state == GatewayExists && !m.replaced(current.actor):
		m.violate("%s although the Gateway exists", current.step.Action)
	case actor.missing == 0 || m.now-(actor.missing-1) < actor.delay():
		m.violate("%s within the retirement delay", current.step.Action)
	}
}

// checkPause checks that a retiring Tunnel is not paused, unless its tunnel is retained.
func (m *model) checkPause(current *attempt) {
	if current.live != nil && current.live.Spec.Paused && current.live.Spec.DeletionPolicy != v1alpha1.DeletionPolicyRetain {
		m.violate("%s while paused", current.step.Action)
	}
}

// replaced reports whether a Gateway with another identity replaced the Gateway.
func (m *model) replaced(a int) bool {
	actor := &m.actors[a]
	d := desired(a, actor.gateway.settings, actor.gateway.settings.dataPlane(), false)
	return d != nil && types.UID(actor.object.Status.GatewayUID) != actor.gateway.facts().UID && Disagreement(actor.object.Spec, d.Spec) != ""
}

// checkDisconnect checks that a connector may be disconnected: after a token rotation,
// or before the tunnel is deleted if the connector is not live.
func (m *model) checkDisconnect(current *attempt) {
	if current.live == nil || current.live.Status.Token.Phase == v1alpha1.TokenDisconnecting && !current.live.Status.Deleting {
		return
	}
	m.checkMissing(current)
	m.checkDelete(current)
	m.checkRecords(current)
	if t := m.cloudflare.get(current.tunnel); t != nil {
		if c := t.connector(current.step.Connector); c != nil && c.connected {
			m.violate("Disconnect of a live connector")
		}
	}
}

// checkDelete checks that deleting the tunnel is recorded and permitted.
func (m *model) checkDelete(current *attempt) {
	switch {
	case current.live == nil:
	case !current.live.Status.Deleting:
		m.violate("the deletion begins without a record")
	case current.live.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain:
		m.violate("a retained tunnel is deleted")
	}
}

// checkRecords checks that a deletion begins after the DNS records were released, or ten
// minutes later.
func (m *model) checkRecords(current *attempt) {
	actor, o := &m.actors[current.actor], current.facts.Object
	if o != nil && !o.Status.Deleting && actor.unreleased && m.now-(actor.missing-1) < releaseTimeout {
		m.violate("the deletion begins while DNS records lead to the tunnel")
	}
}

// checkApplications checks that the object of a deleted tunnel stays until its applications
// were released, or ten minutes after the Gateway is gone. If the Gateway has returned, its
// next Tunnel uses them.
func (m *model) checkApplications(current *attempt) {
	actor, o := &m.actors[current.actor], current.facts.Object
	if current.facts.Gateway.State != GatewayGone || !actor.applicationsRemain || actor.missing == 0 || m.now-(actor.missing-1) >= releaseTimeout {
		return
	}
	if o.Status.Deleting {
		m.violate("the Tunnel object is deleted before the applications")
	}
}

// checkDeleteObject checks that the Tunnel object is no longer needed.
func (m *model) checkDeleteObject(current *attempt) {
	live := current.live
	if live == nil {
		return
	}
	m.checkApplications(current)
	t := m.cloudflare.get(tunnelIndex(live.Status.TunnelID))
	if live.Status.Deleting && t == nil {
		return
	}
	m.checkMissing(current)
	configured := live.Spec.Existing == nil || live.Status.Configuration.Hash != ""
	if t != nil && configured && len(current.facts.Rivals) == 0 && !m.adminChanged {
		m.violate("the Tunnel object is deleted before its tunnel")
	}
	if live.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain && configured {
		m.violate("the object of a retained tunnel is deleted")
	}
}

// checkRun checks that connectors may run.
func (m *model) checkRun(current *attempt) {
	if current.facts.Desired.RunConnectors && m.staleCache == nil && m.belongsToRival(current.actor, current.tunnel) {
		m.violate("connectors run for a tunnel that another Tunnel has claimed")
	}
}

// checkConnect checks that a connector may connect to the tunnel.
func (m *model) checkConnect(a, id int) {
	t := m.cloudflare.tunnels[id]
	switch live := m.actors[a].object; {
	case t.local:
		m.violate("a connector connects to a locally managed tunnel")
	case live == nil, m.actors[a].collectAt != 0:
	case live.Spec.ClusterUID != options.ClusterUID:
		m.violate("a connector of a Tunnel of another cluster connects")
	}
}
