package faults

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// apiProxy forwards the controllers' requests to the API server, unless a fault answers them.
type apiProxy struct {
	server     *httptest.Server
	kubeconfig string // path

	mu     sync.Mutex
	fault  func(*http.Request) http.HandlerFunc // returns nil for requests to forward
	faulty int                                  // counts the requests that the fault answered
}

// newAPIProxy starts a proxy, and writes a kubeconfig with the identity and the proxy's address.
func newAPIProxy(w *world, identity string) *apiProxy {
	w.Helper()
	direct, err := clientcmd.BuildConfigFromFlags("", identity)
	w.must(err)
	target, err := url.Parse(direct.Host)
	w.must(err)
	transport, err := rest.TransportFor(&rest.Config{Host: direct.Host, TLSClientConfig: rest.TLSClientConfig{CAData: direct.CAData}})
	w.must(err)
	p := &apiProxy{kubeconfig: filepath.Join(w.dir, "kubeconfig")}
	quiet := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		// The controller sees a lost connection, not an answer of this proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := p.answer(r); handler != nil {
			handler(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	p.server.Config.ErrorLog = quiet
	p.server.StartTLS()
	w.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	config, err := clientcmd.LoadFromFile(identity)
	w.must(err)
	for _, c := range config.Clusters {
		c.Server = p.server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	w.must(clientcmd.WriteToFile(*config, p.kubeconfig))
	return p
}

// answer returns the fault's handler for the request, or nil.
func (p *apiProxy) answer(r *http.Request) http.HandlerFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		return nil
	}
	handler := p.fault(r)
	if handler != nil {
		p.faulty++
	}
	return handler
}

// inject starts a fault and closes all connections. Nil ends the fault.
func (p *apiProxy) inject(fault func(*http.Request) http.HandlerFunc) {
	p.mu.Lock()
	p.fault, p.faulty = fault, 0
	p.mu.Unlock()
	if fault != nil {
		p.server.CloseClientConnections()
	}
}

// answered counts the requests that the current fault has answered.
func (p *apiProxy) answered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faulty
}

// unreachable closes every connection.
func unreachable(*http.Request) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
}

// expired answers every watch as the API server does if it no longer has the resource version.
func expired(r *http.Request) http.HandlerFunc {
	if r.URL.Query().Get("watch") == "" {
		return nil
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": metav1.Status{ // the client may have disconnected
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version: 1 (2)",
		}})
	}
}

// expiry makes the watches of one client expire.
type expiry struct{ all atomic.Bool }

// wrap returns a transport that answers watches with [expired] while all is set.
func (e *expiry) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		handler := expired(r)
		if handler == nil || !e.all.Load() {
			return next.RoundTrip(r)
		}
		recorder := httptest.NewRecorder()
		handler(recorder, r)
		return recorder.Result(), nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
