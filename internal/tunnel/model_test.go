package tunnel

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The model of everything around the decisions: an API server, Cloudflare, the
// connectors, the clock, and the process that executes the decisions. A world is
// a value: copying it gives a world of its own, because what its pointers and
// slices lead to is never changed.

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
	// collectTime is how long the garbage collector takes.
	collectTime = time.Second
	// tick is how long the model sleeps at least when a wait repeats itself.
	tick = 15 * time.Second
)

var (
	options = Options{
		ControllerName: "example.com/tunnels", ClusterUID: "cluster", ClusterID: "c1",
		RetirementDelay: retirementDelay, DriftInterval: driftInterval,
	}
	// actorNames are the Gateways of the model.
	actorNames = [maxActors]types.NamespacedName{{Namespace: "infra", Name: "a"}, {Namespace: "infra", Name: "b"}}
	epoch      = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// model is one state of the model.
type model struct {
	// now is the time since the model began, boot is when the process started,
	// and skew is what the wall clock is wrong by.
	now, boot, skew time.Duration
	// uids and versions count the UIDs and resource versions that were given.
	uids, versions, connectorIDs int

	actors     [maxActors]actor
	count      int // of the actors
	cloudflare cloudflare
	rival      rivalObject
	// admin is whether an administrator deleted or restored a Tunnel object, after
	// which tunnels may be left behind.
	admin bool
	// credentials: whether there is an API token, and which.
	credentialsLost    bool
	credentialsVersion int

	// frozen is what a cache that is behind shows; nil when it is not.
	frozen *[maxActors]view
	// frozenRival is the rival that it shows.
	frozenRival rivalObject
	// frozenSleeps counts the sleeps since the cache is behind.
	frozenSleeps int

	// violation is the invariant that the last transition broke.
	violation string
	// said describes the last transition.
	said string
}

// view is what can be read from the API server about an actor.
type view struct {
	object     *object
	gateway    gatewayObject
	secret     secretObject
	deployment deployment
	pods       [maxPods]pod
}

// actor is a Gateway, its Tunnel, its connectors, and the process's work on them.
type actor struct {
	view
	// backup is an older version of the Tunnel.
	backup *object
	// collect is when the garbage collector deletes what has no owner; 0 for never.
	collect time.Duration

	memory Memory
	// running is whether a reconcile is under way, and steps counts its steps.
	running bool
	steps   int
	// liveObject, liveGateway and liveRivals are what the reconcile has read from
	// the API server, or has written.
	liveObject, liveGateway, liveRivals bool
	// listing is whether a claim's record is written and the Tunnels are to be
	// listed. Until then the claim is reserved.
	listing bool
	// claim is the step of the claim under way.
	claim Step
	// dirty is whether there is a reason to reconcile, and wake when there will be
	// one; 0 for never.
	dirty bool
	wake  time.Duration
	// waited is the last wait, and repeated whether it was the one before, too.
	waited   time.Duration
	repeated bool

	// missing is since when every look at the Gateway showed that it is missing,
	// plus one; 0 for never. It is the model's own account.
	missing time.Duration
}

// object is one version of a Tunnel object. It is never changed.
type object struct {
	v1alpha1.Tunnel
	uid, version int
	// sum is the hash of everything that decisions depend on.
	sum uint64
}

// gatewayObject is a Gateway and its settings.
type gatewayObject struct {
	exists     bool
	uid        int
	otherClass bool
	unknown    bool // the API server does not say
	paused     bool
	settings   settings
}

// settings are what the settings and routes of a Gateway ask for.
type settings struct {
	identity   identity
	retain     bool
	takeover   bool
	invalid    bool
	routes     uint8
	grpc       bool
	unmanaged  bool // connector.enabled: false
	unaccepted bool
}

type identity uint8

const (
	identityNamed identity = iota // a tunnel of the Gateway's name
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

// deployment is what runs the connectors.
type deployment struct {
	exists bool
	owner  int
	tunnel int
	token  int
	grpc   bool
}

// pod is a pod of the connectors.
type pod struct {
	state podState
	// until is when its state changes; 0 for never.
	until  time.Duration
	tunnel int
	token  int
	grpc   bool
	// connector is the ID with which it is connected.
	connector int
}

type podState uint8

const (
	podNone podState = iota
	podStarting
	podConnected
	podRefused // its token is not valid
	podStopping
	podStuck // its node is lost
)

// rivalObject is a Tunnel that this process does not manage, or whose Gateway is
// not part of the model, and that names the adopted tunnel.
type rivalObject struct {
	exists, recorded, older, otherController bool
}

func (w *model) uptime() time.Duration { return w.now - w.boot }

func (w *model) clock() time.Time { return epoch.Add(w.now + w.skew) }

func (w *model) violate(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

// touch gives every actor a reason to reconcile.
func (w *model) touch() {
	if w.frozen != nil {
		return
	}
	for i := range w.count {
		w.actors[i].dirty = true
	}
}

// newObject returns a new version of a Tunnel.
func (w *model) newObject(uid int, t v1alpha1.Tunnel) *object {
	w.versions++
	t.ResourceVersion = fmt.Sprint(w.versions)
	t.UID = types.UID(fmt.Sprint("u", uid))
	return &object{Tunnel: t, uid: uid, version: w.versions, sum: sumOf(&t)}
}

func (w *model) newUID() int {
	w.uids++
	return w.uids
}

// configurations are the configurations of the model: none, two for each actor,
// and one of somebody else.
var configurations = func() []provider.Configuration {
	list := []provider.Configuration{{}}
	for _, host := range []string{"a0", "a1", "b0", "b1", "external"} {
		list = append(list, provider.Configuration{Ingress: []provider.IngressRule{
			{Hostname: host + ".example.com", Service: "http://backend:80"}, {Service: "http_status:404"},
		}})
	}
	return list
}()

const externalConfiguration = 5

var configurationHashes = func() []string {
	list := make([]string, len(configurations))
	for i, c := range configurations {
		list[i] = c.Hash()
	}
	return list
}()

func desiredConfiguration(a int, s settings) int { return 1 + 2*a + int(s.routes) }

func configurationOf(hash string) int {
	for i, h := range configurationHashes {
		if h == hash {
			return i
		}
	}
	panic("unknown configuration")
}

type desiredKey struct {
	a int
	s settings
}

var desiredOf = map[desiredKey]*Desired{}

// desired returns what the settings of an actor ask for.
func desired(a int, s settings) *Desired {
	if s.invalid {
		return nil
	}
	key := desiredKey{a, s}
	if d := desiredOf[key]; d != nil {
		return d
	}
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
	n := desiredConfiguration(a, s)
	d := &Desired{Spec: spec, Configuration: &configurations[n], Hash: configurationHashes[n], NeedsHTTP2: s.grpc, RunConnectors: !s.unmanaged}
	if s.unaccepted {
		d.Configuration, d.Hash = nil, ""
	}
	desiredOf[key] = d
	return d
}
