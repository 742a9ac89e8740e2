package integration

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// apiProxy forwards a controller's requests to the API server, and can return errors for
// some requests.
type apiProxy struct {
	server     *httptest.Server
	kubeconfig string // path

	mu           sync.Mutex
	fault        *apiFault // nil forwards all requests
	gatewayReads int       // requests to read Gateways that failed because of the fault
	secretReads  []string  // requests to read a single Secret or its metadata
}

// apiFault describes which requests the proxy does not forward, and its
// responses to them.
type apiFault struct {
	// matches reports whether requests for the path fail.
	matches func(path string) bool
	handler http.HandlerFunc
	// hidesGateways removes Gateways from discovery.
	hidesGateways bool
}

// newAPIProxy starts a proxy. It writes a kubeconfig with the controller's usual identity
// and the proxy's address.
func newAPIProxy() *apiProxy {
	GinkgoHelper()
	direct, err := clientcmd.BuildConfigFromFlags("", controllerKubeconfig)
	Expect(err).NotTo(HaveOccurred())
	target, err := url.Parse(direct.Host)
	Expect(err).NotTo(HaveOccurred())
	// The controller's requests already contain its credentials.
	transport, err := rest.TransportFor(&rest.Config{Host: direct.Host, TLSClientConfig: rest.TLSClientConfig{CAData: direct.CAData}})
	Expect(err).NotTo(HaveOccurred())
	p := &apiProxy{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding") // so that ModifyResponse can read the response
		},
		Transport:      transport,
		FlushInterval:  -1, // for watches
		ModifyResponse: p.hideGateways,
		ErrorLog:       log.New(GinkgoWriter, "", 0),
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := p.faultFor(r); handler != nil {
			handler(w, r)
			return
		}
		p.recordSecretRead(r)
		forward.ServeHTTP(w, r)
	}))
	p.server.Config.ErrorLog = forward.ErrorLog
	p.server.StartTLS()
	DeferCleanup(func() {
		// The controller still runs. If it connected again, Close would wait for its watches.
		_ = p.server.Listener.Close()
		p.server.CloseClientConnections()
		p.server.Close()
	})
	p.writeKubeconfig()
	return p
}

func (p *apiProxy) writeKubeconfig() {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(controllerKubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, c := range config.Clusters {
		c.Server = p.server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	p.kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, p.kubeconfig)).To(Succeed())
}

// inject starts a fault. It closes all connections, so that the controller must
// restart its watches.
func (p *apiProxy) inject(fault *apiFault) {
	p.setFault(fault)
	p.server.CloseClientConnections()
}

// clear ends the fault.
func (p *apiProxy) clear() { p.setFault(nil) }

func (p *apiProxy) setFault(fault *apiFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.gatewayReads = fault, 0
}

// failedReads counts the requests to read Gateways that failed because of the current
// fault.
func (p *apiProxy) failedReads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gatewayReads
}

var secretPath = regexp.MustCompile("^/api/v1/namespaces/[^/]+/secrets/[^/]+$")

// recordSecretRead records a request to read a Secret.
func (p *apiProxy) recordSecretRead(r *http.Request) {
	if r.Method != http.MethodGet || !secretPath.MatchString(r.URL.Path) {
		return
	}
	part := "content"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		part = "metadata"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secretReads = append(p.secretReads, part+" of "+r.URL.Path)
}

// takeSecretReads returns the Secret reads since the last call.
func (p *apiProxy) takeSecretReads() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	reads := p.secretReads
	p.secretReads = nil
	return reads
}

// faultFor returns the handler for a request that fails, or nil to forward it.
func (p *apiProxy) faultFor(r *http.Request) http.HandlerFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil || !p.fault.matches(r.URL.Path) {
		return nil
	}
	if r.Method == http.MethodGet && isGatewayPath(r.URL.Path) {
		p.gatewayReads++
	}
	return p.fault.handler
}

// hideGateways removes Gateways from discovery if the current fault hides them.
func (p *apiProxy) hideGateways(response *http.Response) error {
	p.mu.Lock()
	hidden := p.fault != nil && p.fault.hidesGateways
	p.mu.Unlock()
	path := response.Request.URL.Path
	isDiscovery, _ := regexp.MatchString("^/apis(/"+regexp.QuoteMeta(gatewayv1.GroupName)+"/[^/]+)?$", path)
	if !hidden || !isDiscovery || response.StatusCode != http.StatusOK {
		return nil
	}
	var document any
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		return fmt.Errorf("decode the discovery document %s: %w", path, err)
	}
	text, err := json.Marshal(withoutGateways(document))
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	response.Header.Set("Content-Length", fmt.Sprint(len(text)))
	return nil
}

// withoutGateways removes Gateways and their status from a discovery document, which is
// either aggregated or describes one API version.
func withoutGateways(document any) any {
	switch d := document.(type) {
	case []any:
		d = slices.DeleteFunc(d, func(element any) bool {
			resource, _ := element.(map[string]any)
			return resource["resource"] == "gateways" || resource["name"] == "gateways" || resource["name"] == "gateways/status"
		})
		for i := range d {
			d[i] = withoutGateways(d[i])
		}
		return d
	case map[string]any:
		for key := range d {
			d[key] = withoutGateways(d[key])
		}
	}
	return document
}

// isGatewayPath reports whether the path refers to all Gateways, a single Gateway, or a
// Gateway's status.
func isGatewayPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/apis/"+gatewayv1.GroupName+"/")
	parts := strings.Split(rest, "/") // the version comes first
	if len(parts) > 3 && parts[1] == "namespaces" {
		parts = parts[2:]
	}
	return ok && len(parts) > 1 && parts[1] == "gateways"
}

// anyPath matches every request.
func anyPath(string) bool { return true }

// forbidden responds like the API server when the controller lacks a permission.
func forbidden(w http.ResponseWriter, r *http.Request) {
	writeStatus(w, metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf("forbidden: cannot %s path %q", r.Method, r.URL.Path),
	})
}

// resourceNotServed responds like the API server for a resource that it does
// not serve.
func resourceNotServed(w http.ResponseWriter, _ *http.Request) {
	writeStatus(w, metav1.Status{
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{Group: gatewayv1.GroupName, Kind: "gateways"},
	})
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta, status.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may have disconnected
}

// pageNotFound responds like a load balancer without a backend.
func pageNotFound(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
