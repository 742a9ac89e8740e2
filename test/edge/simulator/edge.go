package simulator

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// credentials are what the token of a tunnel holds.
type credentials struct {
	Account string `json:"a"`
	Tunnel  string `json:"t"`
	Secret  string `json:"s"` // in base64
}

// token is the text that a connector is started with.
func (c credentials) token() string {
	content, _ := json.Marshal(c) // #nosec G117 -- a token is there to hold it; strings marshal
	return base64.StdEncoding.EncodeToString(content)
}

// readToken returns the credentials in a token, and whether it is one.
func readToken(token string) (c credentials, ok bool) {
	content, err := base64.StdEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(content, &c) != nil {
		return credentials{}, false
	}
	return c, c != credentials{}
}

// refusal is an answer to a connector that may not connect.
type refusal struct {
	status int
	text   string
}

// Edge is what connectors connect to. A connector sends POST /connect with the
// tunnel's token as a bearer token, and with its own id, a UUID, as
// Connector-Id. The header of the answer, with status 200, says that it is
// connected: the tunnel has one more replica, as [Server.Connect] makes them,
// until the request ends.
//
// The request's body stays open and empty. Its end is the connector's farewell,
// and the end of the answer says that the replica is gone. The replica of a
// connection that breaks stays listed with is_pending_reconnect, see
// [Options.PendingReconnect]. The edge itself ends the answer to cut a connector
// off, for instance when the API disconnects it.
//
// Refused are, with a text: what is no token (401), a secret that is not the
// tunnel's, or not any more (403), a tunnel that does not exist, or no longer
// (404), an id that is no UUID (400), and everybody once the server is closed
// (503). A connector that comes back under its id takes the place of what was
// left of it.
func (s *Server) Edge() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /connect", s.hold)
	return mux
}

// hold keeps a replica for as long as its connector stays.
func (s *Server) hold(w http.ResponseWriter, r *http.Request) {
	connection := http.NewResponseController(w)
	// Without it, the answer would wait for the end of the request.
	if err := connection.EnableFullDuplex(); err != nil {
		http.Error(w, "answer before the request ends: "+err.Error(), http.StatusInternalServerError)
		return
	}
	cut := func() { _ = connection.SetReadDeadline(time.Unix(1, 0)) } // fails on a connection that is gone
	leave, refused := s.attach(r.Header, cut)
	if leave == nil {
		http.Error(w, refused.text, refused.status)
		return
	}
	w.Header().Set("Connection", "close") // a connection that was cut off carries no other request
	err := connection.Flush()
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body) // the end of it is the farewell
	}
	leave(err == nil)
}

// attach adds the replica of a connector with such a header, and returns what
// ends it, with a farewell or without. Nil means that the connector is refused.
func (s *Server) attach(header http.Header, cut func()) (leave func(farewell bool), refused refusal) {
	token, _ := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	t, refused := s.admit(token)
	if t == nil {
		return nil, refused
	}
	id, err := uuid.Parse(header.Get("Connector-Id"))
	if err != nil {
		return nil, refusal{http.StatusBadRequest, "Connector-Id must be a UUID"}
	}
	mine := t.attach(id.String(), cut)
	return func(farewell bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if farewell {
			t.drop(func(r *replica) bool { return r == mine && !r.lost() })
		} else {
			mine.lose() // without effect when it was dropped
		}
	}, refusal{}
}

// admit returns the tunnel that a connector with the token may connect to, or nil
// and why it is refused. The server is locked.
func (s *Server) admit(token string) (*tunnel, refusal) {
	c, ok := readToken(token)
	if !ok {
		return nil, refusal{http.StatusUnauthorized, "not the token of a tunnel"}
	}
	t := s.find(c.Tunnel)
	switch {
	case s.closed:
		return nil, refusal{http.StatusServiceUnavailable, "the edge is closed"}
	case t == nil || t.account != c.Account || t.deleted():
		return nil, refusal{http.StatusNotFound, "tunnel not found"}
	case t.secret != c.Secret:
		return nil, refusal{http.StatusForbidden, "not the secret of the tunnel"}
	}
	return t, refusal{}
}
