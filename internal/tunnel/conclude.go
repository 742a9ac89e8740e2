package tunnel

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Conclude returns the Memory after step s has returned result r.
func Conclude(m Memory, s Step, r Result) Memory {
	if r.Stale || s.Ends() {
		return m
	}
	if s.ExternalChange != 0 {
		m.Drift = m.Drift.add(r.Uptime, s.ExternalChange)
	}
	if s.Action == Configure {
		m.UnacknowledgedSince = Instant{} // the next write waits again
	}
	if s.Record != nil && s.Record.Deleting {
		m.Deleted = At(r.Uptime)
	}
	track := trackOf(s.Action)
	if s.Record != nil && track != TrackObject {
		m.Backoffs[TrackObject] = Backoff{} // the record was written
	}
	if r.Err != nil {
		return m.afterFailure(track, s, r)
	}
	m.Backoffs[track] = Backoff{}
	return m.afterSuccess(s, r)
}

func trackOf(a Action) Track {
	switch a {
	case ReadConfiguration, Configure:
		return TrackConfiguration
	case ReadToken, RotateToken:
		return TrackToken
	case RunConnectors, StopConnectors:
		return TrackConnectors
	case WithdrawStatuses:
		return TrackStatuses
	case Claim, Record, DeleteObject:
		return TrackObject
	default:
		return TrackTunnel
	}
}

func (m Memory) afterSuccess(s Step, r Result) Memory {
	switch s.Action {
	case Claim:
		m.Claimed = m.Claimed || s.Record != nil
	case ReadTunnel, FindByName, Create:
		return m.afterTunnelRead(s, r)
	case ReadConfiguration:
		return m.afterConfigurationRead(s, r)
	case Configure:
		return m.afterConfigurationWrite(s, r)
	case ReadToken, RotateToken:
		m.Token = m.Token.concluded(s, r)
	case StopConnectors, ListConnections, Disconnect:
		return m.afterConnections(s, r)
	case WithdrawStatuses:
		m.StatusesWithdrawn = true
	case Delete, DeleteObject:
		return m.afterDeletion(s, r)
	case Record:
		return m.afterRecord(s)
	default: // RunConnectors
	}
	return m
}

// afterDeletion returns the Memory after the tunnel or the Tunnel object was deleted.
func (m Memory) afterDeletion(s Step, r Result) Memory {
	if s.Action == DeleteObject {
		return Memory{}
	}
	m.Deleted, m.InEffect = At(r.Uptime), ""
	m.Remote = Remote{Tunnel: RemoteTunnel{Presence: Absent, Read: At(r.Uptime)}}
	return m
}

// concluded returns the TokenCheck after the token was read or rotated.
func (c TokenCheck) concluded(s Step, r Result) TokenCheck {
	if s.Action == RotateToken {
		return TokenCheck{Rotated: At(r.Uptime), Pending: true, NextCheck: c.NextCheck, Suspect: c.Suspect}
	}
	return TokenCheck{Rotated: c.Rotated, Unanswered: c.Unanswered, NextCheck: At(r.Uptime + s.ReadInterval)}
}

// afterConnections returns the Memory after the connectors were listed, disconnected or
// stopped.
func (m Memory) afterConnections(s Step, r Result) Memory {
	switch s.Action {
	case ListConnections:
		m.Remote.Connections = RemoteConnections{Read: At(r.Uptime), Connectors: r.Connectors}
		m.Refresh.Connections = false
	case Disconnect:
		m.Remote.Connections.Connectors = slices.DeleteFunc(slices.Clone(m.Remote.Connections.Connectors), func(c provider.Connector) bool { return c.ID == s.Connector })
	default: // StopConnectors
		m.ConnectorsStopped = At(r.Uptime)
		m.Remote.Connections = RemoteConnections{}
	}
	return m
}

// afterRecord returns the Memory after a record was written.
func (m Memory) afterRecord(s Step) Memory {
	switch s.Record.TunnelID {
	case "":
		m.Remote.Configuration, m.LateWrites, m.InEffect, m.Token = RemoteConfiguration{}, LateWrites{}, "", TokenCheck{}
		m.Backoffs[TrackConfiguration], m.Backoffs[TrackToken] = Backoff{}, Backoff{} // for the lost tunnel
	case string(m.Remote.Tunnel.ID):
		m.Remote.Configuration.Missing = false
	}
	return m
}

// afterTunnelRead returns the Memory after a tunnel was read, found or created.
func (m Memory) afterTunnelRead(s Step, r Result) Memory {
	t := r.Tunnel
	m.Remote.Tunnel = RemoteTunnel{Presence: Present, ID: t.ID, Name: t.Name, Local: t.Local, Read: At(r.Uptime)}
	switch {
	case s.Action == Create:
		m.Created = At(r.Uptime)
		m.Refresh.Configuration = false // a new tunnel has no configuration to read
		m.Remote.Configuration = RemoteConfiguration{Known: true, Hash: provider.Configuration{}.Hash(), Settled: true, Confirmed: true, NextRead: r.Uptime + s.ReadInterval}
	case t.Local && s.Priority != provider.PriorityDeletion:
		// A user may migrate the tunnel, so it is read again later.
		m.Remote.Tunnel.Presence = PresenceUnknown
		p := problem(conditions.ReasonLocallyManaged, "Tunnel %s (%s) is locally managed: its connectors read their configuration from a file, so the controller does not use it. "+
			"Migrate it to remote management, rename it, or set tunnel.existing.id to another tunnel.", t.Name, t.ID)
		m.Backoffs[TrackTunnel] = Backoff{Until: At(r.Uptime + maxBackoff), Problem: p}
	default:
		m.Remote.Configuration.Missing = m.Remote.Configuration.Missing && s.Action == FindByName
	}
	return m
}

// afterConfigurationRead returns the Memory after the remote configuration was read.
func (m Memory) afterConfigurationRead(s Step, r Result) Memory {
	c := RemoteConfiguration{
		Known: true, Configuration: r.Configuration, Hash: r.Configuration.Hash(), Version: r.Version,
		NextRead: r.Uptime + s.ReadInterval, Settled: true,
	}
	for _, hash := range s.Unsettled {
		if hash != "" {
			m.LateWrites = m.LateWrites.add(r.Uptime, hash)
		}
	}
	c.Confirmed = !m.LateWrites.pending(r.Uptime)
	arrived := len(m.LateWrites.Hashes) == 0 || len(m.LateWrites.Hashes) == 1 && m.LateWrites.Hashes[0] == c.Hash
	if !arrived && m.LateWrites.pending(r.Uptime) {
		c.NextRead = min(c.NextRead, m.LateWrites.Settled.at+time.Second)
	}
	m.Remote.Configuration, m.InEffect = c, c.Hash
	m.Refresh.Configuration = false
	return m
}

func (m Memory) afterConfigurationWrite(s Step, r Result) Memory {
	before := m.Remote.Configuration
	m = m.spend(s, r)
	m.Remote.Configuration = RemoteConfiguration{
		// If the version is not the next version, there was another write in between.
		// The configuration must be read to find out which write was the last.
		Known: r.Version == before.Version+1, Configuration: r.Configuration, Hash: s.Hash, Version: r.Version,
		NextRead: min(before.NextRead, r.Uptime+s.ReadInterval), Settled: true,
		Confirmed: !m.LateWrites.pending(r.Uptime),
	}
	m.InEffect, m.FailedWrite = s.Hash, ""
	if m.LateWrites.pending(r.Uptime) {
		m.Remote.Configuration.NextRead = min(m.Remote.Configuration.NextRead, m.LateWrites.Settled.at+time.Second)
	} else {
		m.LateWrites = LateWrites{}
	}
	return m
}
