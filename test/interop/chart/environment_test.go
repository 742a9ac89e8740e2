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
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	account  = "0123456789abcdef0123456789abcdef"
	apiToken = "api-token"
	// timeout is long enough for a busy machine.
	timeout = 2 * time.Minute
)

// environment is a cluster without the controller's CRDs, a simulated Cloudflare, and a
// controller binary.
type environment struct {
	t            *testing.T // for the whole test, not one of its steps
	controlPlane *cluster.Cluster
	kube         client.Client
	kubeconfig   string
	auditLog     string // the API server's
	edge         *simulator.Server
	apiURL       string
	binary       string
	dir          string
	starts       int // how often the controller was started
}

// newEnvironment starts the control plane and the simulated Cloudflare, and builds
// the controller.
func newEnvironment(t *testing.T) *environment {
	t.Helper()
	e := &environment{t: t, dir: t.TempDir()}
	log, audited, err := cluster.Audit(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	e.auditLog = log
	e.startCluster(t, cluster.Options{Progress: os.Stderr, APIServer: audited, CRDs: withServiceImports})
	e.startEdge(t, simulator.Options{Dial: dialBackend, AccountID: account, Token: apiToken})
	e.binary = filepath.Join(e.dir, "tunnel-gateway")
	if err := controllerproc.Build(t.Context(), e.binary); err != nil {
		t.Fatal(err)
	}
	return e
}

// startCluster starts the control plane.
func (e *environment) startCluster(t *testing.T, o cluster.Options) {
	t.Helper()
	var err error
	if e.controlPlane, err = cluster.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.controlPlane.Stop(); err != nil {
			t.Error(err)
		}
	})
	e.kubeconfig = filepath.Join(e.dir, "admin")
	if err := e.controlPlane.Kubeconfig(e.kubeconfig); err != nil {
		t.Fatal(err)
	}
	scheme := controller.Scheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if e.kube, err = client.New(e.controlPlane.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
}

// gatewayAPICRDs removes the controller's CRDs, which the chart installs.
func gatewayAPICRDs(crds []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	return slices.DeleteFunc(slices.Clone(crds), func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Group == "tunnelgateway.dev"
	})
}

// withServiceImports also adds the optional CRD, so that the controller uses its permission
// for ServiceImports.
func withServiceImports(crds []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	return append(gatewayAPICRDs(crds), cluster.ServiceImportCRD("v1beta1"))
}

// startEdge starts the simulated Cloudflare.
func (e *environment) startEdge(t *testing.T, o simulator.Options) {
	e.edge = simulator.New(o)
	server := httptest.NewServer(e.edge.API())
	e.apiURL = server.URL + "/client/v4"
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		e.edge.Close()
	})
}

// dialBackend connects to a backend that returns its Service's name.
func dialBackend(_ context.Context, _, address string) (net.Conn, error) {
	local, remote := net.Pipe()
	service, _, _ := strings.Cut(address, ".svc.")
	go func() {
		listener := &singleConnListener{conns: make(chan net.Conn, 1)}
		listener.conns <- remote
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, service) })) // #nosec G114 -- a test
	}()
	return local, nil
}

// singleConnListener is a listener that accepts a single connection.
type singleConnListener struct{ conns chan net.Conn }

func (l *singleConnListener) Accept() (net.Conn, error) { return <-l.conns, nil }
func (*singleConnListener) Close() error                { return nil }
func (*singleConnListener) Addr() net.Addr              { return &net.UnixAddr{} }

// answer sends a request for the host through the tunnel, with headers as "Name: value".
// It returns the name of the Service that responded, or the status code if it is not 200.
func (e *environment) answer(tunnel, host string, headers ...string) string {
	id, ok := e.edge.TunnelID(tunnel)
	if !ok {
		return "no tunnel"
	}
	request := httptest.NewRequest(http.MethodGet, "http://"+host+"/", http.NoBody)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	e.edge.Tunnel(id).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// helm runs Helm against the cluster.
func (e *environment) helm(t *testing.T, arguments ...string) {
	t.Helper()
	mustHelm(t, append(arguments, "--kubeconfig", e.kubeconfig)...)
}

// create creates the objects. Existing objects stay unchanged.
func (e *environment) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := e.kube.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create %T %s: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
}

// apply creates the objects in the manifests at the path.
func (e *environment) apply(t *testing.T, path string) {
	t.Helper()
	set, err := manifest.Read([]string{path}, manifest.Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	e.create(t, set.Objects...)
}

// get reads the object from the API server.
func get[T client.Object](t *testing.T, e *environment, object T) T {
	t.Helper()
	if err := e.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatalf("get %T %s: %v", object, client.ObjectKeyFromObject(object), err)
	}
	return object
}

// change gets the object, mutates it and updates it.
func change[T client.Object](t *testing.T, e *environment, object T, mutate func(T)) {
	t.Helper()
	eventually(t, fmt.Sprintf("the update of %T %s", object, object.GetName()), func() error {
		if err := e.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		mutate(object)
		return e.kube.Update(t.Context(), object)
	})
}

// checkDeleted returns an error unless the object does not exist.
func (e *environment) checkDeleted(t *testing.T, object client.Object) error {
	err := e.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	text, _ := json.Marshal(object)
	return fmt.Errorf("the object exists: %s", text)
}

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func tokenSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudflare"}, Data: map[string][]byte{"token": []byte(apiToken)}}
}

// eventually retries check until it returns no error.
func eventually(t *testing.T, name string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", name, errors.Join(last, err))
	}
}

// runningController is a controller that runs with the arguments in the chart's
// Deployment and its ServiceAccount's permissions.
type runningController struct {
	t               *testing.T
	namespace, user string
	// earlierRequests counts the requests that the user had sent before the controller
	// started.
	earlierRequests int
	logFile         string
	process         *controllerproc.Process
}

// startController starts the controller as in the Deployment's pod. It disables
// WatchList: a separate list request shows in the audit log how the controller requests
// the objects.
func (e *environment) startController(t *testing.T, pod corev1.PodSpec, namespace string) *runningController {
	t.Helper()
	return e.startControllerAt(t, pod, namespace, e.controlPlane.Config, "KUBE_FEATURE_WatchListClient=false")
}

// startControllerAt starts the controller with another connection to the API
// server and with additional environment variables.
func (e *environment) startControllerAt(t *testing.T, pod corev1.PodSpec, namespace string, server *rest.Config, environment ...string) *runningController {
	t.Helper()
	kubeconfig := filepath.Join(e.dir, "identity-"+namespace)
	user, err := cluster.Identity(t.Context(), e.controlPlane.Config, namespace, pod.ServiceAccountName, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := setServer(kubeconfig, server); err != nil {
		t.Fatal(err)
	}
	e.starts++
	r := &runningController{t: e.t, namespace: namespace, user: user, earlierRequests: len(e.requests(t, user)), logFile: filepath.Join(e.dir, fmt.Sprintf("log-%s-%d", namespace, e.starts))}
	out, err := os.Create(r.logFile)
	if err != nil {
		t.Fatal(err)
	}
	// Later flags take precedence. The default ports may be in use on this machine.
	arguments := append(pod.Containers[0].Args, "--kubeconfig="+kubeconfig, "--metrics-address=127.0.0.1:0", "--health-address=0", "--xds-bind-address=127.0.0.1:0")
	command := exec.Command(e.binary, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = out, out
	if r.process, err = controllerproc.Run(command); err != nil {
		t.Fatal(err)
	}
	e.t.Cleanup(func() {
		r.stop()
		_ = out.Close()
		if e.t.Failed() {
			e.t.Logf("last lines of the controller's log %s:\n%s", r.logFile, tail(r.readLog(e.t), 60))
		}
	})
	return r
}

// setServer replaces the server in the kubeconfig.
func setServer(kubeconfig string, server *rest.Config) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData = server.Host, server.CAData
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

// readLog returns the controller's log.
func (r *runningController) readLog(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.logFile)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// tail returns the text's last lines.
func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// stop stops the controller if it is running.
func (r *runningController) stop() {
	if err := r.process.Stop(); err != nil {
		r.t.Error(err)
	}
}

// waitForExit waits until the controller exits without being stopped.
func (r *runningController) waitForExit(t *testing.T) {
	t.Helper()
	eventually(t, "the controller to exit", func() error {
		select {
		case <-r.process.Exited():
			return nil
		default:
			return errors.New("the controller is running")
		}
	})
	r.stop()
}
