package simulator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// credentials are what a tunnel token contains.
type credentials struct {
	Account string `json:"a"`
	Tunnel  string `json:"t"`
	Secret  string `json:"s"` // in base64
}

// token encodes the credentials as the token that a connector is started with.
func (c credentials) token() string {
	content, _ := json.Marshal(c) // #nosec G117 -- the token contains the secret; encoding strings cannot fail
	return base64.StdEncoding.EncodeToString(content)
}

// readToken decodes a token. ok is false if the text is not a tunnel token.
func readToken(token string) (c credentials, ok bool) {
	content, err := base64.StdEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(content, &c) != nil {
		return credentials{}, false
	}
	return c, c != credentials{}
}

// refusal is the answer to a connector that the edge refuses.
type refusal struct {
	status int
	text   string
}

// Edge returns a handler that connectors connect to. A connector sends POST /connect with
// the tunnel's token as a bearer token, and with its own ID, a UUID, in the header
// Connector-Id. The header Connector-Host contains the host name of its pod, if it
// carries requests to origins in it (see [Options.DialConnector]). When the edge returns
// status 200, the connector is connected: until the request ends, the tunnel has one more
// replica, like those from [Server.Connect].
//
// The request body stays open and empty. The connector unregisters by closing the body.
// When the data path has noticed this (see [Options.Lag]), it sends no new requests. When
// the requests in flight have ended, the edge removes the replica and closes the
// response. If the connection breaks before, the requests in flight are aborted. If it
// breaks before the connector has unregistered, the API lists the replica with
// is_pending_reconnect, see [Options.PendingReconnect]. The edge disconnects a connector
// by closing the response, for example when the API deletes its connections.
//
// The edge refuses these connections with a text:
//
//   - 400: the connector ID is not a UUID
//   - 401: the token is not a tunnel token
//   - 403: the secret is not the tunnel's current secret
//   - 404: the tunnel does not exist or was deleted
//   - 503: the server is closed
//
// A connector that reconnects with its ID replaces its earlier replica.
func (s *Server) Edge() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /connect", s.handleConnect)
	return mux
}

// handleConnect registers a connector and returns when its connection ends.
func (s *Server) handleConnect(w http.ResponseWriter, r *http.Request) {
	connection := http.NewResponseController(w)
	// Otherwise the response would wait until the request ends.
	if err := connection.EnableFullDuplex(); err != nil {
		http.Error(w, "answer before the request ends: "+err.Error(), http.StatusInternalServerError)
		return
	}
	// A disconnected connector must not reuse the connection, and net/http cannot reuse it
	// after an answer that ends before its request.
	w.Header().Set("Connection", "close")
	closeConnection := func() { _ = connection.SetReadDeadline(time.Unix(1, 0)) } // fails if the connection is closed
	t, added, refused := s.registerConnector(r.Header, closeConnection)
	if added == nil {
		http.Error(w, refused.text, refused.status)
		return
	}
	err := connection.Flush()
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body) // the connector closes the body to unregister
	}
	if err == nil {
		s.drain(r.Context(), t, added)
	}
	s.unregister(t, added, err == nil)
}

// registerConnector adds a replica to the tunnel for the connector that sent the header.
// added is nil if the edge refuses the connector.
func (s *Server) registerConnector(header http.Header, closeConnection func()) (t *tunnel, added *replica, refused refusal) {
	token, _ := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	t, refused = s.authenticate(token)
	if t == nil {
		return nil, nil, refused
	}
	id, err := uuid.Parse(header.Get("Connector-Id"))
	if err != nil {
		return nil, nil, refusal{http.StatusBadRequest, "Connector-Id must be a UUID"}
	}
	added = t.addReplica(id.String(), header.Get("Connector-Host"), closeConnection)
	added.lag = s.options.Lag()
	return t, added, refusal{}
}

// drain waits until the data path has noticed that the replica has unregistered, and the
// requests that the replica carries have ended. It returns early if its connection breaks.
func (s *Server) drain(connection context.Context, t *tunnel, r *replica) {
	noticed := s.startDraining(t, r)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-noticed
		r.requests.Wait() // no request can begin
	}()
	select {
	case <-ended:
	case <-connection.Done():
	}
}

// startDraining records that the replica has unregistered. The returned channel is closed when
// the data path has noticed it.
func (s *Server) startDraining(t *tunnel, r *replica) <-chan struct{} {
	noticed := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	carried := r.carries()
	r.draining = true
	if !carried || r.lag.Unregistered == 0 {
		close(noticed)
		return noticed
	}
	t.unregistered = append(t.unregistered, r)
	time.AfterFunc(r.lag.Unregistered, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.unregistered = slices.DeleteFunc(t.unregistered, func(other *replica) bool { return other == r })
		close(noticed)
	})
	return noticed
}

// unregister removes a replica. If graceful is false, the API keeps listing it as
// pending.
func (s *Server) unregister(t *tunnel, removed *replica, graceful bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if graceful {
		t.removeReplicas(func(r *replica) bool { return r == removed && !r.lost() })
	} else {
		removed.markLost() // has no effect if the replica was already removed
	}
}

// authenticate returns the token's tunnel, or nil and the reason why the edge refuses it.
// The caller has the lock.
func (s *Server) authenticate(token string) (*tunnel, refusal) {
	c, ok := readToken(token)
	if !ok {
		return nil, refusal{http.StatusUnauthorized, "the token is not a tunnel token"}
	}
	t := s.find(c.Tunnel)
	switch {
	case s.closed:
		return nil, refusal{http.StatusServiceUnavailable, "the edge is closed"}
	case t == nil || t.account != c.Account || t.deleted():
		return nil, refusal{http.StatusNotFound, "tunnel not found"}
	case t.secret != c.Secret:
		return nil, refusal{http.StatusForbidden, "the secret is not the secret of the tunnel"}
	}
	return t, refusal{}
}
