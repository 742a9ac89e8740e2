package tunnel

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestWhenATunnelRetires(t *testing.T) {
	decide(t, []row{
		{"a healthy Tunnel waits until its configuration is due to be read", nil, idle()},
		{
			"a deletionTimestamp on the Tunnel itself decides nothing",
			func(f *Facts) { f.Object.DeletionTimestamp = at(-time.Hour) }, idle(),
		},
		{
			"the first live read that shows that the Gateway is gone starts the retirement delay",
			gatewayIs(GatewayGone), want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonGatewayMissing},
		},
		{
			"until the retirement delay has passed, everything keeps serving",
			gone(29 * time.Second), want{Action: Wait, Wait: time.Second, Problem: ReasonGatewayMissing},
		},
		{
			"when the retirement delay has passed, the controller first withdraws the status entries",
			gone(30 * time.Second), want{Action: WithdrawStatuses, Event: EventTunnelRetiring},
		},
		{
			"a Gateway whose live class names another controller is treated like one that is gone",
			all(gone(30*time.Second), gatewayIs(GatewayNotManaged)), want{Action: WithdrawStatuses, Event: EventTunnelRetiring},
		},
		{
			"while the state of the Gateway is unknown, everything keeps serving",
			gatewayIs(GatewayUnknown), want{Action: Wait, Wait: 10 * time.Second, Problem: ReasonGatewayUnknown},
		},
		{
			"an unknown state keeps a tunnel, however long the Gateway was missing before",
			all(gone(time.Hour), gatewayIs(GatewayUnknown)), want{Action: Wait, Wait: 10 * time.Second, Problem: ReasonGatewayUnknown},
		},
		{
			"an unknown state stops a deletion that is under way",
			all(retiring(status(deleting)), gatewayIs(GatewayUnknown)), want{Action: Wait, Wait: 10 * time.Second, Problem: ReasonGatewayUnknown},
		},
		{
			"an unknown state keeps a retained tunnel as it is",
			all(gatewayIs(GatewayUnknown), withRetain), want{Action: Wait, Wait: 10 * time.Second, Problem: ReasonGatewayUnknown},
		},
		{
			"a new process starts the retirement delay again",
			all(gatewayIs(GatewayGone), restarted), want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonGatewayMissing},
		},
		{
			"missingSince of the record does not shorten the retirement delay",
			all(gatewayIs(GatewayGone), status(func(s *v1alpha1.TunnelStatus) { s.MissingSince = at(-24 * time.Hour) })),
			want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonGatewayMissing},
		},
		{
			"a jump of the wall clock does not shorten the retirement delay",
			all(gone(time.Second), func(f *Facts) { f.Clock = f.Clock.Add(24 * time.Hour) }),
			want{Action: Wait, Wait: 29 * time.Second, Problem: ReasonGatewayMissing},
		},
		{
			"credentials that are missing do not stop the retirement",
			all(gone(time.Minute), credentials(CredentialsMissing)), want{Action: WithdrawStatuses, Event: EventTunnelRetiring},
		},
		{
			"when the statuses are withdrawn, the connectors are stopped",
			all(gone(time.Minute), func(f *Facts) { f.Memory.StatusesWithdrawn = true }), want{Action: StopConnectors},
		},
		{
			"a status that cannot be written delays nothing",
			all(gone(time.Minute), failing(TrackStatuses, ReasonKubernetes, 4*time.Second)), want{Action: StopConnectors},
		},
		{
			"a status that could not be written is written again when its retry is due",
			all(retiring(), func(f *Facts) { f.Memory.StatusesWithdrawn = false }, failing(TrackStatuses, ReasonKubernetes, 0)),
			want{Action: WithdrawStatuses},
		},
		{
			"connectors are told to stop once by each process, also when none are seen",
			retiring(func(f *Facts) { f.Memory.ConnectorsStopped = Instant{} }), want{Action: StopConnectors},
		},
		{
			"connectors that still exist after they were told to stop are looked at again after a moment",
			retiring(func(f *Facts) { f.Connectors.Exist, f.Memory.ConnectorsStopped = true, At(f.Uptime) }),
			want{Action: Wait, Wait: 2 * time.Second, Problem: ReasonConnectorsStopping},
		},
		{
			"connectors that still exist later are told to stop again",
			retiring(func(f *Facts) { f.Connectors.Exist = true }), want{Action: StopConnectors},
		},
		{
			"connectors that cannot be stopped are tried again after a backoff",
			all(gone(time.Minute), func(f *Facts) { f.Memory.StatusesWithdrawn = true }, failing(TrackConnectors, ReasonConnectorsFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonConnectorsFailed},
		},
		{
			"the deletion waits for the pods of the connectors",
			retiring(func(f *Facts) { f.Connectors.Pods = 1 }), want{Action: Wait, Wait: 2 * time.Second, Problem: ReasonConnectorsStopping},
		},
		{
			"the deletion waits for pods as long as their grace period and 60 s",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-89*time.Second) }),
			want{Action: Wait, Wait: 2 * time.Second, Problem: ReasonConnectorsStopping},
		},
		{
			"after the grace period and 60 s the connections that Cloudflare reports decide",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-90*time.Second) }, connections(time.Minute)),
			want{Action: ListConnections, Priority: provider.PriorityDeletion},
		},
	})
}

func TestRetain(t *testing.T) {
	decide(t, []row{
		{"with Retain nothing is deleted at Cloudflare and the object stays", retiring(withRetain), want{Action: None}},
		{"with Retain the connectors are stopped all the same", all(gone(time.Minute), withRetain, func(f *Facts) { f.Memory.StatusesWithdrawn = true }), want{Action: StopConnectors}},
		{"with Retain the statuses are withdrawn all the same", all(gone(time.Minute), withRetain), want{Action: WithdrawStatuses, Event: EventTunnelRetiring}},
		{
			"a retained Tunnel goes on withdrawing a status that could not be written",
			all(retiring(withRetain), func(f *Facts) { f.Memory.StatusesWithdrawn = false }, failing(TrackStatuses, ReasonKubernetes, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second},
		},
		{
			"an administrator can choose Retain for a tunnel that cannot be deleted",
			all(retiring(withRetain, status(deleting)), failing(TrackTunnel, ReasonPrivateRoutes, time.Minute)), want{Action: None},
		},
		{"a retained Tunnel stays when its credentials are missing", all(retiring(withRetain), credentials(CredentialsMissing)), want{Action: None}},
		{
			"a retained Tunnel serves again when its Gateway returns",
			all(withRetain, otherUID, status(func(s *v1alpha1.TunnelStatus) { s.Phase = v1alpha1.TunnelRetained })),
			want{Action: Record, Record: "gatewayUID=uid-2"},
		},
		{
			"a retained Tunnel that is deleted leaves its tunnel behind",
			all(retiring(), func(f *Facts) { f.Object = nil }), want{Action: None},
		},
	})
}

func TestAGatewayReturns(t *testing.T) {
	decide(t, []row{
		{
			"a Gateway that is created again within the retirement delay keeps its tunnel",
			func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - time.Minute) }, idle(),
		},
		{
			"a Gateway that returns with another UID resumes the Tunnel and is recorded",
			otherUID, want{Action: Record, Record: "gatewayUID=uid-2"},
		},
		{
			"a Gateway that returns to a retiring Tunnel runs its connectors again",
			func(f *Facts) {
				f.Memory.MissingSince, f.Memory.StatusesWithdrawn, f.Memory.ConnectorsStopped = At(f.Uptime-time.Minute), true, At(f.Uptime-time.Second)
				f.Connectors = Connectors{}
			},
			want{Action: RunConnectors},
		},
		{
			"a Gateway of another UID whose settings do not agree is not resumed: its Tunnel retires",
			all(otherUID, otherAccount), want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonGatewayMissing},
		},
		{
			"a Gateway of another UID whose settings do not agree retires after the delay",
			all(otherUID, otherAccount, func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - time.Minute) }),
			want{Action: WithdrawStatuses, Event: EventTunnelRetiring},
		},
		{
			"a Gateway of another UID is not recorded while its settings are not valid",
			all(otherUID, invalidSettings), want{Action: None},
		},
		{
			"a Gateway that returns after the deletion was recorded waits for the last attempt",
			all(returnedAfterDeleting, func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second, Problem: ReasonDeletionPending},
		},
		{
			"a Gateway that returns with its old UID waits for the last attempt too, whatever was known before",
			all(status(deleting), func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second, Problem: ReasonDeletionPending},
		},
		{
			"after a restart the last attempt to delete may have been made just before",
			all(returnedAfterDeleting, restarted), want{Action: Wait, Wait: 9 * time.Second, Problem: ReasonDeletionPending},
		},
		{
			"one call timeout after the last attempt the tunnel is read again",
			all(returnedAfterDeleting, func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 10*time.Second) }), want{Action: ReadTunnel},
		},
		{
			"a tunnel that was read before the call timeout had passed is read again",
			all(returnedAfterDeleting, tunnelRead(Present), func(f *Facts) {
				f.Memory.Deleted = At(f.Uptime - 12*time.Second)
				f.Memory.Remote.Tunnel.Read = At(f.Uptime - 3*time.Second)
			}),
			want{Action: ReadTunnel},
		},
		{
			"the deletion is forgotten when a live list shows the tunnel after that",
			all(returnedAfterDeleting, tunnelRead(Present), func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 10*time.Second) }),
			want{Action: Record, Record: "deleting=", Event: EventTunnelResumed},
		},
		{
			"the Gateway waits until the object of a tunnel that is gone is deleted",
			all(returnedAfterDeleting, tunnelRead(Absent)), want{Action: DeleteObject},
		},
		{
			"a returned Gateway waits while Cloudflare does not answer",
			all(returnedAfterDeleting, failing(TrackTunnel, ReasonUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"a returned Gateway waits while the credentials are missing",
			all(returnedAfterDeleting, credentials(CredentialsMissing)), want{Action: None, Problem: ReasonCredentialsMissing},
		},
	})
}

func TestRestoredObjects(t *testing.T) {
	noUID := status(func(s *v1alpha1.TunnelStatus) { s.GatewayUID = "" })
	decide(t, []row{
		{
			"a Tunnel that was restored without status waits one hour for its Gateway",
			all(gone(59*time.Minute), noUID), want{Action: Wait, Wait: time.Minute, Problem: ReasonGatewayMissing},
		},
		{"a Tunnel that was restored without status retires after the hour", all(gone(time.Hour), noUID), want{Action: WithdrawStatuses, Event: EventTunnelRetiring}},
		{
			"a longer retirement delay holds for a restored Tunnel too",
			all(gone(time.Hour), noUID, func(f *Facts) { f.Options.RetirementDelay = 2 * time.Hour }),
			want{Action: Wait, Wait: time.Hour, Problem: ReasonGatewayMissing},
		},
		{"a Tunnel that was restored without status records its Gateway", noUID, want{Action: Record, Record: "gatewayUID=uid-1"}},
		{
			"a Tunnel that was restored without status finds its tunnel by the name",
			all(unlocated, noUID, status(func(s *v1alpha1.TunnelStatus) { s.GatewayUID = ownUID })), want{Action: FindByName},
		},
		{
			"a Tunnel of another cluster is blocked",
			func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }, want{Action: None, Problem: ReasonOtherCluster},
		},
		{
			"a Tunnel of another cluster is not configured when routes change",
			all(routesChanged, func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }), want{Action: None, Problem: ReasonOtherCluster},
		},
		{
			"a Tunnel of another cluster is not deleted when its Gateway is gone",
			retiring(func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }), want{Action: None, Problem: ReasonOtherCluster},
		},
		{
			"a Tunnel object that is for another Gateway is not used",
			func(f *Facts) { f.Object.Spec.Gateway.Name = "other" }, want{Action: None, Problem: ReasonObjectMismatch},
		},
		{
			"a Tunnel object that is for a Gateway of another namespace is not used",
			func(f *Facts) { f.Object.Spec.Gateway.Namespace = "other" }, want{Action: None, Problem: ReasonObjectMismatch},
		},
		{
			"a Tunnel object of another controller is not used",
			func(f *Facts) { f.Object.Spec.ControllerName = "example.com/other" }, want{Action: None, Problem: ReasonObjectMismatch},
		},
		{
			"a Tunnel object that is for another Gateway is not deleted either",
			retiring(func(f *Facts) { f.Object.Spec.Gateway.Name = "other" }), want{Action: None, Problem: ReasonObjectMismatch},
		},
		{
			"a restored record names a deleted tunnel: the loss is confirmed by the name",
			tunnelNotFound, want{Action: FindByName},
		},
	})
}

func TestSettingsThatAreNotApplied(t *testing.T) {
	existing := func(f *Facts) { f.Desired.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: otherID} }
	name := func(f *Facts) { f.Desired.Spec.Name = "other.infra.shared" }
	decide(t, []row{
		{"settings that ask for another account leave the recorded tunnel serving", otherAccount, idle()},
		{"settings that ask for an existing tunnel leave the recorded tunnel serving", existing, idle()},
		{"settings that ask for another name leave the recorded tunnel serving", name, idle()},
		{
			"route changes are still pushed to the recorded tunnel",
			all(otherAccount, routesChanged), want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"connectors of the recorded tunnel are still kept up to date",
			all(otherAccount, func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors},
		},
		{
			"a change of the settings that agree with the identity is written to the spec",
			func(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }, want{Action: Claim},
		},
		{
			"while the settings disagree, a deletion policy is not written to the spec",
			all(otherAccount, func(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }), idle(),
		},
		{
			"while the settings disagree, pausing is written to the spec",
			all(otherAccount, func(f *Facts) { f.Gateway.Paused = true }), want{Action: Claim},
		},
		{
			"while the settings are not valid, everything stays as it is",
			all(invalidSettings, routesChangedBefore), want{Action: None},
		},
		{
			"a Gateway that is not accepted keeps its configuration",
			func(f *Facts) { f.Desired.Configuration, f.Desired.Hash = nil, "" }, want{Action: None},
		},
		{
			"a Tunnel whose settings are not valid creates no tunnel",
			all(unlocated, invalidSettings, tunnelRead(Absent)), want{Action: None},
		},
		{
			"a Gateway that is not accepted gets no tunnel",
			all(unlocated, tunnelRead(Absent), func(f *Facts) { f.Desired.Configuration, f.Desired.Hash = nil, "" }), want{Action: None},
		},
	})
}

// routesChangedBefore is a remote configuration that is not the one of the
// routes.
func routesChangedBefore(f *Facts) { remoteConfiguration(changedConfiguration, 8)(f) }

func TestCreation(t *testing.T) {
	decide(t, []row{
		{"a Gateway without a Tunnel object gets one", func(f *Facts) { f.Object, f.Memory = nil, Memory{} }, want{Action: Claim}},
		{
			"a Gateway that was never accepted gets no Tunnel object",
			func(f *Facts) { f.Object, f.Desired.Configuration = nil, nil }, want{Action: None},
		},
		{"a Gateway with invalid settings gets no Tunnel object", func(f *Facts) { f.Object, f.Desired = nil, nil }, want{Action: None}},
		{"a Gateway of unknown state gets no Tunnel object", all(gatewayIs(GatewayUnknown), func(f *Facts) { f.Object = nil }), want{Action: None}},
		{
			"a Tunnel object that could not be created is tried again after a backoff",
			all(func(f *Facts) { f.Object = nil }, failing(TrackObject, ReasonKubernetes, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonKubernetes},
		},
		{
			"a Tunnel object that was deleted by mistake is created again, whatever was known before",
			func(f *Facts) { f.Object = nil }, want{Action: Claim},
		},
		{"the controller first looks for a tunnel of the Gateway's name", unlocated, want{Action: FindByName}},
		{
			"a tunnel of the Gateway's name is recorded",
			all(unlocated, tunnelRead(Present)), want{Action: Record, Record: "tunnelID=" + ownID, Event: EventTunnelFound},
		},
		{
			"a create is preceded by the record that it has begun",
			all(unlocated, tunnelRead(Absent)), want{Action: Create, Record: "creating=true"},
		},
		{
			"a create that is recorded already writes no record",
			all(unlocated, up(time.Minute), status(creating), tunnelRead(Absent)), want{Action: Create},
		},
		{
			"a tunnel that was created is recorded",
			all(unlocated, status(creating), tunnelRead(Present), func(f *Facts) {
				f.Memory.Created = At(f.Uptime)
				f.Memory.Remote.Configuration = RemoteConfiguration{Known: true, Hash: provider.Configuration{}.Hash()}
			}),
			want{Action: Record, Record: "creating= tunnelID=" + ownID, Event: EventTunnelCreated},
		},
		{
			"a tunnel that was created is recorded at once, also after an earlier attempt that was not answered",
			all(unlocated, status(creating), tunnelRead(Present), func(f *Facts) { f.Memory.Created = At(f.Uptime - time.Second) }),
			want{Action: Record, Record: "creating= tunnelID=" + ownID, Event: EventTunnelFound},
		},
		{
			"while a create may still be applied, the controller does not list",
			all(unlocated, status(creating), func(f *Facts) { f.Memory.Created = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"while a create may still be applied, the Tunnel says why it failed",
			all(unlocated, status(creating), failing(TrackTunnel, ReasonUnavailable, time.Second), func(f *Facts) { f.Memory.Created = At(f.Uptime) }),
			want{Action: Wait, Wait: 10 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"after a restart a create may have been sent just before",
			all(unlocated, status(creating), restarted, up(3*time.Second)), want{Action: Wait, Wait: 7 * time.Second},
		},
		{
			"one call timeout after the last attempt the controller lists again before it creates",
			all(unlocated, status(creating), func(f *Facts) { f.Memory.Created = At(f.Uptime - 10*time.Second) }), want{Action: FindByName},
		},
		{
			"a failed look-up is repeated after a backoff",
			all(unlocated, failing(TrackTunnel, ReasonUnavailable, 4*time.Second)), want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"a failed record is repeated after a backoff",
			all(unlocated, tunnelRead(Present), failing(TrackObject, ReasonKubernetes, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonKubernetes},
		},
		{
			"a recorded tunnel that Cloudflare does not find is looked for by its name",
			tunnelNotFound, want{Action: FindByName},
		},
		{
			"a recorded tunnel is lost only when a list does not have it",
			all(tunnelNotFound, tunnelRead(Absent)),
			want{Action: Record, Record: "configuration.hash= token.rotatedAt= tunnelID=", Event: EventTunnelLost},
		},
		{
			"another tunnel of the name replaces a recorded one that is lost",
			all(tunnelNotFound, tunnelRead(Present), status(func(s *v1alpha1.TunnelStatus) { s.TunnelID = otherID })),
			want{Action: Record, Record: "configuration.hash= token.rotatedAt= tunnelID=" + ownID, Event: EventTunnelFound},
		},
		{
			"a lost tunnel is replaced by a new one",
			all(unlocated, tunnelRead(Absent)), want{Action: Create, Record: "creating=true"},
		},
	})
}

func TestWhichGatewayOwnsATunnel(t *testing.T) {
	older, younger := Rival{Object: "b", Older: true}, Rival{Object: "b"}
	recorded := func(r Rival) Rival { r.Recorded = true; return r }
	foreign := func(r Rival) Rival { r.OtherController = true; return r }
	decide(t, []row{
		{"an existing tunnel is claimed by its record before Cloudflare is asked", unclaimed, want{Action: Claim, Record: "tunnelID=" + ownID}},
		{
			"a claim waits while another Gateway of this process claims the tunnel",
			all(unclaimed, func(f *Facts) { f.Reserved = true }), want{Action: Wait, Wait: time.Second},
		},
		{
			"after the record the Tunnels are listed again before Cloudflare is asked",
			all(adopted, func(f *Facts) { f.Memory.Claimed = false }), want{Action: Claim, Record: "unchanged"},
		},
		{
			"a claim that is recorded is confirmed again after a restart",
			all(adopting, restarted), want{Action: Claim, Record: "unchanged"},
		},
		{
			"the confirmation of a claim waits while another Gateway claims the tunnel",
			all(adopting, restarted, func(f *Facts) { f.Reserved = true }), want{Action: Wait, Wait: time.Second},
		},
		{"a claimed tunnel is read before it is configured", all(adopted, tunnelRead(PresenceUnknown)), want{Action: ReadTunnel}},
		{"a claimed tunnel that was found is configured", all(adopted), want{Action: ReadConfiguration}},
		{"of two Tunnels that have not recorded the tunnel the older one claims it", all(unclaimed, rivals(younger)), want{Action: Claim, Record: "tunnelID=" + ownID}},
		{"of two Tunnels that have not recorded the tunnel the younger one waits", all(unclaimed, rivals(older)), want{Action: None, Problem: ReasonTunnelInUse}},
		{"the Tunnel that has recorded the tunnel keeps it from an older one", all(adopting, rivals(older)), idle()},
		{"a Tunnel that has recorded nothing leaves the tunnel to a younger one that has", all(unclaimed, rivals(recorded(younger))), want{Action: None, Problem: ReasonTunnelInUse}},
		{"of two Tunnels that have recorded the tunnel the older one keeps it", all(adopting, rivals(recorded(younger))), idle()},
		{"of two Tunnels that have recorded the tunnel the younger one stops", all(adopting, rivals(recorded(older))), want{Action: None, Problem: ReasonTunnelInUse}},
		{
			"an adopted tunnel that has the name of another Gateway belongs to that Gateway, however young its Tunnel is",
			all(adopting, rivals(Rival{Object: "b", Recorded: true, HasGatewayName: true})), want{Action: None, Problem: ReasonTunnelInUse},
		},
		{"one of several rivals is enough", all(adopting, rivals(younger, recorded(older))), want{Action: None, Problem: ReasonTunnelInUse}},
		{
			"a Tunnel without the claim does not configure the tunnel",
			all(adopting, routesChanged, rivals(recorded(older))), want{Action: None, Problem: ReasonTunnelInUse},
		},
		{
			"a tunnel that another controller's Tunnel records is never touched, however young that Tunnel is",
			all(adopting, routesChanged, rivals(recorded(foreign(younger)))), want{Action: None, Problem: ReasonTunnelInUse},
		},
		{
			"a created tunnel that another controller's Tunnel records is not touched either",
			all(routesChanged, rivals(recorded(foreign(younger)))), want{Action: None, Problem: ReasonTunnelInUse},
		},
		{
			"a Tunnel of another controller that has not recorded the tunnel counts by its age",
			all(adopting, rivals(foreign(older))), idle(),
		},
		{
			"a tunnel of the Gateway's own name belongs to it, although an older Tunnel has recorded it",
			all(routesChanged, rivals(recorded(older))), want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"an existing tunnel with the name of another Gateway's tunnel is refused",
			all(adopted, tunnelRead(Present), named("prod.team-a.web")), want{Action: Wait, Wait: time.Minute, Problem: ReasonNameReserved},
		},
		{
			"a refused tunnel is read again later: it may have been renamed",
			all(adopted, named("prod.team-a.web"), func(f *Facts) { f.Memory.Remote.Tunnel.Read = At(f.Uptime - time.Minute) }), want{Action: ReadTunnel},
		},
		{
			"an existing tunnel with this Gateway's own name is accepted",
			all(adopted, named(ownName)), want{Action: ReadConfiguration},
		},
		{
			"an existing tunnel whose name begins like the cluster ID, and has no dot after it, is accepted",
			all(adopted, named("production.team-a.web")), want{Action: ReadConfiguration},
		},
		{
			"an existing tunnel is read as the one that the settings name",
			all(adopted, func(f *Facts) { f.Memory.Remote.Tunnel.ID = otherID }), want{Action: ReadTunnel},
		},
		{
			"a missing existing tunnel is never replaced",
			all(adopted, tunnelRead(Absent), failing(TrackTunnel, ReasonTunnelMissing, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonTunnelMissing},
		},
		{
			"a missing existing tunnel is looked for again",
			all(adopted, tunnelRead(Absent), failing(TrackTunnel, ReasonTunnelMissing, 0)), want{Action: ReadTunnel},
		},
		{
			"an adopted tunnel that served and is gone is read by its ID and not replaced",
			all(adopting, tunnelNotFound), want{Action: ReadTunnel},
		},
		{
			"an adopted tunnel that served is not read again after a restart",
			all(adopting, restarted, func(f *Facts) { f.Memory.Claimed = true }),
			want{Action: ReadConfiguration, Priority: provider.PriorityStart},
		},
		{
			"a locally managed tunnel of the name is not written, and looked at again later",
			all(unlocated, func(f *Facts) {
				s := Step{Action: FindByName}
				f.Memory = Conclude(f.Memory, s, Result{Uptime: f.Uptime, Tunnel: provider.Tunnel{ID: ownID, Name: ownName, Local: true}})
			}),
			want{Action: Wait, Wait: time.Minute, Problem: ReasonLocallyManaged},
		},
		{
			"a locally managed existing tunnel is neither written nor connected",
			all(adopted, func(f *Facts) {
				s := Step{Action: ReadTunnel}
				f.Memory = Conclude(f.Memory, s, Result{Uptime: f.Uptime, Tunnel: provider.Tunnel{ID: ownID, Name: "legacy", Local: true}})
				f.Connectors.Current = false
			}),
			want{Action: Wait, Wait: time.Minute, Problem: ReasonLocallyManaged},
		},
		{
			"a locally managed tunnel is not deleted",
			retiring(tunnelRead(Present), local), want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonLocallyManaged},
		},
		{
			"a tunnel that could not be deleted as it was is read again later",
			retiring(local, func(f *Facts) { f.Memory.Remote.Tunnel.Read = At(f.Uptime - 30*time.Second) }),
			want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel that was given the name of another Gateway's tunnel is not deleted",
			retiring(tunnelRead(Present), named("prod.team-a.web")), want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonNameReserved},
		},
		{
			"a tunnel that was renamed otherwise is deleted",
			retiring(named("renamed")), want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: EventTunnelDeleted},
		},
		{
			"a retiring Tunnel without the claim deletes nothing",
			retiring(adopting, rivals(recorded(older))), want{Action: DeleteObject},
		},
		{
			"a retiring Tunnel leaves an adopted tunnel to another Tunnel that asks for it",
			retiring(adopting, rivals(younger)), want{Action: DeleteObject},
		},
		{
			"a retiring Tunnel does not delete a tunnel that another controller's Tunnel records",
			retiring(rivals(recorded(foreign(younger)))), want{Action: DeleteObject},
		},
		{
			"another Gateway cannot keep a created tunnel by asking for it",
			retiring(rivals(recorded(older))), want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: EventTunnelDeleted},
		},
	})
}

func TestAdoption(t *testing.T) {
	decide(t, []row{
		{
			"a configuration that the controller did not write needs takeover",
			all(adopted, remoteConfiguration(foreignConfiguration, 4)), want{Action: Wait, Wait: quiet, Problem: ReasonTakeoverRequired},
		},
		{
			"with takeover the configuration is replaced",
			all(adopted, takeover, remoteConfiguration(foreignConfiguration, 4)),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=foreign", Event: EventTakenOver},
		},
		{
			"an adopted tunnel without a configuration needs no takeover",
			all(adopted, remoteConfiguration(provider.Configuration{}, 0)),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty", Event: EventTunnelAdopted},
		},
		{
			"an adopted tunnel that has the desired configuration needs no takeover",
			all(adopted, remoteConfiguration(wantedConfiguration, 4)),
			want{Action: Record, Record: "configuration.hash=desired", Event: EventTunnelAdopted},
		},
		{
			"an adopted tunnel that waits for takeover runs no connectors",
			all(adopted, remoteConfiguration(foreignConfiguration, 4), func(f *Facts) { f.Connectors.Current = false }),
			want{Action: Wait, Wait: quiet, Problem: ReasonTakeoverRequired},
		},
		{
			"an adopted tunnel that waits for takeover does not get its token rotated",
			all(adopted, remoteConfiguration(foreignConfiguration, 4), rotateOnDemand, connections(0)),
			want{Action: Wait, Wait: quiet, Problem: ReasonTakeoverRequired},
		},
		{
			"once configured, another configuration is an external change and needs no takeover",
			all(adopting, remoteConfiguration(foreignConfiguration, 9)),
			want{Action: Configure, Event: EventDriftRepaired, Change: 9},
		},
		{
			"an adopted tunnel with Delete is deleted",
			retiring(adopting), want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: EventTunnelDeleted},
		},
		{"an adopted tunnel with Retain is retained", retiring(adopting, withRetain), want{Action: None}},
		{
			"an adopted tunnel that was never configured is not deleted",
			retiring(adopted), want{Action: DeleteObject},
		},
		{
			"an existing tunnel that was never claimed is not deleted",
			retiring(unclaimed, func(f *Facts) {
				f.Memory.MissingSince, f.Memory.ConnectorsStopped, f.Memory.StatusesWithdrawn = At(f.Uptime-time.Minute), At(f.Uptime), true
			}),
			want{Action: DeleteObject},
		},
	})
}

func TestDeletion(t *testing.T) {
	deleteIt := want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: EventTunnelDeleted}
	unrecorded := all(status(func(s *v1alpha1.TunnelStatus) {
		s.TunnelID, s.Configuration, s.Token = "", v1alpha1.ConfigurationRecord{}, v1alpha1.TokenStatus{}
	}), tunnelRead(PresenceUnknown))
	decide(t, []row{
		{"the deletion is recorded before the tunnel is deleted", retiring(), deleteIt},
		{
			"a deletion that is recorded already writes no record",
			retiring(status(deleting)), want{Action: Delete, Priority: provider.PriorityDeletion, Event: EventTunnelDeleted},
		},
		{
			"a tunnel that Cloudflare was not asked about is read before it is deleted",
			retiring(tunnelRead(PresenceUnknown)), want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel that was read long ago is read again before it is deleted: it may have become locally managed",
			retiring(func(f *Facts) { f.Memory.Remote.Tunnel.Read = At(f.Uptime - time.Minute) }), want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel of another ID than the recorded one is never deleted",
			retiring(func(f *Facts) { f.Memory.Remote.Tunnel.ID = otherID }), want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{"the Tunnel object is deleted when the tunnel is gone", retiring(tunnelRead(Absent), status(deleting)), want{Action: DeleteObject}},
		{
			"a Tunnel object that cannot be deleted is tried again after a backoff",
			all(retiring(tunnelRead(Absent), status(deleting)), failing(TrackObject, ReasonKubernetes, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonKubernetes},
		},
		{"connections are listed before the tunnel is deleted", retiring(connections(time.Minute)), want{Action: ListConnections, Priority: provider.PriorityDeletion}},
		{
			"connections of a connector that is no longer connected are removed, after the deletion was recorded",
			retiring(connections(0, disconnected("a"), disconnected("b"))),
			want{Action: Disconnect, Connector: "a", Record: "deleting=true", Priority: provider.PriorityDeletion},
		},
		{
			"connections are removed one connector at a time",
			retiring(status(deleting), connections(0, disconnected("b"))), want{Action: Disconnect, Connector: "b", Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel with a live connector that this controller does not run is not deleted",
			retiring(connections(0, live("a", -time.Hour))), want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonConnectorsConnected},
		},
		{
			"nothing is disconnected while another connector is live",
			retiring(connections(0, disconnected("a"), live("b", -time.Hour))), want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonConnectorsConnected},
		},
		{
			"live connectors are listed again later",
			retiring(connections(30*time.Second, live("a", -time.Hour))), want{Action: ListConnections, Priority: provider.PriorityDeletion},
		},
		{
			"a live connector may be that of a pod that did not stop in time",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-2*time.Minute) }, connections(0, live("a", -time.Hour))),
			want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonConnectorsStopping},
		},
		{
			"more live connectors than pods that did not stop are another's",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-2*time.Minute) }, connections(0, live("a", -time.Hour), live("b", -time.Hour))),
			want{Action: Wait, Wait: 30 * time.Second, Problem: ReasonConnectorsConnected},
		},
		{
			"a tunnel with private network routes stays, with the reason",
			all(retiring(status(deleting)), failing(TrackTunnel, ReasonPrivateRoutes, time.Minute)),
			want{Action: Wait, Wait: time.Minute, Problem: ReasonPrivateRoutes},
		},
		{
			"a Tunnel whose credentials are missing stays, with the reason",
			all(retiring(), credentials(CredentialsMissing)), want{Action: None, Problem: ReasonCredentialsMissing},
		},
		{
			"a Tunnel whose credentials are for another account stays, with the reason",
			all(retiring(), credentials(CredentialsWrongAccount)), want{Action: None, Problem: ReasonWrongAccount},
		},
		{
			"a tunnel that was never recorded is looked for by its name",
			retiring(unrecorded), want{Action: FindByName, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel that was never recorded is recorded before it is deleted",
			retiring(unrecorded, tunnelRead(Present)), want{Action: Record, Record: "tunnelID=" + ownID},
		},
		{
			"a locally managed tunnel of the name is not the controller's, and the Tunnel is deleted without it",
			retiring(unrecorded, tunnelRead(Present), local), want{Action: DeleteObject},
		},
		{"a Tunnel that never had a tunnel is deleted", retiring(unrecorded, tunnelRead(Absent)), want{Action: DeleteObject}},
		{
			"while a create may still be applied, a retiring Tunnel waits",
			retiring(unrecorded, status(creating), func(f *Facts) { f.Memory.Created = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"a list from before the call timeout does not show that there is no tunnel",
			retiring(unrecorded, status(creating), tunnelRead(Absent), func(f *Facts) { f.Memory.Created = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"a list that was read before the call timeout had passed does not count after it",
			retiring(unrecorded, status(creating), tunnelRead(Absent), func(f *Facts) {
				f.Memory.Created = At(f.Uptime - 12*time.Second)
				f.Memory.Remote.Tunnel.Read = At(f.Uptime - 11*time.Second)
			}),
			want{Action: FindByName, Priority: provider.PriorityDeletion},
		},
		{
			"after a restart a retiring Tunnel waits for a create of the earlier process",
			retiring(unrecorded, status(creating), func(f *Facts) {
				f.Uptime, f.Options.RetirementDelay = 3*time.Second, time.Second
				f.Memory = Memory{CredentialsVersion: "1", MissingSince: At(time.Second), StatusesWithdrawn: true, ConnectorsStopped: At(2 * time.Second)}
			}),
			want{Action: Wait, Wait: 7 * time.Second},
		},
		{
			"one call timeout after the last create a retiring Tunnel lists again",
			retiring(unrecorded, status(creating), func(f *Facts) { f.Memory.Created = At(f.Uptime - 10*time.Second) }),
			want{Action: FindByName, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel that appeared late is recorded and then deleted",
			retiring(unrecorded, status(creating), tunnelRead(Present)), want{Action: Record, Record: "creating= tunnelID=" + ownID},
		},
		{
			"deleting a Tunnel object whose Gateway exists deletes nothing at Cloudflare",
			func(f *Facts) { f.Object = nil }, want{Action: Claim},
		},
		{
			"deleting a retiring Tunnel leaves its tunnel behind",
			retiring(func(f *Facts) { f.Object = nil }), want{Action: None},
		},
	})
}

func TestPausing(t *testing.T) {
	decide(t, []row{
		{
			"a Gateway that is paused is recorded as paused",
			func(f *Facts) { f.Gateway.Paused = true }, want{Action: Claim},
		},
		{
			"a Gateway that is not paused any more is recorded",
			func(f *Facts) { f.Object.Spec.Paused = true }, want{Action: Claim},
		},
		{"a paused Gateway changes nothing at Cloudflare", all(paused, routesChanged), want{Action: Wait, Wait: quiet, Problem: ReasonPaused}},
		{
			"a paused Gateway does not revert an external change",
			all(paused, remoteConfiguration(foreignConfiguration, 9)), want{Action: Wait, Wait: quiet, Problem: ReasonPaused},
		},
		{"a paused Gateway reads the configuration after a restart", all(paused, restarted), want{Action: ReadConfiguration, Priority: provider.PriorityStart}},
		{
			"a paused Gateway creates no tunnel",
			all(unlocated, paused, tunnelRead(Absent)), want{Action: None, Problem: ReasonPaused},
		},
		{"a paused Gateway replaces no lost tunnel", all(paused, tunnelNotFound, tunnelRead(Absent), failing(TrackConfiguration, ReasonFailed, time.Minute)), want{Action: Wait, Wait: time.Minute, Problem: ReasonPaused}},
		{"a paused Gateway gets no Tunnel object", func(f *Facts) { f.Gateway.Paused, f.Object = true, nil }, want{Action: None, Problem: ReasonPaused}},
		{"pausing clears contested", all(paused, status(contested)), want{Action: Record, Record: "contested="}},
		{
			"after a pause external changes are counted anew",
			all(remoteConfiguration(foreignConfiguration, 9), func(f *Facts) {
				f.Memory.Drift = Drift{Times: []Instant{At(f.Uptime - 2*time.Minute), At(f.Uptime - time.Minute)}, Version: 8}
				g := serving(paused)
				g.Memory = f.Memory
				f.Memory = Observe(g)
			}),
			want{Action: Configure, Event: EventDriftRepaired, Change: 9},
		},
		{"a paused Gateway rotates no token", all(paused, rotateOnDemand, connections(0)), want{Action: Wait, Wait: quiet, Problem: ReasonPaused}},
		{
			"a paused Gateway whose rotation has begun gets the token that Cloudflare has",
			all(paused, status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenRotating }), func(f *Facts) {
				f.Memory.Token = TokenCheck{Rotated: At(f.Uptime), Pending: true, NextCheck: At(2 * uptime)}
			}),
			want{Action: ReadToken},
		},
		{
			"a paused Gateway gets that token also after a restart",
			all(paused, restarted, status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenRotating })),
			want{Action: ReadToken},
		},
		{
			"a paused Gateway does not disconnect connectors",
			all(paused, status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenDisconnecting }), connections(0, live("a", -72*time.Hour))),
			want{Action: Wait, Wait: quiet, Problem: ReasonPaused},
		},
		{
			"a paused Gateway leaves a deletion that has begun as it is until the tunnel is gone",
			all(paused, returnedAfterDeleting), want{Action: ReadTunnel},
		},
		{
			"a paused Gateway that is deleted keeps its connectors, and its Tunnel waits for a person",
			all(gone(time.Minute), recordedPaused), want{Action: None, Problem: ReasonPaused},
		},
		{
			"when an administrator clears spec.paused, the Tunnel retires",
			gone(time.Minute), want{Action: WithdrawStatuses, Event: EventTunnelRetiring},
		},
		{
			"when an administrator chooses Retain, the Tunnel retires without deleting",
			all(gone(time.Minute), recordedPaused, withRetain), want{Action: WithdrawStatuses, Event: EventTunnelRetiring},
		},
		{
			"a paused Tunnel with Retain ends as a retained one",
			retiring(recordedPaused, withRetain), want{Action: None},
		},
		{
			"a paused Gateway that returns keeps its tunnel",
			all(paused, otherUID), want{Action: Record, Record: "gatewayUID=uid-2"},
		},
		{
			"pausing a Tunnel stops its deletion",
			retiring(status(deleting), recordedPaused), want{Action: None, Problem: ReasonPaused},
		},
		{
			"a paused Gateway without credentials is paused all the same",
			all(paused, credentials(CredentialsMissing), routesChanged), want{Action: None, Problem: ReasonPaused},
		},
	})
}

// recordedPaused is the record of a pause of a Gateway that is gone.
func recordedPaused(f *Facts) { f.Object.Spec.Paused = true }

func TestCredentials(t *testing.T) {
	decide(t, []row{
		{"while the credentials are missing, what is served stays served", credentials(CredentialsMissing), idle()},
		{
			"while the credentials are missing, changes wait, with the reason",
			all(credentials(CredentialsMissing), routesChanged), want{Action: None, Problem: ReasonCredentialsMissing},
		},
		{
			"while the credentials are missing, a check that is due waits without a busy loop",
			all(credentials(CredentialsMissing), readDue), want{Action: None, Problem: ReasonCredentialsMissing},
		},
		{
			"while the credentials are missing, connectors are still kept up to date",
			all(credentials(CredentialsMissing), func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors},
		},
		{
			"while the credentials are missing, no tunnel is looked for",
			all(unlocated, credentials(CredentialsMissing)), want{Action: None, Problem: ReasonCredentialsMissing},
		},
		{"work resumes when the credentials are back", routesChanged, want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"}},
		{
			"the controller's own token is not used for another account",
			all(credentials(CredentialsWrongAccount), routesChanged), want{Action: None, Problem: ReasonWrongAccount},
		},
		{
			"credentials that could not be read are read again",
			all(credentials(CredentialsUnknown), routesChanged), want{Action: Wait, Wait: 10 * time.Second, Problem: ReasonKubernetes},
		},
		{
			"a token that Cloudflare refused is tried again after a backoff",
			all(routesChanged, failing(TrackConfiguration, ReasonUnauthorized, 32*time.Second)),
			want{Action: Wait, Wait: 32 * time.Second, Problem: ReasonUnauthorized},
		},
		{
			"new credentials are tried at once",
			all(routesChanged, failing(TrackConfiguration, ReasonUnauthorized, 32*time.Second), func(f *Facts) { f.Credentials.Version = "2" }),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"credentials that are back after they were missing are tried at once",
			all(unlocated, failing(TrackTunnel, ReasonUnauthorized, 32*time.Second), func(f *Facts) { f.Credentials.Version = "2" }),
			want{Action: FindByName},
		},
	})
}

func TestConfigurationAndDrift(t *testing.T) {
	foreign := remoteConfiguration(foreignConfiguration, 9)
	seen := func(ago ...time.Duration) change {
		return func(f *Facts) {
			f.Memory.Drift.Version = 8
			for _, d := range ago {
				f.Memory.Drift.Times = append(f.Memory.Drift.Times, At(f.Uptime-d))
			}
		}
	}
	late := func(s *v1alpha1.TunnelStatus) { s.Configuration.Late = "late-hash" }
	decide(t, []row{
		{
			"a configuration is recorded ahead of its write",
			routesChanged, want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"a write that is recorded already writes no record",
			all(routesChanged, status(func(s *v1alpha1.TunnelStatus) {
				s.Configuration = v1alpha1.ConfigurationRecord{Hash: changedConfiguration.Hash(), Previous: wantedConfiguration.Hash()}
			})),
			want{Action: Configure},
		},
		{
			"a write that may still arrive is recorded as late",
			all(routesChanged, func(f *Facts) {
				f.Memory.Late = LateWrites{Hashes: []string{"late-hash"}, Settled: At(f.Uptime + time.Second)}
			}),
			want{Action: Configure, Record: "configuration.hash=changed configuration.late=late-hash configuration.previous=desired"},
		},
		{
			"the configuration of a tunnel that was just created is written at once",
			all(status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }), remoteConfiguration(provider.Configuration{}, 0)),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty"},
		},
		{
			"a tunnel that was found by its name gets the configuration of its Gateway",
			all(status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }), foreign),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=foreign"},
		},
		{
			"after a restart the configuration is read, not written",
			restarted, want{Action: ReadConfiguration, Priority: provider.PriorityStart},
		},
		{
			"after a restart a configuration that has to change is read with the priority of a change",
			all(routesChanged, restarted), want{Action: ReadConfiguration},
		},
		{
			"a configuration that is due is read with the lowest priority",
			readDue, want{Action: ReadConfiguration, Priority: provider.PriorityDrift},
		},
		{
			"a configuration is not written while its record cannot be written",
			all(routesChanged, failing(TrackObject, ReasonKubernetes, 4*time.Second)), want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonKubernetes},
		},
		{
			"a read that fails is repeated after a backoff, without a busy loop",
			all(readDue, failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"a read that waits for its share of the request budget does not delay a change",
			all(readDue, routesChanged, func(f *Facts) {
				f.Memory.Backoffs[TrackConfiguration] = Backoff{Until: At(f.Uptime + time.Minute), Slot: Slot{Assigned: true, Priority: provider.PriorityDrift}}
			}),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"a configuration that is in effect already is recorded, not written",
			status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{Hash: "older"} }),
			want{Action: Record, Record: "configuration.hash=desired"},
		},
		{
			"a configuration that the controller wrote before is not an external change",
			all(routesChanged, status(func(s *v1alpha1.TunnelStatus) {
				s.Configuration = v1alpha1.ConfigurationRecord{Hash: foreignConfiguration.Hash(), Previous: wantedConfiguration.Hash()}
			})),
			want{Action: Configure, Record: "configuration.hash=changed"},
		},
		{
			"a late write of this controller is not an external change",
			all(foreign, func(f *Facts) {
				f.Memory.Late = LateWrites{Hashes: []string{foreignConfiguration.Hash()}, Settled: At(f.Uptime - time.Second)}
			}),
			want{Action: Configure, Record: "configuration.previous=foreign"},
		},
		{
			"after a restart the writes of the earlier process may still arrive",
			all(restarted, status(late), func(f *Facts) { f.Desired.Hash = "new" }), want{Action: ReadConfiguration},
		},
		{
			"writes are spaced",
			all(routesChanged, func(f *Facts) {
				f.Memory.Push = Pace{Last: At(f.Uptime - 100*time.Millisecond), Gap: 300 * time.Millisecond}
			}),
			want{Action: Wait, Wait: 200 * time.Millisecond},
		},
		{
			"a failed write is repeated after a backoff",
			all(routesChanged, failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"a rejected configuration is not sent again before its backoff",
			all(routesChanged, failing(TrackConfiguration, ReasonConfigurationRejected, 32*time.Second), func(f *Facts) {
				f.Memory.Backoffs[TrackConfiguration].Hash = changedConfiguration.Hash()
			}),
			want{Action: Wait, Wait: 32 * time.Second, Problem: ReasonConfigurationRejected},
		},
		{
			"another configuration than the rejected one is sent at once",
			all(routesChanged, failing(TrackConfiguration, ReasonConfigurationRejected, 32*time.Second), func(f *Facts) {
				f.Memory.Backoffs[TrackConfiguration].Hash = "rejected"
			}),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"an external change is reverted, with an event, and the configuration is read again soon",
			foreign, want{Action: Configure, Event: EventDriftRepaired, Change: 9, Interval: time.Minute},
		},
		{
			"an external change is reported once, however often the repair fails",
			all(foreign, seen(time.Minute), func(f *Facts) { f.Memory.Drift.Version = 9 }), want{Action: Configure, Change: 9},
		},
		{
			"the second external change is reverted too",
			all(foreign, seen(time.Minute)), want{Action: Configure, Event: EventDriftRepaired, Change: 9},
		},
		{
			"the third external change within ten minutes is contested: the controller stops writing",
			all(foreign, seen(9*time.Minute, time.Minute)), want{Action: Record, Record: "contested=true", Event: EventDriftContested, Change: 9},
		},
		{
			"external changes that are ten minutes old do not count",
			all(foreign, seen(10*time.Minute, time.Minute)), want{Action: Configure, Event: EventDriftRepaired, Change: 9},
		},
		{
			"a contested configuration is not written",
			all(foreign, status(contested)), want{Action: Wait, Wait: quiet, Problem: ReasonContested},
		},
		{
			"a contested configuration is not written for a change of the routes either",
			all(routesChanged, status(contested)), want{Action: Wait, Wait: quiet, Problem: ReasonContested},
		},
		{
			"a contested configuration that is due is read without a busy loop",
			all(foreign, status(contested), readDue, failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonContested},
		},
		{
			"a contested Tunnel whose configuration is as desired has nothing to write",
			status(contested), idle(),
		},
		{
			"a configuration is read at the drift interval",
			readDue, want{Action: ReadConfiguration, Priority: provider.PriorityDrift, Interval: serving().driftInterval()},
		},
		{
			"after an external change the configuration is read every minute",
			all(readDue, seen(time.Minute)), want{Action: ReadConfiguration, Priority: provider.PriorityDrift, Interval: time.Minute},
		},
		{
			"a configuration of unknown state is read although its tunnel was just configured",
			all(func(f *Facts) { f.Memory.Remote.Configuration.Known = false }), want{Action: ReadConfiguration, Priority: provider.PriorityStart},
		},
	})
}

func TestConnectors(t *testing.T) {
	outdated := func(f *Facts) { f.Connectors.Current = false }
	decide(t, []row{
		{"connectors that are not as desired are applied", outdated, want{Action: RunConnectors}},
		{
			"connectors run only with a configuration of this controller",
			all(outdated, status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }), remoteConfiguration(provider.Configuration{}, 0),
				func(f *Facts) {
					f.Memory.Backoffs[TrackConfiguration] = Backoff{Until: At(f.Uptime + 4*time.Second), Problem: problem(ReasonUnavailable, "It failed.")}
				}),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{"connectors wait for the token", all(outdated, func(f *Facts) { f.Token.State = TokenMissing }), want{Action: ReadToken}},
		{
			"connectors do not start while the token could not be read",
			all(outdated, func(f *Facts) { f.Token.State = TokenMissing }, failing(TrackToken, ReasonTokenFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonTokenFailed},
		},
		{
			"connectors are not applied while the settings are not valid",
			all(outdated, invalidSettings), want{Action: None},
		},
		{
			"connectors are applied although the configuration cannot be written",
			all(outdated, routesChanged, failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)), want{Action: RunConnectors},
		},
		{
			"connectors that could not be applied are tried again after a backoff",
			all(outdated, failing(TrackConnectors, ReasonConnectorsFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonConnectorsFailed},
		},
		{
			"a GRPCRoute makes the connectors use HTTP/2",
			func(f *Facts) { f.Desired.NeedsHTTP2 = true }, want{Action: Record, Record: "http2=true", Event: EventHTTP2},
		},
		{
			"the connectors keep HTTP/2 when the GRPCRoute is gone",
			status(func(s *v1alpha1.TunnelStatus) { s.HTTP2 = true }), idle(),
		},
		{
			"a Secret that belongs to another object is not overwritten",
			func(f *Facts) { f.Token.State = TokenNameConflict }, want{Action: Wait, Wait: quiet, Problem: ReasonObjectTaken},
		},
		{
			"a token Secret that could not be read is read again",
			func(f *Facts) { f.Token.State = TokenUnknown }, want{Action: Wait, Wait: time.Second, Problem: ReasonTokenFailed},
		},
		{
			"the token is compared with Cloudflare's once a day, with the lowest priority",
			func(f *Facts) { f.Memory.Token.NextCheck = At(f.Uptime) }, want{Action: ReadToken, Priority: provider.PriorityDrift},
		},
		{
			"a token that seems wrong is read at once",
			func(f *Facts) { f.Memory.Token.Suspect = true }, want{Action: ReadToken, Priority: provider.PriorityDrift},
		},
		{
			"a token that could not be read is tried again after a backoff",
			all(func(f *Facts) { f.Token.State = TokenMissing }, failing(TrackToken, ReasonTokenFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonTokenFailed},
		},
	})
}

func TestDestructiveStepsAreThoseThatCannotBeUndone(t *testing.T) {
	destructive := map[Action]bool{StopConnectors: true, Disconnect: true, Delete: true, DeleteObject: true, WithdrawStatuses: true}
	for _, a := range []Action{
		None, Wait, Record, Claim, ReadTunnel, FindByName, Create, ReadConfiguration, Configure, ReadToken, RotateToken,
		RunConnectors, StopConnectors, WithdrawStatuses, ListConnections, Disconnect, Delete, DeleteObject,
	} {
		if got := (Step{Action: a}).Destructive(); got != destructive[a] {
			t.Errorf("%s: destructive is %t", a, got)
		}
	}
}

// rotateOnDemand asks for a rotation of the token.
func rotateOnDemand(f *Facts) {
	f.Object.Annotations = map[string]string{v1alpha1.RotateTokenAnnotation: "september"}
}

// rotateEvery is a schedule of 24 h without jitter to speak of.
func rotateEvery(f *Facts) { f.Desired.TokenRotation = 24 * time.Hour }

func TestTokenRotation(t *testing.T) {
	phase := func(p v1alpha1.TokenPhase) change {
		return status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = p })
	}
	rotatedAgo := func(d time.Duration) change {
		return status(func(s *v1alpha1.TunnelStatus) { s.Token.RotatedAt = at(-d) })
	}
	answered := func(ago time.Duration) change {
		return func(f *Facts) { f.Memory.Token.Rotated = At(f.Uptime - ago) }
	}
	blocked := want{Action: Wait, Wait: time.Minute, Problem: ReasonRotationBlocked}
	decide(t, []row{
		{
			"a token that is seen for the first time is recorded as of now",
			status(func(s *v1alpha1.TunnelStatus) { s.Token.RotatedAt = nil }), want{Action: Record, Record: "token.rotatedAt=2026-09-01T12:00:00Z"},
		},
		{
			"a new value of the annotation rotates the token, after it is recorded",
			all(rotateOnDemand, connections(0)), want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"},
		},
		{
			"a value of the annotation that was carried out rotates nothing",
			all(rotateOnDemand, status(func(s *v1alpha1.TunnelStatus) { s.Token.Requested = "september" })), idle(),
		},
		{
			"connections are listed before a rotation",
			rotateOnDemand, want{Action: ListConnections, Priority: provider.PriorityDrift},
		},
		{
			"connections that cannot be listed are tried again after a backoff",
			all(rotateOnDemand, failing(TrackTunnel, ReasonUnavailable, 4*time.Second)), want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"a schedule rotates the token when it is due",
			all(rotateEvery, connections(0)), want{Action: RotateToken, Record: "token.phase=Rotating"},
		},
		{
			"a schedule rotates nothing before it is due",
			all(rotateEvery, rotatedAgo(24*time.Hour-time.Minute), noJitter), want{Action: Wait, Wait: time.Minute},
		},
		{
			"a schedule waits while the token of another Tunnel is rotated",
			all(rotateEvery, connections(0), func(f *Facts) { f.OtherRotating = true }), want{Action: Wait, Wait: time.Minute},
		},
		{
			"a rotation on demand does not wait for another Tunnel's",
			all(rotateOnDemand, connections(0), func(f *Facts) { f.OtherRotating = true }),
			want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"},
		},
		{
			"there is no rotation with connector.enabled: false, and the Tunnel says why",
			all(rotateOnDemand, func(f *Facts) { f.Desired.RunConnectors = false }), blocked,
		},
		{
			"there is no scheduled rotation with connector.enabled: false, and the Tunnel says why",
			all(rotateEvery, func(f *Facts) { f.Desired.RunConnectors = false }), blocked,
		},
		{
			"there is no rotation while the settings are not valid",
			all(rotateOnDemand, invalidSettings), blocked,
		},
		{
			"there is no rotation while connectors run that this controller does not",
			all(rotateOnDemand, connections(0, live("a", -time.Hour), live("b", -time.Hour), live("c", -time.Hour)), crowded(30*time.Second)), blocked,
		},
		{
			"more connectors than pods count only when they last longer than the grace period",
			all(rotateOnDemand, connections(0, live("a", -time.Hour), live("b", -time.Hour), live("c", -time.Hour)), crowded(20*time.Second)),
			want{Action: Wait, Wait: 10 * time.Second},
		},
		{
			"when no pods run, each live connector is another's",
			all(rotateOnDemand, connections(0, live("a", -time.Hour)), func(f *Facts) { f.Connectors.Pods = 0 }), blocked,
		},
		{
			"connectors that are no longer connected do not count",
			all(rotateOnDemand, connections(0, live("a", -time.Hour), live("b", -time.Hour), disconnected("c"))),
			want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"},
		},
		{
			"a rotation that began before a crash asks for a new secret again",
			all(phase(v1alpha1.TokenRotating), restarted, up(time.Minute), remoteConfiguration(wantedConfiguration, 7)), want{Action: RotateToken},
		},
		{
			"a rotation that was not answered is repeated one call timeout later: a late PATCH would replace the token again",
			all(phase(v1alpha1.TokenRotating), func(f *Facts) { f.Memory.Token.Unanswered = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"after a restart a rotation may have been sent just before",
			all(phase(v1alpha1.TokenRotating), restarted, up(3*time.Second), remoteConfiguration(wantedConfiguration, 7)), want{Action: Wait, Wait: 7 * time.Second},
		},
		{
			"a rotation that fails is repeated after a backoff",
			all(phase(v1alpha1.TokenRotating), failing(TrackToken, ReasonUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"after the secret the new token is written to the Secret",
			all(phase(v1alpha1.TokenRotating), answered(time.Second), func(f *Facts) { f.Memory.Token.Pending = true }), want{Action: ReadToken},
		},
		{
			"when the token is in the Secret, the pods roll; the record has the time of the answer",
			all(phase(v1alpha1.TokenRotating), answered(3*time.Second)), want{Action: Record, Record: "token.phase=Rolling token.rotatedAt=2026-09-01T11:59:57Z"},
		},
		{
			"the time of the answer is rounded up, so that no connector with the old token is left",
			all(phase(v1alpha1.TokenRotating), answered(2500*time.Millisecond)), want{Action: Record, Record: "token.phase=Rolling token.rotatedAt=2026-09-01T11:59:58Z"},
		},
		{
			"the rollout applies the connectors with the new token",
			all(phase(v1alpha1.TokenRolling), func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors},
		},
		{
			"nothing is disconnected before the rollout has ended",
			all(phase(v1alpha1.TokenRolling), func(f *Facts) { f.Connectors.RolledOut = false }), want{Action: Wait, Wait: 30 * time.Second},
		},
		{
			"connections are listed after the rollout",
			phase(v1alpha1.TokenRolling), want{Action: ListConnections},
		},
		{
			"the end of the rollout is recorded",
			all(phase(v1alpha1.TokenRolling), connections(0)), want{Action: Record, Record: "token.phase=Disconnecting"},
		},
		{
			"connectors that connected before the new secret are disconnected, live ones included",
			all(phase(v1alpha1.TokenDisconnecting), rotatedAgo(time.Minute), connections(0, live("new", -30*time.Second), live("old", -2*time.Minute))),
			want{Action: Disconnect, Connector: "old"},
		},
		{
			"a connector whose time is not known is disconnected",
			all(phase(v1alpha1.TokenDisconnecting), connections(0, provider.Connector{ID: "a", Connected: true})), want{Action: Disconnect, Connector: "a"},
		},
		{
			"connections are listed again before connectors are disconnected",
			all(phase(v1alpha1.TokenDisconnecting), connections(time.Minute)), want{Action: ListConnections},
		},
		{
			"a connector that could not be disconnected is tried again after a backoff",
			all(phase(v1alpha1.TokenDisconnecting), rotatedAgo(time.Minute), connections(0, live("old", -2*time.Minute)), failing(TrackTunnel, ReasonUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"the rotation ends when no connector has the old token",
			all(phase(v1alpha1.TokenDisconnecting), rotatedAgo(time.Minute), connections(0, live("new", -30*time.Second))),
			want{Action: Record, Record: "token.phase=", Event: EventTokenRotated},
		},
		{
			"a rotation goes on when the Gateway of the Tunnel exists again, at the phase that is recorded",
			all(phase(v1alpha1.TokenDisconnecting), restarted, remoteConfiguration(wantedConfiguration, 7)), want{Action: ListConnections},
		},
		{
			"the token of a tunnel without a configuration of this controller is not rotated",
			all(rotateOnDemand, connections(0), status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }),
				remoteConfiguration(provider.Configuration{}, 0), failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: ReasonUnavailable},
		},
		{
			"while the state of the Gateway is unknown, a rotation that has begun still gets its token",
			all(phase(v1alpha1.TokenRotating), gatewayIs(GatewayUnknown), answered(time.Second), func(f *Facts) { f.Memory.Token.Pending = true }),
			want{Action: ReadToken},
		},
	})
}

// crowded has had more connectors than pods for some time.
func crowded(d time.Duration) change {
	return func(f *Facts) { f.Memory.SurplusSince = At(f.Uptime - d) }
}

// noJitter chooses a schedule that ends after 24 h from the rotation whatever the
// jitter of the Tunnel is.
func noJitter(f *Facts) {
	jitter := f.spread(f.Desired.TokenRotation / 10)
	f.Object.Status.Token.RotatedAt.Time = f.Object.Status.Token.RotatedAt.Add(-jitter)
}
