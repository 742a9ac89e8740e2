package tunnel

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Conclude returns the Memory after step s has returned result r.
func Conclude(m Memory, s Step, r Result) Memory {
	if r.Stale {
		return m
	}
	if s.ExternalChange != 0 {
		m.Drift = m.Drift.add(r.Uptime, s.ExternalChange)
	}
	track, tracked := trackOf(s.Action)
	if r.Err != nil {
		if !tracked {
			track = TrackTunnel
		}
		return m.failed(track, s, r)
	}
	if tracked {
		m.Backoffs[track] = Backoff{}
	}
	return m.succeeded(s, r)
}

// trackOf returns the track whose backoff an action resets or extends.
func trackOf(a Action) (Track, bool) {
	switch a {
	case ReadConfiguration, Configure:
		return TrackConfiguration, true
	case ReadToken, RotateToken:
		return TrackToken, true
	case RunConnectors, StopConnectors:
		return TrackConnectors, true
	case WithdrawStatuses:
		return TrackStatuses, true
	case None, Wait, Record:
		return 0, false
	default:
		return TrackTunnel, true
	}
}

func (m Memory) succeeded(s Step, r Result) Memory {
	switch s.Action {
	case Claim:
		m.Claimed = true
	case ReadTunnel, FindByName, Create:
		return m.found(s, r)
	case ReadConfiguration:
		return m.read(s, r)
	case Configure:
		return m.configured(s, r)
	case ReadToken:
		m.Token.AskAgain, m.Token.Suspect, m.Token.Pending = At(r.Uptime+s.Interval), false, false
	case RotateToken:
		m.Token.Rotated, m.Token.Pending = At(r.Uptime), true
	case StopConnectors:
		m.Stopped = At(r.Uptime)
		m.Remote.Connections = RemoteConnections{}
	case WithdrawStatuses:
		m.Withdrawn = true
	case ListConnections:
		m.Remote.Connections = RemoteConnections{Read: At(r.Uptime), Connectors: r.Connectors}
	case Disconnect:
		m.Remote.Connections.Connectors = slices.DeleteFunc(slices.Clone(m.Remote.Connections.Connectors), func(c provider.Connector) bool { return c.ID == s.Connector })
	case Delete:
		m.Deleted = At(r.Uptime)
		m.Remote = Remote{Tunnel: RemoteTunnel{Presence: Absent}}
	case DeleteObject:
		return Memory{}
	case Record:
		return m.recorded(s)
	}
	return m
}

// recorded notes which tunnel the record names now.
func (m Memory) recorded(s Step) Memory {
	switch s.Record.TunnelID {
	case "":
		m.Remote.Configuration, m.Late, m.InEffect, m.Token = RemoteConfiguration{}, LateWrites{}, "", TokenCheck{}
	case string(m.Remote.Tunnel.ID):
		m.Remote.Configuration.Missing = false
	}
	return m
}

// found notes what Cloudflare said of the tunnel.
func (m Memory) found(s Step, r Result) Memory {
	t := r.Tunnel
	m.Remote.Tunnel = RemoteTunnel{Presence: Present, ID: t.ID, Name: t.Name, Local: t.Local}
	switch {
	case s.Action == Create:
		m.Created = At(r.Uptime)
		m.Remote.Configuration = RemoteConfiguration{Known: true, Hash: provider.Configuration{}.Hash(), Settled: true, ReadAgain: r.Uptime + s.Interval}
	case t.Local && s.Priority != provider.PriorityDeletion:
		// It may be migrated; look again after a while.
		m.Remote.Tunnel.Presence = PresenceUnknown
		p := problem(ReasonLocallyManaged, "Tunnel %s (%s) is locally managed: its connectors read their configuration from a file, so the controller leaves it alone. "+
			"Migrate it to remote management, rename it, or name another one in tunnel.existing.id.", t.Name, t.ID)
		m.Backoffs[TrackTunnel] = Backoff{Until: At(r.Uptime + lastRetry), Problem: p}
	default:
		m.Remote.Configuration.Missing = m.Remote.Configuration.Missing && s.Action == FindByName
	}
	return m
}

// read notes the remote configuration.
func (m Memory) read(s Step, r Result) Memory {
	c := RemoteConfiguration{
		Known: true, Configuration: r.Configuration, Hash: r.Configuration.Hash(), Version: r.Version,
		ReadAgain: r.Uptime + s.Interval, Settled: true,
	}
	for _, hash := range s.Unsettled {
		if hash != "" {
			m.Late = m.Late.add(r.Uptime, hash)
		}
	}
	arrived := len(m.Late.Hashes) == 0 || len(m.Late.Hashes) == 1 && m.Late.Hashes[0] == c.Hash
	if !arrived && m.Late.pending(r.Uptime) {
		c.ReadAgain = min(c.ReadAgain, m.Late.Settled.at+time.Second)
	}
	m.Remote.Configuration, m.InEffect = c, c.Hash
	return m
}

// configured notes the configuration that was written.
func (m Memory) configured(s Step, r Result) Memory {
	before := m.Remote.Configuration
	m.Push = m.Push.pushed(r.Uptime)
	m.Remote.Configuration = RemoteConfiguration{
		// A version that is not the next one means that somebody else wrote in
		// between; which configuration came last has to be read.
		Known: r.Version == before.Version+1, Configuration: r.Configuration, Hash: s.Hash, Version: r.Version,
		ReadAgain: min(before.ReadAgain, r.Uptime+s.Interval), Settled: true,
	}
	m.InEffect = s.Hash
	if m.Late.pending(r.Uptime) {
		m.Remote.Configuration.ReadAgain = min(m.Remote.Configuration.ReadAgain, m.Late.Settled.at+time.Second)
	} else {
		m.Late = LateWrites{}
	}
	return m
}

// failed notes why a step failed.
func (m Memory) failed(track Track, s Step, r Result) Memory {
	limited, isLimited := errors.AsType[*provider.RateLimitedError](r.Err)
	_, outcomeUnknown := errors.AsType[*provider.UnavailableError](r.Err)
	if isLimited && limited.Budget {
		b := m.Backoffs[track]
		b.Until, b.Slot = At(r.Uptime+limited.RetryAfter), Slot{Promised: true, Priority: s.Priority}
		m.Backoffs[track] = b
		return m.postponed(s, r, limited.RetryAfter)
	}
	switch s.Action {
	case Create:
		m.Created, m.Remote.Tunnel = At(r.Uptime), RemoteTunnel{}
	case Delete:
		m.Deleted, m.Remote = At(r.Uptime), Remote{}
	case Disconnect:
		m.Remote.Connections = RemoteConnections{}
	case ReadConfiguration:
		if isLimited && m.Remote.Configuration.Known {
			return m.postponed(s, r, limited.RetryAfter)
		}
	case Configure:
		m.Push = m.Push.pushed(r.Uptime)
		if outcomeUnknown {
			m.Late, m.InEffect = m.Late.add(r.Uptime, s.Hash), ""
		}
		m.Remote.Configuration.Known = isLimited
	case RotateToken:
		m.Token.Rotated = Instant{}
	}
	return m.explained(track, s, r)
}

// postponed moves the next read of a configuration that is known.
func (m Memory) postponed(s Step, r Result, wait time.Duration) Memory {
	if s.Action == ReadConfiguration && m.Remote.Configuration.Known {
		m.Remote.Configuration.ReadAgain = r.Uptime + wait
	}
	return m
}

// explained notes the failure in words, and what it says about the tunnel.
func (m Memory) explained(track Track, s Step, r Result) Memory {
	absent := errors.Is(r.Err, provider.ErrNotFound)
	switch {
	case absent && (s.Action == ReadTunnel || s.Action == FindByName):
		m.Remote.Tunnel = RemoteTunnel{Presence: Absent}
		if s.Action == FindByName {
			m.Backoffs[track] = Backoff{}
			return m
		}
	case absent && (s.Action == ReadConfiguration || s.Action == Configure || s.Action == ReadToken || s.Action == RotateToken || s.Action == ListConnections):
		m.Remote.Tunnel, m.Remote.Configuration = RemoteTunnel{}, RemoteConfiguration{Missing: true}
		m.InEffect = ""
	case errors.Is(r.Err, provider.ErrNameExists):
		m.Remote.Tunnel = RemoteTunnel{}
	case errors.Is(r.Err, provider.ErrLocallyManaged):
		m.Remote.Configuration, m.InEffect = RemoteConfiguration{}, ""
	}
	p := problemOf(s, r.Err)
	m.Backoffs[track] = m.Backoffs[track].failed(r.Uptime, p, r.Err)
	if p.Reason == ReasonConfigurationRejected {
		m.Backoffs[track].Hash = s.Hash
	}
	return m
}

// problemOf explains an error in words that stay the same from one attempt to
// the next.
func problemOf(s Step, err error) *Problem {
	invalid, isInvalid := errors.AsType[*provider.InvalidError](err)
	_, limited := errors.AsType[*provider.RateLimitedError](err)
	_, unavailable := errors.AsType[*provider.UnavailableError](err)
	switch {
	case errors.Is(err, provider.ErrUnauthorized):
		return problem(ReasonUnauthorized, "Cloudflare refuses the API token. It needs the permission Cloudflare Tunnel: Edit for the account.")
	case limited:
		return problem(ReasonRateLimited, "Cloudflare API rate limit reached.")
	case unavailable:
		return problem(ReasonUnavailable, "The Cloudflare API cannot be reached or does not answer as documented.")
	case isInvalid && s.Action == Configure:
		return problem(ReasonConfigurationRejected, "Cloudflare rejected the configuration: %s.", invalid.Message)
	case errors.Is(err, provider.ErrNotFound) && s.Action == ReadTunnel && s.Priority != provider.PriorityDeletion:
		return problem(ReasonTunnelMissing, "The tunnel that tunnel.existing.id names does not exist in the account. Correct the ID.")
	case errors.Is(err, provider.ErrLocallyManaged):
		return problem(ReasonLocallyManaged, "The tunnel is locally managed: its connectors read their configuration from a file, so the controller leaves it alone. "+
			"Migrate it to remote management in the Cloudflare dashboard.")
	case errors.Is(err, provider.ErrConnected):
		return problem(ReasonConnectorsConnected, "Connectors are still connected to the tunnel, so it is not deleted yet.")
	case errors.Is(err, provider.ErrRoutes):
		return problem(ReasonPrivateRoutes, "Private network routes lead to the tunnel, so Cloudflare refuses to delete it. "+
			"Remove the routes in the Cloudflare dashboard, or set spec.deletionPolicy of the Tunnel to Retain.")
	}
	if known, ok := errors.AsType[*Failure](err); ok {
		return &Problem{Reason: known.Reason, Message: sentence(known.Error()), NeedsPerson: describe(known.Reason).NeedsPerson}
	}
	return problem(reasonOf(s.Action), "%s", sentence(err.Error()))
}

// reasonOf returns the reason of a failure that nothing more is known about.
func reasonOf(a Action) Reason {
	switch a {
	case RunConnectors, StopConnectors:
		return ReasonConnectorsFailed
	case ReadToken, RotateToken:
		return ReasonTokenFailed
	case Claim, Record, WithdrawStatuses, DeleteObject:
		return ReasonKubernetes
	default:
		return ReasonFailed
	}
}

// Failure is an error of a step whose reason the controller knows.
type Failure struct {
	Reason Reason
	Err    error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns what happened.
func (f *Failure) Unwrap() error { return f.Err }

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}
