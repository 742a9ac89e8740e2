package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Instant is a point in the uptime of this process, or unset. The zero value is unset.
type Instant struct {
	set bool
	at  time.Duration
}

// At returns the Instant at that uptime.
func At(uptime time.Duration) Instant { return Instant{set: true, at: uptime} }

// IsSet reports whether the Instant is set.
func (i Instant) IsSet() bool { return i.set }

// settled reports whether a request sent at i could no longer be applied when the
// response arrived.
func (i Instant) settled(response Instant) bool {
	return response.IsSet() && response.at >= i.at+provider.CallTimeout
}

// Since returns the time that has passed since the Instant. If the Instant is unset,
// it returns the uptime: a previous process may have acted just before this process
// started.
func (i Instant) Since(uptime time.Duration) time.Duration { return uptime - i.at }

// Memory is what only this process knows. Its zero value is the Memory after a start.
type Memory struct {
	// Remote contains Cloudflare's last responses.
	Remote Remote
	// MissingSince is when the first of the consecutive live reads found the Gateway to
	// be gone or not managed.
	MissingSince Instant
	// StatusesWithdrawn reports whether the status entries were removed from routes
	// and ListenerSets.
	StatusesWithdrawn bool
	// ConnectorsStopped is when the last StopConnectors action ran.
	ConnectorsStopped Instant
	// RecordsRemainSince is since when the retiring Tunnel waits for its DNS records.
	RecordsRemainSince Instant
	// ApplicationsRemainSince is since when the Tunnel of a deleted tunnel waits for its
	// applications.
	ApplicationsRemainSince Instant
	// Claimed reports whether listing the Tunnels a second time has confirmed the claim
	// to an existing tunnel.
	Claimed bool
	// Created and Deleted are the last attempts to create and delete the tunnel.
	// Recording that the deletion has begun counts as an attempt.
	Created, Deleted Instant
	// CredentialsVersion is the version of the credentials in use.
	CredentialsVersion string
	// Backoffs contains each track's backoff.
	Backoffs [TrackCount]Backoff
	// InEffect is the hash of the configuration in effect; empty if unknown.
	InEffect string
	// FailedWrite is the hash of the configuration whose last write failed; empty if
	// the last write succeeded.
	FailedWrite string
	// Push is how fast configuration changes are written, and Updates limits the writes
	// over a longer time.
	Push    Pace
	Updates Bucket
	// Revocations limits the writes that only revoke rules.
	Revocations Revocations
	// LateWrites contains the configuration writes that Cloudflare may still apply.
	LateWrites LateWrites
	// Drift contains recent external changes to the configuration.
	Drift Drift
	Token TokenCheck
	// SurplusSince is since when more connectors are connected than pods run.
	SurplusSince Instant
	// UnacknowledgedSince is since when a connected Envoy lacks the routes that it
	// needs before the configuration changes.
	UnacknowledgedSince Instant
	// Refresh tracks the requested reconcile.
	Refresh Refresh
}

// Remote contains Cloudflare's last responses.
type Remote struct {
	Tunnel        RemoteTunnel
	Configuration RemoteConfiguration
	Connections   RemoteConnections
}

// Presence states whether a tunnel exists at Cloudflare.
type Presence int

const (
	// PresenceUnknown means that no request was sent or that it failed.
	PresenceUnknown Presence = iota
	// Present means that the tunnel exists.
	Present
	// Absent means that a successful list does not contain the tunnel, or that
	// Cloudflare reports its deletion.
	Absent
)

// RemoteTunnel is the tunnel as last read from Cloudflare.
type RemoteTunnel struct {
	Presence Presence
	// ID, Name and Local describe the tunnel if it is present.
	ID    provider.TunnelID
	Name  string
	Local bool
	// Read is when the response arrived.
	Read Instant
}

// RemoteConfiguration is the tunnel's configuration at Cloudflare.
type RemoteConfiguration struct {
	// Known reports whether the configuration was read or written, and no failed
	// write can have changed it since.
	Known         bool
	Configuration provider.Configuration
	Hash          string
	Version       provider.Version
	// NextRead is the uptime at which to read the configuration again.
	NextRead time.Duration
	// Missing reports whether Cloudflare did not find the tunnel.
	Missing bool
	// Settled reports whether this process has read the configuration or created the
	// tunnel, so that Memory.LateWrites includes the writes from previous processes.
	Settled bool
	// Confirmed reports whether no earlier write can still replace the configuration.
	Confirmed bool
}

// RemoteConnections are the connectors that Cloudflare lists.
type RemoteConnections struct {
	// Read is when the response arrived.
	Read       Instant
	Connectors []provider.Connector
}

// Track is a group of actions that share one backoff.
type Track int

const (
	// TrackTunnel covers finding, creating and deleting the tunnel.
	TrackTunnel Track = iota
	// TrackConfiguration covers reading and writing the configuration.
	TrackConfiguration
	// TrackToken covers reading and rotating the token.
	TrackToken
	// TrackConnectors covers running and stopping the connectors.
	TrackConnectors
	// TrackStatuses covers removing status entries.
	TrackStatuses
	// TrackObject covers writing the Tunnel object and its record.
	TrackObject
	// TrackCount counts the tracks.
	TrackCount
)

// TokenCheck tracks whether the token is up to date, and its rotation.
type TokenCheck struct {
	// NextCheck is when the next periodic read of the token is due.
	NextCheck Instant
	// Pending reports whether the new token from a rotation in progress is not in the
	// Secret yet.
	Pending bool
	// Suspect reports whether the token may have been replaced at Cloudflare.
	Suspect bool
	// Rotated is when the PATCH for a rotation in progress succeeded.
	Rotated Instant
	// Unanswered is the last PATCH without a response. Cloudflare may still apply it
	// and replace the token again.
	Unanswered Instant
}

// Pacing returns how long quick changes are collected before the next write.
func (m Memory) Pacing(uptime time.Duration) time.Duration { return m.Push.wait(uptime) }

// MarkSuspect returns the Memory after an inventory has found that the tunnel has lost
// connectors or is missing. The token, which may have been replaced, is checked
// again. If the tunnel is missing, its configuration is read again, too.
func (m Memory) MarkSuspect(missing bool) Memory {
	m.Token.Suspect = true
	if missing {
		m.Remote.Configuration.NextRead = 0
	}
	return m
}
