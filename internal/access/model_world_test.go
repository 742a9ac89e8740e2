package access

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	modelDelay   = 30 * time.Second // openingDelay
	modelMaxOpen = 5 * time.Minute
	// modelRetirement is how long a retiring Tunnel waits for its applications.
	modelRetirement = 10 * time.Minute
	modelMaxSteps   = 80
	// modelAnswer is how long writes take. Reads take no time.
	modelAnswer = time.Millisecond
	// modelRetry is the backoff of a Gateway after an error.
	modelRetry = 10 * time.Second
	// modelAdoptionAge is how long a request to adopt an application counts.
	modelAdoptionAge = time.Hour
	modelTeam        = "acme"
	modelGateways    = 3
)

// modelEpoch is the wall clock time at the model's time 0.
var modelEpoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// modelNames are the names that a model knows. The first one is the wildcard.
var modelNames = [...]string{"*.example.com", "a.example.com", "b.example.com", "x.a.example.com"}

const (
	modelNameCount = len(modelNames)
	modelW         = 0
	modelA         = 1
	modelB         = 2
	modelDeep      = 3
)

func nameIndex(name string) int { return slices.Index(modelNames[:], name) }

// modelWorld is a Cloudflare account, the installations that use it, and everything outside.
// It is a value: a copy is independent.
type modelWorld struct {
	now      time.Duration
	cloud    modelCloud
	count    int
	installs [2]modelInstall
	// violation is the first invariant that was violated.
	violation string
	// disturbed is when the last fault or change happened, and when the process started.
	disturbed time.Duration
	// applied is when a write last changed the account.
	applied time.Duration
	// note describes the last transition.
	note string
	// rules are the code under test, or a version of it with a rule broken on purpose.
	rules *modelRules
}

// modelRules is the code under test.
type modelRules struct {
	// facts changes the Facts before each decision about the account.
	facts func(w *modelWorld, f Facts) Facts
	// step changes the decision about the account.
	step func(w *modelWorld, f Facts, s Step) Step
	// read changes the applications that a read returns.
	read func(w *modelWorld, f Facts, list []provider.Application) []provider.Application
	// known changes what a decision about a Gateway's hostnames knows, and states changes
	// the decision.
	known  func(d Demanded, k Known) (Demanded, Known)
	states func(states map[string]State)
	// pure reports whether every call is checked to change none of its arguments and to
	// give the same result again.
	pure bool
}

// modelInstall is one installation of the controller.
type modelInstall struct {
	index  int
	boot   time.Duration
	memory Memory
	report *Report // the last one
	// due reports whether the account is decided about now, and wake when it is next; 0
	// means at the next event.
	due      bool
	wake     time.Duration
	steps    int // since time last passed
	gateways [modelGateways]modelGateway
	// key and token count the replacements of the key and of the API token.
	key, token                int
	revoked, noToken, noKey   bool
	origin                    int // the installation whose objects it has
	uid                       int // tells clusters apart that have the same cluster ID
	modes                     [2]v1alpha1.ApplicationsMode
	entries                   [2][modelNameCount]modelSpec // of the classes
	renamed                   bool                         // another policy has the name "employees"
	missing                   bool                         // the catalogue has no policy "employees"
	limit                     int                          // maxApplications
	short                     bool                         // openingDelay is a second
	second, disagrees, freely bool
	requests                  []Adoption
	late                      []modelLate
	seen                      modelSeen
	unwanted                  [modelNameCount]time.Duration // since no Gateway that was decided about demands the name
}

// modelSeen is what the process has read or written.
type modelSeen struct {
	any  bool
	at   time.Duration // of the list
	list []provider.Application
}

// modelLate are writes that Cloudflare applies after their caller gave up.
type modelLate struct {
	writes      []Write
	sent, until time.Duration
}

// modelGateway is a Gateway and its tunnel.
type modelGateway struct {
	exists, tunnel, paused, blocked, rejected, retained bool
	// unread reports whether AccessPolicies cannot be read.
	unread  bool
	class   int
	created time.Duration
	gone    time.Duration
	tunnels int
	envoy   bool
	hosts   [modelNameCount]modelHost
	entries [modelNameCount]modelSpec // of the Gateway
	// policies are the AccessPolicies for the listeners.
	policies [modelNameCount]modelSpec

	// The following is what this process knows.
	due      bool
	wake     time.Duration
	reported *Gateway // what the account knows; nil before the first decision
	exposure Exposure
	read     bool // the configuration in effect is known

	// configuration is what the connectors apply, and published what Envoy has.
	configuration, published modelTable
	// desired is the last decision.
	desired modelTable
	guards  [modelNameCount]modelGuard
}

// modelHost is a hostname of a Gateway's table.
type modelHost struct {
	// claimed reports whether a listener has the hostname, or, if routed, a route that is
	// attached to the listener with the wildcard.
	claimed, routed bool
	namespace       string
	denied          bool // the namespace's annotation does not permit the hostname
}

// modelGuard is what must be true for a hostname of a Gateway.
type modelGuard struct {
	// protected reports whether a rule in effect demanded a token while there was a demand.
	protected bool
	// demanded is since when there is a demand, and gone since when there is none; 0 if
	// that is not the case.
	demanded, gone time.Duration
	// open reports whether this process serves the hostname open under exactly this name.
	open bool
	// decided is the demand for which the rule in effect was written.
	decided modelDemand
}

// newModelWorld returns an account without applications and an installation with two
// Gateways in two namespaces, which claim nothing yet.
func newModelWorld() *modelWorld {
	w := &modelWorld{now: time.Hour, disturbed: time.Hour, count: 1}
	for i := range modelPolicies {
		w.cloud.policies[i] = true
	}
	w.install(0)
	return w
}

// install adds an installation.
func (w *modelWorld) install(i int) {
	in := &w.installs[i]
	*in = modelInstall{index: i, boot: w.now, due: true, origin: i, uid: i, key: i, limit: 100}
	in.modes[0], in.modes[1] = v1alpha1.ApplicationsManaged, v1alpha1.ApplicationsManaged
	for g := range 2 {
		in.gateways[g] = modelGateway{exists: true, tunnel: true, due: true, created: time.Duration(g) * time.Minute}
	}
}

var modelNamespaces = [modelGateways]string{"one", "two", "three"}

func gatewayName(n int) types.NamespacedName {
	return types.NamespacedName{Namespace: modelNamespaces[n], Name: fmt.Sprintf("g%d", n)}
}

func gatewayIndex(name types.NamespacedName) int {
	return slices.Index(modelNamespaces[:], name.Namespace)
}

// state returns the Gateway's state once it was decided about.
func (g *modelGateway) state() ownership.State {
	switch {
	case g.exists && (g.paused || g.blocked):
		return ownership.Frozen
	case g.exists && g.rejected:
		return ownership.Rejected
	case g.exists:
		return ownership.Accepted
	case g.retained || g.blocked:
		return ownership.Departed
	default:
		return ownership.Retiring
	}
}

// known returns the state as the account's executor knows it.
func (g *modelGateway) known() ownership.State {
	if g.reported == nil {
		return ownership.Unknown
	}
	return g.reported.State
}

func (g *modelGateway) present() bool { return g.exists || g.tunnel }

func (in *modelInstall) identity() ownership.Identity {
	id := ownership.Identity{ClusterID: "cluster", ClusterUID: fmt.Sprintf("uid-%d", in.uid), Key: slices.Repeat([]byte{byte(in.key + 1)}, 32)} // #nosec G115 -- small
	if in.noKey {
		id.Key = nil
	}
	return id
}

func (in *modelInstall) delay() time.Duration {
	if in.short {
		return time.Second
	}
	return modelDelay
}

// settings returns a class's settings.
func (in *modelInstall) settings(class int) settings.Applications {
	s := settings.Applications{
		Mode: in.modes[class], TeamName: modelTeam, MaxApplications: in.limit, OpeningDelay: in.delay(),
		RequiresPermission: !in.freely, Catalogue: map[v1alpha1.PolicyName]string{},
	}
	if class == 1 && in.disagrees {
		s.MaxApplications++
	}
	for _, p := range modelPolicies {
		s.Catalogue[p.name] = string(p.id)
	}
	if in.renamed {
		s.Catalogue[modelPolicies[modelEmployees].name] = string(modelPolicies[modelContractors].id)
	}
	if in.missing {
		delete(s.Catalogue, modelPolicies[modelEmployees].name)
	}
	return s
}

// uptime returns the uptime of the process, which is never 0.
func (w *modelWorld) uptime(i int) time.Duration { return w.now - w.installs[i].boot + time.Second }

// gatewaysKnown reports whether every Gateway was decided about once.
func (in *modelInstall) gatewaysKnown() bool {
	for n := range in.gateways {
		if g := &in.gateways[n]; g.present() && g.reported == nil {
			return false
		}
	}
	return true
}

// facts returns what the process knows about the account.
func (w *modelWorld) facts(i int) Facts {
	in := &w.installs[i]
	f := Facts{
		Uptime: w.uptime(i), Clock: modelEpoch.Add(w.now), Identity: in.identity(), GatewaysKnown: in.gatewaysKnown(),
		Adoptions: in.requests, TokenVersion: fmt.Sprintf("t%d", in.token), Memory: in.memory,
		Classes: []Class{{Name: modelClasses[0], Created: modelEpoch, Settings: in.settings(0)}},
	}
	if in.noToken {
		f.TokenVersion, f.TokenMessage = "", "the Secret does not exist"
	}
	if in.second {
		f.Classes = append(f.Classes, Class{Name: modelClasses[1], Created: modelEpoch.Add(time.Hour), Settings: in.settings(1)})
	}
	for n := range in.gateways {
		g := &in.gateways[n]
		switch {
		case !g.present():
		case g.reported != nil:
			f.Gateways = append(f.Gateways, *g.reported)
		default:
			f.Gateways = append(f.Gateways, in.gateway(n, ownership.Unknown))
		}
	}
	if w.rules != nil && w.rules.facts != nil {
		f = w.rules.facts(w, f)
	}
	return f
}

var modelClasses = [2]string{"class-one", "class-two"}

// gateway returns a Gateway without demands.
func (in *modelInstall) gateway(n int, state ownership.State) Gateway {
	g := &in.gateways[n]
	out := Gateway{NamespacedName: gatewayName(n), State: state, HasTunnel: g.tunnel}
	if g.exists {
		out.Created, out.Class = modelEpoch.Add(g.created), modelClasses[g.class]
	}
	return out
}

// restart starts the process again: it has forgotten everything.
func (w *modelWorld) restart(i int) {
	in := &w.installs[i]
	w.disturbed = w.now
	in.boot, in.memory, in.report, in.due, in.wake, in.steps = w.now, Memory{}, nil, true, 0, 0
	in.seen, in.unwanted = modelSeen{}, [modelNameCount]time.Duration{}
	for n := range in.gateways {
		g := &in.gateways[n]
		g.due, g.wake, g.reported, g.exposure, g.read = g.present(), 0, nil, Exposure{}, false
		for h := range g.guards {
			g.guards[h].open = false
		}
	}
}

// requeue makes the controller decide about the account again.
func (w *modelWorld) requeue(i int) { w.installs[i].due, w.installs[i].wake = true, 0 }

// quiet reports whether so much time has passed since the last fault that a further one was
// tried before.
func (w *modelWorld) quiet() bool { return w.now-w.disturbed > 12*time.Minute }

func (w *modelWorld) violate(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}
