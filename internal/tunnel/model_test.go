package tunnel

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The model simulates the environment in which decisions are made: an API server,
// Cloudflare, the connectors, the clock, and the process that executes the decisions. A
// model is a value: a copy is independent, because what its pointers and slices refer
// to never changes.

const (
	maxActors     = 2
	maxTunnels    = 6
	maxConnectors = 4
	maxPods       = 3
	maxLateCalls  = 2

	retirementDelay = 30 * time.Second
	gracePeriod     = 30 * time.Second
	driftInterval   = 10 * time.Minute

	// startTime and stopTime are how long a pod takes to connect and to stop.
	startTime = 5 * time.Second
	stopTime  = 10 * time.Second
	// collectTime is how late the garbage collector runs.
	collectTime = time.Second
	// tick is the minimum duration of a repeated wait.
	tick = 15 * time.Second
)

var (
	options = Options{
		ControllerName: "example.com/tunnels", ClusterUID: "cluster", ClusterID: "c1",
		RetirementDelay: retirementDelay, DriftInterval: driftInterval,
	}
	// actorNames are the Gateways in the model.
	actorNames = [maxActors]types.NamespacedName{{Namespace: "infra", Name: "a"}, {Namespace: "infra", Name: "b"}}
	// updateLimit leaves no token after a write, so the bucket has no state other than its
	// wait.
	updateLimit = UpdateLimit{Burst: 1, Interval: 20 * time.Second}
	// revokeLimit limits the writes that only revoke, for the same reason.
	revokeLimit = UpdateLimit{Burst: 1, Interval: 5 * time.Second}
	epoch       = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// model is one simulated situation.
type model struct {
	// now is the simulated time, boot is when the process started, and skew is how
	// wrong the wall clock is.
	now, boot, skew time.Duration
	// uids, versions and connectorIDs count the assigned UIDs, resource versions and
	// connector IDs.
	uids, versions, connectorIDs int

	actors     [maxActors]actor
	count      int // actors in use
	cloudflare cloudflare
	rival      rivalObject
	// adminChanged reports whether an administrator deleted or restored a Tunnel object.
	// After that, tunnels without a Tunnel are allowed.
	adminChanged bool
	// The API token.
	credentialsLost    bool
	credentialsVersion int

	// staleCache is what a stale cache contains; nil if the cache is up to date.
	staleCache *[maxActors]view
	// staleRival is the rival in the stale cache.
	staleRival rivalObject
	// staleSleeps counts the sleeps since the cache became stale.
	staleSleeps int

	// ownTunnelCurrent reports whether reconciles see the Tunnel and connectors as they
	// last wrote them, even while the cache is stale, as the executor ensures.
	ownTunnelCurrent bool
	// noRoom reports whether no node has room for new pods, and envoyFails whether
	// Envoy does not start in new pods.
	noRoom, envoyFails bool

	// violation describes the invariant that the last transition violated.
	violation string
	// description describes the last transition.
	description string
}

// view is what the API server contains about an actor.
type view struct {
	object     *object
	gateway    gatewayObject
	secret     secretObject
	deployment deployment
	pods       [maxPods]pod
	// scaled counts the replicas that were added to the only replica.
	scaled int8
	// envoys is what the xDS server reports about the pods' Envoys.
	envoys envoyState
}

// replicas returns the desired number of pods.
func (v view) replicas() int { return 1 + int(v.scaled) }

// envoyState is what the xDS server reports about a Gateway's Envoys.
type envoyState uint8

const (
	envoysAcknowledged envoyState = iota
	envoysSlow                    // an Envoy has not acknowledged the last publication
	envoysRejected                // an Envoy has rejected the last publication
	envoysDisconnected
)

// actor is a Gateway with its Tunnel and connectors, and its reconcile.
type actor struct {
	view
	// backup is an older version of the Tunnel.
	backup *object
	// collectAt is when the garbage collector runs next; 0 for never.
	collectAt time.Duration

	// built is the data plane for which the desired configuration was built, and
	// builtBoth reports whether it was built for both. A reconcile builds once, when it
	// begins.
	built     v1alpha1.DataPlane
	builtBoth bool

	memory Memory
	// running reports whether a reconcile is in progress, and steps counts its steps.
	running bool
	steps   int
	// liveObject, liveGateway and liveRivals report which objects the reconcile has read
	// live or written.
	liveObject, liveGateway, liveRivals bool
	// mustList reports whether a claim has written its record and must list the Tunnels.
	// The tunnel is reserved while listing is true.
	mustList bool
	// claim is the step that a claim in progress continues.
	claim Step
	// reconcileDue reports whether a reconcile is due. wake is when the next reconcile
	// is due; 0 for never.
	reconcileDue  bool
	nextReconcile time.Duration
	// lastWait is the last wait, and repeated reports whether the wait before was
	// equal.
	lastWait     time.Duration
	waitRepeated bool
	// readSince reports whether the configuration was read or the tunnel was created
	// since an administrator last requested a reconcile.
	readSince bool

	// revokedAt is when the last write only revoked, plus one; 0 for never.
	// exposedSince is since when the actor has waited for a token while its tunnel had
	// a revoked rule, plus one; 0 if it does not.
	revokedAt, exposedSince time.Duration

	// unreleased reports whether DNS records lead to the tunnel.
	unreleased bool
	// applicationsRemain reports whether the Gateway's hostnames have applications of Access.
	applicationsRemain bool

	// missing is since when every read found the Gateway to be missing, plus one; 0 for
	// never. The model determines it independently of the Memory.
	missing time.Duration
}

// object is one version of a Tunnel object. It is immutable.
type object struct {
	v1alpha1.Tunnel
	uid, version int
	// hash covers all fields that decisions depend on.
	hash uint64
}

// gatewayObject is a Gateway and its settings.
type gatewayObject struct {
	exists     bool
	uid        int
	otherClass bool
	unknown    bool // reads of the Gateway fail
	paused     bool
	settings   settings
}

// settings are a Gateway's settings, and what its routes contain.
type settings struct {
	identity           identity
	retain             bool
	takeover           bool
	invalid            bool
	routes             uint8
	grpc               bool
	connectorsDisabled bool // connector.enabled: false
	unaccepted         bool
	limited            bool // limits.configurationUpdates is updateLimit
	envoy              bool // dataPlane: Envoy
	excess             bool // the routes exceed the limits of ingress rules
}

// dataPlane returns the data plane that the settings ask for.
func (s settings) dataPlane() v1alpha1.DataPlane {
	if s.envoy {
		return v1alpha1.DataPlaneEnvoy
	}
	return v1alpha1.DataPlaneIngressRules
}

type identity uint8

const (
	identityNamed identity = iota // a tunnel with the Gateway's name
	identityAdopted
	identityOtherName
	identityOtherAccount
	identityOtherTunnel
)

// secretObject is the Secret with the token.
type secretObject struct {
	exists bool
	owner  int
	tunnel int
	token  int
}

// deployment is the Deployment that runs the connectors.
type deployment struct {
	exists bool
	owner  int
	tunnel int
	token  int
	grpc   bool
	envoy  bool
}

type pod struct {
	state podState
	// until is when the pod's state changes; 0 for never.
	until  time.Duration
	tunnel int
	token  int
	grpc   bool
	envoy  bool
	// connector is the ID of the pod's connector.
	connector int
}

type podState uint8

const (
	podNone podState = iota
	podStarting
	podPending // no node has room for it, or its Envoy does not start
	podConnected
	podRefused // its token is not valid
	podStopping
	podStuck // its node is lost
)

// rivalObject is a Tunnel that requests the adopted tunnel. This process does not
// manage it, or its Gateway is not part of the model.
type rivalObject struct {
	exists, recorded, older, otherController bool
}

func (m *model) uptime() time.Duration { return m.now - m.boot }

func (m *model) clock() time.Time { return epoch.Add(m.now + m.skew) }

func (m *model) violate(format string, args ...any) {
	if m.violation == "" {
		m.violation = fmt.Sprintf(format, args...)
	}
}

// requeueAll makes every actor's reconcile due, unless the cache is stale.
func (m *model) requeueAll() {
	if m.staleCache != nil {
		return
	}
	for i := range m.count {
		m.actors[i].reconcileDue = true
	}
}

// newObject returns a new version of a Tunnel.
func (m *model) newObject(uid int, t v1alpha1.Tunnel) *object {
	m.versions++
	t.ResourceVersion = fmt.Sprint(m.versions)
	t.UID = types.UID(fmt.Sprint("u", uid))
	return &object{Tunnel: t, uid: uid, version: m.versions, hash: decisionHash(&t)}
}

func (m *model) newUID() int {
	m.uids++
	return m.uids
}

// configurations are: empty, two for each actor with ingress rules, another writer's, one
// for each actor with Envoy, and the configuration that remains when an actor's only rule
// is revoked.
var configurations = func() []provider.Configuration {
	list := []provider.Configuration{{}}
	for _, host := range []string{"a0", "a1", "b0", "b1", "external", "ea", "eb"} {
		list = append(list, provider.Configuration{Ingress: []provider.IngressRule{
			{Hostname: host + ".example.com", Service: "http://backend:80"}, {Service: "http_status:404"},
		}})
	}
	return append(list, provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:404"}}})
}()

const (
	externalConfigurationIndex = 5
	revokedConfigurationIndex  = 8
)

var configurationHashes = func() []string {
	list := make([]string, len(configurations))
	for i, c := range configurations {
		list[i] = c.Hash()
	}
	return list
}()

// desiredConfiguration returns the index of an actor's configuration. With Envoy, it
// does not depend on the routes.
func desiredConfiguration(a int, s settings, plane v1alpha1.DataPlane) int {
	if plane == v1alpha1.DataPlaneEnvoy {
		return externalConfigurationIndex + 1 + a
	}
	return 1 + 2*a + int(s.routes)
}

// dataPlaneOf returns the data plane that a desired configuration is for.
func dataPlaneOf(hash string) v1alpha1.DataPlane {
	if leadsToEnvoy(configurationOf(hash)) {
		return v1alpha1.DataPlaneEnvoy
	}
	return v1alpha1.DataPlaneIngressRules
}

// leadsToEnvoy reports whether a configuration is for Envoy.
func leadsToEnvoy(n int) bool {
	return n > externalConfigurationIndex && n != revokedConfigurationIndex
}

func configurationOf(hash string) int {
	for i, h := range configurationHashes {
		if h == hash {
			return i
		}
	}
	panic("unknown configuration")
}

type desiredKey struct {
	a     int
	s     settings
	plane v1alpha1.DataPlane
	both  bool
}

var desiredOf = map[desiredKey]*Desired{}

// desired returns what an actor's settings ask for, with the configuration for the data
// plane, and for the other data plane if both is true. Envoy requires connectors that
// the controller runs.
func desired(a int, s settings, plane v1alpha1.DataPlane, both bool) *Desired {
	if s.invalid || s.envoy && s.connectorsDisabled {
		return nil
	}
	key := desiredKey{a, s, plane, both}
	if d := desiredOf[key]; d != nil {
		return d
	}
	n := desiredConfiguration(a, s, plane)
	d := &Desired{
		Spec: desiredSpec(a, s), DataPlane: s.dataPlane(), Configuration: &configurations[n], ConfigurationDataPlane: plane, Hash: configurationHashes[n],
		NeedsHTTP2: s.grpc, RunConnectors: !s.connectorsDisabled,
	}
	if s.limited {
		d.Updates, d.Revocations = updateLimit, revokeLimit
	}
	switch {
	case s.unaccepted:
		d.Configuration, d.Hash = nil, ""
	case both:
		d.Other = otherDesired(a, s, plane)
	}
	desiredOf[key] = d
	return d
}

// desiredSpec returns the desired spec for an actor's Tunnel.
func desiredSpec(a int, s settings) v1alpha1.TunnelSpec {
	spec := v1alpha1.TunnelSpec{
		Gateway:        v1alpha1.GatewayReference{Namespace: actorNames[a].Namespace, Name: actorNames[a].Name},
		ControllerName: options.ControllerName, ClusterUID: options.ClusterUID, AccountID: "account",
		Name: tunnelNames[a], DeletionPolicy: v1alpha1.DeletionPolicyDelete,
	}
	switch s.identity {
	case identityAdopted:
		spec.Existing = &v1alpha1.AdoptedTunnel{ID: tunnelIDs[0], Takeover: s.takeover}
	case identityOtherTunnel:
		spec.Existing = &v1alpha1.AdoptedTunnel{ID: tunnelIDs[1], Takeover: s.takeover}
	case identityOtherName:
		spec.Name = tunnelNames[nameOther]
	case identityOtherAccount:
		spec.AccountID = "other"
	case identityNamed:
	}
	if s.retain {
		spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
	}
	return spec
}

// otherDesired returns the desired configuration for the other data plane.
func otherDesired(a int, s settings, plane v1alpha1.DataPlane) *OtherDataPlane {
	other := v1alpha1.DataPlaneEnvoy
	if plane == other {
		other = v1alpha1.DataPlaneIngressRules
	}
	n := desiredConfiguration(a, s, other)
	o := &OtherDataPlane{Configuration: &configurations[n], Hash: configurationHashes[n]}
	if s.excess && other == v1alpha1.DataPlaneIngressRules {
		o.Excess = "The routes need 2 ingress rules, and limits.rulesPerTunnel is 1."
	}
	return o
}
