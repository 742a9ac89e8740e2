package simulator

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// replica is one process of the connector.
type replica struct {
	id        string
	secret    string    // that it connected with
	startedAt time.Time // when it connected last
	lostAt    time.Time // when it disappeared without a farewell; zero before
	away      bool      // disconnected by the API, and about to reconnect
	cut       func()    // ends its connection to the edge; nil when it has none
}

func (r *replica) lost() bool { return !r.lostAt.IsZero() }

func (r *replica) connected() bool { return !r.lost() && !r.away }

// end cuts the replica off, if it has a connection.
func (r *replica) end() {
	if r.cut != nil {
		r.cut()
		r.cut = nil
	}
}

// lose ends a replica without a farewell.
func (r *replica) lose() {
	if !r.lost() {
		r.lostAt = time.Now()
	}
	r.end()
}

// connect makes the running replicas without a connection as many as wanted.
// Those that are lost stay.
func (t *tunnel) connect(wanted int) {
	count := 0
	t.drop(func(r *replica) bool {
		if r.lost() || r.cut != nil {
			return false
		}
		count++
		return count > wanted
	})
	for ; count < wanted; count++ {
		t.attach(uuid.NewString(), nil)
	}
}

// attach adds a replica, in place of an earlier one of that ID.
func (t *tunnel) attach(id string, cut func()) *replica {
	t.drop(func(r *replica) bool { return r.id == id })
	added := &replica{id: id, secret: t.secret, startedAt: time.Now().UTC(), cut: cut}
	t.replicas = append(t.replicas, added)
	t.ran = true
	return added
}

// drop ends and forgets the replicas that are chosen.
func (t *tunnel) drop(chosen func(*replica) bool) {
	t.replicas = slices.DeleteFunc(t.replicas, func(r *replica) bool {
		if !chosen(r) {
			return false
		}
		r.end()
		return true
	})
}

// listed returns the replicas that the API lists: those that are connected, and
// for a while those that were lost.
func (s *Server) listed(t *tunnel) []*replica {
	t.drop(func(r *replica) bool { return r.lost() && time.Since(r.lostAt) >= s.options.PendingReconnect })
	return slices.DeleteFunc(slices.Clone(t.replicas), func(r *replica) bool { return r.away })
}

// disconnect removes the connections of the replica of that ID, or of all when it
// is empty. A replica that is connected to [Server.Edge] is cut off, and has to
// come back by itself; any other comes back after a while, if its secret still is
// the tunnel's.
func (s *Server) disconnect(t *tunnel, id string) {
	chosen := func(r *replica) bool { return (id == "" || r.id == id) && !r.away }
	t.drop(func(r *replica) bool {
		return chosen(r) && (r.lost() || r.cut != nil || r.secret != t.secret)
	})
	for _, r := range t.replicas {
		if !chosen(r) {
			continue
		}
		r.away = true
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

// reconnect brings back a replica that is away, unless it was stopped meanwhile.
// It is refused when the tunnel was deleted or has another secret.
func (t *tunnel) reconnect(r *replica) {
	if t.deleted() || r.secret != t.secret {
		t.drop(func(other *replica) bool { return other == r })
		return
	}
	r.away, r.startedAt = false, time.Now().UTC()
}
