package tunnel

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestTunnelRetiresAfterItsGatewayIsGone(t *testing.T) {
	testDecide(t, []row{
		{"a healthy Tunnel waits until its configuration is due to be read", nil, idle()},
		{
			"a deletionTimestamp on the Tunnel has no effect",
			func(f *Facts) { f.Object.DeletionTimestamp = timeAt(-time.Hour) }, idle(),
		},
		{
			"the first live read without the Gateway starts the retirement delay",
			gatewayIs(GatewayGone), want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonGatewayMissing},
		},
		{
			"the tunnel keeps serving until the retirement delay has passed",
			gatewayGone(29 * time.Second), want{Action: Wait, Wait: time.Second, Problem: conditions.ReasonGatewayMissing},
		},
		{
			"after the retirement delay the controller first withdraws the status entries",
			gatewayGone(30 * time.Second), want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring},
		},
		{
			"a Gateway whose live class names another controller is treated like a deleted Gateway",
			combine(gatewayGone(30*time.Second), gatewayIs(GatewayNotManaged)), want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring},
		},
		{
			"the tunnel keeps serving while the state of the Gateway is unknown",
			gatewayIs(GatewayUnknown), want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonGatewayUnknown},
		},
		{
			"an unknown state keeps the tunnel even if the Gateway was missing for an hour before",
			combine(gatewayGone(time.Hour), gatewayIs(GatewayUnknown)), want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonGatewayUnknown},
		},
		{
			"an unknown state stops a deletion in progress",
			combine(retiring(status(deleting)), gatewayIs(GatewayUnknown)), want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonGatewayUnknown},
		},
		{
			"an unknown state does not change a retained tunnel",
			combine(gatewayIs(GatewayUnknown), withRetain), want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonGatewayUnknown},
		},
		{
			"a new process starts the retirement delay again",
			combine(gatewayIs(GatewayGone), restarted), want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonGatewayMissing},
		},
		{
			"missingSince in the record does not shorten the retirement delay",
			combine(gatewayIs(GatewayGone), status(func(s *v1alpha1.TunnelStatus) { s.MissingSince = timeAt(-24 * time.Hour) })),
			want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonGatewayMissing},
		},
		{
			"a jump of the wall clock does not shorten the retirement delay",
			combine(gatewayGone(time.Second), func(f *Facts) { f.Clock = f.Clock.Add(24 * time.Hour) }),
			want{Action: Wait, Wait: 29 * time.Second, Problem: conditions.ReasonGatewayMissing},
		},
		{
			"missing credentials do not stop the retirement",
			combine(gatewayGone(time.Minute), credentials(CredentialsMissing)), want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring},
		},
		{
			"the connectors are stopped after the statuses are withdrawn",
			combine(gatewayGone(time.Minute), func(f *Facts) { f.Memory.StatusesWithdrawn = true }), want{Action: StopConnectors},
		},
		{
			"a status that cannot be written does not delay the retirement",
			combine(gatewayGone(time.Minute), failing(TrackStatuses, conditions.ReasonKubernetesUnavailable, 4*time.Second)), want{Action: StopConnectors},
		},
		{
			"a failed withdrawal of statuses is retried after its backoff",
			combine(retiring(), func(f *Facts) { f.Memory.StatusesWithdrawn = false }, failing(TrackStatuses, conditions.ReasonKubernetesUnavailable, 0)),
			want{Action: WithdrawStatuses},
		},
		{
			"each process stops the connectors once, even if it finds none",
			retiring(func(f *Facts) { f.Memory.ConnectorsStopped = Instant{} }), want{Action: StopConnectors},
		},
		{
			"connectors that still exist after they were stopped are checked again two seconds later",
			retiring(func(f *Facts) { f.Connectors.Exist, f.Memory.ConnectorsStopped = true, At(f.Uptime) }),
			want{Action: Wait, Wait: 2 * time.Second, Problem: conditions.ReasonConnectorsStopping},
		},
		{
			"connectors that still exist later are stopped again",
			retiring(func(f *Facts) { f.Connectors.Exist = true }), want{Action: StopConnectors},
		},
		{
			"a failed stop of the connectors is retried after a backoff",
			combine(gatewayGone(time.Minute), func(f *Facts) { f.Memory.StatusesWithdrawn = true }, failing(TrackConnectors, conditions.ReasonConnectorsFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonConnectorsFailed},
		},
		{
			"the deletion waits for connector pods",
			retiring(func(f *Facts) { f.Connectors.Pods = 1 }), want{Action: Wait, Wait: 2 * time.Second, Problem: conditions.ReasonConnectorsStopping},
		},
		{
			"the deletion waits for pods for their grace period plus 60 s",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-89*time.Second) }),
			want{Action: Wait, Wait: 2 * time.Second, Problem: conditions.ReasonConnectorsStopping},
		},
		{
			"after the grace period plus 60 s only the connections that Cloudflare lists are checked",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-90*time.Second) }, connections(time.Minute)),
			want{Action: ListConnections, Priority: provider.PriorityDeletion},
		},
	})
}

func TestDeletionWaitsForRecords(t *testing.T) {
	unreleased := func(f *Facts) { f.DNS.Unreleased = true }
	since := func(d time.Duration) change { return func(f *Facts) { f.Memory.RecordsRemainSince = At(f.Uptime - d) } }
	deletes := want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted}
	testDecide(t, []row{
		{"the deletion waits for DNS records that lead to the tunnel", retiring(unreleased), want{Action: Wait, Wait: 10 * time.Minute, Problem: conditions.ReasonRecordsRemain}},
		{"it waits at most ten minutes", retiring(unreleased, since(9*time.Minute)), want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonRecordsRemain}},
		{"records that remain after ten minutes are left behind", retiring(unreleased, since(10*time.Minute)), deletes},
		{
			"the ten minutes begin after an outage", retiring(unreleased, since(10*time.Minute), func(f *Facts) { f.DNS.BlockedUntil = f.Uptime + time.Minute }),
			want{Action: Wait, Wait: 11 * time.Minute, Problem: conditions.ReasonRecordsRemain},
		},
		{"an outage before the retirement does not matter", retiring(unreleased, since(10*time.Minute), func(f *Facts) { f.DNS.BlockedUntil = time.Second }), deletes},
		{"it waits at most a day", retiring(unreleased, since(24*time.Hour), func(f *Facts) { f.DNS.BlockedUntil = f.Uptime }), deletes},
		{"a deletion without records does not wait", retiring(), deletes},
		{
			"a deletion that has begun does not wait", retiring(unreleased, status(deleting)),
			want{Action: Delete, Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted},
		},
		{
			"a Tunnel whose tunnel other Tunnels use waits, too", retiring(unreleased, rivals(Rival{Object: "infra.other", Recorded: true, OtherController: true})),
			want{Action: Wait, Wait: 10 * time.Minute, Problem: conditions.ReasonRecordsRemain},
		},
		{"the connectors end before the records are released", retiring(unreleased, func(f *Facts) { f.Connectors.Pods = 1 }), want{Action: Wait, Wait: 2 * time.Second, Problem: conditions.ReasonConnectorsStopping}},
		{"a retained tunnel keeps its records", retiring(unreleased, withRetain), want{Action: None}},
		{"a Gateway that exists does not wait", unreleased, idle()},
	})
}

func TestTunnelObjectWaitsForApplications(t *testing.T) {
	unreleased := func(f *Facts) { f.Access.Unreleased = true }
	since := func(d time.Duration) change {
		return func(f *Facts) { f.Memory.ApplicationsRemainSince = At(f.Uptime - d) }
	}
	waits := func(d time.Duration) want {
		return want{Action: Wait, Wait: d, Problem: conditions.ReasonApplicationsRemain}
	}
	deletes := want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted}
	shared := rivals(Rival{Object: "infra.other", Recorded: true, OtherController: true})
	testDecide(t, []row{
		{"the tunnel is deleted before its applications are released", retiring(unreleased), deletes},
		{"the Tunnel object waits for applications", retiring(unreleased, status(deleting), tunnelIsAbsent), waits(10 * time.Minute)},
		{"it waits at most ten minutes", retiring(unreleased, status(deleting), tunnelIsAbsent, since(9*time.Minute)), waits(time.Minute)},
		{"applications that remain after ten minutes are left behind", retiring(unreleased, status(deleting), tunnelIsAbsent, since(10*time.Minute)), want{Action: DeleteObject}},
		{"a Tunnel object without applications does not wait", retiring(status(deleting), tunnelIsAbsent), want{Action: DeleteObject}},
		{"a Tunnel whose tunnel other Tunnels use waits, too", retiring(unreleased, shared), waits(10 * time.Minute)},
		{"DNS records are released first", retiring(unreleased, func(f *Facts) { f.DNS.Unreleased = true }), want{Action: Wait, Wait: 10 * time.Minute, Problem: conditions.ReasonRecordsRemain}},
		{"a retained tunnel keeps its applications", retiring(unreleased, withRetain), want{Action: None}},
		{"a Gateway that exists does not wait", unreleased, idle()},
		{"a Gateway that returns does not wait", combine(returnedAfterDeleting, unreleased, tunnelIsAbsent), want{Action: DeleteObject}},
	})
}

func tunnelIsAbsent(f *Facts) {
	f.Memory.Remote = Remote{Tunnel: RemoteTunnel{Presence: Absent, Read: At(f.Uptime)}}
}

func TestDepartureOfATunnel(t *testing.T) {
	for _, r := range []struct {
		name  string
		facts change
		want  Departure
	}{
		{"the Gateway exists", nil, Undecided},
		{"it is unknown whether the Gateway exists", gatewayIs(GatewayUnknown), Undecided},
		{"the retirement delay has not passed", gatewayGone(time.Second), Undecided},
		{"the connectors must stop first", gatewayGone(time.Minute), Undecided},
		{"pods are left", retiring(func(f *Facts) { f.Connectors.Pods = 1 }), Undecided},
		{"the connectors have ended", retiring(), ReleasesRecords},
		{"the statuses cannot be removed", retiring(func(f *Facts) { f.Memory.StatusesWithdrawn = false }), ReleasesRecords},
		{"the tunnel was deleted", retiring(status(deleting), tunnelIsAbsent), ReleasesApplications},
		{"the tunnel was deleted, and the records remain", retiring(tunnelIsAbsent, func(f *Facts) { f.DNS.Unreleased = true }), ReleasesRecords},
		{"another Tunnel uses the tunnel", retiring(rivals(Rival{Object: "infra.other", Recorded: true, OtherController: true})), ReleasesApplications},
		{"the tunnel is retained", retiring(withRetain), KeepsTunnel},
		{"the Gateway was deleted while it was paused", retiring(recordedPaused), KeepsTunnel},
		{"the Tunnel is of another cluster", retiring(func(f *Facts) { f.Object.Spec.ClusterUID = "other" }), KeepsTunnel},
		{"a newer version serves the Tunnel", retiring(status(func(s *v1alpha1.TunnelStatus) { s.SchemaVersion = SchemaVersion + 1 })), KeepsTunnel},
		{"a Tunnel of another cluster, and it is unknown whether the Gateway exists", combine(gatewayIs(GatewayUnknown), func(f *Facts) { f.Object.Spec.ClusterUID = "other" }), Undecided},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := serving()
			if r.facts != nil {
				r.facts(&f)
			}
			f.Memory = Observe(f)
			if got := DepartureOf(f); got != r.want {
				t.Errorf("got %d, want %d", got, r.want)
			}
		})
	}
}

func TestRetainKeepsTheTunnel(t *testing.T) {
	testDecide(t, []row{
		{"with Retain the tunnel and the Tunnel object are kept", retiring(withRetain), want{Action: None}},
		{"with Retain the connectors are stopped", combine(gatewayGone(time.Minute), withRetain, func(f *Facts) { f.Memory.StatusesWithdrawn = true }), want{Action: StopConnectors}},
		{"with Retain the statuses are withdrawn", combine(gatewayGone(time.Minute), withRetain), want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring}},
		{
			"a retained Tunnel retries a failed withdrawal of statuses",
			combine(retiring(withRetain), func(f *Facts) { f.Memory.StatusesWithdrawn = false }, failing(TrackStatuses, conditions.ReasonKubernetesUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second},
		},
		{
			"an administrator can choose Retain for a tunnel that cannot be deleted",
			combine(retiring(withRetain, status(deleting)), failing(TrackTunnel, conditions.ReasonPrivateRoutes, time.Minute)), want{Action: None},
		},
		{"a retained Tunnel is kept when its credentials are missing", combine(retiring(withRetain), credentials(CredentialsMissing)), want{Action: None}},
		{
			"a retained Tunnel serves again when its Gateway returns",
			combine(withRetain, otherUID, status(func(s *v1alpha1.TunnelStatus) { s.Phase = v1alpha1.TunnelRetained })),
			want{Action: Record, Record: "gatewayUID=uid-2"},
		},
		{
			"deleting a retained Tunnel object keeps the tunnel at Cloudflare",
			combine(retiring(), func(f *Facts) { f.Object = nil }), want{Action: None},
		},
	})
}

func TestReturningGatewayResumesItsTunnel(t *testing.T) {
	testDecide(t, []row{
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
			"a new Gateway whose settings do not agree does not resume the Tunnel",
			combine(otherUID, otherAccount), want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonGatewayMissing},
		},
		{
			"the Tunnel retires after the delay if the new Gateway's settings do not agree",
			combine(otherUID, otherAccount, func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - time.Minute) }),
			want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring},
		},
		{
			"a new Gateway is not recorded while its settings are not valid",
			combine(otherUID, invalidSettings), want{Action: None},
		},
		{
			"a Gateway that returns after the deletion was recorded waits for the last attempt to delete",
			combine(returnedAfterDeleting, func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second, Problem: conditions.ReasonDeletionPending},
		},
		{
			"a Gateway that returns with its old UID also waits for the last attempt to delete",
			combine(status(deleting), func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second, Problem: conditions.ReasonDeletionPending},
		},
		{
			"after a restart a previous process may have sent the delete just before",
			combine(returnedAfterDeleting, restarted), want{Action: Wait, Wait: 9 * time.Second, Problem: conditions.ReasonDeletionPending},
		},
		{
			"the tunnel is read again one call timeout after the last attempt",
			combine(returnedAfterDeleting, func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 10*time.Second) }), want{Action: ReadTunnel},
		},
		{
			"a tunnel that was read before the call timeout had passed is read again",
			combine(returnedAfterDeleting, tunnelRead(Present), func(f *Facts) {
				f.Memory.Deleted = At(f.Uptime - 12*time.Second)
				f.Memory.Remote.Tunnel.Read = At(f.Uptime - 3*time.Second)
			}),
			want{Action: ReadTunnel},
		},
		{
			"the deletion is canceled if the tunnel still exists after that",
			combine(returnedAfterDeleting, tunnelRead(Present), func(f *Facts) { f.Memory.Deleted = At(f.Uptime - 10*time.Second) }),
			want{Action: Record, Record: "deleting=", Event: conditions.EventTunnelResumed},
		},
		{
			"the Tunnel object of a deleted tunnel is deleted before the Gateway gets a new tunnel",
			combine(returnedAfterDeleting, tunnelRead(Absent)), want{Action: DeleteObject},
		},
		{
			"a returned Gateway waits while the Cloudflare API is unavailable",
			combine(returnedAfterDeleting, failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"a returned Gateway waits while the credentials are missing",
			combine(returnedAfterDeleting, credentials(CredentialsMissing)), want{Action: None, Problem: conditions.ReasonCredentialsMissing},
		},
	})
}

func TestTunnelRestoredFromABackupWaitsForItsGateway(t *testing.T) {
	noUID := status(func(s *v1alpha1.TunnelStatus) { s.GatewayUID = "" })
	testDecide(t, []row{
		{
			"a Tunnel that was restored without status waits one hour for its Gateway",
			combine(gatewayGone(59*time.Minute), noUID), want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonGatewayMissing},
		},
		{"a Tunnel that was restored without status retires after the hour", combine(gatewayGone(time.Hour), noUID), want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring}},
		{
			"a longer retirement delay also applies to a restored Tunnel",
			combine(gatewayGone(time.Hour), noUID, func(f *Facts) { f.Options.RetirementDelay = 2 * time.Hour }),
			want{Action: Wait, Wait: time.Hour, Problem: conditions.ReasonGatewayMissing},
		},
		{"a Tunnel that was restored without status records its Gateway", noUID, want{Action: Record, Record: "gatewayUID=uid-1"}},
		{
			"a Tunnel that was restored without status finds its tunnel by name",
			combine(withoutTunnel, noUID, status(func(s *v1alpha1.TunnelStatus) { s.GatewayUID = testGatewayUID })), want{Action: FindByName},
		},
		{
			"a Tunnel of another cluster is blocked",
			func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }, want{Action: None, Problem: conditions.ReasonOtherCluster},
		},
		{
			"a Tunnel of another cluster is not configured when routes change",
			combine(routesChanged, func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }), want{Action: None, Problem: conditions.ReasonOtherCluster},
		},
		{
			"a Tunnel of another cluster is not deleted when its Gateway is gone",
			retiring(func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }), want{Action: None, Problem: conditions.ReasonOtherCluster},
		},
		{
			"a Tunnel object of another Gateway is not used",
			func(f *Facts) { f.Object.Spec.Gateway.Name = "other" }, want{Action: None, Problem: conditions.ReasonObjectMismatch},
		},
		{
			"a Tunnel object of a Gateway in another namespace is not used",
			func(f *Facts) { f.Object.Spec.Gateway.Namespace = "other" }, want{Action: None, Problem: conditions.ReasonObjectMismatch},
		},
		{
			"a Tunnel object of another controller is not used",
			func(f *Facts) { f.Object.Spec.ControllerName = "example.com/other" }, want{Action: None, Problem: conditions.ReasonObjectMismatch},
		},
		{
			"a Tunnel object of another Gateway is not deleted",
			retiring(func(f *Facts) { f.Object.Spec.Gateway.Name = "other" }), want{Action: None, Problem: conditions.ReasonObjectMismatch},
		},
		{
			"a tunnel that is recorded but not found is searched by name",
			tunnelNotFound, want{Action: FindByName},
		},
	})
}

func TestRecordedTunnelKeepsServingWhenSettingsDisagree(t *testing.T) {
	existing := func(f *Facts) { f.Desired.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: otherTunnelID} }
	name := func(f *Facts) { f.Desired.Spec.Name = "other.infra.shared" }
	testDecide(t, []row{
		{"a different account in the settings keeps the recorded tunnel serving", otherAccount, idle()},
		{"an existing tunnel in the settings keeps the recorded tunnel serving", existing, idle()},
		{"a different name in the settings keeps the recorded tunnel serving", name, idle()},
		{
			"route changes are still pushed to the recorded tunnel",
			combine(otherAccount, routesChanged), want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"connectors of the recorded tunnel are still updated",
			combine(otherAccount, func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors},
		},
		{
			"a change of the settings is written to the spec if the identity agrees",
			func(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }, want{Action: Claim},
		},
		{
			"while the settings disagree, a deletion policy is not written to the spec",
			combine(otherAccount, func(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }), idle(),
		},
		{
			"while the settings disagree, pausing is written to the spec",
			combine(otherAccount, func(f *Facts) { f.Gateway.Paused = true }), want{Action: Claim},
		},
		{
			"while the settings are not valid, nothing is changed",
			combine(invalidSettings, routesChangedBefore), want{Action: None},
		},
		{
			"a Gateway that is not accepted keeps its configuration",
			func(f *Facts) { f.Desired.Configuration, f.Desired.Hash = nil, "" }, want{Action: None},
		},
		{
			"no tunnel is created while the settings are not valid",
			combine(withoutTunnel, invalidSettings, tunnelRead(Absent)), want{Action: None},
		},
		{
			"a Gateway that is not accepted gets no tunnel",
			combine(withoutTunnel, tunnelRead(Absent), func(f *Facts) { f.Desired.Configuration, f.Desired.Hash = nil, "" }), want{Action: None},
		},
	})
}

// routesChangedBefore sets a remote configuration that differs from the desired one.
func routesChangedBefore(f *Facts) { remoteConfiguration(changedConfiguration, 8)(f) }

func TestTunnelIsCreatedOnce(t *testing.T) {
	testDecide(t, []row{
		{"a Gateway without a Tunnel object gets one", func(f *Facts) { f.Object, f.Memory = nil, Memory{} }, want{Action: Claim}},
		{
			"a Gateway that was never accepted gets no Tunnel object",
			func(f *Facts) { f.Object, f.Desired.Configuration = nil, nil }, want{Action: None},
		},
		{"a Gateway with invalid settings gets no Tunnel object", func(f *Facts) { f.Object, f.Desired = nil, nil }, want{Action: None}},
		{"a Gateway with unknown state gets no Tunnel object", combine(gatewayIs(GatewayUnknown), func(f *Facts) { f.Object = nil }), want{Action: None}},
		{
			"a failed creation of the Tunnel object is retried after a backoff",
			combine(func(f *Facts) { f.Object = nil }, failing(TrackObject, conditions.ReasonKubernetesUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonKubernetesUnavailable},
		},
		{
			"a Tunnel object that was deleted by mistake is created again",
			func(f *Facts) { f.Object = nil }, want{Action: Claim},
		},
		{"the controller first searches for a tunnel with the Gateway's name", withoutTunnel, want{Action: FindByName}},
		{
			"a tunnel with the Gateway's name is recorded",
			combine(withoutTunnel, tunnelRead(Present)), want{Action: Record, Record: "tunnelID=" + testTunnelID, Event: conditions.EventTunnelFound},
		},
		{
			"a create is recorded before it is sent",
			combine(withoutTunnel, tunnelRead(Absent)), want{Action: Create, Record: "creating=true"},
		},
		{
			"a create that is already recorded writes no record",
			combine(withoutTunnel, withUptime(time.Minute), status(creating), tunnelRead(Absent)), want{Action: Create},
		},
		{
			"a tunnel that was created is recorded",
			combine(withoutTunnel, status(creating), tunnelRead(Present), func(f *Facts) {
				f.Memory.Created = At(f.Uptime)
				f.Memory.Remote.Configuration = RemoteConfiguration{Known: true, Hash: provider.Configuration{}.Hash()}
			}),
			want{Action: Record, Record: "creating= tunnelID=" + testTunnelID, Event: conditions.EventTunnelCreated},
		},
		{
			"a created tunnel is recorded immediately, even after an earlier attempt without a response",
			combine(withoutTunnel, status(creating), tunnelRead(Present), func(f *Facts) { f.Memory.Created = At(f.Uptime - time.Second) }),
			want{Action: Record, Record: "creating= tunnelID=" + testTunnelID, Event: conditions.EventTunnelFound},
		},
		{
			"while a create may still be applied, the controller does not list",
			combine(withoutTunnel, status(creating), func(f *Facts) { f.Memory.Created = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"while a create may still be applied, the Tunnel reports why it failed",
			combine(withoutTunnel, status(creating), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second), func(f *Facts) { f.Memory.Created = At(f.Uptime) }),
			want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"after a restart a previous process may have sent a create just before",
			combine(withoutTunnel, status(creating), restarted, withUptime(3*time.Second)), want{Action: Wait, Wait: 7 * time.Second},
		},
		{
			"one call timeout after the last attempt the controller lists again before it retries the create",
			combine(withoutTunnel, status(creating), func(f *Facts) { f.Memory.Created = At(f.Uptime - 10*time.Second) }), want{Action: FindByName},
		},
		{
			"a failed search is retried after a backoff",
			combine(withoutTunnel, failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, 4*time.Second)), want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"a failed write of the record is retried after a backoff",
			combine(withoutTunnel, tunnelRead(Present), failing(TrackObject, conditions.ReasonKubernetesUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonKubernetesUnavailable},
		},
		{
			"a recorded tunnel that Cloudflare does not find is searched by name",
			tunnelNotFound, want{Action: FindByName},
		},
		{
			"a recorded tunnel is lost only if a list does not contain it",
			combine(tunnelNotFound, tunnelRead(Absent)),
			want{Action: Record, Record: "configuration.hash= token.rotatedAt= tunnelID=", Event: conditions.EventTunnelLost},
		},
		{
			"another tunnel with the same name replaces a lost tunnel",
			combine(tunnelNotFound, tunnelRead(Present), status(func(s *v1alpha1.TunnelStatus) { s.TunnelID = otherTunnelID })),
			want{Action: Record, Record: "configuration.hash= token.rotatedAt= tunnelID=" + testTunnelID, Event: conditions.EventTunnelFound},
		},
		{
			"a lost tunnel is replaced by a new one",
			combine(withoutTunnel, tunnelRead(Absent)), want{Action: Create, Record: "creating=true"},
		},
	})
}

func TestOnlyOneTunnelObjectClaimsATunnel(t *testing.T) {
	older, younger := Rival{Object: "b", Older: true}, Rival{Object: "b"}
	recorded := func(r Rival) Rival { r.Recorded = true; return r }
	otherController := func(r Rival) Rival { r.OtherController = true; return r }
	testDecide(t, []row{
		{"an existing tunnel is claimed in the record before any request to Cloudflare", notRecorded, want{Action: Claim, Record: "tunnelID=" + testTunnelID}},
		{
			"a claim waits while another Gateway of this process claims the tunnel",
			combine(notRecorded, func(f *Facts) { f.Reserved = true }), want{Action: Wait, Wait: time.Second},
		},
		{
			"the Tunnels are listed again after the record and before any request to Cloudflare",
			combine(adopted, func(f *Facts) { f.Memory.Claimed = false }), want{Action: Claim, Record: "unchanged"},
		},
		{
			"a recorded claim is confirmed again after a restart",
			combine(adopting, restarted), want{Action: Claim, Record: "unchanged"},
		},
		{
			"the confirmation of a claim waits while another Gateway claims the tunnel",
			combine(adopting, restarted, func(f *Facts) { f.Reserved = true }), want{Action: Wait, Wait: time.Second},
		},
		{"a claimed tunnel is read before it is configured", combine(adopted, tunnelRead(PresenceUnknown)), want{Action: ReadTunnel}},
		{"a claimed tunnel that was found is configured", combine(adopted), want{Action: ReadConfiguration}},
		{"the older of two Tunnels that have not recorded the tunnel claims it", combine(notRecorded, rivals(younger)), want{Action: Claim, Record: "tunnelID=" + testTunnelID}},
		{"the younger of two Tunnels that have not recorded the tunnel waits", combine(notRecorded, rivals(older)), want{Action: None, Problem: conditions.ReasonTunnelInUse}},
		{"a Tunnel that has recorded the tunnel wins over an older Tunnel that has not", combine(adopting, rivals(older)), idle()},
		{"a Tunnel that has not recorded the tunnel waits for a younger Tunnel that has", combine(notRecorded, rivals(recorded(younger))), want{Action: None, Problem: conditions.ReasonTunnelInUse}},
		{"the older of two Tunnels that have recorded the tunnel keeps it", combine(adopting, rivals(recorded(younger))), idle()},
		{"the younger of two Tunnels that have recorded the tunnel stops", combine(adopting, rivals(recorded(older))), want{Action: None, Problem: conditions.ReasonTunnelInUse}},
		{
			"an adopted tunnel with the name of another Gateway belongs to that Gateway, even if its Tunnel is younger",
			combine(adopting, rivals(Rival{Object: "b", Recorded: true, HasGatewayName: true})), want{Action: None, Problem: conditions.ReasonTunnelInUse},
		},
		{"one winning rival among several is enough", combine(adopting, rivals(younger, recorded(older))), want{Action: None, Problem: conditions.ReasonTunnelInUse}},
		{
			"a Tunnel without the claim does not configure the tunnel",
			combine(adopting, routesChanged, rivals(recorded(older))), want{Action: None, Problem: conditions.ReasonTunnelInUse},
		},
		{
			"a tunnel that another controller's Tunnel records is never changed, even if that Tunnel is younger",
			combine(adopting, routesChanged, rivals(recorded(otherController(younger)))), want{Action: None, Problem: conditions.ReasonTunnelInUse},
		},
		{
			"a created tunnel that another controller's Tunnel records is not changed",
			combine(routesChanged, rivals(recorded(otherController(younger)))), want{Action: None, Problem: conditions.ReasonTunnelInUse},
		},
		{
			"a Tunnel of another controller that has not recorded the tunnel has no precedence",
			combine(adopting, rivals(otherController(older))), idle(),
		},
		{
			"a tunnel with the Gateway's name belongs to the Gateway even if an older Tunnel has recorded it",
			combine(routesChanged, rivals(recorded(older))), want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"an existing tunnel with the name of another Gateway's tunnel is not adopted",
			combine(adopted, tunnelRead(Present), withRemoteName("prod.team-a.web")), want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonNameReserved},
		},
		{
			"a tunnel that was not adopted is read again later, because it may have been renamed",
			combine(adopted, withRemoteName("prod.team-a.web"), func(f *Facts) { f.Memory.Remote.Tunnel.Read = At(f.Uptime - time.Minute) }), want{Action: ReadTunnel},
		},
		{
			"an existing tunnel with this Gateway's name is adopted",
			combine(adopted, withRemoteName(testTunnelName)), want{Action: ReadConfiguration},
		},
		{
			"an existing tunnel whose name begins with the cluster ID but no dot is adopted",
			combine(adopted, withRemoteName("production.team-a.web")), want{Action: ReadConfiguration},
		},
		{
			"the existing tunnel is read by the ID in the settings",
			combine(adopted, func(f *Facts) { f.Memory.Remote.Tunnel.ID = otherTunnelID }), want{Action: ReadTunnel},
		},
		{
			"a missing existing tunnel is never replaced",
			combine(adopted, tunnelRead(Absent), failing(TrackTunnel, conditions.ReasonTunnelMissing, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonTunnelMissing},
		},
		{
			"a missing existing tunnel is read again",
			combine(adopted, tunnelRead(Absent), failing(TrackTunnel, conditions.ReasonTunnelMissing, 0)), want{Action: ReadTunnel},
		},
		{
			"an adopted tunnel that is gone is read by its ID and not replaced",
			combine(adopting, tunnelNotFound), want{Action: ReadTunnel},
		},
		{
			"an adopted tunnel that served is not read again after a restart",
			combine(adopting, restarted, func(f *Facts) { f.Memory.Claimed = true }),
			want{Action: ReadConfiguration, Priority: provider.PriorityStart},
		},
		{
			"a locally managed tunnel with the Gateway's name is not configured, and read again later",
			combine(withoutTunnel, func(f *Facts) {
				s := Step{Action: FindByName}
				f.Memory = Conclude(f.Memory, s, Result{Uptime: f.Uptime, Tunnel: provider.Tunnel{ID: testTunnelID, Name: testTunnelName, Local: true}})
			}),
			want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonLocallyManaged},
		},
		{
			"a locally managed existing tunnel is neither configured nor connected",
			combine(adopted, func(f *Facts) {
				s := Step{Action: ReadTunnel}
				f.Memory = Conclude(f.Memory, s, Result{Uptime: f.Uptime, Tunnel: provider.Tunnel{ID: testTunnelID, Name: "legacy", Local: true}})
				f.Connectors.Current = false
			}),
			want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonLocallyManaged},
		},
		{
			"a locally managed tunnel is not deleted",
			retiring(tunnelRead(Present), locallyManaged), want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonLocallyManaged},
		},
		{
			"a tunnel that must not be deleted is read again later",
			retiring(locallyManaged, func(f *Facts) { f.Memory.Remote.Tunnel.Read = At(f.Uptime - 30*time.Second) }),
			want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel that was renamed to the name of another Gateway's tunnel is not deleted",
			retiring(tunnelRead(Present), withRemoteName("prod.team-a.web")), want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonNameReserved},
		},
		{
			"a tunnel that was renamed to an unreserved name is deleted",
			retiring(withRemoteName("renamed")), want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted},
		},
		{
			"a retiring Tunnel without the claim deletes nothing",
			retiring(adopting, rivals(recorded(older))), want{Action: DeleteObject},
		},
		{
			"a retiring Tunnel does not delete an adopted tunnel that another Tunnel requests",
			retiring(adopting, rivals(younger)), want{Action: DeleteObject},
		},
		{
			"a retiring Tunnel does not delete a tunnel that another controller's Tunnel records",
			retiring(rivals(recorded(otherController(younger)))), want{Action: DeleteObject},
		},
		{
			"another Gateway's request does not prevent the deletion of a created tunnel",
			retiring(rivals(recorded(older))), want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted},
		},
	})
}

func TestExistingTunnelIsAdopted(t *testing.T) {
	testDecide(t, []row{
		{
			"replacing a configuration that the controller did not write requires takeover",
			combine(adopted, remoteConfiguration(externalConfiguration, 4)), want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonTakeoverRequired},
		},
		{
			"with takeover the configuration is replaced",
			combine(adopted, takeover, remoteConfiguration(externalConfiguration, 4)),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=external", Event: conditions.EventTakenOver},
		},
		{
			"an adopted tunnel without a configuration requires no takeover",
			combine(adopted, remoteConfiguration(provider.Configuration{}, 0)),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty", Event: conditions.EventTunnelAdopted},
		},
		{
			"an adopted tunnel with the desired configuration requires no takeover",
			combine(adopted, remoteConfiguration(wantedConfiguration, 4)),
			want{Action: Record, Record: "configuration.hash=desired", Event: conditions.EventTunnelAdopted},
		},
		{
			"an adopted tunnel that waits for takeover runs no connectors",
			combine(adopted, remoteConfiguration(externalConfiguration, 4), func(f *Facts) { f.Connectors.Current = false }),
			want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonTakeoverRequired},
		},
		{
			"the token of an adopted tunnel that waits for takeover is not rotated",
			combine(adopted, remoteConfiguration(externalConfiguration, 4), rotateOnDemand, connections(0)),
			want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonTakeoverRequired},
		},
		{
			"after the first configuration an external change is reverted without takeover",
			combine(adopting, remoteConfiguration(externalConfiguration, 9)),
			want{Action: Configure, Event: conditions.EventDriftRepaired, Change: 9},
		},
		{
			"an adopted tunnel with deletion policy Delete is deleted",
			retiring(adopting), want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted},
		},
		{"an adopted tunnel with deletion policy Retain is retained", retiring(adopting, withRetain), want{Action: None}},
		{
			"an adopted tunnel that was never configured is not deleted",
			retiring(adopted), want{Action: DeleteObject},
		},
		{
			"an existing tunnel that was never claimed is not deleted",
			retiring(notRecorded, func(f *Facts) {
				f.Memory.MissingSince, f.Memory.ConnectorsStopped, f.Memory.StatusesWithdrawn = At(f.Uptime-time.Minute), At(f.Uptime), true
			}),
			want{Action: DeleteObject},
		},
	})
}

func TestTunnelIsDeletedSafely(t *testing.T) {
	deleteIt := want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted}
	unrecorded := combine(status(func(s *v1alpha1.TunnelStatus) {
		s.TunnelID, s.Configuration, s.Token = "", v1alpha1.ConfigurationRecord{}, v1alpha1.TokenStatus{}
	}), tunnelRead(PresenceUnknown))
	testDecide(t, []row{
		{"the deletion is recorded before the tunnel is deleted", retiring(), deleteIt},
		{
			"a deletion that is already recorded writes no record",
			retiring(status(deleting)), want{Action: Delete, Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted},
		},
		{
			"a tunnel that was not read yet is read before it is deleted",
			retiring(tunnelRead(PresenceUnknown)), want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel is read again before it is deleted if the last read is too old",
			retiring(func(f *Facts) { f.Memory.Remote.Tunnel.Read = At(f.Uptime - time.Minute) }), want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel with an ID other than the recorded ID is never deleted",
			retiring(func(f *Facts) { f.Memory.Remote.Tunnel.ID = otherTunnelID }), want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{"the Tunnel object is deleted when the tunnel is gone", retiring(tunnelRead(Absent), status(deleting)), want{Action: DeleteObject}},
		{
			"a failed deletion of the Tunnel object is retried after a backoff",
			combine(retiring(tunnelRead(Absent), status(deleting)), failing(TrackObject, conditions.ReasonKubernetesUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonKubernetesUnavailable},
		},
		{"connections are listed before the tunnel is deleted", retiring(connections(time.Minute)), want{Action: ListConnections, Priority: provider.PriorityDeletion}},
		{
			"a disconnected connector is removed after the deletion was recorded",
			retiring(connections(0, disconnected("a"), disconnected("b"))),
			want{Action: Disconnect, Connector: "a", Record: "deleting=true", Priority: provider.PriorityDeletion},
		},
		{
			"connectors are removed one at a time",
			retiring(status(deleting), connections(0, disconnected("b"))), want{Action: Disconnect, Connector: "b", Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel with a live connector that this controller does not run is not deleted",
			retiring(connections(0, connectedConnector("a", -time.Hour))), want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonConnectorsConnected},
		},
		{
			"nothing is disconnected while another connector is live",
			retiring(connections(0, disconnected("a"), connectedConnector("b", -time.Hour))), want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonConnectorsConnected},
		},
		{
			"live connectors are listed again later",
			retiring(connections(30*time.Second, connectedConnector("a", -time.Hour))), want{Action: ListConnections, Priority: provider.PriorityDeletion},
		},
		{
			"a live connector may belong to a pod that did not stop in time",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-2*time.Minute) }, connections(0, connectedConnector("a", -time.Hour))),
			want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonConnectorsStopping},
		},
		{
			"if more connectors are connected than pods are left, this controller does not run all of them",
			retiring(func(f *Facts) { f.Connectors.Pods, f.Memory.ConnectorsStopped = 1, At(f.Uptime-2*time.Minute) }, connections(0, connectedConnector("a", -time.Hour), connectedConnector("b", -time.Hour))),
			want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonConnectorsConnected},
		},
		{
			"a tunnel with private network routes is not deleted, and the reason is reported",
			combine(retiring(status(deleting)), failing(TrackTunnel, conditions.ReasonPrivateRoutes, time.Minute)),
			want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonPrivateRoutes},
		},
		{
			"a tunnel is not deleted while the credentials are missing, and the reason is reported",
			combine(retiring(), credentials(CredentialsMissing)), want{Action: None, Problem: conditions.ReasonCredentialsMissing},
		},
		{
			"a tunnel is not deleted with credentials for another account, and the reason is reported",
			combine(retiring(), credentials(CredentialsWrongAccount)), want{Action: None, Problem: conditions.ReasonWrongAccount},
		},
		{
			"a tunnel that was never recorded is searched by name",
			retiring(unrecorded), want{Action: FindByName, Priority: provider.PriorityDeletion},
		},
		{
			"a tunnel that was never recorded is recorded before it is deleted",
			retiring(unrecorded, tunnelRead(Present)), want{Action: Record, Record: "tunnelID=" + testTunnelID},
		},
		{
			"a locally managed tunnel with the Gateway's name is kept when the Tunnel is deleted",
			retiring(unrecorded, tunnelRead(Present), locallyManaged), want{Action: DeleteObject},
		},
		{"a Tunnel object without a tunnel is deleted", retiring(unrecorded, tunnelRead(Absent)), want{Action: DeleteObject}},
		{
			"while a create may still be applied, a retiring Tunnel waits",
			retiring(unrecorded, status(creating), func(f *Facts) { f.Memory.Created = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"a list before the end of the call timeout does not prove that no tunnel exists",
			retiring(unrecorded, status(creating), tunnelRead(Absent), func(f *Facts) { f.Memory.Created = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"the tunnels are listed again if the last list was before the end of the call timeout",
			retiring(unrecorded, status(creating), tunnelRead(Absent), func(f *Facts) {
				f.Memory.Created = At(f.Uptime - 12*time.Second)
				f.Memory.Remote.Tunnel.Read = At(f.Uptime - 11*time.Second)
			}),
			want{Action: FindByName, Priority: provider.PriorityDeletion},
		},
		{
			"after a restart a retiring Tunnel waits for a create of the previous process",
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
			"a tunnel that was created late is recorded before it is deleted",
			retiring(unrecorded, status(creating), tunnelRead(Present)), want{Action: Record, Record: "creating= tunnelID=" + testTunnelID},
		},
		{
			"deleting a Tunnel object whose Gateway exists deletes nothing at Cloudflare",
			func(f *Facts) { f.Object = nil }, want{Action: Claim},
		},
		{
			"deleting a retiring Tunnel object keeps the tunnel at Cloudflare",
			retiring(func(f *Facts) { f.Object = nil }), want{Action: None},
		},
	})
}

func TestPausedGatewayChangesNothing(t *testing.T) {
	testDecide(t, []row{
		{
			"the pause of a Gateway is written to the spec",
			func(f *Facts) { f.Gateway.Paused = true }, want{Action: Claim},
		},
		{
			"the end of a pause is written to the spec",
			func(f *Facts) { f.Object.Spec.Paused = true }, want{Action: Claim},
		},
		{"a paused Gateway changes nothing at Cloudflare", combine(paused, routesChanged), want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonPaused}},
		{
			"a paused Gateway does not revert an external change",
			combine(paused, remoteConfiguration(externalConfiguration, 9)), want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonPaused},
		},
		{"a paused Gateway reads the configuration after a restart", combine(paused, restarted), want{Action: ReadConfiguration, Priority: provider.PriorityStart}},
		{
			"a paused Gateway creates no tunnel",
			combine(withoutTunnel, paused, tunnelRead(Absent)), want{Action: None, Problem: conditions.ReasonPaused},
		},
		{"a paused Gateway replaces no lost tunnel", combine(paused, tunnelNotFound, tunnelRead(Absent), failing(TrackConfiguration, conditions.ReasonFailed, time.Minute)), want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonPaused}},
		{"a paused Gateway gets no Tunnel object", func(f *Facts) { f.Gateway.Paused, f.Object = true, nil }, want{Action: None, Problem: conditions.ReasonPaused}},
		{"pausing clears contested", combine(paused, status(contested)), want{Action: Record, Record: "contested="}},
		{
			"a pause resets the number of external changes",
			combine(remoteConfiguration(externalConfiguration, 9), func(f *Facts) {
				f.Memory.Drift = Drift{Times: []Instant{At(f.Uptime - 2*time.Minute), At(f.Uptime - time.Minute)}, Version: 8}
				g := serving(paused)
				g.Memory = f.Memory
				f.Memory = Observe(g)
			}),
			want{Action: Configure, Event: conditions.EventDriftRepaired, Change: 9},
		},
		{"a paused Gateway rotates no token", combine(paused, rotateOnDemand, connections(0)), want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonPaused}},
		{
			"a paused Gateway still reads the new token of a rotation in progress",
			combine(paused, status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenRotating }), func(f *Facts) {
				f.Memory.Token = TokenCheck{Rotated: At(f.Uptime), Pending: true, NextCheck: At(2 * uptime)}
			}),
			want{Action: ReadToken},
		},
		{
			"a paused Gateway also reads the new token after a restart",
			combine(paused, restarted, status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenRotating })),
			want{Action: ReadToken},
		},
		{
			"a paused Gateway does not disconnect connectors",
			combine(paused, status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenDisconnecting }), connections(0, connectedConnector("a", -72*time.Hour))),
			want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonPaused},
		},
		{
			"a paused Gateway that returns during the deletion waits for the deletion",
			combine(paused, returnedAfterDeleting), want{Action: ReadTunnel},
		},
		{
			"a Gateway that is deleted while paused keeps its connectors until an administrator acts",
			combine(gatewayGone(time.Minute), recordedPaused), want{Action: None, Problem: conditions.ReasonPaused},
		},
		{
			"the Tunnel retires when an administrator clears spec.paused",
			gatewayGone(time.Minute), want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring},
		},
		{
			"the Tunnel retires when an administrator sets the deletion policy to Retain",
			combine(gatewayGone(time.Minute), recordedPaused, withRetain), want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring},
		},
		{
			"a paused Tunnel with deletion policy Retain becomes retained",
			retiring(recordedPaused, withRetain), want{Action: None},
		},
		{
			"a paused Gateway that returns keeps its tunnel",
			combine(paused, otherUID), want{Action: Record, Record: "gatewayUID=uid-2"},
		},
		{
			"pausing a Tunnel stops its deletion",
			retiring(status(deleting), recordedPaused), want{Action: None, Problem: conditions.ReasonPaused},
		},
		{
			"a paused Gateway without credentials reports the pause",
			combine(paused, credentials(CredentialsMissing), routesChanged), want{Action: None, Problem: conditions.ReasonPaused},
		},
	})
}

// recordedPaused sets spec.paused on a Tunnel whose Gateway is gone.
func recordedPaused(f *Facts) { f.Object.Spec.Paused = true }

func TestMissingCredentialsDelayChanges(t *testing.T) {
	testDecide(t, []row{
		{"while the credentials are missing, the tunnel keeps serving", credentials(CredentialsMissing), idle()},
		{
			"while the credentials are missing, changes wait and the reason is reported",
			combine(credentials(CredentialsMissing), routesChanged), want{Action: None, Problem: conditions.ReasonCredentialsMissing},
		},
		{
			"while the credentials are missing, a due read waits without a busy loop",
			combine(credentials(CredentialsMissing), readDue), want{Action: None, Problem: conditions.ReasonCredentialsMissing},
		},
		{
			"while the credentials are missing, connectors are still updated",
			combine(credentials(CredentialsMissing), func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors},
		},
		{
			"while the credentials are missing, no tunnel is searched",
			combine(withoutTunnel, credentials(CredentialsMissing)), want{Action: None, Problem: conditions.ReasonCredentialsMissing},
		},
		{"changes continue when the credentials exist again", routesChanged, want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"}},
		{
			"the controller's token is not used for another account",
			combine(credentials(CredentialsWrongAccount), routesChanged), want{Action: None, Problem: conditions.ReasonWrongAccount},
		},
		{
			"a failed read of the credentials is retried",
			combine(credentials(CredentialsUnknown), routesChanged), want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonKubernetesUnavailable},
		},
		{
			"a token that Cloudflare rejected is retried after a backoff",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonUnauthorized, 32*time.Second)),
			want{Action: Wait, Wait: 32 * time.Second, Problem: conditions.ReasonUnauthorized},
		},
		{
			"new credentials are tried immediately",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonUnauthorized, 32*time.Second), func(f *Facts) { f.Credentials.Version = "2" }),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"credentials that were missing before are tried immediately",
			combine(withoutTunnel, failing(TrackTunnel, conditions.ReasonUnauthorized, 32*time.Second), func(f *Facts) { f.Credentials.Version = "2" }),
			want{Action: FindByName},
		},
	})
}

func TestConfigurationIsAppliedAndRepaired(t *testing.T) {
	external := remoteConfiguration(externalConfiguration, 9)
	seen := func(ages ...time.Duration) change {
		return func(f *Facts) {
			f.Memory.Drift.Version = 8
			for _, d := range ages {
				f.Memory.Drift.Times = append(f.Memory.Drift.Times, At(f.Uptime-d))
			}
		}
	}
	late := func(s *v1alpha1.TunnelStatus) { s.Configuration.Late = "late-hash" }
	testDecide(t, []row{
		{
			"a configuration is recorded before it is written",
			routesChanged, want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"a write that is already recorded writes no record",
			combine(routesChanged, status(func(s *v1alpha1.TunnelStatus) {
				s.Configuration = v1alpha1.ConfigurationRecord{Hash: changedConfiguration.Hash(), Previous: wantedConfiguration.Hash()}
			})),
			want{Action: Configure},
		},
		{
			"a write that may still be applied is recorded as late",
			combine(routesChanged, func(f *Facts) {
				f.Memory.LateWrites = LateWrites{Hashes: []string{"late-hash"}, Settled: At(f.Uptime + time.Second)}
			}),
			want{Action: Configure, Record: "configuration.hash=changed configuration.late=late-hash configuration.previous=desired"},
		},
		{
			"the configuration of a new tunnel is written without a read",
			combine(status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }), remoteConfiguration(provider.Configuration{}, 0)),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty"},
		},
		{
			"the configuration of a tunnel that was found by name is replaced",
			combine(status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }), external),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=external"},
		},
		{
			"after a restart the configuration is read, not written",
			restarted, want{Action: ReadConfiguration, Priority: provider.PriorityStart},
		},
		{
			"after a restart a configuration that must change is read with the priority of a change",
			combine(routesChanged, restarted), want{Action: ReadConfiguration},
		},
		{
			"a periodic read of the configuration has the lowest priority",
			readDue, want{Action: ReadConfiguration, Priority: provider.PriorityDrift},
		},
		{
			"a configuration is not written while its record cannot be written",
			combine(routesChanged, failing(TrackObject, conditions.ReasonKubernetesUnavailable, 4*time.Second)), want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonKubernetesUnavailable},
		},
		{
			"a failed read is retried after a backoff, without a busy loop",
			combine(readDue, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"a read that waits for the API request budget does not delay a change",
			combine(readDue, routesChanged, func(f *Facts) {
				f.Memory.Backoffs[TrackConfiguration] = Backoff{Until: At(f.Uptime + time.Minute), Slot: Slot{Assigned: true, Priority: provider.PriorityDrift}}
			}),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"a configuration that is already in effect is recorded, not written",
			status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{Hash: "older"} }),
			want{Action: Record, Record: "configuration.hash=desired"},
		},
		{
			"a configuration that the controller wrote before is not an external change",
			combine(routesChanged, status(func(s *v1alpha1.TunnelStatus) {
				s.Configuration = v1alpha1.ConfigurationRecord{Hash: externalConfiguration.Hash(), Previous: wantedConfiguration.Hash()}
			})),
			want{Action: Configure, Record: "configuration.hash=changed"},
		},
		{
			"a late write of this controller is not an external change",
			combine(external, func(f *Facts) {
				f.Memory.LateWrites = LateWrites{Hashes: []string{externalConfiguration.Hash()}, Settled: At(f.Uptime - time.Second)}
			}),
			want{Action: Configure, Record: "configuration.previous=external"},
		},
		{
			"after a restart the writes of the previous process may still be applied",
			combine(restarted, status(late), func(f *Facts) { f.Desired.Hash = "new" }), want{Action: ReadConfiguration},
		},
		{
			"the rate of writes is limited",
			combine(routesChanged, func(f *Facts) {
				f.Memory.Push = Pace{Last: At(f.Uptime - 100*time.Millisecond), Gap: 300 * time.Millisecond}
			}),
			want{Action: Wait, Wait: 200 * time.Millisecond},
		},
		{
			"a change waits for a token when the bucket is empty",
			combine(routesChanged, limited, spent(3, 5*time.Second)),
			want{Action: Wait, Wait: 15 * time.Second, Problem: conditions.ReasonConfigurationThrottled},
		},
		{
			"a change does not wait while the bucket has a token",
			combine(routesChanged, limited, spent(2, 5*time.Second)),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"a change waits for the pace of quick changes if it ends after the next token",
			combine(routesChanged, limited, spent(3, 19900*time.Millisecond), func(f *Facts) {
				f.Memory.Push = Pace{Last: At(f.Uptime - 100*time.Millisecond), Gap: 300 * time.Millisecond}
			}),
			want{Action: Wait, Wait: 200 * time.Millisecond},
		},
		{
			"the revert of an external change waits for a token",
			combine(external, limited, spent(3, 5*time.Second)),
			want{Action: Wait, Wait: 15 * time.Second, Problem: conditions.ReasonConfigurationThrottled},
		},
		{
			"a repeated write waits for a token, and the problem of the failure remains",
			combine(routesChanged, limited, spent(3, 5*time.Second), failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 15 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"a backoff that ends after the next token is not shortened",
			combine(routesChanged, limited, spent(3, 19*time.Second), failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"the first configuration does not wait for a token",
			combine(remoteConfiguration(provider.Configuration{}, 0), limited, spent(3, 5*time.Second), status(func(s *v1alpha1.TunnelStatus) {
				s.Configuration = v1alpha1.ConfigurationRecord{}
			})),
			want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty"},
		},
		{
			"a write that waits for a token does not delay the read of the configuration",
			combine(routesChanged, limited, spent(3, 5*time.Second), readDue),
			want{Action: ReadConfiguration, Priority: provider.PriorityDrift},
		},
		{
			"a write that waits for a token does not delay the connectors",
			combine(routesChanged, limited, spent(3, 5*time.Second), func(f *Facts) { f.Connectors.Current = false }),
			want{Action: RunConnectors},
		},
		{
			"a write that waits for a token does not delay a token rotation",
			combine(routesChanged, limited, spent(3, 5*time.Second), rotateOnDemand),
			want{Action: ListConnections, Priority: provider.PriorityDrift},
		},
		{
			"a failed write is retried after a backoff",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"a rejected configuration is not sent again before its backoff",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonConfigurationRejected, 32*time.Second), func(f *Facts) {
				f.Memory.Backoffs[TrackConfiguration].Hash = changedConfiguration.Hash()
			}),
			want{Action: Wait, Wait: 32 * time.Second, Problem: conditions.ReasonConfigurationRejected},
		},
		{
			"another configuration is sent immediately after a rejection",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonConfigurationRejected, 32*time.Second), func(f *Facts) {
				f.Memory.Backoffs[TrackConfiguration].Hash = "rejected"
			}),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"an external change is reverted, with an event, and the configuration is read again soon",
			external, want{Action: Configure, Event: conditions.EventDriftRepaired, Change: 9, Interval: time.Minute},
		},
		{
			"an external change is reported once even if its repair fails repeatedly",
			combine(external, seen(time.Minute), func(f *Facts) { f.Memory.Drift.Version = 9 }), want{Action: Configure, Change: 9},
		},
		{
			"the second external change is also reverted",
			combine(external, seen(time.Minute)), want{Action: Configure, Event: conditions.EventDriftRepaired, Change: 9},
		},
		{
			"the third external change within ten minutes is contested: the controller stops writing",
			combine(external, seen(9*time.Minute, time.Minute)), want{Action: Record, Record: "contested=true", Event: conditions.EventDriftContested, Change: 9},
		},
		{
			"external changes older than ten minutes do not count",
			combine(external, seen(10*time.Minute, time.Minute)), want{Action: Configure, Event: conditions.EventDriftRepaired, Change: 9},
		},
		{
			"a contested configuration is not written",
			combine(external, status(contested)), want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonContested},
		},
		{
			"a contested configuration is not written when routes change",
			combine(routesChanged, status(contested)), want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonContested},
		},
		{
			"a periodic read of a contested configuration is retried without a busy loop",
			combine(external, status(contested), readDue, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonContested},
		},
		{
			"a contested Tunnel with the desired configuration writes nothing",
			status(contested), idle(),
		},
		{
			"a configuration is read at the drift interval",
			readDue, want{Action: ReadConfiguration, Priority: provider.PriorityDrift, Interval: serving().driftInterval()},
		},
		{
			"after an external change the configuration is read every minute",
			combine(readDue, seen(time.Minute)), want{Action: ReadConfiguration, Priority: provider.PriorityDrift, Interval: time.Minute},
		},
		{
			"an unknown configuration is read even if its tunnel was just configured",
			combine(func(f *Facts) { f.Memory.Remote.Configuration.Known = false }), want{Action: ReadConfiguration, Priority: provider.PriorityStart},
		},
	})
}

func TestConnectorsAndTokenAreApplied(t *testing.T) {
	outdated := func(f *Facts) { f.Connectors.Current = false }
	testDecide(t, []row{
		{"connectors that differ from the desired state are applied", outdated, want{Action: RunConnectors}},
		{
			"connectors do not start before the tunnel is configured",
			combine(outdated, status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }), remoteConfiguration(provider.Configuration{}, 0),
				func(f *Facts) {
					f.Memory.Backoffs[TrackConfiguration] = Backoff{Until: At(f.Uptime + 4*time.Second), Problem: problem(conditions.ReasonCloudflareUnavailable, "It failed.")}
				}),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{"connectors wait for the token", combine(outdated, func(f *Facts) { f.Token.State = TokenMissing }), want{Action: ReadToken}},
		{
			"connectors do not start while the token could not be read",
			combine(outdated, func(f *Facts) { f.Token.State = TokenMissing }, failing(TrackToken, conditions.ReasonTokenFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonTokenFailed},
		},
		{
			"connectors are not applied while the settings are not valid",
			combine(outdated, invalidSettings), want{Action: None},
		},
		{
			"connectors are applied even if the configuration cannot be written",
			combine(outdated, routesChanged, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)), want{Action: RunConnectors},
		},
		{
			"a failed apply of the connectors is retried after a backoff",
			combine(outdated, failing(TrackConnectors, conditions.ReasonConnectorsFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonConnectorsFailed},
		},
		{
			"a GRPCRoute makes the connectors use HTTP/2",
			func(f *Facts) { f.Desired.NeedsHTTP2 = true }, want{Action: Record, Record: "http2=true", Event: conditions.EventConnectorProtocol},
		},
		{
			"the connectors keep HTTP/2 when the GRPCRoute is gone",
			status(func(s *v1alpha1.TunnelStatus) { s.HTTP2 = true }), idle(),
		},
		{
			"a Secret that belongs to another object is not overwritten",
			func(f *Facts) { f.Token.State = TokenNameConflict }, want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonObjectTaken},
		},
		{
			"a failed read of the token Secret is retried",
			func(f *Facts) { f.Token.State = TokenUnknown }, want{Action: Wait, Wait: time.Second, Problem: conditions.ReasonTokenFailed},
		},
		{
			"the token is compared with the token at Cloudflare once a day, with the lowest priority",
			func(f *Facts) { f.Memory.Token.NextCheck = At(f.Uptime) }, want{Action: ReadToken, Priority: provider.PriorityDrift},
		},
		{
			"a suspect token is read immediately",
			func(f *Facts) { f.Memory.Token.Suspect = true }, want{Action: ReadToken, Priority: provider.PriorityDrift},
		},
		{
			"a failed read of the token is retried after a backoff",
			combine(func(f *Facts) { f.Token.State = TokenMissing }, failing(TrackToken, conditions.ReasonTokenFailed, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonTokenFailed},
		},
	})
}

func TestDestructiveStepsCannotBeUndone(t *testing.T) {
	destructive := map[Action]bool{StopConnectors: true, Disconnect: true, Delete: true, DeleteObject: true, WithdrawStatuses: true}
	for _, a := range []Action{
		None, Wait, Record, Claim, ReadTunnel, FindByName, Create, ReadConfiguration, Configure, ReadToken, RotateToken,
		RunConnectors, StopConnectors, WithdrawStatuses, ListConnections, Disconnect, Delete, DeleteObject,
	} {
		if got := (Step{Action: a}).Destructive(); got != destructive[a] {
			t.Errorf("%s: Destructive() = %t, want %t", a, got, destructive[a])
		}
	}
}

// rotateOnDemand requests a token rotation.
func rotateOnDemand(f *Facts) {
	f.Object.Annotations = map[string]string{v1alpha1.RotateTokenAnnotation: "september"}
}

// rotateDaily schedules a rotation every 24 h.
func rotateDaily(f *Facts) { f.Desired.TokenRotation = 24 * time.Hour }

func TestTokenIsRotated(t *testing.T) {
	phase := func(p v1alpha1.TokenPhase) change {
		return status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = p })
	}
	rotatedAgo := func(d time.Duration) change {
		return status(func(s *v1alpha1.TunnelStatus) { s.Token.RotatedAt = timeAt(-d) })
	}
	rotated := func(age time.Duration) change {
		return func(f *Facts) { f.Memory.Token.Rotated = At(f.Uptime - age) }
	}
	blocked := want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonRotationBlocked}
	testDecide(t, []row{
		{
			"a token is recorded as rotated now when it is found for the first time",
			status(func(s *v1alpha1.TunnelStatus) { s.Token.RotatedAt = nil }), want{Action: Record, Record: "token.rotatedAt=2026-09-01T12:00:00Z"},
		},
		{
			"a new value of the annotation is recorded and rotates the token",
			combine(rotateOnDemand, connections(0)), want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"},
		},
		{
			"a value of the annotation that was already processed rotates nothing",
			combine(rotateOnDemand, status(func(s *v1alpha1.TunnelStatus) { s.Token.Requested = "september" })), idle(),
		},
		{
			"connections are listed before a rotation",
			rotateOnDemand, want{Action: ListConnections, Priority: provider.PriorityDrift},
		},
		{
			"a failed list of connections is retried after a backoff",
			combine(rotateOnDemand, failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, 4*time.Second)), want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"a schedule rotates the token when it is due",
			combine(rotateDaily, connections(0)), want{Action: RotateToken, Record: "token.phase=Rotating"},
		},
		{
			"a schedule rotates nothing before it is due",
			combine(rotateDaily, rotatedAgo(24*time.Hour-time.Minute), noJitter), want{Action: Wait, Wait: time.Minute},
		},
		{
			"a schedule waits while the token of another Tunnel is rotated",
			combine(rotateDaily, connections(0), func(f *Facts) { f.OtherRotating = true }), want{Action: Wait, Wait: time.Minute},
		},
		{
			"a rotation on demand does not wait for the rotation of another Tunnel",
			combine(rotateOnDemand, connections(0), func(f *Facts) { f.OtherRotating = true }),
			want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"},
		},
		{
			"connector.enabled: false blocks a rotation on demand, and the reason is reported",
			combine(rotateOnDemand, func(f *Facts) { f.Desired.RunConnectors = false }), blocked,
		},
		{
			"connector.enabled: false blocks a scheduled rotation, and the reason is reported",
			combine(rotateDaily, func(f *Facts) { f.Desired.RunConnectors = false }), blocked,
		},
		{
			"invalid settings block a rotation",
			combine(rotateOnDemand, invalidSettings), blocked,
		},
		{
			"connectors that this controller does not run block a rotation",
			combine(rotateOnDemand, connections(0, connectedConnector("a", -time.Hour), connectedConnector("b", -time.Hour), connectedConnector("c", -time.Hour)), surplusConnectors(30*time.Second)), blocked,
		},
		{
			"more connectors than pods block a rotation only after the grace period",
			combine(rotateOnDemand, connections(0, connectedConnector("a", -time.Hour), connectedConnector("b", -time.Hour), connectedConnector("c", -time.Hour)), surplusConnectors(20*time.Second)),
			want{Action: Wait, Wait: 10 * time.Second},
		},
		{
			"a live connector without pods blocks a rotation",
			combine(rotateOnDemand, connections(0, connectedConnector("a", -time.Hour)), func(f *Facts) { f.Connectors.Pods = 0 }), blocked,
		},
		{
			"disconnected connectors do not block a rotation",
			combine(rotateOnDemand, connections(0, connectedConnector("a", -time.Hour), connectedConnector("b", -time.Hour), disconnected("c"))),
			want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"},
		},
		{
			"a rotation that began before a crash sets a new secret again",
			combine(phase(v1alpha1.TokenRotating), restarted, withUptime(time.Minute), remoteConfiguration(wantedConfiguration, 7)), want{Action: RotateToken},
		},
		{
			"a rotation without a response is retried one call timeout later, because a late PATCH would replace the token again",
			combine(phase(v1alpha1.TokenRotating), func(f *Facts) { f.Memory.Token.Unanswered = At(f.Uptime - 4*time.Second) }),
			want{Action: Wait, Wait: 6 * time.Second},
		},
		{
			"after a restart a previous process may have sent a rotation just before",
			combine(phase(v1alpha1.TokenRotating), restarted, withUptime(3*time.Second), remoteConfiguration(wantedConfiguration, 7)), want{Action: Wait, Wait: 7 * time.Second},
		},
		{
			"a failed rotation is retried after a backoff",
			combine(phase(v1alpha1.TokenRotating), failing(TrackToken, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"after the PATCH the new token is written to the Secret",
			combine(phase(v1alpha1.TokenRotating), rotated(time.Second), func(f *Facts) { f.Memory.Token.Pending = true }), want{Action: ReadToken},
		},
		{
			"when the token is in the Secret, the time of the response is recorded and the pods roll",
			combine(phase(v1alpha1.TokenRotating), rotated(3*time.Second)), want{Action: Record, Record: "token.phase=Rolling token.rotatedAt=2026-09-01T11:59:57Z"},
		},
		{
			"the time of the response is rounded up, so that no connector keeps the old token",
			combine(phase(v1alpha1.TokenRotating), rotated(2500*time.Millisecond)), want{Action: Record, Record: "token.phase=Rolling token.rotatedAt=2026-09-01T11:59:58Z"},
		},
		{
			"the rollout applies the connectors with the new token",
			combine(phase(v1alpha1.TokenRolling), func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors},
		},
		{
			"no connector is disconnected before the end of the rollout",
			combine(phase(v1alpha1.TokenRolling), func(f *Facts) { f.Connectors.RolledOut = false }), want{Action: Wait, Wait: 30 * time.Second},
		},
		{
			"connections are listed after the rollout",
			phase(v1alpha1.TokenRolling), want{Action: ListConnections},
		},
		{
			"the end of the rollout is recorded",
			combine(phase(v1alpha1.TokenRolling), connections(0)), want{Action: Record, Record: "token.phase=Disconnecting"},
		},
		{
			"connectors that connected before the PATCH are disconnected, including live connectors",
			combine(phase(v1alpha1.TokenDisconnecting), rotatedAgo(time.Minute), connections(0, connectedConnector("new", -30*time.Second), connectedConnector("old", -2*time.Minute))),
			want{Action: Disconnect, Connector: "old"},
		},
		{
			"a connector with an unknown time of connection is disconnected",
			combine(phase(v1alpha1.TokenDisconnecting), connections(0, provider.Connector{ID: "a", Connected: true})), want{Action: Disconnect, Connector: "a"},
		},
		{
			"connections are listed again before connectors are disconnected",
			combine(phase(v1alpha1.TokenDisconnecting), connections(time.Minute)), want{Action: ListConnections},
		},
		{
			"a failed disconnect is retried after a backoff",
			combine(phase(v1alpha1.TokenDisconnecting), rotatedAgo(time.Minute), connections(0, connectedConnector("old", -2*time.Minute)), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"the rotation ends when no connector has the old token",
			combine(phase(v1alpha1.TokenDisconnecting), rotatedAgo(time.Minute), connections(0, connectedConnector("new", -30*time.Second))),
			want{Action: Record, Record: "token.phase=", Event: conditions.EventTokenRotated},
		},
		{
			"a rotation continues after a restart at the recorded phase",
			combine(phase(v1alpha1.TokenDisconnecting), restarted, remoteConfiguration(wantedConfiguration, 7)), want{Action: ListConnections},
		},
		{
			"the token of a tunnel that the controller has not configured is not rotated",
			combine(rotateOnDemand, connections(0), status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }),
				remoteConfiguration(provider.Configuration{}, 0), failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			want{Action: Wait, Wait: 4 * time.Second, Problem: conditions.ReasonCloudflareUnavailable},
		},
		{
			"while the state of the Gateway is unknown, the new token of a rotation is still read",
			combine(phase(v1alpha1.TokenRotating), gatewayIs(GatewayUnknown), rotated(time.Second), func(f *Facts) { f.Memory.Token.Pending = true }),
			want{Action: ReadToken},
		},
	})
}

// surplusConnectors has more connectors than pods since d ago.
func surplusConnectors(d time.Duration) change {
	return func(f *Facts) { f.Memory.SurplusSince = At(f.Uptime - d) }
}

// noJitter moves the last rotation so that the Tunnel's jitter has no effect on the
// next one.
func noJitter(f *Facts) {
	jitter := f.jitter(f.Desired.TokenRotation / 10)
	f.Object.Status.Token.RotatedAt.Time = f.Object.Status.Token.RotatedAt.Add(-jitter)
}
