package dns

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
	modelDeletionDelay = 10 * time.Minute
	// modelAdoptionAge is how long a request to adopt a record counts.
	modelAdoptionAge = time.Hour
	// modelRetirement is how long a retiring Tunnel waits for its records.
	modelRetirement = 10 * time.Minute
	modelMaxSteps   = 60
	// modelAnswer is how long a batch takes. Reads take no time.
	modelAnswer = time.Millisecond
	// modelReadAge is how old the read before a change of a record can be.
	modelReadAge = 5 * time.Second
)

// modelEpoch is the wall clock time at the model's time 0.
var modelEpoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// modelNames are the names that a model tracks.
var modelNames = [...]string{"*.example.com", "a.example.com", "b.example.com", "x.a.example.com", "*.a.example.com"}

const modelNameCount = len(modelNames)

func nameIndex(name string) int { return slices.Index(modelNames[:], name) }

// modelWorld is a zone, the installations that use it, and everything outside. It is a
// value: a copy is independent.
type modelWorld struct {
	now      time.Duration
	zone     modelZone
	count    int
	installs [2]modelInstall
	// violation is the first invariant that was violated.
	violation string
	// disturbed is when the last fault or change happened, and when the process started.
	disturbed time.Duration
	// applied is when a batch last changed the zone.
	applied time.Duration
	// note describes the last transition.
	note string
	// rules are the code under test, or a version of it with a rule broken on purpose.
	rules *modelRules
}

// modelRules is the code under test.
type modelRules struct {
	// facts changes the Facts before each decision.
	facts func(w *modelWorld, f Facts) Facts
	// step changes the decision.
	step func(w *modelWorld, f Facts, s Step) Step
	// pure reports whether every call is checked to change none of its arguments and to
	// give the same result again.
	pure bool
	// read changes the records that a read returns.
	read func(w *modelWorld, f Facts, records []provider.Record) []provider.Record
}

// modelInstall is one installation of the controller.
type modelInstall struct {
	index  int
	boot   time.Duration
	memory Memory
	// due reports whether the controller decides now, and wake when it does next; 0 means
	// at the next event.
	due      bool
	wake     time.Duration
	listed   bool // GatewaysKnown
	gateways [2]modelGateway
	// key and token count the replacements of the key and of the API token.
	key, token int
	revoked    bool
	noToken    bool
	noKey      bool
	// origin is the installation whose tunnels the Gateways have.
	origin int
	// uid tells clusters apart that have the same cluster ID.
	uid int
	// permission is whether the classes require permission.
	permission bool
	limit      int // maxRecordsPerNamespace
	mode       v1alpha1.DNSMode
	exclude    []string
	// second is whether GatewayClass two exists, and disagrees whether its settings differ.
	second, disagrees bool
	requests          []Adoption
	late              []modelLate
	seen              modelSeen
	names             [modelNameCount]modelName
	steps             int // since time last passed
}

// modelLate is a batch that Cloudflare applies after its caller gave up.
type modelLate struct {
	batch provider.Batch
	until time.Duration
}

// modelSeen is what the process has read from the zone.
type modelSeen struct {
	records []provider.Record
	at      time.Duration
	// known are these records after the process's own changes.
	known []provider.Record
	// names are the names that were read at the time at; nil means all.
	names []string
	any   bool
}

// modelName is what the process could know about a name since its start.
type modelName struct {
	// unwanted is when the last Gateway stopped wanting the name, and left when each
	// Gateway did; 0 means it is wanted.
	unwanted time.Duration
	left     [2]time.Duration
	// namespace is the namespace of the last claim of each Gateway in this process; empty
	// if there was none.
	namespace [2]string
}

// modelGateway is a Gateway and its Tunnel.
type modelGateway struct {
	// exists and tunnel report whether the Gateway and its Tunnel object exist. known
	// reports whether the process has decided about the Gateway.
	exists, tunnel, known                        bool
	paused, blocked, rejected, retained, offline bool
	gone                                         time.Duration // when the Gateway was deleted
	class                                        int
	created                                      time.Duration
	tunnels                                      int // how many tunnels it had before
	namespace                                    string
	hostnames                                    []Hostname // sorted by name
}

func (g *modelGateway) id(install, i int) provider.TunnelID {
	return provider.TunnelID(fmt.Sprintf("tunnel-%d-%d-%d", install, i, g.tunnels))
}

func gatewayName(i int, g *modelGateway) types.NamespacedName {
	return types.NamespacedName{Namespace: g.namespace, Name: fmt.Sprintf("g%d", i)}
}

// state returns the Gateway's state if the process has decided about it.
func (g *modelGateway) state() ownership.State {
	switch {
	case !g.known:
		return ownership.Unknown
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

// hostname returns the Gateway's claim of the name, or nil.
func (g *modelGateway) hostname(name string) *Hostname {
	if !g.exists {
		return nil
	}
	for i := range g.hostnames {
		if g.hostnames[i].Name == name {
			return &g.hostnames[i]
		}
	}
	return nil
}

// wants reports whether the Gateway publishes or keeps the name and may do so.
func (in *modelInstall) wants(g int, name string) bool {
	h := in.gateways[g].hostname(name)
	return h != nil && (h.Permitted || !in.permission) && !in.excludes(name)
}

// wanted reports whether any Gateway wants the name.
func (in *modelInstall) wanted(name string) bool { return in.wants(0, name) || in.wants(1, name) }

func (in *modelInstall) excludes(name string) bool {
	return Excludes(settings.DNS{Exclude: in.exclude}, name)
}

// owner returns the Gateway whose tunnel has the hostname, or -1. A Gateway without a Tunnel
// object owns nothing.
func (in *modelInstall) owner(target string) int {
	for i := range in.gateways {
		if g := &in.gateways[i]; g.tunnel && g.id(in.origin, i).Hostname() == target {
			return i
		}
	}
	return -1
}

// conflicts reports whether the settings of the Gateway's class conflict with those of an
// older class.
func (in *modelInstall) conflicts(g int) bool {
	return in.second && in.disagrees && in.gateways[g].class == 1
}

func (in *modelInstall) clusterUID() string { return fmt.Sprintf("uid-%d", in.uid) }

func (in *modelInstall) settings(class int) settings.DNS {
	s := settings.DNS{
		Mode: in.mode, Zones: []v1alpha1.DNSZone{{Name: modelZoneName}}, Exclude: in.exclude,
		DeletionDelay: modelDeletionDelay, MaxRecordsPerNamespace: in.limit, RequiresPermission: in.permission,
	}
	if class == 1 && in.disagrees {
		s.MaxRecordsPerNamespace++
	}
	return s
}

// uptime returns the uptime of the process, which is never 0.
func (w *modelWorld) uptime(i int) time.Duration { return w.now - w.installs[i].boot + time.Second }

// facts returns what the process knows about the zone.
func (w *modelWorld) facts(i int) Facts {
	in := &w.installs[i]
	f := Facts{
		Uptime: w.uptime(i), Clock: modelEpoch.Add(w.now), Zone: modelZoneName, Account: modelAccount,
		Options:       Options{ClusterID: "cluster", ClusterUID: in.clusterUID(), Key: modelKey(in.key)},
		GatewaysKnown: in.listed, Adoptions: in.requests, TokenVersion: fmt.Sprintf("t%d", in.token), Memory: in.memory,
		Classes: []Class{{Name: "one", Created: modelEpoch, Settings: in.settings(0)}},
	}
	if in.noKey {
		f.Options.Key = nil
	}
	if in.noToken {
		f.TokenVersion, f.TokenMessage = "", "the Secret does not exist"
	}
	if in.second {
		f.Classes = append(f.Classes, Class{Name: "two", Created: modelEpoch.Add(time.Hour), Settings: in.settings(1)})
	}
	for n := range in.gateways {
		if g := &in.gateways[n]; g.exists || g.tunnel {
			if in.listed || g.known {
				f.Gateways = append(f.Gateways, in.gateway(n))
			}
		}
	}
	if w.rules != nil && w.rules.facts != nil {
		f = w.rules.facts(w, f)
	}
	return f
}

// modelKey returns a key with 32 bytes.
func modelKey(n int) []byte { return slices.Repeat([]byte{byte(n + 1)}, 32) } // #nosec G115 -- small

func (in *modelInstall) gateway(n int) Gateway {
	g := &in.gateways[n]
	out := Gateway{NamespacedName: gatewayName(n, g), State: g.state()}
	if g.tunnel {
		out.Tunnel = g.id(in.origin, n)
	}
	if g.exists {
		out.Created = modelEpoch.Add(g.created)
		out.Class = [...]string{"one", "two"}[g.class]
	}
	if g.exists && g.known {
		out.Connected = !g.offline
		out.Hostnames = g.hostnames
	}
	return out
}

// track updates when names were last wanted, as far as the process can know: it does not see
// what changes back before it decides.
func (w *modelWorld) track(i int) {
	in := &w.installs[i]
	for n, name := range modelNames {
		t := &in.names[n]
		stamp(&t.unwanted, in.knownToWant(name), w.now)
		for g := range in.gateways {
			stamp(&t.left[g], !in.gateways[g].known || in.wants(g, name), w.now)
			if h := in.gateways[g].hostname(name); h != nil && in.gateways[g].known {
				t.namespace[g] = h.Namespace
			}
		}
	}
}

// knownToWant reports whether a Gateway that the process knows wants the name.
func (in *modelInstall) knownToWant(name string) bool {
	for g := range in.gateways {
		if in.gateways[g].known && in.wants(g, name) {
			return true
		}
	}
	return false
}

// stamp sets since to now when a name is no longer wanted, and to 0 while it is.
func stamp(since *time.Duration, wanted bool, now time.Duration) {
	switch {
	case wanted:
		*since = 0
	case *since == 0:
		*since = now
	}
}

// restart starts the process again: it has forgotten everything.
func (w *modelWorld) restart(i int) {
	in := &w.installs[i]
	w.disturbed = w.now
	in.boot, in.memory, in.due, in.wake, in.steps = w.now, Memory{}, true, 0, 0
	in.listed, in.seen, in.names = false, modelSeen{}, [modelNameCount]modelName{}
	for g := range in.gateways {
		in.gateways[g].known = false
	}
	w.track(i)
}

// quiet reports whether so much time has passed since the last fault that states differ
// only in what is read once an hour. A further fault is tried before that.
func (w *modelWorld) quiet() bool { return w.now-w.disturbed > 2*modelDeletionDelay+5*time.Minute }

// requeue makes the controller decide again.
func (w *modelWorld) requeue(i int) { w.installs[i].due, w.installs[i].wake = true, 0 }

// list makes the process know after a start which Gateways exist.
func (w *modelWorld) list(i int) {
	w.installs[i].listed = true
	w.requeue(i)
}

// decide makes the process decide about a Gateway for the first time.
func (w *modelWorld) decide(i, g int) {
	w.installs[i].gateways[g].known = true
	w.requeue(i)
}

func (w *modelWorld) violate(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}
