package simulator

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// tunnelEndpoint returns an endpoint that finds the request's tunnel and calls call. A
// deleted tunnel is not found.
func (s *Server) tunnelEndpoint(call func(*http.Request, *tunnel) response) endpoint {
	return s.anyTunnelEndpoint(func(r *http.Request, t *tunnel) response {
		if t.deleted() {
			return tunnelNotFound()
		}
		return call(r, t)
	})
}

// anyTunnelEndpoint is like onTunnel, but also finds deleted tunnels. The server is
// locked during the call.
func (s *Server) anyTunnelEndpoint(call func(*http.Request, *tunnel) response) endpoint {
	return func(r *http.Request) response {
		s.mu.Lock()
		defer s.mu.Unlock()
		t := s.find(r.PathValue("tunnel"))
		if t == nil || t.account != r.PathValue("account") {
			return tunnelNotFound()
		}
		return call(r, t)
	}
}

func tunnelNotFound() response {
	return failure(http.StatusNotFound, codeTunnelNotFound, "Tunnel not found")
}

func (s *Server) createTunnel(r *http.Request) response {
	var body struct {
		Name         string `json:"name"`
		ConfigSrc    string `json:"config_src"`
		TunnelSecret []byte `json:"tunnel_secret"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, "Could not parse the body: "+err.Error())
	}
	if body.ConfigSrc == "" {
		body.ConfigSrc = configSrcLocal
	}
	secret := newSecret()
	if body.TunnelSecret != nil {
		secret = base64.StdEncoding.EncodeToString(body.TunnelSecret)
	}
	switch {
	case body.Name == "":
		return failure(http.StatusBadRequest, codeBadRequest, "The tunnel has no name")
	case body.ConfigSrc != configSrcLocal && body.ConfigSrc != configSrcCloudflare:
		return failure(http.StatusBadRequest, codeBadRequest, "config_src must be local or cloudflare")
	case body.TunnelSecret != nil && len(body.TunnelSecret) < secretLength:
		return secretTooShort()
	}
	created := newTunnel(r.PathValue("account"), body.Name, body.ConfigSrc, secret)
	summary := created.summary()
	result, added := s.addTunnel(created)
	if added && s.options.OnCreate != nil {
		s.options.OnCreate(summary)
	}
	return result
}

// addTunnel adds the tunnel unless its name is in use.
func (s *Server) addTunnel(created *tunnel) (result response, added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nameInUse(created.account, created.name) {
		return nameExists(), false
	}
	s.tunnels = append(s.tunnels, created)
	return success(created.view()), true
}

// nameInUse reports whether a tunnel in the account has the name. It ignores deleted
// tunnels.
func (s *Server) nameInUse(account, name string) bool {
	return slices.ContainsFunc(s.tunnels, func(t *tunnel) bool {
		return t.account == account && t.name == name && !t.deleted()
	})
}

func nameExists() response {
	return failure(http.StatusConflict, codeNameExists, "You already have a tunnel with this name")
}

func secretTooShort() response {
	return failure(http.StatusBadRequest, codeBadRequest, "tunnel_secret must have at least 32 bytes")
}

// editTunnel changes a tunnel's name or secret, or both. When the secret changes,
// connectors stay connected, and the edge refuses the old secret.
func (s *Server) editTunnel(r *http.Request, t *tunnel) response {
	var body struct {
		Name         string `json:"name"`
		TunnelSecret []byte `json:"tunnel_secret"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, "Could not parse the body: "+err.Error())
	}
	rename := body.Name != "" && body.Name != t.name
	switch {
	case rename && s.nameInUse(t.account, body.Name):
		return nameExists()
	case body.TunnelSecret != nil && len(body.TunnelSecret) < secretLength:
		return secretTooShort()
	}
	if rename {
		t.name = body.Name
	}
	if body.TunnelSecret != nil {
		t.secret = base64.StdEncoding.EncodeToString(body.TunnelSecret)
	}
	return success(t.view())
}

func (s *Server) getTunnel(_ *http.Request, t *tunnel) response { return success(t.view()) }

func (s *Server) deleteTunnel(_ *http.Request, t *tunnel) response {
	if len(s.listedReplicas(t)) > 0 {
		return failure(http.StatusBadRequest, codeHasConnections, "Cannot delete a tunnel that has active connections")
	}
	if t.hasRoutes {
		return failure(http.StatusBadRequest, codeHasRoutes, "Cannot delete a tunnel that has private network routes")
	}
	t.dataPath.closeIdleConnections()
	t.deletedAt = time.Now().UTC()
	return success(t.view())
}

func (s *Server) getConfiguration(_ *http.Request, t *tunnel) response {
	return success(t.configurationView())
}

func (s *Server) putConfiguration(r *http.Request, t *tunnel) response {
	var body struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, "Could not parse the body: "+err.Error())
	}
	configuration, err := addDefaults(body.Config)
	if err == nil && !s.options.AcceptInvalid {
		_, err = Compile(configuration)
	}
	if err != nil {
		return failure(http.StatusBadRequest, codeBadConfiguration, "Bad Configuration: "+err.Error())
	}
	t.configure(configuration, s.dialer())
	return success(t.configurationView())
}

func (s *Server) getToken(_ *http.Request, t *tunnel) response { return success(t.token()) }

func (s *Server) listConnections(_ *http.Request, t *tunnel) response {
	views := []replicaView{}
	for _, r := range s.listedReplicas(t) {
		views = append(views, r.view(t.activeVersion))
	}
	return success(views)
}

func (s *Server) deleteConnections(r *http.Request, t *tunnel) response {
	s.disconnect(t, r.URL.Query().Get("client_id"))
	return success(nil)
}
