package simulator

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// onTunnel makes an endpoint of a call that works on a live tunnel.
func (s *Server) onTunnel(call func(*http.Request, *tunnel) answer) endpoint {
	return s.onAnyTunnel(func(r *http.Request, t *tunnel) answer {
		if t.deleted() {
			return tunnelNotFound()
		}
		return call(r, t)
	})
}

// onAnyTunnel is onTunnel for a tunnel that may be deleted. The server is
// locked during the call.
func (s *Server) onAnyTunnel(call func(*http.Request, *tunnel) answer) endpoint {
	return func(r *http.Request) answer {
		s.mu.Lock()
		defer s.mu.Unlock()
		t := s.find(r.PathValue("tunnel"))
		if t == nil || t.account != r.PathValue("account") {
			return tunnelNotFound()
		}
		return call(r, t)
	}
}

func tunnelNotFound() answer {
	return failure(http.StatusNotFound, codeTunnelNotFound, "Tunnel not found")
}

func (s *Server) createTunnel(r *http.Request) answer {
	var body struct {
		Name         string `json:"name"`
		ConfigSrc    string `json:"config_src"`
		TunnelSecret []byte `json:"tunnel_secret"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, "Could not parse the body: "+err.Error())
	}
	if body.ConfigSrc == "" {
		body.ConfigSrc = locally
	}
	secret := newSecret()
	if body.TunnelSecret != nil {
		secret = base64.StdEncoding.EncodeToString(body.TunnelSecret)
	}
	switch {
	case body.Name == "":
		return failure(http.StatusBadRequest, codeBadRequest, "A tunnel needs a name")
	case body.ConfigSrc != locally && body.ConfigSrc != remotely:
		return failure(http.StatusBadRequest, codeBadRequest, "config_src must be local or cloudflare")
	case body.TunnelSecret != nil && len(body.TunnelSecret) < secretLength:
		return shortSecret()
	}
	created := newTunnel(r.PathValue("account"), body.Name, body.ConfigSrc, secret)
	summary := created.summary()
	result, added := s.addTunnel(created)
	if added && s.options.OnCreate != nil {
		s.options.OnCreate(summary)
	}
	return result
}

// addTunnel adds the tunnel unless a live one has its name.
func (s *Server) addTunnel(created *tunnel) (result answer, added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isTaken(created.account, created.name) {
		return nameExists(), false
	}
	s.tunnels = append(s.tunnels, created)
	return success(created.view()), true
}

// isTaken reports whether a live tunnel of the account has the name.
func (s *Server) isTaken(account, name string) bool {
	return slices.ContainsFunc(s.tunnels, func(t *tunnel) bool {
		return t.account == account && t.name == name && !t.deleted()
	})
}

func nameExists() answer {
	return failure(http.StatusConflict, codeNameExists, "You already have a tunnel with this name")
}

func shortSecret() answer {
	return failure(http.StatusBadRequest, codeBadRequest, "tunnel_secret must have at least 32 bytes")
}

// editTunnel changes the name or the secret of a tunnel, or both. With another
// secret, connectors stay connected, and the edge refuses the old one.
func (s *Server) editTunnel(r *http.Request, t *tunnel) answer {
	var body struct {
		Name         string `json:"name"`
		TunnelSecret []byte `json:"tunnel_secret"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, "Could not parse the body: "+err.Error())
	}
	rename := body.Name != "" && body.Name != t.name
	switch {
	case rename && s.isTaken(t.account, body.Name):
		return nameExists()
	case body.TunnelSecret != nil && len(body.TunnelSecret) < secretLength:
		return shortSecret()
	}
	if rename {
		t.name = body.Name
	}
	if body.TunnelSecret != nil {
		t.secret = base64.StdEncoding.EncodeToString(body.TunnelSecret)
	}
	return success(t.view())
}

func (s *Server) getTunnel(_ *http.Request, t *tunnel) answer { return success(t.view()) }

func (s *Server) deleteTunnel(_ *http.Request, t *tunnel) answer {
	if len(s.listed(t)) > 0 {
		return failure(http.StatusBadRequest, codeConnected, "Cannot delete a tunnel that has active connections")
	}
	if t.routed {
		return failure(http.StatusBadRequest, codeRouted, "Cannot delete a tunnel that has private network routes")
	}
	t.running.retire()
	t.deletedAt = time.Now().UTC()
	return success(t.view())
}

func (s *Server) getConfiguration(_ *http.Request, t *tunnel) answer {
	return success(t.configurationView())
}

func (s *Server) putConfiguration(r *http.Request, t *tunnel) answer {
	var body struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, "Could not parse the body: "+err.Error())
	}
	document, err := complete(body.Config)
	if err == nil && !s.options.AcceptInvalid {
		_, err = Compile(document)
	}
	if err != nil {
		return failure(http.StatusBadRequest, codeBadConfiguration, "Bad Configuration: "+err.Error())
	}
	t.configure(document, s.options.Dial)
	return success(t.configurationView())
}

func (s *Server) getToken(_ *http.Request, t *tunnel) answer { return success(t.token()) }

func (s *Server) listConnections(_ *http.Request, t *tunnel) answer {
	views := []replicaView{}
	for _, r := range s.listed(t) {
		views = append(views, r.view(t.runningVersion))
	}
	return success(views)
}

func (s *Server) deleteConnections(r *http.Request, t *tunnel) answer {
	s.disconnect(t, r.URL.Query().Get("client_id"))
	return success(nil)
}
