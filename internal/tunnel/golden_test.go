package tunnel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Each row in the golden tables starts with a healthy Tunnel that serves its Gateway,
// and applies changes.
const (
	uptime = time.Hour
	// untilNextRead is how long a healthy Tunnel waits for its next step.
	untilNextRead = 5 * time.Minute

	testTunnelID   = "95a940ff-8450-4ced-9450-bcb55e97e7d5"
	otherTunnelID  = "0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"
	testTunnelName = "prod.infra.shared"
	testGatewayUID = "uid-1"
	accountID      = "account-1"
)

// wallClock is the rows' wall clock time.
var wallClock = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// change changes a row's facts.
type change func(*Facts)

// serving returns a healthy Tunnel's facts with the changes applied.
func serving(changes ...change) Facts {
	desired := configurationFor("app.example.com")
	spec := v1alpha1.TunnelSpec{
		Gateway:        v1alpha1.GatewayReference{Namespace: "infra", Name: "shared"},
		ControllerName: "tunnelgateway.dev/controller", ClusterUID: "cluster-1", AccountID: accountID, Name: testTunnelName,
		DeletionPolicy: v1alpha1.DeletionPolicyDelete,
	}
	f := Facts{
		Uptime: uptime, Clock: wallClock,
		Options: Options{
			ControllerName: "tunnelgateway.dev/controller", ClusterUID: "cluster-1", ClusterID: "prod",
			RetirementDelay: 30 * time.Second, DriftInterval: 10 * time.Minute,
		},
		Name: types.NamespacedName{Namespace: "infra", Name: "shared"},
		Object: &v1alpha1.Tunnel{
			ObjectMeta: metav1.ObjectMeta{Name: "infra.shared", Generation: 3},
			Spec:       spec,
			Status: v1alpha1.TunnelStatus{
				SchemaVersion: SchemaVersion, TunnelID: testTunnelID, GatewayUID: testGatewayUID, DataPlane: v1alpha1.DataPlaneIngressRules, Phase: v1alpha1.TunnelServing,
				Configuration: v1alpha1.ConfigurationRecord{Hash: desired.Hash()},
				Token:         v1alpha1.TokenStatus{RotatedAt: timeAt(-48 * time.Hour)},
			},
		},
		Gateway: Gateway{State: GatewayExists, UID: testGatewayUID},
		Desired: &Desired{
			Spec: *spec.DeepCopy(), DataPlane: v1alpha1.DataPlaneIngressRules, Configuration: &desired, ConfigurationDataPlane: v1alpha1.DataPlaneIngressRules,
			Hash: desired.Hash(), Hostnames: 1, RunConnectors: true,
		},
		Credentials: Credentials{State: CredentialsUsable, Version: "1"},
		Token:       TokenSecret{State: TokenPresent, Version: "1"},
		Connectors: Connectors{
			Current: true, Exist: true, Pods: 2, RolledOut: true, Desired: 2, Ready: 2, GracePeriod: 30 * time.Second,
		},
		Memory: Memory{
			Remote: Remote{
				Tunnel: RemoteTunnel{Presence: Present, ID: testTunnelID, Name: testTunnelName, Read: At(time.Minute)},
				Configuration: RemoteConfiguration{
					Known: true, Configuration: desired, Hash: desired.Hash(), Version: 7, NextRead: uptime + untilNextRead, Settled: true, Confirmed: true,
				},
			},
			Claimed: true, CredentialsVersion: "1", InEffect: desired.Hash(), Token: TokenCheck{NextCheck: At(2 * uptime)},
		},
	}
	for _, c := range changes {
		c(&f)
	}
	return f
}

func timeAt(d time.Duration) *metav1.Time {
	t := metav1.NewTime(wallClock.Add(d))
	return &t
}

func configurationFor(hostnames ...string) provider.Configuration {
	c := provider.Configuration{}
	for _, h := range hostnames {
		c.Ingress = append(c.Ingress, provider.IngressRule{Hostname: h, Service: "http://app.shop.svc:80"})
	}
	c.Ingress = append(c.Ingress, provider.IngressRule{Service: "http_status:404"})
	return c
}

// The configurations in the rows. wantedConfiguration is the desired configuration, and
// changedConfiguration the desired one after the routes changed. externalConfiguration
// comes from another writer. otherConfiguration is desired for the data plane that is
// not in effect.
var (
	wantedConfiguration   = configurationFor("app.example.com")
	changedConfiguration  = configurationFor("app.example.com", "api.example.com")
	externalConfiguration = configurationFor("elsewhere.example.com")
	otherConfiguration    = configurationFor("app.example.com", "other.example.com")
)

func combine(changes ...change) change {
	return func(f *Facts) {
		for _, c := range changes {
			c(f)
		}
	}
}

// Changes to the Gateway and the desired state.

func gatewayIs(state GatewayState) change {
	return func(f *Facts) {
		f.Gateway = Gateway{State: state}
		f.Desired = nil
	}
}

// gatewayGone is a Gateway that has been gone since d ago.
func gatewayGone(d time.Duration) change {
	return combine(gatewayIs(GatewayGone), func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - d) })
}

// retiring is a Tunnel whose connectors have stopped after its Gateway was
// deleted.
func retiring(changes ...change) change {
	return combine(gatewayGone(2*time.Minute), func(f *Facts) {
		f.Memory.StatusesWithdrawn, f.Memory.ConnectorsStopped = true, At(f.Uptime-time.Minute)
		f.Connectors = Connectors{GracePeriod: 30 * time.Second}
		f.Memory.Remote.Connections = RemoteConnections{Read: At(f.Uptime)}
		f.Memory.Remote.Tunnel.Read = At(f.Uptime)
	}, combine(changes...))
}

// returnedAfterDeleting is a Gateway that exists again after the deletion was recorded.
func returnedAfterDeleting(f *Facts) {
	f.Object.Status.Deleting = true
	f.Connectors = Connectors{GracePeriod: 30 * time.Second}
	f.Memory.Remote = Remote{}
}

func paused(f *Facts) {
	f.Gateway.Paused = true
	f.Object.Spec.Paused = true
}

func otherUID(f *Facts) { f.Gateway.UID = "uid-2" }

func invalidSettings(f *Facts) { f.Desired = nil }

func otherAccount(f *Facts) { f.Desired.Spec.AccountID = "account-2" }

func withRetain(f *Facts) {
	f.Object.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
	if f.Desired != nil {
		f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
	}
}

// routesChanged changes the desired configuration.
func routesChanged(f *Facts) {
	c := changedConfiguration
	f.Desired.Configuration, f.Desired.Hash, f.Desired.Hostnames = &c, c.Hash(), 2
}

// notRecordedDataPlane is a Tunnel that records no data plane.
func notRecordedDataPlane(f *Facts) { f.Object.Status.DataPlane = "" }

// wantsEnvoy changes the settings to Envoy.
func wantsEnvoy(f *Facts) { f.Desired.DataPlane = v1alpha1.DataPlaneEnvoy }

// withEnvoy is a Tunnel whose Gateway Envoy serves.
func withEnvoy(f *Facts) {
	wantsEnvoy(f)
	f.Object.Status.DataPlane, f.Desired.ConfigurationDataPlane = v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneEnvoy
}

// selects changes the settings to a data plane. The desired configurations for both are
// built.
func selects(plane v1alpha1.DataPlane) change {
	return func(f *Facts) {
		c := otherConfiguration
		f.Desired.DataPlane, f.Desired.Other = plane, &OtherDataPlane{Configuration: &c, Hash: c.Hash()}
	}
}

// changing is a Tunnel whose data plane changes since a minute ago.
func changing(to v1alpha1.DataPlane, phase v1alpha1.DataPlaneChangePhase) change {
	return combine(selects(to), func(f *Facts) {
		f.Object.Status.DataPlaneChange = &v1alpha1.DataPlaneChange{To: to, Phase: phase, StartedAt: *timeAt(-time.Minute)}
	})
}

// everyPodHasEnvoy is a Tunnel whose connectors all have Envoy and are connected.
func everyPodHasEnvoy(f *Facts) {
	f.Connectors.WithEnvoy, f.Connectors.WithoutEnvoy = f.Connectors.Pods, 0
	f.Envoys = Envoys{Connected: f.Connectors.Pods, Acknowledged: true}
	connections(time.Second, connectedConnector("a", -time.Minute), connectedConnector("b", -time.Minute))(f)
}

// limited permits three writes, and one more every 20 seconds.
func limited(f *Facts) { f.Desired.Updates = UpdateLimit{Burst: 3, Interval: 20 * time.Second} }

// spent is a bucket from which tokens were spent. The next token accrues since d ago.
func spent(tokens int, d time.Duration) change {
	return func(f *Facts) { f.Memory.Updates = Bucket{Spent: tokens, Since: At(f.Uptime - d)} }
}

// Changes to the process and the record.

func restarted(f *Facts) {
	f.Uptime, f.Memory = time.Second, Memory{CredentialsVersion: f.Credentials.Version}
}

func withUptime(d time.Duration) change { return func(f *Facts) { f.Uptime = d } }

// withoutTunnel is a Tunnel that was just claimed and has no tunnel yet.
func withoutTunnel(f *Facts) {
	f.Object.Status = v1alpha1.TunnelStatus{SchemaVersion: SchemaVersion, GatewayUID: testGatewayUID, DataPlane: v1alpha1.DataPlaneIngressRules}
	f.Memory = Memory{CredentialsVersion: f.Credentials.Version}
	f.Token = TokenSecret{State: TokenMissing}
	f.Connectors = Connectors{GracePeriod: 30 * time.Second}
}

func status(change func(*v1alpha1.TunnelStatus)) change {
	return func(f *Facts) { change(&f.Object.Status) }
}

func creating(s *v1alpha1.TunnelStatus) { s.Creating = true }

func deleting(s *v1alpha1.TunnelStatus) { s.Deleting = true }

func contested(s *v1alpha1.TunnelStatus) { s.Contested = true }

// adopting is a Tunnel that serves with an adopted tunnel.
func adopting(f *Facts) {
	f.Object.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: testTunnelID}
	f.Memory.Remote.Tunnel.Name = "legacy"
	if f.Desired != nil {
		f.Desired.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: testTunnelID}
	}
}

// adopted is an adopted tunnel that was found but not configured yet.
func adopted(f *Facts) {
	adopting(f)
	f.Object.Status.Configuration = v1alpha1.ConfigurationRecord{}
	f.Memory.InEffect = ""
	f.Memory.Remote.Configuration = RemoteConfiguration{}
}

// notRecorded is a Tunnel that requests an existing tunnel and has not claimed it.
func notRecorded(f *Facts) {
	withoutTunnel(f)
	adopting(f)
	f.Memory.Remote.Tunnel = RemoteTunnel{}
}

func takeover(f *Facts) {
	f.Object.Spec.Existing.Takeover = true
	f.Desired.Spec.Existing.Takeover = true
}

// Changes to Cloudflare's responses.

func remoteConfiguration(c provider.Configuration, version provider.Version) change {
	return func(f *Facts) {
		f.Memory.Remote.Configuration = RemoteConfiguration{
			Known: true, Configuration: c, Hash: c.Hash(), Version: version, NextRead: f.Uptime + untilNextRead, Settled: true,
		}
		f.Memory.InEffect = c.Hash()
	}
}

func readDue(f *Facts) { f.Memory.Remote.Configuration.NextRead = f.Uptime - time.Second }

func tunnelNotFound(f *Facts) {
	f.Memory.Remote.Tunnel, f.Memory.Remote.Configuration, f.Memory.InEffect = RemoteTunnel{}, RemoteConfiguration{Missing: true}, ""
}

// tunnelRead is a tunnel that was just read.
func tunnelRead(presence Presence) change {
	return func(f *Facts) {
		f.Memory.Remote.Tunnel = RemoteTunnel{Presence: presence, Read: At(f.Uptime)}
		if presence == Present {
			f.Memory.Remote.Tunnel.ID, f.Memory.Remote.Tunnel.Name = testTunnelID, testTunnelName
		}
	}
}

func withRemoteName(name string) change { return func(f *Facts) { f.Memory.Remote.Tunnel.Name = name } }

func locallyManaged(f *Facts) { f.Memory.Remote.Tunnel.Local = true }

// connections is a list of connectors that was read some time ago.
func connections(age time.Duration, connectors ...provider.Connector) change {
	return func(f *Facts) {
		f.Memory.Remote.Connections = RemoteConnections{Read: At(f.Uptime - age), Connectors: connectors}
	}
}

func connectedConnector(id provider.ConnectorID, connected time.Duration) provider.Connector {
	return provider.Connector{ID: id, Connected: true, ConnectedAt: wallClock.Add(connected)}
}

func disconnected(id provider.ConnectorID) provider.Connector {
	return provider.Connector{ID: id, ConnectedAt: wallClock.Add(-time.Hour)}
}

func rivals(r ...Rival) change { return func(f *Facts) { f.Rivals = r } }

func credentials(state CredentialsState) change {
	return func(f *Facts) {
		f.Credentials = Credentials{State: state}
		if state != CredentialsWrongAccount {
			f.Credentials.Message = "Secret tunnel-gateway/api-token not found. Create it."
		}
	}
}

// comparableReasons lets cmp compare reasons.
var comparableReasons = cmpopts.EquateComparable(conditions.Reason{}, conditions.EventReason{})

// noReason is the reason in a step without a problem.
var noReason conditions.Reason

// failing is a track whose last attempt failed. The next attempt is due after the time
// left.
func failing(track Track, reason conditions.Reason, remaining time.Duration) change {
	return func(f *Facts) {
		f.Memory.Backoffs[track] = Backoff{
			Failures: 3, Until: At(f.Uptime + remaining), Delay: 8 * time.Second, Problem: problem(reason, "It failed."),
		}
	}
}

// want is a row's expected step. Fields that the row omits must be empty.
type want struct {
	Action Action
	// Record describes how the record changes, see recordChanges.
	Record    string
	Wait      time.Duration
	Priority  provider.Priority
	Event     conditions.EventReason
	Problem   conditions.Reason
	Connector provider.ConnectorID
	// Change is the version of the external change that the step responds to.
	Change       provider.Version
	AwaitsEnvoys bool
	// Interval is the step's ReadInterval. It is not compared if the row omits it.
	Interval time.Duration
}

type row struct {
	name  string
	facts change
	want  want
}

// idle is a healthy Tunnel's expected step.
func idle() want { return want{Action: Wait, Wait: untilNextRead} }

// testDecide runs a golden table, which maps facts to a step.
func testDecide(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := serving()
			if r.facts != nil {
				r.facts(&f)
			}
			f.Memory = Observe(f)
			got := Decide(f)
			summary := summarize(f, got)
			if r.want.Interval == 0 {
				summary.Interval = 0
			}
			if diff := cmp.Diff(r.want, summary, comparableReasons); diff != "" {
				t.Errorf("unexpected step (-want +got):\n%s", diff)
			}
			checkStep(t, got)
		})
	}
}

// checkStep checks what must hold for every step.
func checkStep(t *testing.T, s Step) {
	t.Helper()
	if (s.Delay > 0) != (s.Action == Wait) {
		t.Errorf("action %s has delay %s", s.Action, s.Delay)
	}
	if s.Action == Wait && s.Delay < 100*time.Millisecond {
		t.Errorf("a wait of %s is a busy loop", s.Delay)
	}
	if s.Action == Record && s.Record == nil {
		t.Error("action Record has no record")
	}
	if s.Problem != nil {
		checkSentence(t, "the problem", s.Problem.Message)
	}
	if s.Event != nil {
		checkSentence(t, "the event", strings.TrimSuffix(s.Event.Message, ".")+".")
	}
}

// checkSentence checks that a text for users is a sentence.
func checkSentence(t *testing.T, name, s string) {
	t.Helper()
	switch {
	case s == "", strings.ToUpper(s[:1]) != s[:1], !strings.HasSuffix(s, "."), strings.HasSuffix(s, ".."), strings.Contains(s, "  "), strings.Contains(s, "%!"):
		t.Errorf("%s is not a sentence: %q", name, s)
	}
}

func summarize(f Facts, s Step) want {
	w := want{
		Action: s.Action, Wait: s.Delay, Priority: s.Priority, Connector: s.Connector, Change: s.ExternalChange, Interval: s.ReadInterval,
		AwaitsEnvoys: s.AwaitsEnvoys,
	}
	if s.Record != nil {
		w.Record = recordChanges(f.Object.Status, *s.Record)
	}
	if s.Event != nil {
		w.Event = s.Event.Reason
	}
	if s.Problem != nil {
		w.Problem = s.Problem.Reason
	}
	return w
}

// recordChanges describes how two records differ: "field=value" for each changed field,
// "field=" for each removed field, and "unchanged" if the records are equal. Names
// replace the hashes of the rows' configurations.
func recordChanges(before, after v1alpha1.TunnelStatus) string {
	previous, current := fields(before), fields(after)
	changes := []string{}
	for field, value := range current {
		if previous[field] != value {
			changes = append(changes, field+"="+value)
		}
	}
	for field := range previous {
		if _, ok := current[field]; !ok {
			changes = append(changes, field+"=")
		}
	}
	if len(changes) == 0 {
		return "unchanged"
	}
	slices.Sort(changes)
	named := strings.NewReplacer(wantedConfiguration.Hash(), "desired", changedConfiguration.Hash(), "changed",
		externalConfiguration.Hash(), "external", otherConfiguration.Hash(), "other", provider.Configuration{}.Hash(), "empty")
	return named.Replace(strings.Join(changes, " "))
}

// fields returns a status's fields by path.
func fields(s v1alpha1.TunnelStatus) map[string]string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		panic(err)
	}
	flat := map[string]string{}
	flatten("", tree, flat)
	return flat
}

func flatten(path string, value any, object map[string]string) {
	tree, ok := value.(map[string]any)
	if !ok {
		object[path] = fmt.Sprint(value)
		return
	}
	for field, v := range tree {
		flatten(strings.TrimPrefix(path+"."+field, "."), v, object)
	}
}
