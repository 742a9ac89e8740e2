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

// putConfiguration is the path of a push as the simulator counts it.
const putConfiguration = "/accounts/*/cfd_tunnel/*/configurations"

// world is a Cloudflare and a controller of its own.
type world struct {
	id         string // of the cluster, and for names that are the world's alone
	controller string // the name that its GatewayClasses carry
	edge       *simulator.Server
}

// newWorld starts one for GatewayClasses of a name that nobody else uses.
func newWorld() *world {
	GinkgoHelper()
	id := "w-" + rand.String(6)
	return startWorld(id, "tunnelgateway.dev/"+id)
}

// sampleWorld starts one for the GatewayClass of the samples.
func sampleWorld() *world {
	GinkgoHelper()
	return startWorld("samples-"+rand.String(6), config.DefaultControllerName)
}

func startWorld(id, controller string) *world {
	GinkgoHelper()
	w := &world{id: id, controller: controller, edge: simulator.New(simulator.Options{Dial: simulator.NamedOrigins(serviceAt)})}
	api := httptest.NewServer(w.edge.API())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id + "-system"}}
	Expect(kube.Create(context.Background(), namespace)).To(Succeed())
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: gatewayProgram, Kubeconfig: kubeconfig, ControllerNamespace: namespace.Name, ClusterID: id, Cloudflare: api.URL + "/client/v4",
		Flags: []string{"--controller-name=" + controller}, Output: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(p.Stop()).To(Succeed())
		api.CloseClientConnections()
		api.Close()
		w.edge.Close()
	})
	return w
}

// pushes returns how many documents were sent to Cloudflare since the requests
// were last forgotten.
func (w *world) pushes() int { return w.edge.Count(http.MethodPut, putConfiguration) }

// get makes a request through the tunnel of the Gateway and returns which
// Service answered, as service.namespace, or the status of the edge's own
// answer.
func (w *world) get(gateway, host, path string) string {
	GinkgoHelper()
	id, ok := w.edge.TunnelID(w.id + "." + strings.ReplaceAll(gateway, "/", "."))
	if !ok {
		return "no tunnel"
	}
	recorder := httptest.NewRecorder()
	w.edge.Tunnel(id).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "http://"+host+path, http.NoBody))
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// serviceAt returns which Service is meant by an address, as service.namespace.
func serviceAt(address string) string {
	return strings.Join(strings.SplitN(address, ".", 3)[:2], ".")
}
