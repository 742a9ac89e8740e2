package web

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// keepAlive is how often an unchanged stream gets the event "alive". page.js regards a
	// stream without events for three times as long as lost.
	keepAlive = 5 * time.Second
	// writeTimeout is how long a visitor may take to receive an event.
	writeTimeout = 10 * time.Second
	// maxStreams limits the event streams. A browser opens at most six for one address.
	maxStreams = 64
)

// serveEvents sends the event "state" with the server's ID and the revision at first and after
// each change of the [State]. The stream ends with the request's context.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead { // asks whether the session exists
		return
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "Too many pages are open.")
		return
	}
	s.stream(r, func(event, data string) error {
		control := http.NewResponseController(w)
		if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
			return err
		}
		return control.Flush()
	})
}

// stream sends events until send fails or the request ends.
func (s *Server) stream(r *http.Request, send func(event, data string) error) {
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	for {
		state := s.Feed.State()
		if send("state", fmt.Sprintf("%s %d", s.id, state.Revision)) != nil {
			return
		}
		for unchanged := true; unchanged; {
			select {
			case <-r.Context().Done():
				return
			case <-state.Changed:
				unchanged = false
			case <-ticker.C:
				if send("alive", "") != nil {
					return
				}
			}
		}
	}
}
