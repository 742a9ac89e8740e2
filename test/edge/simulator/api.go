package simulator

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
)

const basePath = "/client/v4"

// API error codes.
const (
	codeInvalidToken     = 1000
	codeBadRequest       = 1001
	codeTunnelNotFound   = 1003
	codeUnknownSetting   = 1006
	codeNameExists       = 1013
	codeHasConnections   = 1022
	codeHasRoutes        = 1023
	codeBadConfiguration = 1056
	codeNoRoute          = 7003
	codeUnauthorized     = 9109
	codeAuthentication   = 10000
)

// endpoint executes one API call.
type endpoint func(r *http.Request) response

// response is an API response: a status and the envelope around the result.
type response struct {
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
	TotalPages int `json:"total_pages"`
}

func success(result any) response {
	return response{http.StatusOK, envelope{
		Success: true, Errors: []message{}, Messages: []message{}, Result: result,
	}}
}

func failure(status, code int, text string) response {
	return response{status, envelope{
		Errors: []message{{code, text}}, Messages: []message{},
	}}
}

func (s *Server) routes() http.Handler {
	const (
		tunnels = basePath + "/accounts/{account}/cfd_tunnel"
		tunnel  = tunnels + "/{tunnel}"
	)
	authorized := func(call endpoint) endpoint { return s.authorized(call, TunnelEdit) }
	endpoints := map[string]endpoint{
		"POST " + tunnels:                                  authorized(s.createTunnel),
		"GET " + tunnels:                                   authorized(s.listTunnels),
		"GET " + tunnel:                                    authorized(s.anyTunnelEndpoint(s.getTunnel)),
		"PATCH " + tunnel:                                  authorized(s.tunnelEndpoint(s.editTunnel)),
		"DELETE " + tunnel:                                 authorized(s.tunnelEndpoint(s.deleteTunnel)),
		"GET " + tunnel + "/configurations":                authorized(s.tunnelEndpoint(s.getConfiguration)),
		"PUT " + tunnel + "/configurations":                authorized(s.tunnelEndpoint(s.putConfiguration)),
		"GET " + tunnel + "/token":                         authorized(s.tunnelEndpoint(s.getToken)),
		"GET " + tunnel + "/connections":                   authorized(s.tunnelEndpoint(s.listConnections)),
		"DELETE " + tunnel + "/connections":                authorized(s.tunnelEndpoint(s.deleteConnections)),
		"GET " + basePath + "/user/tokens/verify":          s.verifyToken,
		"GET " + basePath + "/accounts/{id}/tokens/verify": s.verifyToken,
		"/": noRoute,
	}
	maps.Copy(endpoints, s.zoneEndpoints())
	maps.Copy(endpoints, s.recordEndpoints())
	maps.Copy(endpoints, s.accessEndpoints())
	mux := http.NewServeMux()
	for pattern, call := range endpoints {
		mux.Handle(pattern, s.handler(call))
	}
	return mux
}

// handler records the request, applies a fault if one matches, and responds.
func (s *Server) handler(call endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, basePath)
		request := s.record(r.Method, path)
		fault := s.nextFault(r.Method, path)
		// When a client disconnects, net/http cancels the context only after the body has
		// been read, so the body is read before any wait.
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err == nil && fault.Drop == DropThenWrite {
			go s.executeLate(r, *request, fault, call)
			panic(http.ErrAbortHandler)
		}
		if err != nil || !fault.proceed(r.Context(), *request) {
			panic(http.ErrAbortHandler)
		}
		if fault.hasResponse() {
			s.setStatus(request, fault.status())
			fault.write(w)
			return
		}
		result := call(r)
		fault.callAfter(*request)
		if fault.Drop == DropAfterWrite {
			panic(http.ErrAbortHandler)
		}
		s.setStatus(request, result.status)
		result.write(w)
	})
}

// executeLate executes a request whose connection was already dropped. It waits
// for the fault first, and does nothing if the server is closed meanwhile.
func (s *Server) executeLate(r *http.Request, request Request, fault Fault, call endpoint) {
	if fault.Drop = DropNone; fault.proceed(s.ctx, request) {
		call(r)
		fault.callAfter(request)
	}
}

func (r response) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(r.envelope) // fails only if the client has disconnected
}

func noRoute(r *http.Request) response {
	return failure(http.StatusNotFound, codeNoRoute, "Could not route to "+r.URL.Path)
}

// authorized rejects an invalid token, a token without one of the permissions, and accounts
// other than the configured account.
func (s *Server) authorized(call endpoint, permissions ...Permission) endpoint {
	return func(r *http.Request) response {
		if !s.acceptsToken(r) {
			return failure(http.StatusUnauthorized, codeAuthentication, "Authentication error")
		}
		if !s.permitsAccount(r, permissions...) {
			return authenticationError()
		}
		if only := s.options.AccountID; only != "" && r.PathValue("account") != only {
			return failure(http.StatusForbidden, codeAuthentication, "Authentication error")
		}
		return call(r)
	}
}

func (s *Server) verifyToken(r *http.Request) response {
	if !s.acceptsToken(r) {
		return failure(http.StatusUnauthorized, codeInvalidToken, "Invalid API Token")
	}
	return success(map[string]string{"id": "f267e341f3dd4697bd3b9f71dd96247f", "status": "active"})
}
