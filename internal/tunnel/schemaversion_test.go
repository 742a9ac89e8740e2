package tunnel

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// newerVersion is a Tunnel that a newer controller version serves.
func newerVersion(f *Facts) { f.Object.Status.SchemaVersion = SchemaVersion + 1 }

// olderVersion is a Tunnel that only an older controller version has served.
func olderVersion(f *Facts) { f.Object.Status.SchemaVersion = SchemaVersion - 1 }

// withOtherSpec changes the settings so that the Tunnel's spec changes.
func withOtherSpec(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }

func TestOlderVersionChangesNothing(t *testing.T) {
	rows := []row{}
	for name, c := range map[string]change{
		"nothing changes":                             combine(),
		"routes change":                               routesChanged,
		"the spec changes":                            withOtherSpec,
		"another Gateway has the name":                otherUID,
		"the settings are not valid":                  invalidSettings,
		"the data plane is to change":                 selects(v1alpha1.DataPlaneEnvoy),
		"the data plane changes":                      changing(v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneAddingEnvoy),
		"it has a data plane of the newer version":    status(func(s *v1alpha1.TunnelStatus) { s.DataPlane = "Quantum" }),
		"the tunnel is not recorded":                  status(func(s *v1alpha1.TunnelStatus) { s.TunnelID = "" }),
		"the tunnel is being created":                 status(func(s *v1alpha1.TunnelStatus) { s.TunnelID, s.Creating = "", true }),
		"the configuration was changed externally":    remoteConfiguration(externalConfiguration, 9),
		"the connectors are outdated":                 func(f *Facts) { f.Connectors.Current = false },
		"the token Secret is missing":                 func(f *Facts) { f.Token.State = TokenMissing },
		"a rotation of the token is in progress":      status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenRolling }),
		"the token was replaced, but not written":     status(func(s *v1alpha1.TunnelStatus) { s.Token.Phase = v1alpha1.TokenRotating }),
		"the Gateway is paused":                       paused,
		"a contested Tunnel is paused":                combine(status(contested), paused),
		"a reconcile is requested":                    refreshTo("a"),
		"an existing tunnel is adopted":               adopting,
		"another Tunnel has claimed the tunnel":       combine(adopting, rivals(Rival{Object: "team-a.web", Recorded: true, Older: true})),
		"the state of the Gateway is unknown":         gatewayIs(GatewayUnknown),
		"the Gateway has been gone for a day":         gatewayGone(24 * time.Hour),
		"the tunnel is to be deleted":                 retiring(),
		"the tunnel is being deleted":                 retiring(status(deleting)),
		"the tunnel is retained":                      retiring(withRetain),
		"the Gateway returns during the deletion":     returnedAfterDeleting,
		"the Tunnel object can not be written at all": failing(TrackObject, conditions.ReasonKubernetesUnavailable, time.Second),
	} {
		rows = append(rows, row{"when " + name, combine(c, newerVersion), want{Action: None, Problem: conditions.ReasonNewerVersion}})
	}
	testDecide(t, rows)
}

func TestNewerVersionIsRecordedFirst(t *testing.T) {
	recorded := want{Action: Record, Record: "schemaVersion=3"}
	testDecide(t, []row{
		{"nothing else has to change", olderVersion, recorded},
		{
			"with the record that precedes a write of the routes", combine(olderVersion, routesChanged),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired schemaVersion=3"},
		},
		{"before the spec is written", combine(olderVersion, withOtherSpec), recorded},
		{"before connectors are written", combine(olderVersion, func(f *Facts) { f.Connectors.Current = false }), recorded},
		{"while the Gateway is paused, because Envoy routes change", combine(olderVersion, paused), recorded},
		{"while the state of the Gateway is unknown", combine(olderVersion, gatewayIs(GatewayUnknown)), recorded},
		{"before the tunnel of a Gateway that is gone is read", combine(olderVersion, retiring(func(f *Facts) { f.Memory.Remote = Remote{} })), recorded},
		{"together with another record", combine(olderVersion, otherUID), want{Action: Record, Record: "gatewayUID=uid-2 schemaVersion=3"}},
		{
			"not in a Tunnel of another cluster",
			combine(olderVersion, func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }), want{Action: None, Problem: conditions.ReasonOtherCluster},
		},
	})
}
