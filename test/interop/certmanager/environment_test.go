package certmanager

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// configurationPath is the API path to which the controller pushes configurations.
const configurationPath = "/accounts/*/cfd_tunnel/*/configurations"

// environment is a simulated Cloudflare and a controller that uses it.
type environment struct {
	id             string // cluster ID, and prefix for unique names
	controllerName string // controllerName in its GatewayClasses
	edge           *simulator.Server
}

// newEnvironment starts an environment with a unique controller name.
func newEnvironment() *environment {
	GinkgoHelper()
	id := "env-" + rand.String(6)
	return startEnvironment(id, "tunnelgateway.dev/"+id)
}

// newSampleEnvironment starts an environment for the GatewayClass in the samples.
func newSampleEnvironment() *environment {
	GinkgoHelper()
	return startEnvironment("samples-"+rand.String(6), config.DefaultControllerName)
}

func startEnvironment(id, controller string) *environment {
	GinkgoHelper()
	e := &environment{id: id, controllerName: controller, edge: simulator.New(simulator.Options{Dial: simulator.NamedOrigins(serviceName)})}
	api := httptest.NewServer(e.edge.API())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id + "-system"}}
	Expect(kube.Create(context.Background(), namespace)).To(Succeed())
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: controllerBinary, Kubeconfig: kubeconfig, ControllerNamespace: namespace.Name, ClusterID: id, Cloudflare: api.URL + "/client/v4",
		Flags: []string{"--controller-name=" + controller}, Output: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(p.Stop()).To(Succeed())
		api.CloseClientConnections()
		api.Close()
		e.edge.Close()
	})
	return e
}

// pushes counts the configurations that the controller has pushed since the recorded
// requests were last reset.
func (e *environment) pushes() int { return e.edge.Count(http.MethodPut, configurationPath) }

// answer sends a request through the Gateway's tunnel. It returns the Service that
// responded as "service.namespace", or the status code if it is not 200.
func (e *environment) answer(gateway, host, path string) string {
	GinkgoHelper()
	id, ok := e.edge.TunnelID(e.id + "." + strings.ReplaceAll(gateway, "/", "."))
	if !ok {
		return "no tunnel"
	}
	recorder := httptest.NewRecorder()
	e.edge.Tunnel(id).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "http://"+host+path, http.NoBody))
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// serviceName returns the Service at the address as "service.namespace".
func serviceName(address string) string {
	return strings.Join(strings.SplitN(address, ".", 3)[:2], ".")
}
