package load

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/websocket"
)

// The backend's paths. Every response begins with its path.
const (
	fastPath      = "/fast"
	slowPath      = "/slow"
	streamPath    = "/stream"
	webSocketPath = "/websocket"
)

const (
	// slowness is how long the backend takes for a slow answer.
	slowness = time.Second
	// beat is the interval between messages on a WebSocket or a stream.
	beat = 100 * time.Millisecond
)

// Backend returns a handler that responds to the requests in a [Load].
func Backend() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(fastPath, answer)
	mux.HandleFunc(slowPath, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(slowness)
		answer(w, r)
	})
	mux.HandleFunc(streamPath, stream)
	mux.Handle(webSocketPath, websocket.Server{Handler: func(c *websocket.Conn) { _, _ = io.Copy(c, c) }})
	return mux
}

// answer returns the request's path and body.
func answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	_, _ = fmt.Fprintf(w, "%s %s", r.URL.Path, body) // #nosec G705 -- plain text
}

// stream sends a line at each beat until the client disconnects.
func stream(w http.ResponseWriter, r *http.Request) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		if _, err := fmt.Fprintln(w, r.URL.Path); err != nil || http.NewResponseController(w).Flush() != nil { // #nosec G705 -- plain text
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}
