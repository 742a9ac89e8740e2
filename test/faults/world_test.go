package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/images"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	account    = "account"
	clusterID  = "faults"
	xdsAddress = "127.0.0.1:18000"
	// timeout is how long the suite waits for a condition, however busy the machine is. It is
	// longer than the controller's longest backoff.
	timeout = 3 * time.Minute
)

// world is everything that the faults affect. Its T belongs to the current fault.
type world struct {
	*testing.T
	dir         string // for temporary files
	control     *cluster.Cluster
	kube        client.Client
	node        *node.Node
	nodeWatches expiry // makes the watches of node expire
	cloudflare  *simulator.Server
	zones       *zones.Database
	zone        string // the ID for example.com
	access      *access.Database
	apiURL      string
	proxy       *apiProxy // between the controllers and the API server
	replicas    *replicas
	visitors    *visitors
	token       string // the API token that Cloudflare accepts
	probes      int    // counts the changes of the probes
	names       int    // counts the names for objects that faults create
	extra       string // name of what churn has created, or empty
}

// startWorld starts everything, and returns when both Gateways are served.
func startWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), token: "token-0"}
	w.startControlPlane()
	w.startCloudflare()
	w.startNode()
	w.createObjects()
	w.replicas = &replicas{w: w}
	t.Cleanup(w.replicas.stop)
	w.replicas.start()
	w.replicas.start()
	w.T = t
	w.settle()
	w.follow()
	w.visitors = startVisitors(w)
	t.Cleanup(w.visitors.stop)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// eventually waits until the function returns an empty text, and otherwise fails with it.
func (w *world) eventually(what string, missing func() string) {
	w.Helper()
	for deadline := time.Now().Add(timeout); ; {
		text := missing()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s: %s", what, text)
		}
		pause(w.Context(), 100*time.Millisecond)
	}
}

// pause waits for the duration or the end of the context.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (w *world) startControlPlane() {
	w.Helper()
	control, err := cluster.Start(w.Context(), cluster.Options{ServiceCIDR: "10.96.0.0/13", APIServer: func(s *envtest.APIServer) {
		s.Configure().Set("request-timeout", "10s") // for which it waits for watches when it stops
	}})
	w.must(err)
	t := w.T
	w.Cleanup(func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	})
	w.control = control
	scheme := manifest.Scheme()
	w.must(admissionv1.AddToScheme(scheme))
	config := rest.CopyConfig(control.Config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	w.kube, err = client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	identity := filepath.Join(w.dir, "identity")
	_, err = cluster.ControllerIdentity(w.Context(), control.Config, "../../config/rbac", identity)
	w.must(err)
	w.proxy = newAPIProxy(w, identity)
}

// startCloudflare starts the simulator with a zone and the policies of Access.
func (w *world) startCloudflare() {
	w.Helper()
	w.zones = zones.New(zones.Options{})
	w.zone = w.zones.Add(zones.Zone{Name: "example.com", Account: account})
	w.access = access.New(access.Options{TeamName: "acme"})
	w.access.AddPolicy(account, employees)
	w.cloudflare = simulator.New(simulator.Options{
		Zones: w.zones, Access: w.access, AccountID: account, Token: w.token,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return w.node.Dial(ctx, network, address)
		},
		DialConnector: func(ctx context.Context, connector, _, address string) (net.Conn, error) {
			return w.node.DialLoopback(ctx, types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: connector}, address)
		},
	})
	w.Cleanup(w.cloudflare.Close)
	w.apiURL = w.serve(w.cloudflare.API()) + "/client/v4"
}

// serve serves the handler until the test ends, and returns its URL.
func (w *world) serve(handler http.Handler) string {
	server := httptest.NewServer(handler)
	w.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// startNode starts the node that runs the connectors, each with the real Envoy if its
// Gateway has this data plane.
func (w *world) startNode() {
	w.Helper()
	envoy, err := binaries.Envoy(w.Context(), io.Discard)
	w.must(err)
	authority, _, err := cert.GenerateSelfSignedCertKey("backends.test", nil, nil) // no backend has TLS
	w.must(err)
	authorities := filepath.Join(w.dir, "ca.crt")
	w.must(os.WriteFile(authorities, authority, 0o600))
	sidecar := images.Sidecar{Program: programPath("envoy"), Envoy: envoy, XDS: xdsAddress, Authorities: authorities}
	config := rest.CopyConfig(w.control.Config)
	config.Wrap(w.nodeWatches.wrap)
	w.node, err = node.Start(w.Context(), config, node.Options{ServeAddresses: true, Images: map[string]node.Image{
		images.Connector: images.StandIn(programPath("connector"), w.serve(w.cloudflare.Edge())),
		images.Envoy:     sidecar.Image(),
	}})
	w.must(err)
	t := w.T
	w.Cleanup(func() {
		if err := w.node.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// update reads the object, changes it and writes it. It retries after a conflict.
func update[T client.Object](w *world, object T, change func(T)) {
	w.Helper()
	w.eventually("update "+object.GetName(), func() string {
		err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(object), object)
		if err == nil {
			change(object)
			err = w.kube.Update(w.Context(), object)
		}
		return text(err)
	})
}

// text returns the error's text, which is empty without an error.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// create creates the objects, even while the API server starts.
func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		w.eventually("create "+object.GetName(), func() string {
			// A request without an answer may have created the object.
			return text(client.IgnoreAlreadyExists(w.kube.Create(w.Context(), object.DeepCopyObject().(client.Object))))
		})
	}
}

func (w *world) delete(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		w.eventually("delete "+object.GetName(), func() string { return text(client.IgnoreNotFound(w.kube.Delete(w.Context(), object))) })
	}
}

// newName returns a name for an object that no fault has used.
func (w *world) newName(prefix string) string {
	w.names++
	return fmt.Sprintf("%s-%d", prefix, w.names)
}

//
