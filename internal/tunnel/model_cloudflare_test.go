package tunnel

import (
	"errors"
	"fmt"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// cloudflare models the Cloudflare API.
type cloudflare struct {
	tunnels [maxTunnels]remoteTunnel
	late    [maxLateCalls]lateCall
}

// remoteTunnel is a tunnel at Cloudflare. A deleted tunnel keeps its index.
type remoteTunnel struct {
	used, live    bool
	local, routes bool
	name          uint8
	configuration uint8
	version       int
	token         int
	connectors    [maxConnectors]remoteConnector
	// creator is the actor for which the tunnel was created, plus one; 0 for none.
	creator int
	// original reports whether the tunnel still has the configuration from before its
	// adoption.
	original bool
	// external reports whether the configuration was ever changed externally.
	external bool
}

// remoteConnector is a connector that Cloudflare lists.
type remoteConnector struct {
	id        int // 0 for none
	connected bool
	unmanaged bool
	token     int
	at        time.Duration
}

// lateCall is a call that is applied after its caller has received an error.
type lateCall struct {
	until  time.Duration // 0 for none
	action Action
	actor  int
	tunnel int
	name   uint8
	hash   string
}

// Indexes of tunnel names after the actors' names.
const (
	nameOther     = maxActors     // the first actor's name with another cluster ID
	nameUnrelated = maxActors + 1 // a name that does not belong to a Gateway
	nameReserved  = maxActors + 2 // another Gateway's name
)

var tunnelNames = []string{
	RemoteName("c1", actorNames[0]), RemoteName("c1", actorNames[1]), RemoteName("c2", actorNames[0]), "unrelated", "c1.infra.other",
}

var tunnelIDs = func() (ids [maxTunnels]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("t", i)
	}
	return ids
}()

// tunnelIndex returns the index of the tunnel with the ID, or -1.
func tunnelIndex(id string) int {
	for i, known := range tunnelIDs {
		if id == known {
			return i
		}
	}
	return -1
}

func nameIndex(name string) uint8 {
	for i, known := range tunnelNames {
		if name == known {
			return uint8(i)
		}
	}
	panic("unknown name " + name)
}

// get returns the live tunnel, or nil.
func (c *cloudflare) get(i int) *remoteTunnel {
	if i < 0 || !c.tunnels[i].live {
		return nil
	}
	return &c.tunnels[i]
}

// find returns the index of the live tunnel with the name, or -1.
func (c *cloudflare) find(name uint8) int {
	for i, t := range c.tunnels {
		if t.live && t.name == name {
			return i
		}
	}
	return -1
}

func (c *cloudflare) describe(i int) provider.Tunnel {
	t := c.tunnels[i]
	return provider.Tunnel{ID: provider.TunnelID(tunnelIDs[i]), Name: tunnelNames[t.name], Local: t.local}
}

// read returns the result when a call reads a tunnel.
func (c *cloudflare) read(i int) Result {
	if c.get(i) == nil {
		return Result{Err: provider.ErrNotFound}
	}
	return Result{Tunnel: c.describe(i)}
}

func (c *cloudflare) create(name uint8, creator int) (int, error) {
	if c.find(name) >= 0 {
		return -1, provider.ErrNameExists
	}
	for i := range c.tunnels {
		if !c.tunnels[i].used {
			c.tunnels[i] = remoteTunnel{used: true, live: true, name: name, creator: creator, token: 1}
			return i, nil
		}
	}
	panic("the model has too few tunnels")
}

func (t *remoteTunnel) configure(n int) {
	t.configuration, t.original = uint8(n), false // #nosec G115 -- small
	t.version++
}

// hasOtherGatewayName reports whether the tunnel is named after another Gateway than
// the actor's.
func (t *remoteTunnel) hasOtherGatewayName(a int) bool {
	return t.name == nameReserved || t.name < maxActors && int(t.name) != a
}

// connections lists the connectors.
func (t *remoteTunnel) connections() []provider.Connector {
	var list []provider.Connector
	for _, c := range t.connectors {
		if c.id != 0 {
			list = append(list, provider.Connector{ID: connectorID(c.id), Connected: c.connected, ConnectedAt: epoch.Add(c.at)})
		}
	}
	return list
}

func connectorID(id int) provider.ConnectorID { return provider.ConnectorID(fmt.Sprint("k", id)) }

// connect adds or reconnects a connector.
func (t *remoteTunnel) connect(c remoteConnector) {
	free := -1
	for i := range t.connectors {
		switch {
		case t.connectors[i].id == c.id:
			t.connectors[i] = c
			return
		case free < 0 && (t.connectors[i].id == 0):
			free = i
		}
	}
	for i := range t.connectors {
		if free < 0 && !t.connectors[i].connected {
			free = i
		}
	}
	if free < 0 {
		panic("the model has too few connectors")
	}
	t.connectors[free] = c
}

// removeConnector removes a connector if it stopped gracefully, and otherwise lists it as
// disconnected.
func (t *remoteTunnel) removeConnector(id int, graceful bool) {
	for i := range t.connectors {
		if t.connectors[i].id != id {
			continue
		}
		t.connectors[i].connected = false
		if graceful {
			t.connectors[i] = remoteConnector{}
		}
	}
}

func (t *remoteTunnel) connector(id provider.ConnectorID) *remoteConnector {
	for i := range t.connectors {
		if t.connectors[i].id != 0 && connectorID(t.connectors[i].id) == id {
			return &t.connectors[i]
		}
	}
	return nil
}

// del deletes a tunnel.
func (c *cloudflare) del(i int) error {
	t := c.get(i)
	if t == nil {
		return nil
	}
	for _, c := range t.connectors {
		if c.id != 0 {
			return provider.ErrConnected
		}
	}
	if t.routes {
		return provider.ErrRoutes
	}
	*t = remoteTunnel{used: true}
	return nil
}

var (
	unavailableError = &provider.UnavailableError{Err: errors.New("no response")}
	limitedError     = &provider.RateLimitedError{RetryAfter: 5 * time.Minute}
	budgetError      = &provider.RateLimitedError{RetryAfter: 20 * time.Second, Budget: true}
	kubernetesError  = &Failure{Reason: conditions.ReasonKubernetesUnavailable, Err: errors.New("the API server failed")}
)

// postpone schedules a call to be applied later.
func (c *cloudflare) postpone(call lateCall) {
	for i := range c.late {
		if c.late[i].until == 0 {
			c.late[i] = call
			return
		}
	}
	panic("the model has too few late calls")
}

// arrive applies a late call.
func (m *model) arrive(i int) {
	call := m.cloudflare.late[i]
	m.cloudflare.late[i] = lateCall{}
	m.description = fmt.Sprintf("the late %s is applied", call.action)
	_, _ = m.applyCall(call) // the caller no longer waits for the response
}

// applyCall applies a call that makes a change.
func (m *model) applyCall(call lateCall) (int, error) {
	c := &m.cloudflare
	t := c.get(call.tunnel)
	switch call.action {
	case Create:
		return c.create(call.name, call.actor+1)
	case Configure:
		if t == nil {
			return -1, provider.ErrNotFound
		}
		t.configure(configurationOf(call.hash))
	case RotateToken:
		if t == nil {
			return -1, provider.ErrNotFound
		}
		t.token++
	case Delete:
		return call.tunnel, c.del(call.tunnel)
	default:
		panic("not a call that can be applied late: " + string(call.action))
	}
	return call.tunnel, nil
}
