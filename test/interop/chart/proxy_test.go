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

// proxy stands in front of the API server and keeps what it answers to lists and
// watches of Secrets: the audit log says nothing of what a watch sends.
type proxy struct {
	server *httptest.Server

	mu      sync.Mutex
	answers []*answer
}

// answer is one to a list or a watch of Secrets.
type answer struct {
	accept string
	query  url.Values
	mu     sync.Mutex
	body   bytes.Buffer
}

func newProxy(t *testing.T, w *world) *proxy {
	t.Helper()
	target, err := url.Parse(w.control.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	// As whom is in the requests.
	trusted, err := rest.TLSConfigFor(&rest.Config{Host: w.control.Config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: w.control.Config.CAData}})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	p.server = httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: trusted},
		FlushInterval:  -1, // a watch is answered bit by bit
		ModifyResponse: p.keep,
	})
	w.whole.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// config leads to the proxy.
func (p *proxy) config() *rest.Config {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &rest.Config{Host: p.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// keep keeps the answer while it is read.
func (p *proxy) keep(response *http.Response) error {
	request := response.Request
	if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/secrets") {
		return nil
	}
	a := &answer{accept: request.Header.Get("Accept"), query: request.URL.Query()}
	p.mu.Lock()
	p.answers = append(p.answers, a)
	p.mu.Unlock()
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(response.Body, a), response.Body}
	return nil
}

// Write implements io.Writer.
func (a *answer) Write(part []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.body.Write(part)
}

func (a *answer) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.body.String()
}

// checkSecrets: what was sent of Secrets is metadata. It has to have the name of
// one and must not have the content of another, and part of it has to be the
// beginning of a watch, which takes the place of a list.
func (p *proxy) checkSecrets(t *testing.T, content, name string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	named, streamed := false, false
	for _, a := range p.answers {
		if first, _, _ := strings.Cut(a.accept, ","); !strings.Contains(first, ";as=PartialObjectMetadata") {
			t.Errorf("Secrets are asked for as %q", a.accept)
		}
		text := a.text()
		if strings.Contains(text, content) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(content))) {
			t.Errorf("the answer to %v has the content of a Secret", a.query)
		}
		found := strings.Contains(text, name)
		named, streamed = named || found, streamed || found && a.query.Get("watch") != "" && a.query.Get("sendInitialEvents") == "true"
	}
	if !named || !streamed {
		t.Errorf("of %d answers one has the name %s: %v, and in a watch that begins with all objects: %v", len(p.answers), name, named, streamed)
	}
}
