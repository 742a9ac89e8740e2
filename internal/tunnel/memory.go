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

// settled reports whether a request that was sent at i could no longer be applied at
// the time of the response.
func (i Instant) settled(response Instant) bool {
	return response.IsSet() && response.at >= i.at+provider.CallTimeout
}

// Since returns the time that has passed since the Instant. If the Instant is unset,
// it returns the uptime: a previous process may have acted just before this process
// started.
func (i Instant) Since(uptime time.Duration) time.Duration { return uptime - i.at }

// Memory is the state that only this process keeps. Its zero value is the state after
// a start.
type Memory struct {
	// Remote contains the last responses of Cloudflare.
	Remote Remote
	// MissingSince is the time of the first of the consecutive live reads that found
	// the Gateway to be gone or not managed.
	MissingSince Instant
	// StatusesWithdrawn reports whether the status entries were removed from routes
	// and ListenerSets.
	StatusesWithdrawn bool
	// ConnectorsStopped is the time of the last StopConnectors action.
	ConnectorsStopped Instant
	// Claimed reports whether a second list of the Tunnels has confirmed the claim of
	// an existing tunnel.
	Claimed bool
	// Created and Deleted are the times of the last attempts to create and delete the
	// tunnel. Recording that the deletion has begun counts as an attempt.
	Created, Deleted Instant
	// CredentialsVersion is the version of the credentials in use.
	CredentialsVersion string
	// Backoffs contains the backoff of each track.
	Backoffs [TrackCount]Backoff
	// InEffect is the hash of the configuration in effect; empty if unknown.
	InEffect string
	// FailedWrite is the hash of the configuration whose last write failed; empty if
	// the last write succeeded.
	FailedWrite string
	// Push is the pace at which quick changes of the configuration are written, and
	// Updates limits the writes over a longer time.
	Push    Pace
	Updates Bucket
	// Revocations limits the writes that only revoke rules.
	Revocations Revocations
	// LateWrites contains the configuration writes that Cloudflare may still apply.
	LateWrites LateWrites
	// Drift contains the recent external changes of the configuration.
	Drift Drift
	// Token is the state of the token check and the token rotation.
	Token TokenCheck
	// SurplusSince is the time since which more connectors are connected than pods
	// run.
	SurplusSince Instant
	// UnacknowledgedSince is the time since which a connected Envoy lacks the routes that it
	// needs before the configuration changes.
	UnacknowledgedSince Instant
	// Refresh is the progress of the requested reconcile.
	Refresh Refresh
}

// Remote contains the last responses of Cloudflare.
type Remote struct {
	Tunnel        RemoteTunnel
	Configuration RemoteConfiguration
	Connections   RemoteConnections
}

// Presence states whether a tunnel exists at Cloudflare.
type Presence int

// The values of Presence.
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
	// Read is the time of the response.
	Read Instant
}

// RemoteConfiguration is the configuration of the tunnel at Cloudflare.
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
	// Settled reports whether the configuration was read after the start of this
	// process, so that Memory.LateWrites includes the writes of previous processes.
	Settled bool
	// Confirmed reports whether no earlier write can still replace the configuration.
	Confirmed bool
}

// RemoteConnections are the connectors that Cloudflare lists.
type RemoteConnections struct {
	// Read is the time of the response.
	Read       Instant
	Connectors []provider.Connector
}

// Track is a group of actions that share one backoff.
type Track int

// The tracks.
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
	// TrackCount is the number of tracks.
	TrackCount
)

// TokenCheck is the state of the token check and the token rotation.
type TokenCheck struct {
	// NextCheck is the time of the next periodic read of the token.
	NextCheck Instant
	// Pending reports whether the new token of a rotation in progress is not in the
	// Secret yet.
	Pending bool
	// Suspect reports whether the token may have been replaced at Cloudflare.
	Suspect bool
	// Rotated is the time at which the PATCH of a rotation in progress succeeded.
	Rotated Instant
	// Unanswered is the time of the last PATCH without a response. Cloudflare may
	// still apply it and replace the token again.
	Unanswered Instant
}

// Pacing returns the time for which quick changes are collected before the next write.
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
