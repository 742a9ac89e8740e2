package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	account  = "account"
	apiToken = "api-token"
	// patience is for a busy machine.
	patience = 2 * time.Minute
)

// world is a cluster without the controller's CRDs, a Cloudflare, and the controller's
// program.
type world struct {
	whole      *testing.T // not one step of it
	control    *cluster.Cluster
	kube       client.Client
	kubeconfig string
	audit      string // the API server's audit log
	edge       *simulator.Server
	api        string
	program    string
	dir        string
	runs       int // of the controller
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{whole: t, dir: t.TempDir()}
	log, audited, err := cluster.Audit(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.audit = log
	w.control, err = cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr, APIServer: audited, CRDs: gatewayAPIOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.control.Stop(); err != nil {
			t.Error(err)
		}
	})
	w.kubeconfig = filepath.Join(w.dir, "admin")
	if err := w.control.Kubeconfig(w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	scheme := controller.Scheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if w.kube, err = client.New(w.control.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.startEdge(t)
	w.program = filepath.Join(w.dir, "tunnel-gateway")
	if err := controllerproc.Build(t.Context(), w.program); err != nil {
		t.Fatal(err)
	}
	return w
}

func gatewayAPIOnly(usual []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	var kept []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range usual {
		if crd.Spec.Group != "tunnelgateway.dev" {
			kept = append(kept, crd)
		}
	}
	return kept
}

func (w *world) startEdge(t *testing.T) {
	w.edge = simulator.New(simulator.Options{Dial: dialBackend, AccountID: account, Token: apiToken})
	server := httptest.NewServer(w.edge.API())
	w.api = server.URL + "/client/v4"
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		w.edge.Close()
	})
}

// dialBackend reaches a backend that answers with the Service's name.
func dialBackend(_ context.Context, _, address string) (net.Conn, error) {
	near, far := net.Pipe()
	service, _, _ := strings.Cut(address, ".svc.")
	go func() {
		listener := &onePipe{conns: make(chan net.Conn, 1)}
		listener.conns <- far
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, service) })) // #nosec G114 -- a test
	}()
	return near, nil
}

// onePipe is a listener of one connection.
type onePipe struct{ conns chan net.Conn }

func (l *onePipe) Accept() (net.Conn, error) { return <-l.conns, nil }
func (*onePipe) Close() error                { return nil }
func (*onePipe) Addr() net.Addr              { return &net.UnixAddr{} }

// ask makes a request through the tunnel, and returns which Service answered,
// or the status.
func (w *world) ask(tunnel, host string) string {
	id, ok := w.edge.TunnelID(tunnel)
	if !ok {
		return "no tunnel"
	}
	recorder := httptest.NewRecorder()
	w.edge.Tunnel(id).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "http://"+host+"/", http.NoBody))
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// helm runs Helm against the cluster.
func (w *world) helm(t *testing.T, arguments ...string) {
	t.Helper()
	mustHelm(t, append(arguments, "--kubeconfig", w.kubeconfig)...)
}

// create creates the objects; those that are there already stay.
func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.kube.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating %T %s: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
}

// apply creates the objects of the manifests at the path.
func (w *world) apply(t *testing.T, path string) {
	t.Helper()
	set, err := manifest.Read([]string{path}, manifest.Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	w.create(t, set.Objects...)
}

// get reads the object again.
func get[T client.Object](t *testing.T, w *world, object T) T {
	t.Helper()
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatalf("reading %T %s: %v", object, client.ObjectKeyFromObject(object), err)
	}
	return object
}

// change reads the object, changes it and writes it.
func change[T client.Object](t *testing.T, w *world, object T, how func(T)) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s to be changed", object, object.GetName()), func() error {
		if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		how(object)
		return w.kube.Update(t.Context(), object)
	})
}

func (w *world) isGone(t *testing.T, object client.Object) error {
	err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	text, _ := json.Marshal(object)
	return fmt.Errorf("it is there: %s", text)
}

func namespaceCalled(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func tokenSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudflare"}, Data: map[string][]byte{"token": []byte(apiToken)}}
}

// eventually waits until there is no error.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, errors.Join(last, err))
	}
}

// running is a controller that runs as the chart's Deployment says, with its
// ServiceAccount's permissions.
type running struct {
	whole           *testing.T
	namespace, user string
	// earlier is the number of requests of the user before the controller was
	// started.
	earlier int
	log     string
	process *controllerproc.Process
}

// run starts what the Deployment's pod would. A list before the watch, rather
// than one inside of it, shows in the audit log what is asked for.
func (w *world) run(t *testing.T, pod corev1.PodSpec, namespace string) *running {
	t.Helper()
	return w.runAt(t, pod, namespace, w.control.Config, "KUBE_FEATURE_WatchListClient=false")
}

// runAt starts it with another way to the API server and more in its
// environment.
func (w *world) runAt(t *testing.T, pod corev1.PodSpec, namespace string, server *rest.Config, environment ...string) *running {
	t.Helper()
	kubeconfig := filepath.Join(w.dir, "identity-"+namespace)
	user, err := cluster.Identity(t.Context(), w.control.Config, namespace, pod.ServiceAccountName, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := pointTo(kubeconfig, server); err != nil {
		t.Fatal(err)
	}
	w.runs++
	r := &running{whole: w.whole, namespace: namespace, user: user, earlier: len(w.requests(t, user)), log: filepath.Join(w.dir, fmt.Sprintf("log-%s-%d", namespace, w.runs))}
	out, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	// Further flags win: the machine's ports may be taken.
	arguments := append(pod.Containers[0].Args, "--kubeconfig="+kubeconfig, "--metrics-address=127.0.0.1:0", "--health-address=0")
	command := exec.Command(w.program, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = out, out
	if r.process, err = controllerproc.Run(command); err != nil {
		t.Fatal(err)
	}
	w.whole.Cleanup(func() {
		r.stop()
		_ = out.Close()
		if w.whole.Failed() {
			w.whole.Logf("the controller's log %s:\n%s", r.log, tail(r.said(w.whole), 60))
		}
	})
	return r
}

// pointTo has the kubeconfig lead to another server.
func pointTo(kubeconfig string, server *rest.Config) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, known := range config.Clusters {
		known.Server, known.CertificateAuthorityData = server.Host, server.CAData
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

// said is what the controller has logged.
func (r *running) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.log)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// stop ends the controller, if it runs.
func (r *running) stop() {
	if err := r.process.Stop(); err != nil {
		r.whole.Error(err)
	}
}

// ends waits until the controller ends by itself, in order.
func (r *running) ends(t *testing.T) {
	t.Helper()
	eventually(t, "the controller to end", func() error {
		select {
		case <-r.process.Exited():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	r.stop()
}
