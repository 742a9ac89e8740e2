package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// process is what all Gateways share. [newProcess] sets every field, and nothing
// changes one later.
type process struct {
	options      decision.Options
	loader       state.Loader
	objects      tunnelObjects
	gateways     gatewayReader
	tokens       tokenSecrets
	connectors   *connectors
	accounts     *accounts
	reservations *reservations
	envoys       *envoys
	memories     *memories
	hostnames    *sharedHostnames
	sets         *listenerSetGateways
	dns          *dnsBook
	access       *accessBook
	writer       *status.Writer
	own          *ownWrites // nil if all own writes lead to reconciles
	notify       notifier
	observer     *observer
	clock        clock
}

// dependencies connect a process to its surroundings.
type dependencies struct {
	// client reads from the cache and writes to the API server.
	client client.Client
	// metadata reads Secret and ConfigMap metadata from the cache, and live reads from the API
	// server.
	metadata, live client.Reader
	notify         notifier
	requeue        func(state.Key)
	// enqueueZone adds a zone to the queue of zones.
	enqueueZone func(zoneKey)
	// enqueueAccount adds an account to the queue of accounts with applications.
	enqueueAccount func(accountKey)
	xds            xdsServer
	identities     identities
	clock          clock
	// changes records the events of the cache. It is nil if nothing records them: every
	// reconcile then reads everything.
	changes *state.Changes
	// own remembers the statuses that the client has written. It may be nil.
	own *ownWrites
	// imports reads ServiceImports. It is nil when the client reads them.
	imports *serviceImports
	// policies says whether AccessPolicies are known. It is nil when they always are.
	policies *AccessPolicies
}

// reader returns the reader for decisions.
func (d dependencies) reader() client.Reader {
	if d.imports == nil {
		return d.client
	}
	return importReader{accessPolicyReader{d.client, d.policies}, d.imports}
}

// clock returns the wall-clock time and the uptime of the process. Changing the wall
// clock does not affect the uptime.
type clock struct {
	now    func() time.Time
	uptime func() time.Duration
}

func systemClock() clock {
	start := time.Now()
	return clock{now: time.Now, uptime: func() time.Duration { return time.Since(start) }}
}

func newProcess(d dependencies, o Options) *process {
	remembered := newMemories()
	return &process{
		options: o.decisions(),
		loader: state.Loader{
			Reader: d.reader(), ControllerName: o.ControllerName, ControllerNamespace: o.Namespace, ControllerPod: o.PodIPs,
			Certificates: &state.CachedCertificates{Metadata: d.metadata, Live: d.live, Reads: o.ReadsCertificates},
			CABundles:    &state.CachedCABundles{Metadata: d.metadata, Live: d.live},
			Changes:      d.changes,
		},
		objects:  tunnelObjects{client: d.client, live: d.live, namespace: o.Namespace},
		gateways: gatewayReader{live: d.live, controllerName: o.ControllerName, inScope: o.InScope},
		tokens:   tokenSecrets{client: d.client, metadata: d.metadata, live: d.live},
		connectors: &connectors{
			client: d.client, live: d.live, identities: d.identities, xdsHost: o.xdsHost(),
		},
		accounts:     newAccounts(d, o),
		reservations: &reservations{byTunnel: map[string]state.Key{}},
		envoys:       newEnvoys(d, o, remembered),
		memories:     remembered,
		hostnames: &sharedHostnames{
			listManaged: watches{reader: d.client, controllerName: o.ControllerName, namespace: o.Namespace}.managedGateways,
			requeue:     d.requeue, hostnames: gateway.NewHostnames(),
		},
		sets:   &listenerSetGateways{},
		dns:    newDNSBook(d, o),
		access: newAccessBook(d, o),
		writer: &status.Writer{
			Client: d.client, Live: d.live, ControllerName: o.ControllerName, Now: d.clock.now, Notify: d.notify.emitChange,
			NotifyFailure: d.notify.emitUnwritten, Unwritten: unwrittenStatuses(o.Metrics),
		},
		own:      d.own,
		notify:   d.notify,
		observer: newObserver(o.Metrics, o.Tracer, d.clock.now, remembered),
		clock:    d.clock,
	}
}

func (o Options) decisions() decision.Options {
	return decision.Options{
		Gateway: gateway.Options{
			ControllerName: o.ControllerName, ClusterDomain: o.ClusterDomain, ControllerNamespace: o.Namespace,
			DataPlanes: decision.DataPlanes(),
		},
		Tunnel: tunnel.Options{
			ControllerName: string(o.ControllerName), ClusterUID: o.ClusterUID, ClusterID: o.ClusterID,
			RetirementDelay: o.RetirementDelay, DriftInterval: o.DriftInterval,
		},
		Account: o.Account,
	}
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
