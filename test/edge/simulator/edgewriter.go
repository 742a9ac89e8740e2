package simulator

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
)

// edgeWriter writes an answer as the edge does: with its own header Server and the header
// CF-Ray. It replaces the page of an origin that returns 502 or 504. (Source: "Cloudflare
// returns a Cloudflare-branded HTTP 502 or 504 error when your origin web server responds with
// a standard HTTP 502 bad gateway or 504 gateway timeout error." Whether it keeps the origin's
// other headers is uncertain; the simulator does.)
type edgeWriter struct {
	http.ResponseWriter
	request  *http.Request
	written  bool
	replaced bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *edgeWriter) WriteHeader(status int) {
	if w.written || status < http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.written = true
	header := w.Header()
	header.Set("Server", "cloudflare")
	header.Set("Cf-Ray", newRay())
	isGRPC := strings.HasPrefix(header.Get("Content-Type"), "application/grpc")
	if (status == http.StatusBadGateway || status == http.StatusGatewayTimeout) && !isGRPC {
		w.replaced = true
		header.Del("Content-Encoding")
		header.Del("Trailer")
		edgeError(status).ServeHTTP(w.ResponseWriter, w.request)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *edgeWriter) Write(p []byte) (int, error) {
	if !w.written {
		w.WriteHeader(http.StatusOK)
	}
	if w.replaced {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (w *edgeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// newRay returns a value for CF-Ray: 16 hexadecimal digits and the code of a data center.
func newRay() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id) + "-SIM"
}
