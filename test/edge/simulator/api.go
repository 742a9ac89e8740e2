package simulator

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

const basePath = "/client/v4"

// Error codes of the API.
const (
	codeInvalidToken     = 1000
	codeBadRequest       = 1001
	codeTunnelNotFound   = 1003
	codeNameExists       = 1013
	codeConnected        = 1022
	codeRouted           = 1023
	codeBadConfiguration = 1056
	codeNoRoute          = 7003
	codeAuthentication   = 10000
)

// endpoint carries out one call of the API.
type endpoint func(r *http.Request) answer

// answer is a response of the API in its envelope.
type answer struct {
	status   int
	envelope envelope
}

type envelope struct {
	Success    bool        `json:"success"`
	Errors     []message   `json:"errors"`
	Messages   []message   `json:"messages"`
	Result     any         `json:"result"`
	ResultInfo *resultInfo `json:"result_info,omitempty"`
}

type message struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type resultInfo struct {
	Page       int `json:"page"`
	PerPage    int `json:"per_page"`
	Count      int `json:"count"`
	TotalCount int `json:"total_count"`
}

func success(result any) answer {
	return answer{http.StatusOK, envelope{
		Success: true, Errors: []message{}, Messages: []message{}, Result: result,
	}}
}

func failure(status, code int, text string) answer {
	return answer{status, envelope{
		Errors: []message{{code, text}}, Messages: []message{},
	}}
}

func (s *Server) routes() http.Handler {
	const (
		tunnels = basePath + "/accounts/{account}/cfd_tunnel"
		tunnel  = tunnels + "/{tunnel}"
	)
	mux := http.NewServeMux()
	for pattern, call := range map[string]endpoint{
		"POST " + tunnels:                                  s.authorized(s.createTunnel),
		"GET " + tunnels:                                   s.authorized(s.listTunnels),
		"GET " + tunnel:                                    s.authorized(s.onAnyTunnel(s.getTunnel)),
		"PATCH " + tunnel:                                  s.authorized(s.onTunnel(s.editTunnel)),
		"DELETE " + tunnel:                                 s.authorized(s.onTunnel(s.deleteTunnel)),
		"GET " + tunnel + "/configurations":                s.authorized(s.onTunnel(s.getConfiguration)),
		"PUT " + tunnel + "/configurations":                s.authorized(s.onTunnel(s.putConfiguration)),
		"GET " + tunnel + "/token":                         s.authorized(s.onTunnel(s.getToken)),
		"GET " + tunnel + "/connections":                   s.authorized(s.onTunnel(s.listConnections)),
		"DELETE " + tunnel + "/connections":                s.authorized(s.onTunnel(s.deleteConnections)),
		"GET " + basePath + "/user/tokens/verify":          s.verifyToken,
		"GET " + basePath + "/accounts/{id}/tokens/verify": s.verifyToken,
		"/": noRoute,
	} {
		mux.Handle(pattern, s.handler(call))
	}
	return mux
}

// handler records the request, applies a fault, and answers.
func (s *Server) handler(call endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, basePath)
		request := s.record(r.Method, path)
		fault := s.nextFault(r.Method, path)
		// The body is read before any wait: only then does the context end
		// when the client gives up.
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err == nil && fault.Drop == DropThenWrite {
			go s.arriveLate(r, *request, fault, call)
			panic(http.ErrAbortHandler)
		}
		if err != nil || !fault.admit(r.Context(), *request) {
			panic(http.ErrAbortHandler)
		}
		if fault.answers() {
			s.setStatus(request, fault.status())
			fault.write(w)
			return
		}
		result := call(r)
		fault.done(*request)
		if fault.Drop == DropAfterWrite {
			panic(http.ErrAbortHandler)
		}
		s.setStatus(request, result.status)
		result.write(w)
	})
}

// arriveLate carries out a request whose connection was dropped, when the fault
// lets it arrive, unless the server is closed before.
func (s *Server) arriveLate(r *http.Request, request Request, fault Fault, call endpoint) {
	if fault.Drop = DropNone; fault.admit(s.life, request) {
		call(r)
		fault.done(request)
	}
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.envelope) // a client that left needs no answer
}

func noRoute(r *http.Request) answer {
	return failure(http.StatusNotFound, codeNoRoute, "Could not route to "+r.URL.Path)
}

// authorized refuses a bad token, and accounts that the token does not open.
func (s *Server) authorized(call endpoint) endpoint {
	return func(r *http.Request) answer {
		if !s.accepts(r) {
			return failure(http.StatusUnauthorized, codeAuthentication, "Authentication error")
		}
		if only := s.options.AccountID; only != "" && r.PathValue("account") != only {
			return failure(http.StatusForbidden, codeAuthentication, "Authentication error")
		}
		return call(r)
	}
}

func (s *Server) accepts(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && token != "" && (s.token == "" || s.token == token)
}

func (s *Server) verifyToken(r *http.Request) answer {
	if !s.accepts(r) {
		return failure(http.StatusUnauthorized, codeInvalidToken, "Invalid API Token")
	}
	return success(map[string]string{"id": "f267e341f3dd4697bd3b9f71dd96247f", "status": "active"})
}
