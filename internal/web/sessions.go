package web

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"sync"
)

const (
	tokenParameter = "token"
	sessionCookie  = "tunnel-gateway-ui"
	// maxSessions limits the sessions. A new one ends the oldest.
	maxSessions = 32
)

// sessions are the browsers that used a link. They end with the process.
type sessions struct {
	mu    sync.Mutex
	token string   // in the link that was not used yet; empty if there is none
	ids   []string // the oldest first
}

func newSessions() *sessions { return &sessions{} }

// newToken returns the token for the next link, which can be used once.
func (s *sessions) newToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = rand.Text()
	return s.token
}

// begin uses up the token and returns a new session's ID. It returns false for another
// token.
func (s *sessions) begin(token string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || !equal(token, s.token) {
		return "", false
	}
	s.token, id = "", rand.Text()
	if len(s.ids) == maxSessions {
		s.ids = slices.Delete(s.ids, 0, 1)
	}
	s.ids = append(s.ids, id)
	return id, true
}

// includes reports whether a request belongs to a session.
func (s *sessions) includes(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, id := range s.ids {
		found = equal(id, cookie.Value) || found
	}
	return found
}

// cookieName returns the session cookie's name. It contains the port, because a browser sends
// a host's cookies to each port, and several commands may serve a page.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return sessionCookie
	}
	return sessionCookie + "-" + port
}

// equal takes as long for each text with the same length.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
