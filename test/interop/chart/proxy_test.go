package chart

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// recordingProxy is a proxy for the API server that records the responses to list and
// watch requests for Secrets. The audit log does not contain watch events.
type recordingProxy struct {
	server *httptest.Server

	mu        sync.Mutex
	responses []*secretResponse
}

// secretResponse is a response to a list or watch request for Secrets.
type secretResponse struct {
	accept string
	query  url.Values
	mu     sync.Mutex
	body   bytes.Buffer
}

func newRecordingProxy(t *testing.T, e *environment) *recordingProxy {
	t.Helper()
	target, err := url.Parse(e.controlPlane.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	// The requests contain the controller's credentials.
	trusted, err := rest.TLSConfigFor(&rest.Config{Host: e.controlPlane.Config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: e.controlPlane.Config.CAData}})
	if err != nil {
		t.Fatal(err)
	}
	p := &recordingProxy{}
	p.server = httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: trusted},
		FlushInterval:  -1, // forward each watch event immediately
		ModifyResponse: p.record,
	})
	e.t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// config returns a client configuration that connects to the proxy.
func (p *recordingProxy) config() *rest.Config {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &rest.Config{Host: p.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// record copies the response body while the controller reads it.
func (p *recordingProxy) record(response *http.Response) error {
	request := response.Request
	if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/secrets") {
		return nil
	}
	recorded := &secretResponse{accept: request.Header.Get("Accept"), query: request.URL.Query()}
	p.mu.Lock()
	p.responses = append(p.responses, recorded)
	p.mu.Unlock()
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(response.Body, recorded), response.Body}
	return nil
}

// Write implements io.Writer.
func (r *secretResponse) Write(part []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.Write(part)
}

func (r *secretResponse) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.String()
}

// checkSecrets checks that the API server sends only the metadata of Secrets: the
// responses contain the given name but not the given content. At least one response with
// the name is from a watch that replaces the list request.
func (p *recordingProxy) checkSecrets(t *testing.T, content, name string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	named, streamed := false, false
	for _, r := range p.responses {
		if first, _, _ := strings.Cut(r.accept, ","); !strings.Contains(first, ";as=PartialObjectMetadata") {
			t.Errorf("the controller requests Secrets as %q, not as metadata", r.accept)
		}
		text := r.text()
		if strings.Contains(text, content) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(content))) {
			t.Errorf("the response to %v contains the content of a Secret", r.query)
		}
		found := strings.Contains(text, name)
		named, streamed = named || found, streamed || found && r.query.Get("watch") != "" && r.query.Get("sendInitialEvents") == "true"
	}
	if !named || !streamed {
		t.Errorf("%d responses: one contains the name %s: %v; one of these is a watch that begins with all objects: %v", len(p.responses), name, named, streamed)
	}
}
