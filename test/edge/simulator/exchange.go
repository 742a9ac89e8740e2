package simulator

import (
	"io"
	"maps"
	"net/http"
	"sync/atomic"
)

// newExchange lets the response to a request with a body end before the request, and
// forwards the request's trailer. The caller uses the returned writer and request instead
// of its own.
func newExchange(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return w, r
	}
	forwarded := r.WithContext(r.Context())
	if forwarded.Trailer = r.Trailer.Clone(); forwarded.Trailer == nil {
		forwarded.Trailer = http.Header{} // a trailer need not be announced
	}
	body := &requestBody{ReadCloser: r.Body, received: r, trailer: forwarded.Trailer}
	forwarded.Body = body
	return &answer{w, body}, forwarded
}

// requestBody is a request body. When it ends, it sets the trailer of the forwarded
// request; net/http sets only that of the received one.
type requestBody struct {
	io.ReadCloser
	received *http.Request
	trailer  http.Header
	ended    atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		maps.Copy(b.trailer, b.received.Trailer)
		b.ended.Store(true)
	}
	return n, err
}

// answer is the answer to a request with a body.
type answer struct {
	http.ResponseWriter
	body *requestBody
}

// WriteHeader announces that an HTTP/1 connection ends with the response if the response
// may end before the request. Otherwise net/http reads the rest of the request before it
// sends the response.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.body.received.ProtoMajor == 1 && !a.body.ended.Load() {
		a.Header().Set("Connection", "close")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
