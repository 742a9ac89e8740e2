package tunnel

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func (m Memory) afterFailure(track Track, s Step, r Result) Memory {
	if s.Action == RotateToken {
		m.Token.Rotated = Instant{} // it belongs to an earlier rotation
	}
	limited, isLimited := errors.AsType[*provider.RateLimitedError](r.Err)
	if isLimited && limited.Budget {
		b := m.Backoffs[track]
		b.Until, b.Slot = At(r.Uptime+limited.RetryAfter), Slot{Assigned: true, Priority: s.Priority}
		m.Backoffs[track] = b
		return m.postponeRead(s, r, limited.RetryAfter)
	}
	if isLimited && s.Action == ReadConfiguration && m.Remote.Configuration.Known {
		return m.postponeRead(s, r, limited.RetryAfter)
	}
	return m.afterAttempt(s, r).withProblem(track, s, r)
}

// afterAttempt returns the Memory after a failed attempt that may have been applied.
func (m Memory) afterAttempt(s Step, r Result) Memory {
	pending := !isRefused(r.Err)
	switch s.Action {
	case Claim:
		m.Claimed = m.Claimed && s.Record == nil // the record may have been written
	case Create:
		m.Created, m.Remote.Tunnel = At(r.Uptime), RemoteTunnel{}
	case Delete:
		m.Deleted, m.Remote, m.InEffect = At(r.Uptime), Remote{}, ""
	case Disconnect:
		m.Remote.Connections = RemoteConnections{}
	case Configure:
		m = m.spend(s, r)
		m.FailedWrite = s.Hash
		_, limited := errors.AsType[*provider.RateLimitedError](r.Err)
		m.Remote.Configuration.Known = limited
		if pending {
			m.LateWrites, m.InEffect = m.LateWrites.add(r.Uptime, s.Hash), ""
		}
	case RotateToken:
		if pending {
			m.Token.Unanswered = At(r.Uptime)
		}
	default: // a read, or a write to Kubernetes
	}
	return m
}

// isRefused reports whether the error means that the request changed nothing. After any
// other error, including an expired context, Cloudflare may still apply the request.
func isRefused(err error) bool {
	_, limited := errors.AsType[*provider.RateLimitedError](err)
	_, invalid := errors.AsType[*provider.InvalidError](err)
	_, known := errors.AsType[*Failure](err)
	return limited || invalid || known || errors.Is(err, provider.ErrUnauthorized) || errors.Is(err, provider.ErrNotFound) ||
		errors.Is(err, provider.ErrLocallyManaged)
}

// postponeRead postpones the next read of a known configuration.
func (m Memory) postponeRead(s Step, r Result, wait time.Duration) Memory {
	if s.Action == ReadConfiguration && m.Remote.Configuration.Known {
		m.Remote.Configuration.NextRead = r.Uptime + wait
	}
	return m
}

// withProblem sets the backoff with the error's problem, and what the error implies
// about the tunnel.
func (m Memory) withProblem(track Track, s Step, r Result) Memory {
	switch {
	case errors.Is(r.Err, provider.ErrNotFound) && s.Action == FindByName:
		m.Remote.Tunnel, m.Backoffs[track] = RemoteTunnel{Presence: Absent, Read: At(r.Uptime)}, Backoff{}
		return m // not a failure: the tunnel does not exist
	case errors.Is(r.Err, provider.ErrNotFound) && s.Action == ReadTunnel:
		m.Remote.Tunnel = RemoteTunnel{Presence: Absent, Read: At(r.Uptime)}
	case errors.Is(r.Err, provider.ErrNotFound):
		m.Remote.Tunnel, m.Remote.Configuration = RemoteTunnel{}, RemoteConfiguration{Missing: true}
		m.InEffect = ""
		m.Backoffs[track] = m.Backoffs[track].next(r.Uptime, nil, r.Err) // rule locate finds the cause
		return m
	case errors.Is(r.Err, provider.ErrNameExists):
		m.Remote.Tunnel = RemoteTunnel{}
	case errors.Is(r.Err, provider.ErrLocallyManaged):
		m.Remote.Configuration, m.InEffect = RemoteConfiguration{}, ""
	}
	p := problemOf(s, r.Err)
	m.Backoffs[track] = m.Backoffs[track].next(r.Uptime, p, r.Err)
	if p.Reason == conditions.ReasonConfigurationRejected {
		m.Backoffs[track].Hash = s.Hash
	}
	return m
}

// problemOf returns the problem for an error. Its message is the same for repeated
// failures, so that the status does not change with each attempt.
func problemOf(s Step, err error) *Problem {
	if p := apiProblem(err); p != nil {
		return p
	}
	if invalid, ok := errors.AsType[*provider.InvalidError](err); ok {
		return problem(conditions.ReasonConfigurationRejected, "Cloudflare rejected the configuration: %s.", strings.TrimSuffix(invalid.Message, "."))
	}
	if errors.Is(err, provider.ErrNotFound) && s.Action == ReadTunnel && s.Priority != provider.PriorityDeletion {
		return problem(conditions.ReasonTunnelMissing, "The tunnel that tunnel.existing.id names does not exist in the Cloudflare account. Correct the ID.")
	}
	if known, ok := errors.AsType[*Failure](err); ok {
		return &Problem{Reason: known.Reason, Message: Sentence(known.Error()), RequiresAction: known.Reason.RequiresAction()}
	}
	return problem(reasonOf(s.Action), "Failed to %s: %s.", attempts[s.Action], strings.TrimSuffix(err.Error(), "."))
}

// apiProblem returns the problem for a Cloudflare API error that means the same for
// every action, or nil.
func apiProblem(err error) *Problem {
	_, limited := errors.AsType[*provider.RateLimitedError](err)
	_, unavailable := errors.AsType[*provider.UnavailableError](err)
	switch {
	case errors.Is(err, provider.ErrUnauthorized):
		return problem(conditions.ReasonUnauthorized, "Cloudflare rejects the API token. Replace the token, or give it the permission Cloudflare Tunnel: Edit for the account.")
	case limited:
		return problem(conditions.ReasonRateLimited, "Cloudflare API rate limit reached.")
	case unavailable:
		return problem(conditions.ReasonCloudflareUnavailable, "The Cloudflare API is unavailable or returns unexpected responses.")
	case errors.Is(err, provider.ErrLocallyManaged):
		return problem(conditions.ReasonLocallyManaged, "The tunnel is locally managed: its connectors read their configuration from a file, so the controller does not use it. "+
			"Migrate it to remote management in the Cloudflare dashboard.")
	case errors.Is(err, provider.ErrConnected):
		return problem(conditions.ReasonConnectorsConnected, "Connectors are still connected to the tunnel, so Cloudflare does not delete it. "+
			"Stop those connectors, or set the Tunnel's spec.deletionPolicy to Retain.")
	case errors.Is(err, provider.ErrRoutes):
		return problem(conditions.ReasonPrivateRoutes, "Private network routes point to the tunnel, so Cloudflare does not delete it. "+
			"Remove the routes in the Cloudflare dashboard, or set the Tunnel's spec.deletionPolicy to Retain.")
	default:
		return nil
	}
}

// attempts describes what the actions attempt, as the clause after "failed to".
var attempts = map[Action]string{ //nolint:gosec // G101: it contains no credentials
	Record:            "record the tunnel state",
	Claim:             "write the Tunnel object",
	ReadTunnel:        "read the tunnel",
	FindByName:        "find the tunnel",
	Create:            "create the tunnel",
	ReadConfiguration: "read the tunnel configuration",
	Configure:         "write the tunnel configuration",
	ReadToken:         "read the tunnel token",
	RotateToken:       "rotate the tunnel token",
	RunConnectors:     "reconcile the connectors",
	StopConnectors:    "stop the connectors",
	WithdrawStatuses:  "remove status entries",
	ListConnections:   "list the tunnel's connectors",
	Disconnect:        "disconnect a connector",
	Delete:            "delete the tunnel",
	DeleteObject:      "delete the Tunnel object",
}

// reasonOf returns the reason for a failure with an unknown cause.
func reasonOf(a Action) conditions.Reason {
	switch a {
	case RunConnectors, StopConnectors:
		return conditions.ReasonConnectorsFailed
	case ReadToken, RotateToken:
		return conditions.ReasonTokenFailed
	case Claim, Record, WithdrawStatuses, DeleteObject:
		return conditions.ReasonKubernetesUnavailable
	default:
		return conditions.ReasonFailed
	}
}

// Failure is an error with a known reason.
type Failure struct {
	Reason conditions.Reason
	Err    error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// ObjectTaken returns the failure to write one of the Tunnel's objects: an object with
// its kind and name exists and does not belong to the Tunnel.
func ObjectTaken(t *v1alpha1.Tunnel, kind string, name types.NamespacedName) *Failure {
	remedy := "delete or rename it"
	if kind == "Secret" {
		remedy = "delete it"
	}
	return &Failure{Reason: conditions.ReasonObjectTaken, Err: fmt.Errorf("%s %s exists and does not belong to Tunnel %s; %s", kind, name, t.Name, remedy)}
}

// Sentence turns an error text into a sentence.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}
