package simulator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// replica is one of a tunnel's running connectors.
type replica struct {
	id              string
	host            string    // the pod's, or empty
	secret          string    // the tunnel's secret when it connected
	startedAt       time.Time // when it last connected
	lostAt          time.Time // when it disconnected without unregistering, or zero
	reconnecting    bool      // the API has disconnected it, and it has not reconnected yet
	closeConnection func()    // closes its connection to the edge; nil if it has none
	lag             Lag
	draining        bool // it has unregistered
	requests        sync.WaitGroup
	connection      context.Context // ends when it disconnects, and aborts its requests
	disconnect      context.CancelFunc
}

func (r *replica) lost() bool { return !r.lostAt.IsZero() }

func (r *replica) connected() bool { return !r.lost() && !r.reconnecting }

// carries reports whether the data path knows that the replica is connected, and sends
// requests to its pod.
func (r *replica) carries() bool {
	return r.host != "" && r.connected() && !r.draining && time.Since(r.startedAt) >= r.lag.Connected
}

// close closes the replica's connection, if it has one, and aborts its requests.
func (r *replica) close() {
	r.disconnect()
	if r.closeConnection != nil {
		r.closeConnection()
		r.closeConnection = nil
	}
}

// markLost records that the replica disconnected without unregistering.
func (r *replica) markLost() {
	if !r.lost() {
		r.lostAt = time.Now()
	}
	r.close()
}

// connect adds or removes simulated replicas until their number is count. It
// keeps lost replicas and does not count them.
func (t *tunnel) connect(count int) {
	connected := 0
	t.removeReplicas(func(r *replica) bool {
		if r.lost() || r.closeConnection != nil {
			return false
		}
		connected++
		return connected > count
	})
	for ; connected < count; connected++ {
		t.addReplica(uuid.NewString(), "", nil)
	}
}

// carrier returns the replica that carries the next request to an origin in a pod, or nil
// if the data path knows of none. When the request has ended, the caller calls Done on
// the replica's requests.
func (t *tunnel) carrier() *replica {
	candidates := slices.DeleteFunc(slices.Clone(t.replicas), func(r *replica) bool { return !r.carries() })
	candidates = append(candidates, t.unregistered...)
	if len(candidates) == 0 {
		return nil
	}
	selected := candidates[t.carried%len(candidates)]
	t.carried++
	selected.requests.Add(1)
	return selected
}

// addReplica adds a replica and removes an earlier replica with the same ID.
// closeConnection is nil for a simulated replica.
func (t *tunnel) addReplica(id, host string, closeConnection func()) *replica {
	t.removeReplicas(func(r *replica) bool { return r.id == id })
	added := &replica{id: id, host: host, secret: t.secret, startedAt: time.Now().UTC(), closeConnection: closeConnection}
	added.connection, added.disconnect = context.WithCancel(context.Background())
	t.replicas = append(t.replicas, added)
	t.everConnected = true
	return added
}

// removeReplicas disconnects and removes the selected replicas.
func (t *tunnel) removeReplicas(selected func(*replica) bool) {
	t.replicas = slices.DeleteFunc(t.replicas, func(r *replica) bool {
		if !selected(r) {
			return false
		}
		r.close()
		return true
	})
}

// listedReplicas returns the replicas that the API lists: connected replicas, and
// lost replicas until [Options.PendingReconnect] has passed.
func (s *Server) listedReplicas(t *tunnel) []*replica {
	t.removeReplicas(func(r *replica) bool { return r.lost() && time.Since(r.lostAt) >= s.options.PendingReconnect })
	return slices.DeleteFunc(slices.Clone(t.replicas), func(r *replica) bool { return r.reconnecting })
}

// disconnect removes the connections of the replica with that ID, or of all replicas if
// the ID is empty. A replica that is connected to [Server.Edge] is removed until its
// process reconnects. A simulated replica reconnects after [Options.ReconnectDelay] if
// its secret is still the tunnel's secret.
func (s *Server) disconnect(t *tunnel, id string) {
	selected := func(r *replica) bool { return (id == "" || r.id == id) && !r.reconnecting }
	t.removeReplicas(func(r *replica) bool {
		return selected(r) && (r.lost() || r.closeConnection != nil || r.secret != t.secret)
	})
	for _, r := range t.replicas {
		if !selected(r) {
			continue
		}
		r.reconnecting = true
		if s.options.ReconnectDelay == 0 {
			t.reconnect(r)
			continue
		}
		time.AfterFunc(s.options.ReconnectDelay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.reconnect(r)
		})
	}
}

// reconnect connects a reconnecting replica again, unless it was removed
// meanwhile. It removes the replica if the tunnel was deleted or its secret has
// changed.
func (t *tunnel) reconnect(r *replica) {
	if t.deleted() || r.secret != t.secret {
		t.removeReplicas(func(other *replica) bool { return other == r })
		return
	}
	r.reconnecting, r.startedAt = false, time.Now().UTC()
}
