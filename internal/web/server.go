package web

import (
	"crypto/rand"
	"net/http"
)

// Options configure a [Server].
type Options struct {
	Feed *Feed
	// Hosts are the values for the header Host that the server answers, such as
	// "127.0.0.1:8088". Others are attempts at DNS rebinding.
	Hosts []string
	// Input names what is shown, such as "context production with 2 files".
	Input string
}

// Server serves the page. It answers only GET and HEAD, and only visitors with a session,
// which begins with the link that [Server.NewLink] returns. Its event streams end with the
// context of the request, so the http.Server's BaseContext must end for a shutdown.
type Server struct {
	Options
	id       string // random
	sessions *sessions
	streams  chan struct{} // has an element for each event stream
	handler  http.Handler

	comparisons comparisons
}

// NewServer returns a server without sessions.
func NewServer(o Options) *Server {
	s := &Server{Options: o, id: rand.Text(), sessions: newSessions(), streams: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name...}", serveAsset)
	mux.HandleFunc("GET /events", s.serveEvents)
	for _, p := range pages() {
		mux.Handle("GET "+p.pattern, s.page(p))
	}
	s.handler = s.protect(mux)
	return s
}

// NewLink returns the path and query for a link that begins one session. It ends earlier
// links that were not used.
func (s *Server) NewLink() string { return "/?" + tokenParameter + "=" + s.sessions.newToken() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }
