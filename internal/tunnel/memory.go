package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Instant is a moment of this process's uptime, or never. The zero value is
// never.
type Instant struct {
	happened bool
	at       time.Duration
}

// At returns the Instant of that uptime.
func At(uptime time.Duration) Instant { return Instant{happened: true, at: uptime} }

// IsSet reports whether the Instant is not never.
func (i Instant) IsSet() bool { return i.happened }

// settled reports whether a request that was sent at the Instant could not be
// applied any more at the time of an answer.
func (i Instant) settled(answer Instant) bool {
	return answer.IsSet() && answer.at >= i.at+provider.CallTimeout
}

// since returns how long ago the Instant was, and the whole uptime when it never
// happened: whatever an earlier process did may have happened just before this
// one started.
func (i Instant) since(uptime time.Duration) time.Duration { return uptime - i.at }

// Memory is what only this process knows. Its zero value is right after a start.
type Memory struct {
	// Remote is what Cloudflare answered last.
	Remote Remote
	// MissingSince is when the first of consecutive live reads showed that the
	// Gateway is gone or not managed.
	MissingSince Instant
	// StatusesWithdrawn is whether the status entries on routes and ListenerSets were
	// removed.
	StatusesWithdrawn bool
	// ConnectorsStopped is when the connectors were last told to stop.
	ConnectorsStopped Instant
	// Claimed is whether the claim of an existing tunnel was confirmed by a second
	// list of the Tunnels.
	Claimed bool
	// Created and Deleted are the last attempts to create and to delete. The
	// record that the deletion has begun counts as an attempt.
	Created, Deleted Instant
	// CredentialsVersion is the version of the credentials in use.
	CredentialsVersion string
	// Backoffs hold, for each track, why the last attempt failed.
	Backoffs [Tracks]Backoff
	// InEffect is the hash of the configuration that is certain to be in effect;
	// empty when none is.
	InEffect string
	// Unwritten is the hash of the configuration whose last write failed; empty when
	// the last write succeeded.
	Unwritten string
	// Push paces the writes of the configuration.
	Push Pace
	// Late are the writes of configurations that may still arrive.
	Late LateWrites
	// Drift holds the external changes of the configuration.
	Drift Drift
	// Token says when Cloudflare is asked for the token again.
	Token TokenCheck
	// SurplusSince is since when more connectors are connected than pods run.
	SurplusSince Instant
}

// Remote is what Cloudflare answered last.
type Remote struct {
	Tunnel        RemoteTunnel
	Configuration RemoteConfiguration
	Connections   RemoteConnections
}

// Presence says whether Cloudflare has a tunnel.
type Presence int

// The presences.
const (
	// PresenceUnknown means that Cloudflare was not asked, or did not answer.
	PresenceUnknown Presence = iota
	// Present means that Cloudflare has the tunnel.
	Present
	// Absent means that a successful list does not have the tunnel, or that
	// Cloudflare reports its deletion.
	Absent
)

// RemoteTunnel is what Cloudflare said of the tunnel.
type RemoteTunnel struct {
	Presence Presence
	// ID, Name and Local are those of the tunnel that is present.
	ID    provider.TunnelID
	Name  string
	Local bool
	// Read is when Cloudflare said so.
	Read Instant
}

// RemoteConfiguration is the configuration that Cloudflare holds.
type RemoteConfiguration struct {
	// Known is whether it was read and nothing has happened since that could have
	// changed it.
	Known         bool
	Configuration provider.Configuration
	Hash          string
	Version       provider.Version
	// ReadAgain is when it is to be read again.
	ReadAgain time.Duration
	// Missing is whether Cloudflare did not find the tunnel of the configuration.
	Missing bool
	// Settled is whether the writes of earlier processes are accounted for.
	Settled bool
}

// RemoteConnections are the connectors that Cloudflare lists.
type RemoteConnections struct {
	// Read is when they were listed.
	Read       Instant
	Connectors []provider.Connector
}

// Track is one strand of work that fails and is retried by itself.
type Track int

// The tracks.
const (
	// TrackTunnel is finding, creating and deleting the tunnel.
	TrackTunnel Track = iota
	// TrackConfiguration is reading and writing the configuration.
	TrackConfiguration
	// TrackToken is the token and its rotation.
	TrackToken
	// TrackConnectors is applying the connectors.
	TrackConnectors
	// TrackStatuses is removing status entries.
	TrackStatuses
	// TrackObject is writing the Tunnel object and its record.
	TrackObject
	// Tracks is the number of tracks.
	Tracks
)

// TokenCheck says when Cloudflare is asked for the token.
type TokenCheck struct {
	// AskAgain is when Cloudflare is asked although nothing seems wrong.
	AskAgain Instant
	// Pending is whether the token of the rotation under way is not in the Secret
	// yet.
	Pending bool
	// Suspect is whether the token may have been replaced at Cloudflare.
	Suspect bool
	// Rotated is when the PATCH of the rotation under way was answered.
	Rotated Instant
	// Unanswered is when a PATCH was last sent without an answer. It may still
	// arrive and replace the token once more.
	Unanswered Instant
}
